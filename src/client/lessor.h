/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lessor.h - ask lessord for GPU memory, wait for it, keep it and give it back
 *
 * The shortest use:
 *
 *      struct lessor *l = NULL;
 *      struct lessor_request *request = NULL;
 *      struct lessor_lease *lease = NULL;
 *      struct lessor_error *error = NULL;
 *
 *      if (lessor_open(&l, NULL, &error) < 0 || lessor_request_new(&request) < 0 ||
 *          lessor_request_set_size(request, "12G") < 0 ||
 *          lessor_acquire(l, request, NULL, NULL, &lease, &error) < 0)
 *              fprintf(stderr, "%s\n", lessor_error_text(error));
 *      else
 *              … use the memory on the device that lessor_lease_device(lease) names …
 *      lessor_lease_release(lease, NULL);
 *      lessor_lease_free(lease);  lessor_request_free(request);  lessor_error_free(error);  lessor_close(l);
 *
 * A program with a loop of its own uses lessor_acquire_begin(), lessor_fd() and lessor_process() instead, and never blocks.
 *
 * Rules that hold everywhere
 * - Functions that return int give 0 or more when they did what they say, else a negative errno (table at lessor_error).
 * - Amounts are bytes, spans are milliseconds. What is not known is said so by the return value; 0 means 0.
 * - Text given in is copied. Text given back belongs to the object it came from and stays good until the next call on that
 *   object, except where "free(3)" is said. NULL objects are fine wherever something is freed.
 * - Threads: a handle, its requests and its leases belong together and are used by one thread at a time. Different handles
 *   do not know each other. There are no threads, no signal handlers, no writes to stdout or stderr and nothing global in
 *   here. The environment is read by lessor_open() only.
 * - fork(2): the child of a fork may close and free what it inherited, which closes its copies of the descriptors and says
 *   nothing to lessord. Everything that would talk to lessord returns -ECHILD there; it opens a handle of its own. Every
 *   descriptor is close-on-exec, and none is ever 0, 1 or 2.
 * - lessord may be restarted at any time: a wait goes on in its place, and a question whose answer was lost is repeated under
 *   the same key, so that it never becomes two leases.
 */
#ifndef LESSOR_H
#define LESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LESSOR_PUBLIC __attribute__((__visibility__("default")))
#else
#define LESSOR_PUBLIC
#endif

/* Grows when something is added here; what was there stays as it is as long as the library is called liblessor.so.0. */
#define LESSOR_API_VERSION 1
/* LESSOR_API_VERSION of the library that was loaded: at least that of this header. */
LESSOR_PUBLIC int lessor_api_version(void);
/* "0.1.0" */
LESSOR_PUBLIC const char *lessor_version(void);

struct lessor;         /* how to reach one lessord, and how patiently */
struct lessor_request; /* what is asked for */
struct lessor_lease;   /* one lease, or the wait for it */
struct lessor_error;   /* what went wrong, for the program and for the person */

#define LESSOR_FOR_EVER UINT64_MAX

/* ---- errors ---- */

/*
 * Functions with a parameter @reterr store an error there when they fail (never when they succeed), which is the caller's to
 * free; NULL = not wanted. Storing overwrites: free or reuse an old one first.
 *
 *   -EINVAL        lessord does not take it like this (HTTP 400, 413, 422 without a closer word): see the text
 *   -EPERM         not allowed (403)                       -E2BIG      it can never fit (422 never-fits)
 *   -EAGAIN        it would have to wait (409 would-wait)  -ETIMEDOUT  waited as long as it was willing to (wait-over)
 *   -EIDRM         the lease has ended (410)               -ENOENT     there is no such lease or device (404)
 *   -EBADFD        the lease is in another state (409)     -EDQUOT     a limit of this user or of lessord (429)
 *   -ENOSPC        the daemon's disk is full (507)         -EBUSY      it stayed unable to answer (503)
 *   -EOPNOTSUPP    this lessord is older and does not know the call
 *   -EHOSTDOWN     lessord does not answer, for as long as lessor_set_if_down() allows
 *   -EACCES        its socket may not be used by this user
 *   -EPROTO        what answers there is not lessord       -ECANCELED  the progress function wanted it to end
 *   -ECHILD        the handle is of the process before fork(2)         -ENOMEM
 */
