/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include "base/duration.h"
#include "base/size.h"
#include "model/hand.h"
#include "model/input.h"
#include "model/lease.h"
#include "model/reason.h"

/* The names are the interface: events, JSON and tests carry them. */
/* Text that grows in the caller's buffer and stops quietly at its end. */
struct text {
        char *buf;
        size_t size;
        size_t len;
};

printf_like(2, 3) static void say(struct text *t, const char *fmt, ...)
{
        if (t->len + 1 >= t->size)
                return;

        va_list args;
        va_start(args, fmt);
        int n = vsnprintf(t->buf + t->len, t->size - t->len, fmt, args);
        va_end(args);
        if (n > 0)
                t->len = (size_t) n < t->size - t->len ? t->len + (size_t) n : t->size - 1;
}

static void say_size(struct text *t, uint64_t bytes)
{
        char size[SIZE_TEXT_MAX];
        say(t, "%s", size_text_short(bytes, size));
}

static void say_from_now(struct text *t, uint64_t then_ms, uint64_t now_ms)
{
        char span[DURATION_TEXT_MAX];

        if (then_ms > now_ms)
                say(t, "in %s", duration_text(then_ms - now_ms, span));
        else
                say(t, "now");
}

static void say_blocker(struct text *t, const struct blocker *b, uint64_t now_ms)
{
        switch ((enum blocker_kind) b->kind) {
        case BLOCKER_LEASE:
        case BLOCKER_PINNED:
        case BLOCKER_PROTECTED:
        case BLOCKER_EXCLUSIVE:
                if (b->kind != BLOCKER_LEASE)
                        say(t, "%s ", blocker_kind_name((enum blocker_kind) b->kind));
                if (b->lease_id != 0)
                        say(t, "L%llu ", (unsigned long long) b->lease_id);
                break;
        case BLOCKER_STRANGER:
                say(t, "stranger (pid %u) ", b->pid);
                break;
        case BLOCKER_CLAIM:
                say(t, "claimed for L%llu ", (unsigned long long) b->lease_id);
                break;
        case BLOCKER_NONE:
        case BLOCKER_DRIVER:
        case BLOCKER_DISPLAY:
        case BLOCKER_TENANT:
        case BLOCKER_UNATTRIBUTED:
        case BLOCKER_KEPT_FREE:
        case BLOCKER_KIND_N:
                say(t, "%s ", blocker_kind_name((enum blocker_kind) b->kind));
        }
        say_size(t, b->bytes);
        if (b->no != RECLAIM_MAY) {
                say(t, " (%s", reclaim_no_text((enum reclaim_no) b->no));
                if (b->end_ms != 0) {
                        say(t, "; changes ");
                        say_from_now(t, b->end_ms, now_ms);
                }
                say(t, ")");
                return;
        }
        if (b->end_ms != 0) {
                say(t, " (ends ");
                say_from_now(t, b->end_ms, now_ms);
                say(t, ")");
        }
}

static void say_blockers(struct text *t, const struct reason *r, const char *lead, uint64_t now_ms)
{
        uint32_t listed = r->n_blockers < BLOCKERS_MAX ? r->n_blockers : BLOCKERS_MAX;

        for (uint32_t i = 0; i < listed; i++) {
                say(t, "%s", i == 0 ? lead : ", ");
                say_blocker(t, &r->blockers[i], now_ms);
        }
        if (r->n_blockers > listed)
                say(t, " and %u more", r->n_blockers - listed);
}

static void say_need_and_free(struct text *t, const struct reason *r)
{
        say(t, "needs ");
        say_size(t, r->need_bytes);
        say(t, ", ");
        say_size(t, r->free_bytes);
        say(t, " of ");
        say_size(t, r->total_bytes);
        say(t, " is free");
        if (r->lent_bytes != 0) {
                say(t, " and ");
                say_size(t, r->lent_bytes);
                say(t, " is lent by the head of the queue");
        }
}

static void say_place(struct text *t, const struct reason *r)
{
        if (r->place != 0)
                say(t, "; place %u of %u", r->place, r->n_waiting);
}

