/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The managers of work that we did not start: systemd (units.h), a container engine (containers.h), and logind, which asks before the
 * machine stands still (inhibit.h). A person's own session has units of that person's service manager; the machine's lessord
 * those of the machine's, of who adopts his own, or by an administrator.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/action.h"
#include "model/manager.h"
#include "programs/lessord/bus.h"
#include "programs/lessord/containers.h"
#include "programs/lessord/inhibit.h"
#include "programs/lessord/units.h"

struct daemon;

struct managers {
        struct bus user, system; /* loop NULL: not used */
        struct units units;
        struct containers containers;
        struct inhibit inhibit;
        bool has_inhibit;
};

void managers_start(struct daemon *d);
void managers_stop(struct daemon *d);
void managers_act(struct daemon *d, const struct action *action);
/* Who runs what is in this cgroup, and may be asked by @uid to stop it. False: nobody, *ret_why says how so. */
bool managers_find(struct daemon *d, const char *cgroup_path, uint32_t uid, bool is_admin, struct manager *ret,
                   const char **ret_why);
/* "" = they can be asked, or why not. */
const char *managers_units_words(const struct daemon *d);
const char *managers_sleep_words(const struct daemon *d);