LESSOR_PUBLIC int lessor_error_errno(const struct lessor_error *error);  /* positive; 0 for NULL */
LESSOR_PUBLIC int lessor_error_status(const struct lessor_error *error); /* HTTP's; 0 = there was no answer */
LESSOR_PUBLIC const char *lessor_error_type(
        const struct lessor_error *error); /* "urn:lessor:problem:never-fits" or "" */
LESSOR_PUBLIC const char *lessor_error_title(const struct lessor_error *error); /* a few words; "" = none */
/* What happened and what to do about it, in one to three lines, without a line end; safe to print. Never NULL. */
LESSOR_PUBLIC const char *lessor_error_text(const struct lessor_error *error);
/* The whole problem object (RFC 9457) as JSON, "" where lessord gave none: blockers, ceiling_bytes, field, allowed … */
LESSOR_PUBLIC const char *lessor_error_json(const struct lessor_error *error);
LESSOR_PUBLIC void lessor_error_free(struct lessor_error *error);

/* ---- the handle ---- */

/*
 * Makes a handle. Nothing is connected yet: each question opens a connection and closes it.
 * @socket_path  NULL: $LESSOR_SOCKET, else $XDG_RUNTIME_DIR/lessor/lessor.sock where that exists, else
 *               /run/lessor/lessor.sock
 * -EINVAL: $LESSOR_IF_DOWN is none of wait, run, fail. -ENAMETOOLONG: more than 107 bytes. -ENOMEM.
 */
LESSOR_PUBLIC int lessor_open(struct lessor **ret, const char *socket_path, struct lessor_error **reterr);
/* Its leases stay usable: what they need lives until the last of them is freed. Releases nothing. */
LESSOR_PUBLIC void lessor_close(struct lessor *l);
LESSOR_PUBLIC const char *lessor_socket_path(const struct lessor *l);

enum lessor_if_down {
        LESSOR_IF_DOWN_WAIT = 0, /* for lessord to come back, as long as allowed; then -EHOSTDOWN */
        LESSOR_IF_DOWN_RUN =
                1, /* asking for a lease gives one in LESSOR_STATE_WITHOUT at once; all else fails at once */
        LESSOR_IF_DOWN_FAIL = 2, /* at once */
};
/*
 * What to do while lessord is away. When opened: as $LESSOR_IF_DOWN says, else WAIT for 60,000 ms.
 * @wait_ms  for WAIT, counted anew each time it goes away
 */
LESSOR_PUBLIC int lessor_set_if_down(struct lessor *l, enum lessor_if_down what, uint64_t wait_ms);

/* ---- what is asked for ---- */

/*
 * Setters return 0, -EINVAL (NULL, or text that is not UTF-8) or -ENOMEM. What the values mean and which are allowed is
 * lessord's to say: a wrong one comes back from asking as -EINVAL with field, given, allowed and cure. A request can be asked
 * any number of times, and changed in between.
 */
LESSOR_PUBLIC int lessor_request_new(struct lessor_request **ret);
LESSOR_PUBLIC void lessor_request_free(struct lessor_request *request);

/* How much, required: "12G", "1500M", "12GB", "90%", "all"; or bytes. "learned": what earlier runs of the consumer came to, or
 * "all" where none is known. */
