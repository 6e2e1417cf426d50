/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that takes small leases, HELD of them one after the other, and gives them back as it took them, again and again,
 * over connections that stay open; and does the same with an echo server (echo.c). One process and one loop for both, in
 * blocks that take turns, so that what disturbs the machine disturbs both. Prints one JSON object with every single
 * measurement; bench/grant.py makes figures of it.
 *
 *      bench_grant LESSORD_SOCKET ECHO_SOCKET CONNECTIONS HELD ROUNDS BLOCKS
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/number.h"

enum { LINKS_MAX = 64, HELD_MAX = 64, ROUNDS_MAX = 1000000, BLOCKS_MAX = 100, ANSWER_MAX = 8192, PATIENCE_MS = 10000 };

#define BODY "{\"bytes\":\"1M\",\"mode\":\"now\",\"bind\":{\"to\":\"heartbeat\",\"ttl_ms\":600000}}"

/* One side of the comparison: who is asked, and how long each answer took. */
struct side {
        const char *name;
        const char *socket_path;
        const char *path;    /* of the POST */
        const char *granted; /* how its answer begins */
        uint64_t *take_ns, *give_ns;
        uint32_t n_taken, n_given; /* that were kept */
        uint64_t busy_ns;          /* the time of all measured blocks */
};

/* One connection and the request that is under way on it. */
struct link {
        int fd;
        bool giving; /* a lease is being given back */
        uint32_t n_left, n_held;
        uint64_t sent_ns;
        size_t n;
        char lease_ids[HELD_MAX][32];
        char answer[ANSWER_MAX];
};

static _Noreturn void give_up(const char *what, const char *words)
{
        (void) fprintf(stderr, "bench_grant: %s: %s\n", what, words);
        exit(EXIT_FAILURE);
}

static int connect_to(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (strlen(path) >= sizeof(address.sun_path))
                give_up(path, "too long for a socket");
        memcpy(address.sun_path, path, strlen(path) + 1);
        if (fd < 0 || connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                give_up(path, strerror(errno));
        return fd;
}

static void send_request(const struct side *side, struct link *link)
{
        char text[512];
        int n;

        if (link->giving)
                n = snprintf(text, sizeof(text), "DELETE %s/%s HTTP/1.1\r\nHost: localhost\r\n\r\n", side->path,
                             link->lease_ids[link->n_held - 1]);
        else
                n = snprintf(text, sizeof(text),
                             "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                             "Content-Length: %zu\r\n\r\n" BODY,
                             side->path, strlen(BODY));
        link->n = 0;
        link->sent_ns = clock_now_ns();
        if (send(link->fd, text, (size_t) n, MSG_NOSIGNAL) != n)
                give_up(side->name, "a request cannot be sent");
}

/* All of it there? Both servers say how long their answers are. */
static bool is_whole(const struct link *link)
{
        const char *body = strstr(link->answer, "\r\n\r\n");
        const char *length = strcasestr(link->answer, "\r\ncontent-length:");

        if (!body || !length || length > body)
                return false;
        return link->n >= (size_t) (body + 4 - link->answer) + strtoul(length + 17, NULL, 10);
}

static void remember_lease(struct link *link)
{
        const char *id = strstr(link->answer, "\"id\":\"");
        const char *end = id ? strchr(id + 6, '"') : NULL;
        const char *from = end ? id + 6 : "L1"; /* the echo has given nothing */
        size_t n = end ? (size_t) (end - from) : 2;

        char *id_kept = link->lease_ids[link->n_held++];
        if (n >= sizeof(link->lease_ids[0]))
                give_up("lessord", "the id of a lease is very long");
        memcpy(id_kept, from, n);
        id_kept[n] = '\0';
}

/* A whole answer: note how long it took and send the next request. Returns false when this connection has done its rounds. */
static bool go_on(struct side *side, struct link *link, uint32_t n_held, bool keep)
{
        uint64_t took_ns = clock_now_ns() - link->sent_ns;

        if (strncmp(link->answer, link->giving ? "HTTP/1.1 200" : side->granted, 12) != 0)
                give_up(side->name, link->answer);
        if (link->giving) {
                if (keep)
                        side->give_ns[side->n_given++] = took_ns;
                link->n_held--;
                link->giving = link->n_held > 0;
        } else {
                if (keep)
                        side->take_ns[side->n_taken++] = took_ns;
                remember_lease(link);
                link->n_left--;
                link->giving = link->n_held == n_held || link->n_left == 0;
        }
        if (link->n_left == 0 && link->n_held == 0)
                return false;
        send_request(side, link);
        return true;
}

/* Reads what has come, and says whether the answer is whole. */
static bool receive(const struct side *side, struct link *link)
{
        ssize_t n = recv(link->fd, link->answer + link->n, sizeof(link->answer) - 1 - link->n, 0);

        if (n <= 0)
                give_up(side->name, n == 0 ? "the connection was closed" : strerror(errno));
        link->n += (size_t) n;
        link->answer[link->n] = '\0';
        return is_whole(link);
}

/* @n_rounds takes and gives over @n links at once, of which each holds up to @n_held. */
static void run_block(struct side *side, struct link *links, uint32_t n, uint32_t n_held, uint32_t n_rounds, bool keep)
{
        struct epoll_event ready[LINKS_MAX];
        uint32_t n_busy = n;
        int epoll = epoll_create1(EPOLL_CLOEXEC);

        for (uint32_t i = 0; i < n; i++) {
                struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };
                if (epoll_ctl(epoll, EPOLL_CTL_ADD, links[i].fd, &event) < 0)
                        give_up("epoll", strerror(errno));
                links[i].n_left = n_rounds / n + (i < n_rounds % n);
        }
        uint64_t start_ns = clock_now_ns();
        for (uint32_t i = 0; i < n; i++) {
                if (links[i].n_left != 0)
                        send_request(side, &links[i]);
                else
                        n_busy--;
        }
        while (n_busy > 0) {
                int n_ready = epoll_wait(epoll, ready, LINKS_MAX, PATIENCE_MS);
                if (n_ready == 0)
                        give_up(side->name, "no answer for ten seconds");
                for (int i = 0; i < n_ready; i++) {
                        struct link *link = &links[ready[i].data.u32];
                        if (receive(side, link) && !go_on(side, link, n_held, keep))
                                n_busy--;
                }
        }
        if (keep)
                side->busy_ns += clock_now_ns() - start_ns;
        (void) close(epoll);
}