static void say_start(struct text *t, const struct reason *r, const char *what, uint64_t now_ms)
{
        if (r->start_ms != 0) {
                say(t, "; %s ", what);
                say_from_now(t, r->start_ms, now_ms);
                return;
        }

        say(t, "; %s unknown", what);
        for (uint32_t i = 0; i < r->n_blockers && i < BLOCKERS_MAX; i++) {
                const struct blocker *b = &r->blockers[i];
                if ((b->kind == BLOCKER_LEASE || b->kind == BLOCKER_EXCLUSIVE) && b->end_ms == 0 && b->lease_id != 0) {
                        say(t, ": L%llu gave no limit", (unsigned long long) b->lease_id);
                        return;
                }
                if (b->kind == BLOCKER_STRANGER) {
                        say(t, ": the stranger (pid %u) has no lease", b->pid);
                        return;
                }
        }
}

static void say_grant(struct text *t, const struct reason *r)
{
        if (r->rule == RULE_ADOPTED) {
                say(t, "adopted: it ran already and uses ");
                say_size(t, r->used_bytes);
                return;
        }
        say(t, "granted: ");
        say_need_and_free(t, r);
        switch ((unsigned) r->rule) {
        case RULE_PASSES_HEAD:
                say(t, "; more important than L%llu, which waits", (unsigned long long) r->head_lease_id);
                break;
        case RULE_ENDS_IN_TIME:
                say(t, "; ends before L%llu can start", (unsigned long long) r->head_lease_id);
                break;
        case RULE_FITS_BESIDE:
                say(t, "; L%llu can still start in time beside it", (unsigned long long) r->head_lease_id);
                break;
        case RULE_RECLAIMABLE:
                say(t, "; can be taken back for L%llu", (unsigned long long) r->head_lease_id);
                break;
        case RULE_RECLAIMED:
                say(t, "; memory was taken back for it");
                break;
        case RULE_LEDGER_SET_ASIDE:
                say(t, "; can be parked for L%llu, with room set aside in the ledger",
                    (unsigned long long) r->head_lease_id);
                break;
        }
}

static void say_wait(struct text *t, const struct reason *r, uint64_t now_ms)
{
        say(t, "waits: ");
        switch ((unsigned) r->rule) {
        case RULE_NO_ROOM:
                say_need_and_free(t, r);
                say_blockers(t, r, "; in the way: ", now_ms);
                say_place(t, r);
                say_start(t, r, "expected start", now_ms);
                return;
        case RULE_NO_ROOM_BEHIND_HEAD:
                say_need_and_free(t, r);
                say(t, "; behind L%llu", (unsigned long long) r->head_lease_id);
                break;
        case RULE_BEHIND_HEAD:
                say(t, "it would fit, but it would delay L%llu, which is first", (unsigned long long) r->head_lease_id);
                break;
        case RULE_HEAD_BLOCKS:
                say(t, "L%llu has waited so long without a start in sight that new work waits too",
                    (unsigned long long) r->head_lease_id);
                break;
        case RULE_READING_STALE:
                say(t, "there is no reading of the device young enough to grant by");
                break;
        case RULE_READING_UNSETTLED:
                say(t, "the device's memory was changing while it was read");
                break;
        case RULE_NO_USABLE_DEVICE:
                say(t, "none of the devices it may use can be used now");
                break;
        case RULE_ABOVE_CEILING:
                say(t, "needs ");
                say_size(t, r->need_bytes);
                say(t, ", and at most ");
                say_size(t, r->ceiling_bytes);
                say(t, " of ");
                say_size(t, r->total_bytes);
                say(t, " can be given now");
                say_blockers(t, r, "; kept back: ", now_ms);
                break;
        case RULE_ON_HOLD:
                say(t, "it is on hold");
                break;
        case RULE_RECLAIMING:
                say(t, "memory is being taken back for it: ");
                say_size(t, r->reserved_bytes);
                say(t, " of ");
                say_size(t, r->need_bytes);
                say(t, " so far");
                say_blockers(t, r, "; from ", now_ms);
                break;
        case RULE_RETURNS_LIMIT:
                say(t, "it came back %u times within the hour; again ", r->limit);
                say_from_now(t, r->start_ms, now_ms);
                break;
        case RULE_CARD_MOVES:
                say(t, "a process without a lease grew on its device a moment ago");
                break;
        case RULE_THAW_AGAIN:
                say(t, "bringing it back could not be tried just now; again ");
                say_from_now(t, r->start_ms, now_ms);
                break;
        case RULE_PAUSED:
                say(t, "the machine is about to sleep or to be shut down");
                break;
        case RULE_BOOKED:
                say(t, "it is booked, and begins ");
                say_from_now(t, r->start_ms, now_ms);
                break;
        case RULE_BEFORE_BOOKING:
                say(t, "it would be in the way of the booking L%llu, which begins ",
                    (unsigned long long) r->head_lease_id);
                say_from_now(t, r->start_ms, now_ms);
                say(t, "; say for how long it runs (--for), or how it may be taken back (--yield-by)");
                break;
        case RULE_WANTS_BACK:
                say(t, "it is parked, and wants its device back");
                break;
        case RULE_UNDO_ORDER:
                say(t, "what was parked after it comes back first");
                break;
        case RULE_EXCLUSIVE_HOLDS:
                say(t, "an exclusive lease (L%llu) has the device, and nothing is granted beside it",
                    (unsigned long long) r->head_lease_id);
                say_place(t, r);
                say_start(t, r, "expected start", now_ms);
                return;
        }
        say_place(t, r);
}