LESSOR_PUBLIC int lessor_request_set_size(struct lessor_request *request, const char *text);
LESSOR_PUBLIC int lessor_request_set_bytes(struct lessor_request *request, uint64_t bytes);
/* 1 urgent, 2 interactive, 3 normal (default), 4 batch, 5 filler */
LESSOR_PUBLIC int lessor_request_set_priority(struct lessor_request *request, int priority);
/* The slot: how long it will be needed; lets others plan. LESSOR_FOR_EVER (default): no limit. */
LESSOR_PUBLIC int lessor_request_set_for_ms(struct lessor_request *request, uint64_t ms);
/* How long to wait for the grant: LESSOR_FOR_EVER (default); 0 = granted at once or -EAGAIN. */
LESSOR_PUBLIC int lessor_request_set_wait_ms(struct lessor_request *request, uint64_t ms);
/* Only on this device: a UUID, or the unique beginning of one. */
LESSOR_PUBLIC int lessor_request_set_device(struct lessor_request *request, const char *uuid);
/* On so many devices, so much on each, all or nothing (default 1). */
LESSOR_PUBLIC int lessor_request_set_gpus(struct lessor_request *request, int n_gpus);
/* Shown to its owner in `lessor status`, and the name under which measured costs are remembered (default: the program's). */
LESSOR_PUBLIC int lessor_request_set_name(struct lessor_request *request, const char *name);
LESSOR_PUBLIC int lessor_request_set_consumer(struct lessor_request *request, const char *consumer);
/* Nothing else is granted on its device meanwhile: for measurements. */
LESSOR_PUBLIC int lessor_request_set_exclusive(struct lessor_request *request, bool exclusive);
/* Managed memory will be used, which hides from the driver's list. */
LESSOR_PUBLIC int lessor_request_set_managed(struct lessor_request *request, bool managed);
/* How the memory may be taken back: "cooperate,checkpoint,release,restart,kill", any of them. Default: not at all. */
LESSOR_PUBLIC int lessor_request_set_yield_by(struct lessor_request *request, const char *ways);
/* Priority 5; without ways of its own it is checkpointed where that is proven, else ended and started again by who asks. */
LESSOR_PUBLIC int lessor_request_set_filler(struct lessor_request *request, bool filler);
/* Checkpointed, its process is not stopped as well: it has a watchdog, or clients that are connected. */
LESSOR_PUBLIC int lessor_request_set_no_stop(struct lessor_request *request, bool no_stop);
/* Its processes may be ended when the slot is over; what it leaves behind may be ended when the lease ends. */
LESSOR_PUBLIC int lessor_request_set_kill_at_end(struct lessor_request *request, bool kill);
LESSOR_PUBLIC int lessor_request_set_kill_left(struct lessor_request *request, bool kill);
/*
 * When the lease ends by itself: with a process of this user (0 = the one that asks, the default); with the connection, which
 * the lease's object keeps: freeing it, or the end of this process and of every fork that has a copy, ends the lease, and
 * so does a restart of lessord; or when lessor_lease_renew() was not called for @ttl_ms (1,000 … 86,400,000; 0 = 60,000).
 * A wait for a lease that is not bound to the asking process is given up when this process ends, or lessord is restarted and
 * this process does not ask again.
 */
LESSOR_PUBLIC int lessor_request_bind_to_process(struct lessor_request *request, int pid);
LESSOR_PUBLIC int lessor_request_bind_to_connection(struct lessor_request *request);
LESSOR_PUBLIC int lessor_request_bind_to_heartbeat(struct lessor_request *request, uint64_t ttl_ms);
/*
 * false: the grant is not collected by itself; call lessor_lease_activate() within 60 s, as soon as it is known what runs
 * under it. Default true. (A lease that is not bound to the asking process, or is asked for without waiting, comes
 * collected; activating it says what runs under it, and may be left out.)
 */
LESSOR_PUBLIC int lessor_request_set_collect(struct lessor_request *request, bool collect);
/*
 * The key under which lessord recognises a question that is repeated, 1 to 64 of A-Z a-z 0-9 - _. NULL (default): a new random
 * one each time it is asked. With one that is kept somewhere, a program that was killed while asking finds its lease again
 * within a day, if it asks exactly the same; -EIDRM: that lease has ended since, use another key.
 */
LESSOR_PUBLIC int lessor_request_set_key(struct lessor_request *request, const char *key);
/* While it waits: LESSOR_NEWS_QUEUED comes at least so often (default 30,000; at least 100). */
LESSOR_PUBLIC int lessor_request_set_refresh_ms(struct lessor_request *request, uint64_t ms);
/* A field of POST /api/leases that this header has no function for. @json  its value as JSON text; NULL = take it out. */
LESSOR_PUBLIC int lessor_request_set_field(struct lessor_request *request, const char *name, const char *json);

/* ---- asking ---- */

