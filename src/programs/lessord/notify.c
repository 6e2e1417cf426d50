/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "programs/lessord/notify.h"

void notify_service_manager(const char *words)
{
        const char *path = getenv("NOTIFY_SOCKET");
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        size_t n = path ? strlen(path) : 0;

        if (n < 2 || n >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
                return;
        memcpy(address.sun_path, path, n);
        if (path[0] == '@') /* an abstract address */
                address.sun_path[0] = '\0';
        auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd >= 0)
                (void) sendto(fd, words, strlen(words), MSG_NOSIGNAL, (const struct sockaddr *) &address,
                              (socklen_t) (offsetof(struct sockaddr_un, sun_path) + n));
}