static void say_cure(struct text *t, enum reclaim_no no)
{
        if (no == RECLAIM_NO_WAY_OUT)
                say(t, "; name one (--yield-by), or prove that it can be checkpointed (`lessor park --rehearse`)");
        else if (no == RECLAIM_STRIKES)
                say(t, "; `lessor park --forgive` lets it be tried again");
        else if (no == RECLAIM_LEDGER_FULL)
                say(t, "; thaw something, or raise ledger_cap");
}

static void say_refusal(struct text *t, const struct reason *r, uint64_t now_ms)
{
        char span[DURATION_TEXT_MAX];

        switch ((unsigned) r->rule) {
        case RULE_NEVER_FITS:
                say(t, "can never fit: asks for ");
                say_size(t, r->need_bytes);
                say(t, ", at most ");
                say_size(t, r->ceiling_bytes);
                say(t, " of ");
                say_size(t, r->total_bytes);
                say(t, " can ever be given");
                say_blockers(t, r, "; kept back: ", now_ms);
                break;
        case RULE_WOULD_WAIT:
                say(t, "would have to wait: ");
                say_need_and_free(t, r);
                say_blockers(t, r, "; in the way: ", now_ms);
                break;
        case RULE_PRIORITY_CEILING:
                say(t, "priority is above what this user may ask for; the highest allowed is %u (%s)", r->limit,
                    priority_name(r->limit));
                break;
        case RULE_URGENT_NEEDS_SLOT:
                say(t, "priority 1 (urgent) needs a slot (--for) and a way out (--yield-by or --kill-at-end)");
                break;
        case RULE_UNKNOWN_DEVICE:
                say(t, "there is no such device here; `lessor devices` lists them");
                break;
        case RULE_NO_DEVICES:
                say(t, "no device is known: the driver shows none");
                break;
        case RULE_LIMIT_LEASES:
                say(t, "the table of leases is full (%u); release some first", r->limit);
                break;
        case RULE_LIMIT_ENTRIES:
                say(t, "the queue is full (%u entries); try again later", r->limit);
                break;
        case RULE_LIMIT_WAITING_PER_USER:
                say(t, "this user already has %u requests waiting, which is the limit", r->limit);
                break;
        case RULE_LIMIT_LEASES_PER_USER:
                say(t, "this user already has %u leases, which is the limit; release some first", r->limit);
                break;
        case RULE_LIMIT_USERS:
                say(t, "the table of users is full (%u)", r->limit);
                break;
        case RULE_LIMIT_BYTES_PER_USER:
                say(t, "this user's leases may come to ");
                say_size(t, r->ceiling_bytes);
                say(t, " together; they have ");
                say_size(t, r->reserved_bytes);
                say(t, ", and this asks for ");
                say_size(t, r->need_bytes);
                say(t, ": release some first (`lessor limits`)");
                break;
        case RULE_LIMIT_SLOT:
                say(t, "this user's leases may run for %s at most: say for how long (--for)",
                    duration_text(r->start_ms, span));
                break;
        case RULE_LIMIT_PINS:
                say(t, "this user may pin %u leases at a time; unpin one first", r->limit);
                break;
        case RULE_LIMIT_PIN_TIME:
                say(t, "this user may pin for %s at most", duration_text(r->start_ms, span));
                break;
        case RULE_NO_SLOT:
                say(t, "it has no slot that could be extended: it may run as long as it likes");
                break;
        case RULE_BACKFILL_KEEPS_SLOT:
                say(t, "it went ahead of L%llu on its word to end in time, and L%llu still waits",
                    (unsigned long long) r->head_lease_id, (unsigned long long) r->head_lease_id);
                break;
        case RULE_NOTHING_TO_ADOPT:
                say(t, "that process holds no memory on a device here that could be told; name the size it will need "
                       "(--vram), or start it "
                       "with `lessor run`");
                break;
        case RULE_ADOPT_LEASED:
                say(t, "that process is under lease L%llu already", (unsigned long long) r->head_lease_id);
                break;
        case RULE_ADOPT_SEVERAL:
                say(t, "that process holds memory on %u devices: adopt it once for each (--device)", r->limit);
                break;
        case RULE_ADOPT_NOT_YOURS:
                say(t, "that process belongs to somebody else");
                break;
        case RULE_NOT_FOUND:
                say(t, "there is no such lease");
                break;
        case RULE_NOT_OWNER:
                say(t, "the lease belongs to somebody else");
                break;
        case RULE_CANNOT_PARK:
                say(t, "it cannot be parked: %s", reclaim_no_text((enum reclaim_no) r->limit));
                say_cure(t, (enum reclaim_no) r->limit);
                break;
        case RULE_BOOKING_PAST:
                if (r->start_ms != 0)
                        say(t, "a booking lies %s ahead at most, and is no longer than that",
                            duration_text(r->start_ms, span));
                else
                        say(t, "a booking begins later than now and has an end (--at, --for)");
                break;
        case RULE_BOOKING_TAKEN:
                say(t, "too much is booked for that time already: of ");
                say_size(t, r->ceiling_bytes);
                say(t, " that can be given then, ");
                say_size(t, r->free_bytes);
                say(t, " is left, and this asks for ");
                say_size(t, r->need_bytes);
                break;
        case RULE_TOO_FEW_DEVICES:
                say(t, "there are not so many devices: it can be on %u", r->limit);
                break;
        case RULE_BOOKING_OF_GANG:
                say(t, "a booking is on one device; book each by itself");
                break;
        case RULE_LIMIT_BOOKINGS:
                say(t, "this user may have %u bookings at a time; cancel one first", r->limit);
                break;
        case RULE_NOT_PARKED:
                say(t, "it is not parked");
                break;
        case RULE_IS_PARKED:
                say(t, "its program is parked, and nobody else could bring it back: `lessor thaw L%llu` first",
                    (unsigned long long) r->head_lease_id);
                break;
        case RULE_WAY_OUT_UNFIT:
                say(t, "its program could not survive the way out %s", way_out_name((enum way_out_kind) r->limit));
                break;
        case RULE_WRONG_STATE:
                say(t, "the lease is not in a state that allows this");
                break;
        }
}

