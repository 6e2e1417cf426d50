/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a durable grant is measured against: each request is answered with its own body, after a SQLite commit of a given
 * number of bytes. The same libraries in the same arrangement as the daemon and nothing else: libmicrohttpd's epoll set in a
 * libuv loop; what a turn of it brought is committed at once by a second thread (WAL, synchronous=NORMAL) while the
 * connections are suspended.
 *
 *      bench_echo SOCKET DATABASE BYTES        prints "ready" and serves until SIGTERM
 */
#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>
#include "base/number.h"

enum { BODY_MAX = 4096, COMMIT_MAX = 65536, CONNECTIONS_MAX = 64 };

struct exchange { /* one request under way */
        struct MHD_Connection *connection;
        struct exchange *next; /* of those that are committed together */
        bool committed;
        size_t n;
        char body[BODY_MAX];
};

struct echo {
        uv_loop_t loop;
        uv_poll_t listening, http;
        uv_timer_t timer;
        uv_prepare_t turn_ends;
        uv_async_t written;
        struct MHD_Daemon *mhd;
        int listen_fd;
        struct exchange *collected; /* by the loop, for the next commit */
        struct exchange *under_way; /* with the writer; the loop's again once it is written */

        uv_thread_t writer;
        uv_sem_t work;
        sqlite3 *db;
        sqlite3_stmt *begin, *insert, *commit;
        int n_commit_bytes;
        char bytes[COMMIT_MAX];
};

static _Noreturn void give_up(const char *what, const char *words)
{
        (void) fprintf(stderr, "bench_echo: %s: %s\n", what, words);
        exit(EXIT_FAILURE);
}

/* ---- the writer ---- */

static sqlite3_stmt *statement(struct echo *e, const char *sql)
{
        sqlite3_stmt *made;

        if (sqlite3_prepare_v2(e->db, sql, -1, &made, NULL) != SQLITE_OK)
                give_up(sql, sqlite3_errmsg(e->db));
        return made;
}

