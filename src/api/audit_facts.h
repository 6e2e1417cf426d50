/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is known in words of a process that has device memory (design 4.7), as the JSON text that the journal keeps of it
 * (store/journal_audit.h) and /api/audit shows. Everything in it is a stranger's word or the kernel's; its environment is not
 * in it, and secrets on its command line were made unreadable by the eyes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "api/container.h"
#include "base/script.h"
#include "model/process.h"
#include "wire/eyes.h"

/* What one of its ancestors is called now; of one that is gone nobody knows. */
struct audit_ancestor {
        bool is_gone;
        char comm[EYES_COMM_SIZE]; /* any bytes; "" = not known */
};

/*
 * @told       what the eyes said
 * @settled    the same as the core has it: who its ancestors are, and by what
 * @ancestors  ANCESTORS_MAX at least, in the order of @settled
 * @started_wall_ms  0 = not known
 * UTF-8 of *ret_n bytes, fewer than JOURNAL_AUDIT_FACTS_MAX whatever was told; to be freed. NULL: no memory.
 */
char *audit_facts_text(const struct eyes_process *told, const struct process *settled,
                       const struct audit_ancestor *ancestors, uint64_t started_wall_ms, size_t *ret_n);

/* What the hands saw of a process that the eyes have no rights to see. */
struct audit_program {
        const char *path;                              /* as the kernel has it; "" = too long to be told */
        uint64_t dev, inode, script_dev, script_inode; /* script: 0 = none, or not seen */
};

/* The same with the program and its script. NULL: no memory, or the program is known already. */
char *audit_facts_add_program(const char *text, size_t n, const struct audit_program *seen, size_t *ret_n);
/* What it runs by the command line in @text, as a program of that name (base/script.h). */
enum script_kind audit_facts_script(const char *text, size_t n, const char *program, char *ret, size_t size);

/* The same with what the engine says of its container: name, image, and where Compose made it, of which service. NULL: no memory,
 * or @text is not what audit_facts_text() made of somebody in a container. */
char *audit_facts_add_container(const char *text, size_t n, const struct container_facts *facts, size_t *ret_n);