static void say_change(struct text *t, const struct reason *r, uint64_t now_ms)
{
        const char *lead = ": ";

        say(t, "changed by request");
        if (r->limit & CHANGE_PRIORITY) {
                say(t, "%spriority", lead);
                lead = ", ";
        }
        if (r->limit & (CHANGE_SLOT | CHANGE_EXTEND)) {
                say(t, "%sslot", lead);
                if (r->start_ms != 0) {
                        say(t, ", which ends ");
                        say_from_now(t, r->start_ms, now_ms);
                }
                lead = ", ";
        }
        if (r->limit & (CHANGE_PIN | CHANGE_UNPIN)) {
                say(t, "%s%s", lead, r->limit & CHANGE_PIN ? "pinned" : "no longer pinned");
                lead = ", ";
        }
        if (r->limit & CHANGE_START) {
                say(t, "%sthe clock was set or stood still: it begins ", lead);
                say_from_now(t, r->start_ms, now_ms);
        }
}

static void say_span(struct text *t, uint64_t then_ms, uint64_t now_ms)
{
        char span[DURATION_TEXT_MAX];

        say(t, "%s", duration_text(now_ms > then_ms ? now_ms - then_ms : 0, span));
}

static void say_ago(struct text *t, uint64_t then_ms, uint64_t now_ms)
{
        say_span(t, then_ms, now_ms);
        say(t, " ago");
}