enum lessor_news {
        LESSOR_NOTHING = 0,
        LESSOR_NEWS_QUEUED = 1,  /* it waits: place, reason or expectation may be new */
        LESSOR_NEWS_GRANTED = 2, /* it is there; collected, unless lessor_request_set_collect(…, false) */
        LESSOR_NEWS_REFUSED = 3, /* it is not and will not be: lessor_lease_error() */
        LESSOR_NEWS_AWAY = 4,    /* lessord does not answer, or cannot now; it is tried again. lessor_lease_error() */
        LESSOR_NEWS_BACK = 5,    /* it answers again */
        LESSOR_NEWS_AGAIN =
                6, /* its place or its grant was lost; it is asked for anew, and lessor_lease_id() is the lost one */
        LESSOR_NEWS_WITHOUT = 7, /* lessord is away, and LESSOR_IF_DOWN_RUN: go on without a lease */
        LESSOR_NEWS_CHANGED = 8, /* followed: its state or figures may be new */
        LESSOR_NEWS_WARNING = 9, /* followed: the slot ends soon, it uses too much, …: lessor_lease_text(), _rule() */
        LESSOR_NEWS_ENDED =
                10, /* followed: it is over, or draining: lessor_lease_text(); _rule() "books-new": lessord lost its
                                    books, and lessor_adopt() gives what runs a lease again */
        LESSOR_NEWS_ASKED =
                11, /* followed: its memory is wanted, and something is to be done: lessor_lease_park_way(). "cooperate":
                       give it back, then lessor_lease_yielded(). "restart": end what runs, then the same */
        LESSOR_NEWS_THAWING =
                12, /* followed: after one of these it may have its memory again: take it, or start what was ended, then
                       lessor_lease_activate() */
};

/*
 * Called from inside lessor_acquire() whenever there is news, each second (LESSOR_NOTHING), and after a signal was handled
 * (LESSOR_NOTHING). Anything but 0 gives up the place and makes lessor_acquire() return -ECANCELED. Must not free @lease.
 */
typedef int (*lessor_progress_fn)(struct lessor_lease *lease, enum lessor_news news, void *userdata);

/*
 * Asks, waits, collects. 0: *ret is a lease. 1: LESSOR_IF_DOWN_RUN, and *ret is one in LESSOR_STATE_WITHOUT. Both are the
 * caller's. Signals interrupt nothing by themselves: see lessor_progress_fn.
 * @progress  NULL = silent
 */
LESSOR_PUBLIC int lessor_acquire(struct lessor *l, const struct lessor_request *request, lessor_progress_fn progress,
                                 void *userdata, struct lessor_lease **ret, struct lessor_error **reterr);
/*
 * The same without waiting for anything: *ret is in LESSOR_STATE_ASKED, and lessor_process() brings its news. It is moved
 * on only by lessor_process().
 */
LESSOR_PUBLIC int lessor_acquire_begin(struct lessor *l, const struct lessor_request *request,
                                       struct lessor_lease **ret, struct lessor_error **reterr);

/*
 * One descriptor for all that goes on in this handle: poll it for lessor_events() (POLLIN) and call lessor_process() when it is
 * ready. It stays the same as long as the handle lives, includes every timeout, and is only to be polled. Negative errno.
 */
LESSOR_PUBLIC int lessor_fd(struct lessor *l);
LESSOR_PUBLIC int lessor_events(const struct lessor *l);
/*
 * Does what can be done without waiting. Returns one enum lessor_news and the lease it is about; call it until it returns
 * LESSOR_NOTHING. -ECHILD after fork(2).
 * @ret_lease  borrowed; may be NULL
 */
LESSOR_PUBLIC int lessor_process(struct lessor *l, struct lessor_lease **ret_lease);

/*
 * A lease that exists, by its id ("L17"): asks lessord for it. Not yet followed.
 */
LESSOR_PUBLIC int lessor_lease_open(struct lessor *l, const char *id, struct lessor_lease **ret,
                                    struct lessor_error **reterr);
/*
 * A lease for what runs already without one: @pid and what descends from it is not touched, and counted under it from now on.
 * Never waits. The lease ends with @pid; lessor_lease_release() lets it go.
 * @request       size (default: what it uses now), priority, for, name … of the lease; what it says of waiting and binding is passed over
 * @whole_cgroup  and everything else in its cgroup: a unit, a container
 */
LESSOR_PUBLIC int lessor_adopt(struct lessor *l, const struct lessor_request *request, int pid, bool whole_cgroup,
                               struct lessor_lease **ret, struct lessor_error **reterr);
/* What would happen if this were asked for now, and why, without asking. @ret_json  free(3) */
LESSOR_PUBLIC int lessor_plan(struct lessor *l, const struct lessor_request *request, char **ret_json,
                              struct lessor_error **reterr);

/* ---- a lease ---- */

/*
 * Frees the object. Gives nothing back: a lease lives on as it is bound, a place in the queue too. (Bound to the connection,
 * or still waiting for a lease that is not bound to this process: that ends here.) To give back: lessor_lease_release().
 */
LESSOR_PUBLIC void lessor_lease_free(struct lessor_lease *lease);