static void print_samples(const char *name, const uint64_t *ns, uint32_t n)
{
        (void) printf("\"%s\":[", name);
        for (uint32_t i = 0; i < n; i++)
                (void) printf("%s%llu", i ? "," : "", (unsigned long long) ns[i]);
        (void) printf("]");
}

static void print_side(const struct side *side)
{
        (void) printf("\"%s\":{\"busy_ns\":%llu,", side->name, (unsigned long long) side->busy_ns);
        print_samples("take_ns", side->take_ns, side->n_taken);
        (void) printf(",");
        print_samples("give_ns", side->give_ns, side->n_given);
        (void) printf("}");
}

static uint32_t number(const char *what, const char *text, uint32_t max)
{
        struct error err = { 0 };
        uint64_t n;

        if (parse_u64(what, text, 1, max, &n, &err) < 0)
                give_up("usage", err.msg);
        return (uint32_t) n;
}

int main(int argc, char **argv)
{
        static struct link links[2][LINKS_MAX];

        if (argc != 7)
                give_up("usage", "bench_grant LESSORD_SOCKET ECHO_SOCKET CONNECTIONS HELD ROUNDS BLOCKS");
        uint32_t n_links = number("CONNECTIONS", argv[3], LINKS_MAX);
        uint32_t n_held = number("HELD", argv[4], HELD_MAX);
        uint32_t n_rounds = number("ROUNDS", argv[5], ROUNDS_MAX);
        uint32_t n_blocks = number("BLOCKS", argv[6], BLOCKS_MAX);
        struct side sides[2] = {
                { .name = "lessord", .socket_path = argv[1], .path = "/api/leases", .granted = "HTTP/1.1 201" },
                { .name = "echo", .socket_path = argv[2], .path = "/api/leases", .granted = "HTTP/1.1 200" },
        };

        for (uint32_t s = 0; s < 2; s++) {
                sides[s].take_ns = calloc((size_t) n_rounds * n_blocks, sizeof(uint64_t));
                sides[s].give_ns = calloc((size_t) n_rounds * n_blocks, sizeof(uint64_t));
                if (!sides[s].take_ns || !sides[s].give_ns)
                        give_up("start", "no memory");
                for (uint32_t i = 0; i < n_links; i++)
                        links[s][i].fd = connect_to(sides[s].socket_path);
                run_block(&sides[s], links[s], n_links, n_held, n_rounds / 5 + n_links, false); /* warm-up */
        }
        for (uint32_t b = 0; b < n_blocks; b++)
                for (uint32_t s = 0; s < 2; s++)
                        run_block(&sides[s], links[s], n_links, n_held, n_rounds, true);

        (void) printf("{");
        print_side(&sides[0]);
        (void) printf(",");
        print_side(&sides[1]);
        (void) printf("}\n");
        for (uint32_t s = 0; s < 2; s++) {
                free(sides[s].take_ns);
                free(sides[s].give_ns);
        }
        return EXIT_SUCCESS;
}