static void say_size_if_known(struct text *t, uint64_t bytes)
{
        if (bytes != 0)
                say_size(t, bytes);
        else
                say(t, "memory");
}

static void say_idle(struct text *t, const struct reason *r, uint64_t now_ms)
{
        if (r->rule == RULE_IDLE_OVER) {
                say(t, "is at work again, or holds no longer; it had done nothing for ");
                say_span(t, r->start_ms, now_ms);
                return;
        }
        say(t, "holds ");
        say_size(t, r->used_bytes > r->reserved_bytes ? r->used_bytes : r->reserved_bytes);
        say(t, " and has done nothing for ");
        say_span(t, r->start_ms, now_ms);
        if (r->rule == RULE_IDLE_NOTICE && r->earliest_ms > now_ms) {
                say(t, "; whoever needs the memory may have it ");
                say_from_now(t, r->earliest_ms, now_ms);
        } else if (r->rule == RULE_IDLE_RECLAIMABLE) {
                say(t, "; whoever needs the memory may have it from now on, by the ways out that it has");
        } else if (r->rule == RULE_IDLE_LISTED) {
                say(t, "; it is listed for the administrator");
        } else if (r->rule == RULE_IDLE_NOTICE) {
                say(t, "; end it, or park it, if it is not needed");
        }
}

