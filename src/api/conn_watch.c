/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client does between requests and while it waits: it begins one, or leaves. The poll is on libmicrohttpd's
 * descriptor, in the loop's epoll set beside libmicrohttpd's own: two sets, so no copy of the descriptor is needed, and it
 * is taken out again (conn_on_closed) before the descriptor is closed. Through the short states it stays as it is, so a
 * client that asks again and again costs no change of the set.
 */
#include "api/routes.h"

static void on_client_stirs(uv_poll_t *poll, int status, int events);

void conn_watch(struct conn *c, int events)
{
        c->stirred = false;
        if (c->watched == events)
                return;
        c->watched = events;
        if (events == 0)
                (void) uv_poll_stop(&c->poll);
        else
                (void) uv_poll_start(&c->poll, events, on_client_stirs);
}

static void on_client_stirs(uv_poll_t *poll, int status, int events)
{
        struct conn *c = poll->data;

        (void) events;
        if (status < 0) /* then libuv has stopped it */
                conn_watch(c, 0);
        if (c->state == CONN_IDLE) { /* the first byte of a request: its time runs from here */
                /* In the turn in which it became idle it is a request that was answered in that turn. */
                if (c->idle_in_turn != c->server->n_turns)
                        conn_set_state(c, CONN_READING);
                return;
        }
        if (c->state != CONN_WAITING && c->state != CONN_STREAMING && c->state != CONN_TURN && c->state != CONN_LATE) {
                /* Once: what libmicrohttpd has just read. Again: what it does not read now; it would be said for ever. */
                if (c->stirred)
                        conn_watch(c, 0);
                c->stirred = true;
                return;
        }
        conn_watch(c, 0);

        /* It left while it waited. Its place is free from this turn on, not when a write fails some day. */
        if (c->gives_up && c->lease_id != 0) {
                c->gives_up = false;
                conn_submit_fact(c, INPUT_RELEASE, c->lease_id, END_CANCELLED, 0);
        }
        c->dead = true;
        conn_wake(c);
}
