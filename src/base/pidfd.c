/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/pidfd.h"

static int unusable(struct error *err, const char *call, int code)
{
        if (code == EMFILE || code == ENFILE || code == ENOMEM)
                return error_errno(err, code, "%s", call);
        return error_set(err, code,
                         "%s does not work here (%s): lessor needs Linux 5.3, and a sandbox that allows this call",
                         call, strerror(code));
}

int pidfd_check_usable(struct error *err)
{
        auto_close int self = pidfd_open(getpid(), 0);

        if (self < 0)
                return unusable(err, "pidfd_open", errno);
        if (pidfd_send_signal(self, 0, NULL, 0) < 0) /* 0: no signal, only the question */
                return unusable(err, "pidfd_send_signal", errno);
        return 0;
}