static void say_life(struct text *t, const struct reason *r, uint64_t now_ms)
{
        switch ((unsigned) r->rule) {
        case RULE_ENDED:
                say(t, "ended: %s", end_reason_text((enum end_reason) r->end));
                break;
        case RULE_DRAINING:
                say(t, "ended in the books (%s), but ", end_reason_text((enum end_reason) r->end));
                say_size(t, r->used_bytes);
                say(t, " is still on the device");
                break;
        case RULE_DRAINED:
                say(t, "ended: %s; its memory is gone from the device", end_reason_text((enum end_reason) r->end));
                break;
        case RULE_ORPHANED:
                say(t, "its command is gone, workers of it still hold ");
                say_size(t, r->used_bytes);
                break;
        case RULE_ACTIVATED:
                say(t, "collected; it runs");
                break;
        case RULE_RENEWED:
                say(t, "renewed");
                break;
        case RULE_SLOT_WARNING:
                say(t, "its slot ends ");
                say_from_now(t, r->start_ms, now_ms);
                say(t, "; after that it ranks as a filler");
                break;
        case RULE_SLOT_OVER:
                say(t, "its slot is over: it ranks as a filler from now on");
                break;
        case RULE_OTHER_DEVICE:
                say(t, "memory of it (");
                say_size(t, r->used_bytes);
                say(t, ") appeared on another device than granted; set CUDA_VISIBLE_DEVICES to the granted one");
                break;
        case RULE_CHANGED:
                say_change(t, r, now_ms);
                break;
        case RULE_PIN_OVER:
                say(t, "its pin has run out: it may be taken back as before");
                break;
        case RULE_END_ORDERED:
                say(t, "what is left of it is being ended: SIGTERM now, SIGKILL ");
                say_from_now(t, r->start_ms, now_ms);
                break;
        case RULE_END_BLOCKED:
                say(t, "it could not be ended yet: %s; tried again", hand_why_text((enum hand_why) r->limit));
                break;
        case RULE_UNKILLABLE:
                say(t, "a process of it does not end, not even by SIGKILL; its memory stays counted");
                break;
        case RULE_ASKED:
                say(t, "is to give its device up by the way out %s", way_out_name((enum way_out_kind) r->limit));
                if (r->head_lease_id != 0)
                        say(t, ", for L%llu", (unsigned long long) r->head_lease_id);
                break;
        case RULE_PARKED:
                say(t, "parked: ");
                say_size(t, r->used_bytes);
                say(t, " of its device are free");
                if (r->need_bytes != 0) {
                        say(t, ", kept in ");
                        say_size(t, r->need_bytes);
                        say(t, " of host memory");
                }
                if (r->head_lease_id != 0)
                        say(t, "; for L%llu, then it comes back by itself", (unsigned long long) r->head_lease_id);
                break;
        case RULE_PARK_BLOCKED:
                say(t, "goes on: it could not be parked now: %s", hand_why_text((enum hand_why) r->limit));
                break;
        case RULE_PARK_FAILED:
                say(t, "did not give its device up by the way out %s", way_out_name((enum way_out_kind) r->limit));
                break;
        case RULE_PARK_UNDONE:
                say(t, "goes on: what had begun was undone");
                break;
        case RULE_STUCK:
                say(t, "stuck: %s; nothing more is done with it, its memory stays counted",
                    hand_why_text((enum hand_why) r->limit));
                break;
        case RULE_THAW_BEGAN:
                say(t, "comes back: ");
                say_size(t, r->need_bytes);
                say(t, " are free for it");
                break;
        case RULE_THAW_BLOCKED:
                say(t, "stays parked: %s; tried again ", hand_why_text((enum hand_why) r->limit));
                say_from_now(t, r->start_ms, now_ms);
                break;
        case RULE_THAW_FAILED:
                say(t, "stays parked: it was to be started again, and was not (%u in a row): %s", r->place,
                    hand_why_text((enum hand_why) r->limit));
                if (r->start_ms != 0) {
                        say(t, "; tried again ");
                        say_from_now(t, r->start_ms, now_ms);
                }
                break;
        case RULE_THAWED:
                say(t, "is back at work");
                break;
        case RULE_HELD:
                say(t, "held in place while something more important works; its memory is kept");
                break;
        case RULE_LET_GO:
                say(t, "works again");
                break;
        case RULE_BROKE_PROMISE:
                say(t, "had given its memory back, and took ");
                say_size(t, r->used_bytes);
                say(t, " again without a word");
                break;
        case RULE_STRUCK_OUT:
                say(t, "the way out %s failed too often, and is not used any more until a person says so",
                    way_out_name((enum way_out_kind) r->limit));
                break;
        case RULE_FORGIVEN:
                say(t, "its strikes are taken back: each of its ways out may be tried again");
                break;
        case RULE_IDLE:
                say(t, "its program says that it is idle");
                break;
        case RULE_BUSY:
                say(t, "it is at work");
                break;
        case RULE_PLAN_BEGAN:
                say(t, "memory is taken back for it: needs ");
                say_size(t, r->need_bytes);
                say(t, ", ");
                say_size(t, r->free_bytes);
                say(t, " is free");
                say_blockers(t, r, "; from ", now_ms);
                break;
        case RULE_PLAN_FAILED:
                say(t, "the plan ends: step %u could not be done", r->limit);
                break;
        case RULE_PLAN_OVER:
                say(t, "nothing more has to be taken back for it");
                break;
        case RULE_OVER_USE:
                say(t, "uses ");
                say_size(t, r->used_bytes);
                say(t, ", reserved ");
                say_size(t, r->reserved_bytes);
                say(t, "; ask for more next time");
                break;
        case RULE_MISSES_WORK:
                say(t, "nothing of it has memory on a device, and pid %u of the same user, which came later, has ",
                    r->blockers[0].pid);
                say_size(t, r->blockers[0].bytes);
                say(t,
                    " without a lease: if that is its work, start it below the command, or give it one: lessor adopt "
                    "%u",
                    r->blockers[0].pid);
                break;
        case RULE_IDLE_BEGAN:
        case RULE_IDLE_NOTICE:
        case RULE_IDLE_RECLAIMABLE:
        case RULE_IDLE_LISTED:
        case RULE_IDLE_OVER:
                say_idle(t, r, now_ms);
                break;
        case RULE_STILL_DRAINING:
        case RULE_STILL_ORPHANED:
                say(t, r->rule == RULE_STILL_DRAINING ? "ended " : "its command ended ");
                say_ago(t, r->start_ms, now_ms);
                say(t, r->rule == RULE_STILL_DRAINING ? ", and still has " : ", and what it left behind still has ");
                say_size_if_known(t, r->used_bytes);
                say(t, " on the device");
                break;
        case RULE_STEPPED_ASIDE:
                say(t, "has blocked others as long as it may; it keeps its rank and lets them pass");
                break;
        case RULE_CLAIM_CHANGED:
                say_size(t, r->reserved_bytes);
                say(t, " is kept free for the head of the queue");
                break;
        case RULE_BLOCKING_BEGAN:
                say(t,
                    "has waited long without a start in sight: new work that cannot be taken back waits too, until ");
                say_from_now(t, r->start_ms, now_ms);
                break;
        }
}

