/* SPDX-License-Identifier: Apache-2.0 */
#include "hands/checkpointer.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/cleanup.h"

enum { FIRST_FREE = CHECKPOINTER_PARKED_FD + 1, FILES_MAX = 1024, EXEC_FAILED = 127 };

/* Between fork and exec. Nothing else of ours stays open there: a dead warden must look dead to its brain. */
__attribute__((noreturn)) static void become(const char *program, int sock, int book, int parked, bool system)
{
        static char name[] = "lessor-checkpoint", flag[] = "--system";
        char *argv[] = { name, system ? flag : NULL, NULL };
        int high[] = { fcntl(sock, F_DUPFD, FIRST_FREE), fcntl(book, F_DUPFD, FIRST_FREE),
                       fcntl(parked, F_DUPFD, FIRST_FREE) };

        for (int i = 0; i < 3; i++)
                if (dup2(high[i], CHECKPOINTER_SOCKET_FD + i) < 0)
                        _exit(EXEC_FAILED);
        if (syscall(SYS_close_range, FIRST_FREE, ~0U, 0) < 0)
                for (int fd = FIRST_FREE; fd < FILES_MAX; fd++)
                        (void) close(fd);
        (void) execv(program, argv);
        _exit(EXEC_FAILED);
}

int checkpointer_start(const char *program, int book, int parked, bool system, int *ret_sock, struct error *err)
{
        int pair[2];

        if (access(program, X_OK) < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return error_errno(err, errno, "starting %s", program);
        auto_close int ours = pair[0];
        auto_close int theirs = pair[1];
        pid_t pid = fork();
        if (pid < 0)
                return error_errno(err, errno, "starting %s", program);
        if (pid == 0)
                become(program, theirs, book, parked, system);
        *ret_sock = take_fd(ours);
        return 0;
}

int checkpointer_say(int sock, enum checkpointer_word word, uint32_t slot)
{
        const struct checkpointer_message msg = { word, slot };

        return send(sock, &msg, sizeof(msg), MSG_NOSIGNAL) == sizeof(msg) ? 0 : -errno;
}

int checkpointer_prepare(int sock, uint32_t slot)
{
        int32_t pid = -EPIPE;
        int r = checkpointer_say(sock, CHECKPOINTER_PREPARE, slot);

        return r < 0 ? r : recv(sock, &pid, sizeof(pid), 0) == sizeof(pid) && pid != 0 ? pid : -EPIPE;
}
