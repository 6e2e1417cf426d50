/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel and the machine: what decides where lessord can see and reach. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <unistd.h>
#include "base/number.h"
#include "base/size.h"
#include "client/socket_path.h"
#include "programs/lessor/doctor.h"
#include "senses/proc.h"

enum { TEXT_MAX = 4096, PATH_MAX_BYTES = 512 };

/* ---- where are we ---- */

/* "docker", "podman", …; NULL: in none that shows. */
static const char *container(void)
{
        static const char *const marks[][2] = {
                { "/docker", "docker" }, { "/kubepods", "kubernetes" },      { "/libpod", "podman" },
                { "/lxc", "lxc" },       { "/machine.slice/", "a machine" },
        };
        static char manager[32];
        char text[TEXT_MAX];

        if (doctor_exists("/.dockerenv"))
                return "docker";
        if (doctor_exists("/run/.containerenv"))
                return "podman";
        if (doctor_read("/run/systemd/container", manager, sizeof(manager)) && manager[0] != '\0')
                return manager;
        if (doctor_read("/proc/self/cgroup", text, sizeof(text)))
                for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
                        if (strstr(text, marks[i][0]))
                                return marks[i][1];
        return NULL;
}

/* lessord's own word on pids counts where it answers: ours may be another namespace. */
static void check_place(struct doctor *d)
{
        char root[PATH_MAX_BYTES], socket[SOCKET_PATH_MAX];
        const char *proc = doctor_path("/proc", root, sizeof(root));
        const char *inside = container();
        bool ours = proc_sees_host_pids(proc);

        if (!d->may_ask)
                d->host_pids = ours;
        if (proc_kernel_is_wsl(proc))
                d->place = PLACE_WSL;
        else if (inside)
                d->place = PLACE_CONTAINER;
        else
                d->place = strncmp(socket_path_find(socket, sizeof(socket)), "/run/lessor/", 12) == 0 ? PLACE_SYSTEM
                                                                                                      : PLACE_SESSION;
        if (inside)
                doctor_addf(d, "container", FINDING_FACT, "", "this is inside a container (%s)", inside);
        if (d->host_pids && ours)
                doctor_add(d, "pid namespace", FINDING_OK, "that of the host: every holder can be named", "");
        else
                doctor_addf(d, "pid namespace", FINDING_WARN,
                            "run lessord on the host, or its container with `--pid=host`",
                            "%s in one of its own: holders outside it are counted, and cannot be named",
                            d->host_pids ? "this is" : "lessord is");
}

/* ---- the kernel ---- */