static void say_devices(struct text *t, const struct reason *r)
{
        switch ((unsigned) r->rule) {
        case RULE_DEVICE_FOUND:
                say(t, "device found: ");
                say_size(t, r->total_bytes);
                break;
        case RULE_DEVICE_CHANGED:
                say(t, "the device's health changed");
                break;
        case RULE_STRANGER_SEEN:
                say(t, "a process without a lease holds ");
                say_size(t, r->used_bytes);
                break;
        case RULE_STRANGER_GONE:
                say(t, "the process without a lease is gone from the device");
                break;
        case RULE_EYES_STALE:
                say(t, "the driver does not answer: nothing is granted until it does");
                break;
        case RULE_EYES_BACK:
                say(t, "the driver answers again");
                break;
        case RULE_RESTARTED:
                say(t, "the daemon came back with its books as they were");
                break;
        }
}

enum family { FAMILY_GRANT, FAMILY_WAIT, FAMILY_REFUSAL, FAMILY_LIFE, FAMILY_DEVICES };

static enum family family_of(unsigned rule)
{
        switch (rule) {
        case RULE_ADOPTED:
        case RULE_RECLAIMED:
                return FAMILY_GRANT;
        case RULE_EXCLUSIVE_HOLDS:
        case RULE_RECLAIMING:
        case RULE_RETURNS_LIMIT:
        case RULE_CARD_MOVES:
        case RULE_THAW_AGAIN:
        case RULE_UNDO_ORDER:
        case RULE_WANTS_BACK:
        case RULE_BOOKED:
        case RULE_BEFORE_BOOKING:
        case RULE_PAUSED:
                return FAMILY_WAIT;
        case RULE_CHANGED:
        case RULE_PIN_OVER:
        case RULE_END_ORDERED:
        case RULE_END_BLOCKED:
        case RULE_UNKILLABLE:
        case RULE_THAW_FAILED:
                return FAMILY_LIFE;
        }
        if ((rule >= RULE_PLAN_BEGAN && rule <= RULE_BUSY) || rule == RULE_FORGIVEN ||
            (rule >= RULE_IDLE_BEGAN && rule <= RULE_STILL_ORPHANED) || rule == RULE_MISSES_WORK)
                return FAMILY_LIFE;
        if (rule > RULE_RESTARTED)
                return FAMILY_REFUSAL;
        if (rule >= RULE_FITS && rule <= RULE_LEDGER_SET_ASIDE)
                return FAMILY_GRANT;
        if (rule >= RULE_NO_ROOM && rule <= RULE_ON_HOLD)
                return FAMILY_WAIT;
        if (rule >= RULE_NEVER_FITS && rule <= RULE_WRONG_STATE)
                return FAMILY_REFUSAL;
        return rule >= RULE_DEVICE_FOUND ? FAMILY_DEVICES : FAMILY_LIFE;
}

const char *reason_text(const struct reason *r, uint64_t now_ms, char *buf, size_t buf_size)
{
        struct text t = { .buf = buf, .size = buf_size };

        if (buf_size == 0)
                return buf;
        buf[0] = '\0';
        if (rule_is_enforcement(r->rule))
                return reason_enforce_text(r, now_ms, buf, buf_size);
        switch (family_of(r->rule)) {
        case FAMILY_GRANT:
                say_grant(&t, r);
                break;
        case FAMILY_WAIT:
                say_wait(&t, r, now_ms);
                break;
        case FAMILY_REFUSAL:
                say_refusal(&t, r, now_ms);
                break;
        case FAMILY_LIFE:
                say_life(&t, r, now_ms);
                break;
        case FAMILY_DEVICES:
                say_devices(&t, r);
                break;
        }
        return buf;
}
