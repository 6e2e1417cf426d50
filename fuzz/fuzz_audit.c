/* SPDX-License-Identifier: Apache-2.0 */
/* What the eyes say of a process, written down in words: whatever it calls itself, it fits, it is JSON, and it is read back (F57). */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "api/audit_facts.h"
#include "api/audit_json.h"
#include "programs/lessord/eyes_facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Rows of a journal that somebody wrote into: any bytes. */
static void show(const char *facts, size_t n)
{
        struct audited_row row = { .audit = { .id = 1, .pid = 1, .facts = facts, .n_facts = n } };
        const struct audited audited = { .rows = &row, .n_rows = 1 };
        const struct told_audit_host host = { 0 };
        json_t *whole = told_audited(&audited, &host);

        assert(json_array_size(json_object_get(whole, "audits")) == 1);
        char *text = json_dumps(whole, 0);
        assert(text && text[strcspn(text, "\n\r\t\x1b")] == '\0');
        free(text);
        json_decref(whole);
}

static void write_down(const struct eyes_process *told)
{
        struct audit_ancestor ancestors[ANCESTORS_MAX] = { 0 };
        struct process settled;
        size_t n = 0;

        eyes_facts_process(told, true, &settled);
        for (uint32_t i = 0; i < settled.n_ancestors; i++)
                memcpy(ancestors[i].comm, told->comm, sizeof(ancestors[i].comm));
        char *facts = audit_facts_text(told, &settled, ancestors, told->start_ticks, &n);
        assert(facts && n == strlen(facts) && n < JOURNAL_AUDIT_FACTS_MAX);
        json_t *json = json_loadb(facts, n, JSON_REJECT_DUPLICATES, NULL);
        assert(json_is_object(json) && json_array_size(json_object_get(json, "parents")) == settled.n_ancestors);
        json_decref(json);
        show(facts, n);
        free(facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct eyes_message msg;

        if (eyes_decode(data, size, &msg, NULL) == 0 && msg.kind == EYES_PROCESS)
                write_down(&msg.process);
        else if (size <= JOURNAL_AUDIT_FACTS_MAX)
                show((const char *) data, size);
        return 0;
}
