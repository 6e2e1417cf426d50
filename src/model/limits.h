/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The most of everything (design 3.1). Full is a refusal that names the limit, never a surprise. The tables are plain
 * arrays inside struct world; pages nobody wrote to cost nothing.
 */
enum {
        DEVICES_MAX = 64,
        LEASES_MAX = 4096,
        GANG_MAX = 8, /* devices of one lease */
        GANG_MORE_MAX = GANG_MAX - 1,
        GANGS_MORE_MAX = 1024, /* devices that gangs have beside their first, all gangs together */
        ENTRIES_MAX = 1024,    /* queue entries in view */
        PROCESSES_MAX = 16384,
        ROWS_MAX = 1024,         /* processes one reading may list */
        OCCUPANCIES_MAX = 16384, /* (process, device) pairs; what a reading lists beyond stays unattributed */
        /* One for each lease on each of its devices and each stranger there can be (new ones stand beside those they replace),
         * and a display, a head's claim and some tenants a device: this table is never full before one of the others is. */
        HOLDERS_MAX = LEASES_MAX + GANGS_MORE_MAX + OCCUPANCIES_MAX + ROWS_MAX + 16 * DEVICES_MAX,
        USERS_MAX = 1024,
        HABITS_MAX = 1024, /* (user, program) pairs of which something is remembered */
        HABITS_PER_USER_MAX = 256,
        APPROVALS_MAX = 256,
        AUDITS_MAX = 1024,  /* processes without a lease that are remembered for a day */
        FLOORS_MAX = 5,     /* releases whose floor is remembered: what there is to take a median of */
        PEAKS_MAX = 20,     /* the last so many runs of each: what there is to take a p95 of */
        ANCESTORS_MAX = 16, /* links of a process's ancestry that are kept for attribution */

        UUID_TEXT_MAX = 96, /* NVML's own buffer size, NUL included */
        DEVICE_NAME_MAX = 96,
        PCI_TEXT_MAX = 32,
        NAME_MAX_BYTES = 64, /* lease name, consumer; NUL included */
        BLOCKERS_MAX = 8,    /* how many "who is in the way" a reason carries; the rest is counted */
        ACTIONS_MAX =
                LEASES_MAX + 512, /* orders and events of one step: every lease may end in one (a reboot), a reading
                                           may show ROWS_MAX strangers come and as many gone; what is left goes on at
                                           the next step (actions.more) */
};
