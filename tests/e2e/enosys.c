/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enosys NAME[=ERRNO]... -- COMMAND...: runs COMMAND on a kernel that answers ENOSYS, or errno ERRNO, to the system calls
 * named; 0 makes them succeed without being done. Raw calls and static programs see it too, as a preload would not do.
 * Names that are no system calls: "filters" (a kernel without seccomp), "peerpidfd" (getsockopt SO_PEERPIDFD, Linux 6.5).
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static _Noreturn void die(const char *what, int r)
{
        (void) fprintf(stderr, "enosys: %s%s%s\n", what, r < 0 ? ": " : "", r < 0 ? strerror(-r) : "");
        exit(125);
}

static void forbid(scmp_filter_ctx filter, char *word)
{
        char *value = strchr(word, '=');
        uint32_t code = ENOSYS;
        int r;

        if (value) {
                *value++ = '\0';
                code = (uint32_t) strtoul(value, NULL, 10);
        }
        if (strcmp(word, "filters") == 0) {
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(seccomp), 0);
                if (r == 0)
                        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(prctl), 1,
                                             SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP));
        } else if (strcmp(word, "peerpidfd") == 0) {
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOPROTOOPT), SCMP_SYS(getsockopt), 2,
                                     SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET), SCMP_A2(SCMP_CMP_EQ, SO_PEERPIDFD));
        } else {
                int number = seccomp_syscall_resolve_name(word);
                if (number == __NR_SCMP_ERROR)
                        die("no system call has this name", -EINVAL);
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(code), number, 0);
        }
        if (r < 0)
                die(word, r);
}

int main(int argc, char **argv)
{
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
        int at = 1;

        if (!filter)
                die("no memory", 0);
        for (; at < argc && strcmp(argv[at], "--") != 0; at++)
                forbid(filter, argv[at]);
        if (at + 1 >= argc)
                die("enosys NAME[=ERRNO]... -- COMMAND...", 0);
        int r = seccomp_load(filter);
        if (r < 0)
                die("loading the filter", r);
        (void) execvp(argv[at + 1], argv + at + 1);
        die(argv[at + 1], -errno);
}