enum lessor_state {
        LESSOR_STATE_ASKED = 0, /* no answer yet */
        LESSOR_STATE_QUEUED = 1,
        LESSOR_STATE_GRANTED = 2, /* not collected yet: 60 s */
        LESSOR_STATE_ACTIVE = 3,
        LESSOR_STATE_ASKING = 4, /* it is asked for its memory */
        LESSOR_STATE_HELD = 5,   /* stopped in place */
        LESSOR_STATE_PARKED = 6,
        LESSOR_STATE_THAWING = 7,
        LESSOR_STATE_DRAINING = 8, /* over; its memory is not gone yet */
        LESSOR_STATE_ORPHANED = 9, /* its command is gone, its processes are not */
        LESSOR_STATE_STUCK = 10,
        LESSOR_STATE_LOST = 11, /* its device is */
        LESSOR_STATE_ENDED = 12,
        LESSOR_STATE_REFUSED = 13, /* never was */
        LESSOR_STATE_WITHOUT = 14, /* there is no lease; everything done to it succeeds and does nothing */
        LESSOR_STATE_OTHER = 15,   /* one that this library is too old to know: lessor_lease_json() */
};

/* As last heard; no questions are asked. Unknown text is "". */
LESSOR_PUBLIC enum lessor_state lessor_lease_state(const struct lessor_lease *lease);
LESSOR_PUBLIC const char *lessor_lease_id(const struct lessor_lease *lease);     /* "L17" */
LESSOR_PUBLIC const char *lessor_lease_device(const struct lessor_lease *lease); /* UUID; "" while it waits */
/* Several where lessor_request_set_gpus() asked for them, the first is lessor_lease_device(); 0 while it waits. */
LESSOR_PUBLIC int lessor_lease_n_devices(const struct lessor_lease *lease);
LESSOR_PUBLIC const char *lessor_lease_device_at(const struct lessor_lease *lease, int at); /* "" where there is none */
LESSOR_PUBLIC uint64_t lessor_lease_bytes(const struct lessor_lease *lease); /* promised on each; 0 = not known yet */
LESSOR_PUBLIC int lessor_lease_priority(const struct lessor_lease *lease);   /* 1 … 5; 0 = not known yet */
/* false: not known, and *ret is not written. Places count from 1; the start and the slot's end from when they were heard. */
LESSOR_PUBLIC bool lessor_lease_place(const struct lessor_lease *lease, uint64_t *ret_place, uint64_t *ret_n_waiting);
LESSOR_PUBLIC bool lessor_lease_expected_start_ms(const struct lessor_lease *lease, uint64_t *ret_ms);
LESSOR_PUBLIC bool lessor_lease_slot_left_ms(const struct lessor_lease *lease, uint64_t *ret_ms);
LESSOR_PUBLIC bool lessor_lease_used_bytes(const struct lessor_lease *lease, uint64_t *ret_bytes);
/* Sentences for a person, escaped and safe to print: when it may start; why it is as it is, or what the last news says. */
LESSOR_PUBLIC const char *lessor_lease_expectation(const struct lessor_lease *lease);
LESSOR_PUBLIC const char *lessor_lease_text(const struct lessor_lease *lease);
/* The rule behind that, for a program: "slot-ends", "over-use", "no-room", … as in `lessor events --json`. */
LESSOR_PUBLIC const char *lessor_lease_rule(const struct lessor_lease *lease);
/* What lessord said last of it, as JSON (docs/api.md); "" = nothing yet. */
LESSOR_PUBLIC const char *lessor_lease_json(struct lessor_lease *lease);
/* Why it was refused, or why lessord is away; NULL = neither. Belongs to the lease. */
LESSOR_PUBLIC const struct lessor_error *lessor_lease_error(const struct lessor_lease *lease);

/*
 * These ask lessord and wait for its answer, which comes within milliseconds; a lessord that is away is waited for as
 * lessor_set_if_down() says. Afterwards the getters tell the new facts. 0 or a negative errno.
 */
/* Reads it anew. */
LESSOR_PUBLIC int lessor_lease_refresh(struct lessor_lease *lease, struct lessor_error **reterr);
/*
 * Collects the grant and says what runs under it. -EIDRM, -ENOENT: it is gone, ask again.
 * @pid        a process of this user whose tree it is for; 0 = the one it is bound to
 * @cgroup_id  inode number of the folder of the cgroup that holds all of them; 0 = none
 */