static void open_database(struct echo *e, const char *path)
{
        static const char setup[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -1024;"
                                    "CREATE TABLE record (seq INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;";

        if (sqlite3_open(path, &e->db) != SQLITE_OK || sqlite3_exec(e->db, setup, NULL, NULL, NULL) != SQLITE_OK)
                give_up(path, sqlite3_errmsg(e->db));
        e->begin = statement(e, "BEGIN IMMEDIATE");
        e->insert = statement(e, "INSERT INTO record (bytes) VALUES (?)");
        e->commit = statement(e, "COMMIT");
}

static void run_statement(struct echo *e, sqlite3_stmt *stmt)
{
        if (sqlite3_step(stmt) != SQLITE_DONE)
                give_up("commit", sqlite3_errmsg(e->db));
        (void) sqlite3_reset(stmt);
}

static void write_all(void *arg)
{
        struct echo *e = arg;

        for (;;) {
                uv_sem_wait(&e->work);
                run_statement(e, e->begin);
                for (const struct exchange *x = e->under_way; x; x = x->next) {
                        (void) sqlite3_bind_blob(e->insert, 1, e->bytes, e->n_commit_bytes, SQLITE_STATIC);
                        run_statement(e, e->insert);
                }
                run_statement(e, e->commit);
                (void) uv_async_send(&e->written);
        }
}

/* What this turn brought goes to the writer, unless it has not finished the last. */
static void hand_over(struct echo *e)
{
        if (e->under_way || !e->collected)
                return;
        e->under_way = e->collected;
        e->collected = NULL;
        uv_sem_post(&e->work);
}

static void on_turn_ends(uv_prepare_t *prepare)
{
        hand_over(prepare->data);
}

/* ---- HTTP ---- */

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *n_upload, void **request)
{
        struct echo *e = cls;
        struct exchange *x = *request;

        (void) url;
        (void) method;
        (void) version;
        if (!x) {
                *request = calloc(1, sizeof(*x));
                return *request ? MHD_YES : MHD_NO;
        }
        if (*n_upload > 0) {
                if (*n_upload > sizeof(x->body) - x->n)
                        return MHD_NO;
                memcpy(x->body + x->n, upload, *n_upload);
                x->n += *n_upload;
                *n_upload = 0;
                return MHD_YES;
        }

        if (!x->committed) {
                x->connection = connection;
                x->next = e->collected;
                e->collected = x;
                MHD_suspend_connection(connection);
                return MHD_YES;
        }
        struct MHD_Response *answer = MHD_create_response_from_buffer(x->n, x->body, MHD_RESPMEM_MUST_COPY);
        if (!answer)
                return MHD_NO;
        (void) MHD_add_response_header(answer, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
        enum MHD_Result r = MHD_queue_response(connection, MHD_HTTP_OK, answer);
        MHD_destroy_response(answer);
        return r;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode code)
{
        (void) cls;
        (void) connection;
        (void) code;
        free(*request);
        *request = NULL;
}

static void on_timer(uv_timer_t *timer);

static void run_http(struct echo *e)
{
        MHD_UNSIGNED_LONG_LONG ms;

        (void) MHD_run(e->mhd);
        if (MHD_get_timeout(e->mhd, &ms) == MHD_YES)
                (void) uv_timer_start(&e->timer, on_timer, ms, 0);
        else
                (void) uv_timer_stop(&e->timer);
}

static void on_timer(uv_timer_t *timer)
{
        run_http(timer->data);
}

static void on_http(uv_poll_t *poll, int status, int events)
{
        (void) status;
        (void) events;
        run_http(poll->data);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
        const struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct echo *e = poll->data;
        int fd;

        (void) status;
        (void) events;
        while ((fd = accept4(e->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
                (void) MHD_add_connection(e->mhd, fd, (const struct sockaddr *) &address, sizeof(address));
        run_http(e);
}

static void on_written(uv_async_t *async)
{
        struct echo *e = async->data;
        struct exchange *x = e->under_way;

        e->under_way = NULL;
        while (x) {
                struct exchange *next = x->next;
                x->committed = true;
                MHD_resume_connection(x->connection);
                x = next;
        }
        run_http(e);
        hand_over(e);
}

static int listen_on(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (strlen(path) >= sizeof(address.sun_path))
                give_up(path, "too long for a socket");
        memcpy(address.sun_path, path, strlen(path) + 1);
        if (fd < 0 || bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ||
            listen(fd, CONNECTIONS_MAX) < 0)
                give_up(path, strerror(errno));
        return fd;
}

int main(int argc, char **argv)
{
        static struct echo e;
        struct error err = { 0 };
        uint64_t n_bytes;

        if (argc != 4)
                give_up("usage", "bench_echo SOCKET DATABASE BYTES");
        if (parse_u64("BYTES", argv[3], 1, COMMIT_MAX, &n_bytes, &err) < 0)
                give_up("usage", err.msg);
        (void) prctl(PR_SET_PDEATHSIG, SIGTERM); /* never left behind by a bench that was interrupted */
        e.n_commit_bytes = (int) n_bytes;
        memset(e.bytes, 0x5a, sizeof(e.bytes));
        open_database(&e, argv[2]);
        e.listen_fd = listen_on(argv[1]);

        e.mhd = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
                                 on_request, &e, MHD_OPTION_NOTIFY_COMPLETED, on_completed, &e,
                                 MHD_OPTION_CONNECTION_LIMIT, (unsigned) CONNECTIONS_MAX, MHD_OPTION_END);
        const union MHD_DaemonInfo *info = e.mhd ? MHD_get_daemon_info(e.mhd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
        if (!info || uv_loop_init(&e.loop) != 0)
                give_up("start", "no HTTP server");
        (void) uv_timer_init(&e.loop, &e.timer);
        (void) uv_poll_init(&e.loop, &e.http, info->epoll_fd);
        (void) uv_poll_init(&e.loop, &e.listening, e.listen_fd);
        (void) uv_prepare_init(&e.loop, &e.turn_ends);
        e.timer.data = e.http.data = e.listening.data = e.turn_ends.data = e.written.data = &e;
        if (uv_sem_init(&e.work, 0) != 0 || uv_async_init(&e.loop, &e.written, on_written) != 0 ||
            uv_thread_create(&e.writer, write_all, &e) != 0)
                give_up("start", "no writer");
        (void) uv_prepare_start(&e.turn_ends, on_turn_ends);
        (void) uv_poll_start(&e.http, UV_READABLE, on_http);
        (void) uv_poll_start(&e.listening, UV_READABLE, on_connection);
        (void) puts("ready");
        (void) fflush(stdout);
        return uv_run(&e.loop, UV_RUN_DEFAULT);
}