static void check_ptrace(struct doctor *d)
{
        static const char *const words[] = {
                "0: processes of one user may look into each other",
                "1: only into what they started; whether a checkpoint needs more is found out by trying",
                "2: only with CAP_SYS_PTRACE, which the system's warden has and one's own session has not",
                "3: nobody may, until the next boot",
        };
        static const char lower[] =
                "where a checkpoint is refused: `sysctl kernel.yama.ptrace_scope=0`, or the system's lessord";
        char text[16];
        uint64_t scope;

        if (!doctor_read("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text))) {
                doctor_add(d, "ptrace scope", FINDING_OK, "not restricted here (no Yama)", "");
                return;
        }
        if (parse_u64("scope", text, 0, 3, &scope, NULL) < 0) {
                doctor_add(d, "ptrace scope", FINDING_FACT, "it says something that is not known", "");
                return;
        }
        doctor_add(d, "ptrace scope",
                   scope == 0   ? FINDING_OK
                   : scope == 3 ? FINDING_WARN
                                : FINDING_FACT,
                   words[scope],
                   scope == 0   ? ""
                   : scope == 3 ? "boot with kernel.yama.ptrace_scope=2 or less"
                                : lower);
}

/* Does the user's manager have a part of the tree to make cgroups in? */
static bool user_has_cgroups(uid_t uid)
{
        char path[PATH_MAX_BYTES], whole[PATH_MAX_BYTES];
        struct stat st;
        (void) snprintf(path, sizeof(path), "/sys/fs/cgroup/user.slice/user-%u.slice/user@%u.service", uid, uid);
        return stat(doctor_path(path, whole, sizeof(whole)), &st) == 0 && st.st_uid == uid;
}

static void check_cgroups(struct doctor *d)
{
        if (!doctor_exists("/sys/fs/cgroup/cgroup.controllers")) {
                bool hybrid = doctor_exists("/sys/fs/cgroup/unified/cgroup.procs");
                doctor_addf(d, "cgroups", FINDING_WARN,
                            "boot with systemd.unified_cgroup_hierarchy=1; until then a lease's processes are found by "
                            "descent",
                            "%s", hybrid ? "version 1, with version 2 beside it for names only" : "version 1, or none");
                return;
        }
        if (geteuid() == 0 || user_has_cgroups(getuid()))
                doctor_add(d, "cgroups", FINDING_OK, "version 2, and `lessor run` can have one for each command", "");
        else
                doctor_add(d, "cgroups", FINDING_FACT, "version 2, but none is delegated to this user",
                           "log in through systemd (`loginctl enable-linger`); until then a lease's processes are "
                           "found by descent");
}

static void check_process_facts(struct doctor *d)
{
        char release[128], text[64];
        if (doctor_read("/proc/sys/kernel/osrelease", release, sizeof(release)))
                doctor_addf(d, "kernel", FINDING_FACT, "", "%s", release);
        if (!doctor_read("/proc/sys/kernel/acct", text, sizeof(text)))
                doctor_add(d, "accounting", FINDING_FACT, "this kernel writes none; nothing here needs it", "");
}

/* ---- memory, and who ends processes when it runs out ---- */

static bool memory_row(const char *text, const char *key, uint64_t *ret_bytes)
{
        char digits[24];
        const char *at = strstr(text, key);
        uint64_t kib;
        if (!at)
                return false;
        at += strlen(key);
        at += strspn(at, " ");
        (void) snprintf(digits, sizeof(digits), "%.*s", (int) strspn(at, "0123456789"), at);
        if (parse_u64("memory", digits, 0, UINT64_MAX / 1024, &kib, NULL) < 0)
                return false;
        *ret_bytes = kib * 1024;
        return true;
}

static void check_memory(struct doctor *d)
{
        char text[TEXT_MAX], total_text[SIZE_TEXT_MAX], free_text[SIZE_TEXT_MAX], keep_text[SIZE_TEXT_MAX];
        uint64_t total, available;
        if (!doctor_read("/proc/meminfo", text, sizeof(text)) || !memory_row(text, "MemTotal:", &total) ||
            !memory_row(text, "MemAvailable:", &available))
                return;
        /* design: nothing more is parked below the larger of 2 GiB and a tenth */
        uint64_t keep = u64_max(UINT64_C(2) << 30, total / 10);
        doctor_addf(d, "host memory", available > keep ? FINDING_OK : FINDING_WARN,
                    available > keep ? "" : "none is left to park work in: end something, or add memory",
                    "%s of %s available; %s of it is left alone", size_text_short(available, free_text),
                    size_text_short(total, total_text), size_text_short(keep, keep_text));
        if (!doctor_exists("/proc/pressure/memory"))
                doctor_add(d, "memory pressure", FINDING_FACT,
                           "this kernel does not tell it: boot with psi=1 to have it", "");
}

static void check_oom_killers(struct doctor *d)
{
        static const char *const killers[] = { "earlyoom", "systemd-oomd", "nohang" };
        char text[DOCTOR_TEXT_MAX] = "";
        pid_t pid;

        for (size_t i = 0; i < sizeof(killers) / sizeof(killers[0]); i++) {
                size_t n = strlen(text);
                if (doctor_find_processes(killers[i], &pid, 1) > 0)
                        (void) snprintf(text + n, sizeof(text) - n, "%s%s (pid %d)", n > 0 ? ", " : "", killers[i],
                                        (int) pid);
        }
        if (text[0] == '\0')
                doctor_add(d, "OOM killers", FINDING_OK, "none runs besides the kernel's", "");
        else
                doctor_addf(d, "OOM killers", FINDING_FACT, "", "%s may end programs that grow when they are parked",
                            text);
}

static void check_clock(struct doctor *d)
{
        struct timex clock = { 0 };
        int state = adjtimex(&clock); /* asked only */
        if (state < 0)
                return;
        if (state == TIME_ERROR || (clock.status & STA_UNSYNC) != 0)
                doctor_add(d, "clock", FINDING_FACT,
                           "not synchronised: times in `lessor events` may be off; no lease is", "");
        else
                doctor_add(d, "clock", FINDING_OK, "synchronised", "");
}

void doctor_host(struct doctor *d)
{
        check_place(d);
        check_ptrace(d);
        check_cgroups(d);
        check_process_facts(d);
        check_memory(d);
        check_oom_killers(d);
        check_clock(d);
}
