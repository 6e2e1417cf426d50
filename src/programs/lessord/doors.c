/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/number.h"
#include "programs/lessord/doors.h"

enum { BACKLOG = 256, PEM_MAX = 256 * 1024 };

/* ---- addresses ---- */

struct address {
        union {
                struct sockaddr any;
                struct sockaddr_in v4;
                struct sockaddr_in6 v6;
        };
        socklen_t size;
        bool loopback;
};

static int bad_address(const char *key, const char *text, struct error *err)
{
        return error_set(
                err, EINVAL,
                "%s: %s is not allowed; allowed: address:port in figures, such as 127.0.0.1:8787 or [::1]:8787", key,
                text);
}

static int parse_address(const char *key, const char *text, struct address *ret, struct error *err)
{
        char host[64];
        const char *colon = strrchr(text, ':');
        uint64_t port;

        *ret = (struct address){ 0 };
        if (!colon || (size_t) (colon - text) >= sizeof(host) || parse_u64(key, colon + 1, 0, 65535, &port, NULL) < 0)
                return bad_address(key, text, err);
        (void) snprintf(host, sizeof(host), "%.*s", (int) (colon - text), text);

        size_t n = strlen(host);
        if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
                host[n - 1] = '\0';
                if (inet_pton(AF_INET6, host + 1, &ret->v6.sin6_addr) != 1)
                        return bad_address(key, text, err);
                ret->v6.sin6_family = AF_INET6;
                ret->v6.sin6_port = htons((uint16_t) port);
                ret->size = sizeof(ret->v6);
                ret->loopback = IN6_IS_ADDR_LOOPBACK(&ret->v6.sin6_addr);
                return 0;
        }
        if (inet_pton(AF_INET, host, &ret->v4.sin_addr) != 1)
                return bad_address(key, text, err);
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons((uint16_t) port);
        ret->size = sizeof(ret->v4);
        ret->loopback = (ntohl(ret->v4.sin_addr.s_addr) >> 24) == 127;
        return 0;
}

static void name_door(struct door *door)
{
        struct address bound = { .size = sizeof(bound.v6) };
        char host[INET6_ADDRSTRLEN] = "?";

        if (getsockname(door->listen_fd, &bound.any, &bound.size) < 0)
                return;
        if (bound.any.sa_family == AF_INET6) {
                (void) inet_ntop(AF_INET6, &bound.v6.sin6_addr, host, sizeof(host));
                (void) snprintf(door->name, sizeof(door->name), "%s [%s]:%u", door_kind_name(door->kind), host,
                                ntohs(bound.v6.sin6_port));
        } else {
                (void) inet_ntop(AF_INET, &bound.v4.sin_addr, host, sizeof(host));
                (void) snprintf(door->name, sizeof(door->name), "%s %s:%u", door_kind_name(door->kind), host,
                                ntohs(bound.v4.sin_port));
        }
}