LESSOR_PUBLIC int lessor_lease_activate(struct lessor_lease *lease, int pid, uint64_t cgroup_id,
                                        struct lessor_error **reterr);
/* The heartbeat of a lease that is bound to one. */
LESSOR_PUBLIC int lessor_lease_renew(struct lessor_lease *lease, struct lessor_error **reterr);
/* What ran under it ended with an error: the release says so, and what it used teaches nothing smaller of its size. */
LESSOR_PUBLIC void lessor_lease_set_failed(struct lessor_lease *lease);
/* Gives it back, or gives up the wait. A second one is -EIDRM. Waits for an answer a few seconds at most. */
LESSOR_PUBLIC int lessor_lease_release(struct lessor_lease *lease, struct lessor_error **reterr);
/* Its slot from now on ("2h"); NULL: no limit any more. */
LESSOR_PUBLIC int lessor_lease_set_for(struct lessor_lease *lease, const char *span, struct lessor_error **reterr);
/* Lets its slot end so much later ("30m"). -ENOTRECOVERABLE: the answer was lost, look at lessor_lease_slot_left_ms(). */
LESSOR_PUBLIC int lessor_lease_extend(struct lessor_lease *lease, const char *span, struct lessor_error **reterr);
LESSOR_PUBLIC int lessor_lease_renice(struct lessor_lease *lease, int priority, struct lessor_error **reterr);
/* Its memory is not to be taken back: for so long ("2h"), or as long as this user may (NULL); lessor_lease_unpin() ends it. */
LESSOR_PUBLIC int lessor_lease_pin(struct lessor_lease *lease, const char *span, struct lessor_error **reterr);
LESSOR_PUBLIC int lessor_lease_unpin(struct lessor_lease *lease, struct lessor_error **reterr);

/*
 * Its memory was wanted (LESSOR_NEWS_ASKED), and is given back. The device has the last word: nothing is believed before it
 * shows so, and who only says it is not asked for long.
 */
LESSOR_PUBLIC int lessor_lease_yielded(struct lessor_lease *lease, struct lessor_error **reterr);
/* There is nothing to do just now: who is idle is asked first, and who is at work goes on.
 * @keep_alive_ms  so long the program itself keeps what it has before it gives it back; 0 = it does not say */
LESSOR_PUBLIC int lessor_lease_idle(struct lessor_lease *lease, uint64_t keep_alive_ms, struct lessor_error **reterr);
LESSOR_PUBLIC int lessor_lease_busy(struct lessor_lease *lease, struct lessor_error **reterr);
/* Off its device for so long ("2h"), or until lessor_lease_thaw() (NULL). -EBADFD: it cannot be, and the text says why. */
LESSOR_PUBLIC int lessor_lease_park(struct lessor_lease *lease, const char *span, struct lessor_error **reterr);
LESSOR_PUBLIC int lessor_lease_thaw(struct lessor_lease *lease, struct lessor_error **reterr);
/* By which way it is going, gone or coming back: "cooperate", "checkpoint", …; "" = it stays. As last heard. */
LESSOR_PUBLIC const char *lessor_lease_park_way(const struct lessor_lease *lease);
/* How long it has for what it is asked, from when that was heard. false: no limit is known, *ret is not written. */
LESSOR_PUBLIC bool lessor_lease_park_deadline_ms(const struct lessor_lease *lease, uint64_t *ret_ms);

/*
 * From now on lessor_process() brings what becomes of it: LESSOR_NEWS_CHANGED, _WARNING, _ASKED, _THAWING, _ENDED. Holds one connection; where
 * many leases are out it looks every 15 s instead, because a user's connections are limited. A lessord that is away is no
 * news here, and come back to for ever: a running program does not need it. Once granted only, -EBADFD before.
 */
LESSOR_PUBLIC int lessor_lease_follow(struct lessor_lease *lease);

/* ---- everything else ---- */

/*
 * Any other question of docs/api.md, patiently.
 * @body        JSON text; NULL = none
 * @ret_status  HTTP's; may be NULL. 4xx and 5xx are errors, and written only on success
 * @ret_json    the answer's body, free(3); may be NULL
 */
LESSOR_PUBLIC int lessor_call(struct lessor *l, const char *method, const char *path, const char *body, int *ret_status,
                              char **ret_json, struct lessor_error **reterr);

#ifdef __cplusplus
}
#endif

#endif
