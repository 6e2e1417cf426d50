/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other processes that a machine may have: N children that sleep. Prints "ready N" with the number that could be made, and
 * ends with all of them at SIGTERM or when its input is closed.
 *
 *      bench_crowd N
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/number.h"

enum { CROWD_MAX = 30000 };

int main(int argc, char **argv)
{
        struct error err = { 0 };
        uint64_t n_wanted, n = 0;
        char byte;

        if (argc != 2 || parse_u64("N", argv[1], 0, CROWD_MAX, &n_wanted, &err) < 0) {
                (void) fprintf(stderr, "bench_crowd: %s\n", argc != 2 ? "usage: bench_crowd N" : err.msg);
                return EXIT_FAILURE;
        }
        pid_t self = getpid();
        while (n < n_wanted) {
                pid_t pid = fork();
                if (pid < 0)
                        break; /* a limit of this machine: said by the number */
                if (pid == 0) {
                        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                        while (getppid() == self)
                                (void) pause();
                        _exit(EXIT_SUCCESS);
                }
                n++;
        }
        (void) printf("ready %llu\n", (unsigned long long) n);
        (void) fflush(stdout);
        while (read(STDIN_FILENO, &byte, 1) > 0)
                ;
        return EXIT_SUCCESS; /* the children's parent is gone: so are they */
}