static int listen_on(const struct address *address, const char *text, struct door *door, struct error *err)
{
        const int yes = 1;
        auto_close int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return error_errno(err, errno, "opening %s", text);
        (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        if (address->any.sa_family == AF_INET6)
                (void) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
        if (bind(fd, &address->any, address->size) < 0)
                return error_errno(err, errno, "binding %s", text);
        if (listen(fd, BACKLOG) < 0)
                return error_errno(err, errno, "listening on %s", text);
        door->listen_fd = take_fd(fd);
        name_door(door);
        return 0;
}

/* ---- who may come in ---- */

static int find_user(const char *text, uint32_t *ret, struct error *err)
{
        uint64_t number;

        if (parse_u64("tcp_uid", text, 0, UINT32_MAX - 1, &number, NULL) == 0) {
                *ret = (uint32_t) number;
        } else {
                const struct passwd *user = getpwnam(text);
                if (!user)
                        return error_set(err, ENOENT, "tcp_uid: there is no user %s; name one, or its number", text);
                *ret = user->pw_uid;
        }
        if (*ret == 0)
                return error_set(err, EINVAL,
                                 "tcp_uid: root is not allowed; tcp_admin_token_file is the way to "
                                 "administer by TCP");
        return 0;
}

static int find_group(const char *key, const char *text, gid_t *ret, struct error *err)
{
        const struct group *group = getgrnam(text);

        if (!group)
                return error_set(err, ENOENT, "%s: there is no group %s; `groupadd --system %s` makes it", key, text,
                                 text);
        *ret = group->gr_gid;
        return 0;
}

int doors_socket_group(const struct conf_doors *conf, bool *ret_known, gid_t *ret_gid, struct error *err)
{
        struct error none;

        *ret_known = true;
        if (conf->socket_group[0])
                return find_group("socket_group", conf->socket_group, ret_gid, err);
        *ret_known = find_group("socket_group", "gpu", ret_gid, &none) == 0;
        return 0;
}

/* ---- the certificate ---- */

/* Certificates are links into an archive more often than not, so links are followed here. */
static int read_pem(const char *path, bool secret, char **ret, struct error *err)
{
        auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return error_errno(err, errno, "reading %s", path);
        if (!S_ISREG(st.st_mode) || st.st_size > PEM_MAX)
                return error_set(err, EINVAL, "%s is no regular file of at most %d bytes; name a PEM file", path,
                                 PEM_MAX);
        if (secret && (st.st_mode & 027))
                return error_set(err, EPERM, "others can read the key %s: chmod 600 it", path);
        char *text = calloc(1, (size_t) st.st_size + 1);
        if (!text)
                return error_set(err, ENOMEM, "no memory for %s", path);
        if (read(fd, text, (size_t) st.st_size) != st.st_size) {
                free(text);
                return error_set(err, EIO, "reading %s failed", path);
        }
        *ret = text;
        return 0;
}

static int load_certificate(struct doors *d, const struct conf_doors *conf, struct error *err)
{
        if (!conf->tcp_cert[0] && !conf->tcp_key[0])
                return 0;
        if (!conf->tcp_cert[0] || !conf->tcp_key[0])
                return error_set(err, EINVAL, "tcp_cert and tcp_key belong together: give both or none");
        int r = read_pem(conf->tcp_cert, false, &d->cert, err);
        return r < 0 ? r : read_pem(conf->tcp_key, true, &d->key, err);
}

/* ---- opening ---- */

static int check_address(const struct doors *d, const char *key, const char *text, const struct address *address,
                         struct error *err)
{
        if (address->loopback || (d->cert && d->key))
                return 0;
        return error_set(err, EPERM,
                         "%s: %s can be reached from other machines, where the token would travel in the open: give "
                         "tcp_cert and tcp_key for TLS, or listen on 127.0.0.1 and let ssh -L or a proxy lead there",
                         key, text);
}

static int open_tcp(struct doors *d, const struct conf_doors *conf, struct error *err)
{
        struct door *door = &d->items[d->n];
        struct address address;

        if (!conf->tcp_listen[0])
                return 0;
        *door = (struct door){ .kind = DOOR_TCP, .listen_fd = -1, .tls = d->cert != NULL };
        (void) snprintf(door->hosts, sizeof(door->hosts), "%s", conf->tcp_hosts);
        int r = parse_address("tcp_listen", conf->tcp_listen, &address, err);
        if (r == 0)
                r = check_address(d, "tcp_listen", conf->tcp_listen, &address, err);
        if (r == 0 && !conf->tcp_token_file[0] && !conf->tcp_admin_token_file[0])
                r = error_set(err, EPERM,
                              "tcp_listen: without a token everybody would be let in: give tcp_token_file, "
                              "tcp_admin_token_file, or both");
        if (r == 0 && conf->tcp_token_file[0])
                r = token_load(conf->tcp_token_file, &door->user, err);
        if (r == 0 && conf->tcp_admin_token_file[0])
                r = token_load(conf->tcp_admin_token_file, &door->admin, err);
        if (r == 0 && door->user.given && door->admin.given &&
            memcmp(door->user.digest, door->admin.digest, sizeof(door->user.digest)) == 0)
                r = error_set(err, EINVAL,
                              "tcp_token_file and tcp_admin_token_file hold the same token: users would be "
                              "administrators; write another one");
        if (r == 0 && conf->tcp_uid[0]) {
                r = find_user(conf->tcp_uid, &door->uid, err);
                door->uid_known = r == 0;
        }
        if (r == 0)
                r = listen_on(&address, conf->tcp_listen, door, err);
        d->n += r == 0;
        return r;
}

static int open_metrics(struct doors *d, const struct conf_doors *conf, struct error *err)
{
        struct door *door = &d->items[d->n];
        struct address address;

        if (!conf->metrics_listen[0])
                return 0;
        *door = (struct door){ .kind = DOOR_METRICS, .listen_fd = -1, .tls = d->cert != NULL };
        (void) snprintf(door->hosts, sizeof(door->hosts), "%s", conf->metrics_hosts);
        int r = parse_address("metrics_listen", conf->metrics_listen, &address, err);
        if (r == 0)
                r = check_address(d, "metrics_listen", conf->metrics_listen, &address, err);
        if (r == 0 && !conf->metrics_token_file[0])
                r = error_set(err, EPERM,
                              "metrics_listen: without a token everybody could read: give metrics_token_file "
                              "(Prometheus: authorization.credentials_file)");
        if (r == 0)
                r = token_load(conf->metrics_token_file, &door->user, err);
        if (r == 0)
                r = listen_on(&address, conf->metrics_listen, door, err);
        d->n += r == 0;
        return r;
}

int doors_open(struct doors *ret, const struct conf_doors *conf, struct error *err)
{
        struct doors d = { 0 };
        int r = 0;

        if (conf->admin_group[0]) {
                r = find_group("admin_group", conf->admin_group, &d.admin_gid, err);
                d.admin_gid_known = r == 0;
                (void) snprintf(d.admin_group, sizeof(d.admin_group), "%s", conf->admin_group);
        }
        if (r == 0)
                r = load_certificate(&d, conf, err);
        if (r == 0)
                r = open_tcp(&d, conf, err);
        if (r == 0)
                r = open_metrics(&d, conf, err);
        if (r < 0) {
                doors_close(&d);
                return r;
        }
        for (uint32_t i = 0; i < d.n; i++)
                log_info("event=door name=\"%s\" tls=%d", d.items[i].name, d.items[i].tls);
        *ret = d;
        return 0;
}

void doors_forget_key(struct doors *d)
{
        if (d->key)
                explicit_bzero(d->key, strlen(d->key));
        free(d->key);
        free(d->cert);
        d->key = d->cert = NULL;
}

void doors_close(struct doors *d)
{
        doors_forget_key(d);
        for (uint32_t i = 0; i < d->n; i++)
                closep(&d->items[i].listen_fd);
        d->n = 0;
}
