/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "programs/lessord/inherited.h"

void inherited_put_right(void)
{
        sigset_t none;

        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
                if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
                        continue;
                if (open("/dev/null", O_RDWR) != fd) /* the lowest free number, which is this one */
                        abort();
        }
        (void) signal(SIGCHLD, SIG_DFL);
        (void) signal(SIGPIPE, SIG_IGN);
        (void) signal(SIGXFSZ, SIG_IGN); /* a file size limit is a full disk: an error of write(), not the end */
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
}
