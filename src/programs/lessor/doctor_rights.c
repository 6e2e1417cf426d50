/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what: the capabilities each part needs, and those that its processes have (security S23). */
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include "programs/lessor/doctor.h"

enum { PIDS_MAX = 1, LIST_MAX = 160 };

const struct right doctor_right_rows[] = {
        { "grant leases, keep books", "lessord", "none" },
        { "read devices and processes", "lessor-eyes", "none" },
        { "end other users' processes", "lessor-warden", "CAP_KILL" },
        { "checkpoint other users' processes", "lessor-warden", "CAP_SYS_PTRACE" },
        { "keep parked work from the OOM killer", "lessor-warden", "CAP_SYS_RESOURCE" },
        { "read process accounting", "lessor-warden", "CAP_SYS_PACCT" },
        { "hear of processes at once, before Linux 6.6", "lessor-warden", "CAP_NET_ADMIN" },
        { "keep the gate", "lessor-warden-admin", "CAP_BPF" },
        { "keep the gate", "lessor-warden-admin", "CAP_NET_ADMIN" },
        { "keep the gate", "lessor-warden-admin", "CAP_DAC_READ_SEARCH" },
        { "set clocks, MIG and MPS", "lessor-warden-admin", "root, for NVML's setters" },
        { 0 },
};

static const struct {
        int number;
        const char *name;
} names[] = {
        { CAP_KILL, "CAP_KILL" },
        { CAP_SYS_PTRACE, "CAP_SYS_PTRACE" },
        { CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE" },
        { CAP_SYS_PACCT, "CAP_SYS_PACCT" },
        { CAP_NET_ADMIN, "CAP_NET_ADMIN" },
        { CAP_SYS_ADMIN, "CAP_SYS_ADMIN" },
};

static const char *list_of(uint64_t mask, char buf[LIST_MAX])
{
        size_t n = 0;
        buf[0] = '\0';
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                if ((mask >> names[i].number & 1) == 0)
                        continue;
                n += (size_t) snprintf(buf + n, n < LIST_MAX ? LIST_MAX - n : 0, "%s%s", n > 0 ? " " : "",
                                       names[i].name);
                mask &= ~(UINT64_C(1) << names[i].number);
        }
        if (mask != 0 && n < LIST_MAX)
                (void) snprintf(buf + n, LIST_MAX - n, "%sothers", n > 0 ? " and " : "");
        return buf[0] != '\0' ? buf : "none";
}

/* @wanted: 1 bits are in order for it. */
static void check_process(struct doctor *d, const char *comm, uint64_t wanted)
{
        char text[LIST_MAX];
        uint64_t mask;
        pid_t pid;

        if (doctor_find_processes(comm, &pid, PIDS_MAX) == 0)
                return;
        if (!doctor_mask(pid, "CapEff:", &mask)) {
                doctor_addf(d, "rights", FINDING_FACT, "", "%s (pid %d): not to be seen", comm, (int) pid);
                return;
        }
        bool fine = (mask & ~wanted) == 0;
        doctor_addf(d, "rights", fine ? FINDING_OK : FINDING_WARN,
                    fine ? "" : "use the units that come with lessor: they leave it only what it needs",
                    "%s (pid %d) has %s", comm, (int) pid, list_of(mask, text));
}

void doctor_rights(struct doctor *d)
{
        static const uint64_t hands = UINT64_C(1) << CAP_KILL | UINT64_C(1) << CAP_SYS_PTRACE |
                                      UINT64_C(1) << CAP_SYS_RESOURCE | UINT64_C(1) << CAP_SYS_PACCT |
                                      UINT64_C(1) << CAP_NET_ADMIN;
        check_process(d, "lessord", 0);
        check_process(d, "lessor-eyes", 0);
        check_process(d, "lessor-warden", hands);
}
