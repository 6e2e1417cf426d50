/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "client/handle.h"

int lessor_api_version(void)
{
        return LESSOR_API_VERSION;
}

const char *lessor_version(void)
{
        return LESSOR_VERSION;
}

static int read_if_down(struct lessor *l, struct lessor_error **reterr)
{
        static const char *const names[] = {
                [LESSOR_IF_DOWN_WAIT] = "wait", [LESSOR_IF_DOWN_RUN] = "run", [LESSOR_IF_DOWN_FAIL] = "fail"
        };
        char shown[64];
        const char *told = getenv("LESSOR_IF_DOWN");
        if (!told || told[0] == '\0')
                return 0;
        for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (strcmp(told, names[i]) == 0) {
                        l->if_down = (enum lessor_if_down) i;
                        return 0;
                }
        return failure_give(failure_new(EINVAL, NULL,
                                        "LESSOR_IF_DOWN: \"%s\" is none of wait (for lessord, 60 s), run (without a "
                                        "lease) and fail (at once)",
                                        text_escape(told, strlen(told), shown, sizeof(shown))),
                            reterr);
}

int lessor_open(struct lessor **ret, const char *socket_path, struct lessor_error **reterr)
{
        struct lessor *l = calloc(1, sizeof(*l));
        if (!l)
                return failure_give(failure_new(ENOMEM, NULL, "making a handle"), reterr);
        *l = (struct lessor){
                .n_refs = 1, .pid = getpid(), .away_ms = AWAY_DEFAULT_MS, .epoll_fd = -1, .timer_fd = -1
        };
        client_init(&l->client);
        if (socket_path)
                (void) snprintf(l->client.socket_path, sizeof(l->client.socket_path), "%s", socket_path);
        int r = read_if_down(l, reterr);
        if (r == 0 && strlen(socket_path ? socket_path : l->client.socket_path) > HTTP_SOCKET_PATH_MAX)
                r = failure_give(failure_of_call(&l->client, -ENAMETOOLONG), reterr);
        if (r < 0) {
                free(l);
                return r;
        }
        *ret = l;
        return 0;
}

void handle_unref(struct lessor *l)
{
        if (--l->n_refs > 0)
                return;
        closep(&l->epoll_fd);
        closep(&l->timer_fd);
        free(l);
}

void lessor_close(struct lessor *l)
{
        if (!l || l->is_closed)
                return;
        l->is_closed = true;
        handle_unref(l);
}

const char *lessor_socket_path(const struct lessor *l)
{
        return l->client.socket_path;
}

int lessor_set_if_down(struct lessor *l, enum lessor_if_down what, uint64_t wait_ms)
{
        if (what != LESSOR_IF_DOWN_WAIT && what != LESSOR_IF_DOWN_RUN && what != LESSOR_IF_DOWN_FAIL)
                return -EINVAL;
        l->if_down = what;
        l->away_ms = wait_ms;
        return 0;
}

bool handle_is_forked(const struct lessor *l)
{
        return getpid() != l->pid;
}

int handle_check(const struct lessor *l, struct lessor_error **reterr)
{
        if (!handle_is_forked(l))
                return 0;
        return failure_give(failure_new(ECHILD, NULL,
                                        "this handle belongs to process %d, of which this one is a fork; open another "
                                        "one here",
                                        (int) l->pid),
                            reterr);
}

/* ---- the descriptor ---- */

static void arm_link(struct lessor *l, struct link *link)
{
        uint32_t wanted = link->call.fd < 0 ? 0 : link->call.stage == HTTP_SENDING ? EPOLLOUT : EPOLLIN;
        struct epoll_event event = { .events = wanted };
        if (wanted == 0 || wanted == link->polled_for)
                return;
        if (epoll_ctl(l->epoll_fd, link->polled_for == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, link->call.fd, &event) == 0) {
                link->polled_for = wanted;
                link->polled_fd = link->call.fd;
        }
}

void handle_arm(struct lessor *l, bool at_once)
{
        uint64_t due_ms = UINT64_MAX;
        if (l->epoll_fd < 0)
                return;
        for (struct lessor_lease *x = l->leases; x; x = x->next) {
                uint64_t its_ms = lease_due_ms(x);
                arm_link(l, &x->link);
                arm_link(l, &x->peek);
                if (its_ms < due_ms)
                        due_ms = its_ms;
        }
        struct itimerspec when = { 0 }; /* zero: never */
        if (at_once || due_ms == 0)
                when.it_value.tv_nsec = 1; /* in the past: readable at once */
        else if (due_ms != UINT64_MAX && due_ms / 1000 < INT32_MAX) {
                when.it_value.tv_sec = (time_t) (due_ms / 1000);
                when.it_value.tv_nsec = (long) (due_ms % 1000) * 1000000;
        }
        (void) timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

int lessor_fd(struct lessor *l)
{
        if (handle_is_forked(l))
                return -ECHILD;
        if (l->epoll_fd >= 0)
                return l->epoll_fd;

        auto_close int timer = http_clear_of_standard(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
        if (timer < 0)
                return -errno;
        auto_close int epoll = http_clear_of_standard(epoll_create1(EPOLL_CLOEXEC));
        struct epoll_event event = { .events = EPOLLIN };
        if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) < 0)
                return -errno;
        l->timer_fd = take_fd(timer);
        l->epoll_fd = take_fd(epoll);
        handle_arm(l, false);
        return l->epoll_fd;
}

int lessor_events(const struct lessor *l)
{
        (void) l;
        return EPOLLIN; /* the same as POLLIN; what happens to its parts is the epoll's to know */
}

/* Those that had news stand behind the others next time. */
static void move_to_the_end(struct lessor *l, struct lessor_lease *x)
{
        struct lessor_lease **at = &l->leases;
        while (*at != x)
                at = &(*at)->next;
        *at = x->next;
        x->next = NULL;
        while (*at)
                at = &(*at)->next;
        *at = x;
}

int lessor_process(struct lessor *l, struct lessor_lease **ret_lease)
{
        if (handle_is_forked(l))
                return -ECHILD;
        for (struct lessor_lease *x = l->leases; x; x = x->next) {
                enum lessor_news news = lease_step(x);
                if (news == LESSOR_NOTHING)
                        continue;
                move_to_the_end(l, x);
                handle_arm(l, true);
                if (ret_lease)
                        *ret_lease = x;
                return (int) news;
        }
        handle_arm(l, false);
        return LESSOR_NOTHING;
}
