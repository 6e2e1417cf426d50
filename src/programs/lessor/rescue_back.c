/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/rescue_back.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/size.h"
#include "hands/target.h"
#include "programs/lessor/rescue_hands.h"
#include "programs/lessor/rescue_room.h"
#include "programs/lessor/rescue_words.h"
#include "wire/parked.h"

enum {
        ROUNDS_MAX = 8,     /* more than there are steps: each order that is done, or settled, is one further */
        PATIENCE_MS = 5000, /* then it is said that the driver still works */
};

struct back {
        struct rescue_item *items; /* of one lease */
        size_t n;
        int parked;
        struct rescue_hands hands;
        void (*said)(const struct rescue_item *item);
};

__attribute__((format(printf, 3, 4))) static void ends(struct rescue_item *it, enum rescue_end end, const char *fmt,
                                                       ...)
{
        va_list args;

        it->end = end;
        va_start(args, fmt);
        (void) vsnprintf(it->end_words, sizeof(it->end_words), fmt, args);
        va_end(args);
}

/* ---- room ---- */

static bool is_away(const struct rescue_item *it)
{
        return record_step_is_parked(it->record.step);
}

/* What it will take on the device. By how much its host memory grew is more than that; better than nothing where nothing is known. */
static uint64_t bytes_of(const struct rescue_item *it)
{
        return it->record.bytes != 0 ? it->record.bytes : it->record.host_bytes;
}

static bool same_device(const struct rescue_item *a, const struct rescue_item *b)
{
        return memcmp(a->record.device_uuid, b->record.device_uuid, WARDEN_UUID_SIZE) == 0;
}

static void no_room(struct rescue_item *it, const char *uuid, uint64_t bytes, uint64_t needed_bytes,
                    const struct room *room)
{
        char need[SIZE_TEXT_MAX], slack[SIZE_TEXT_MAX], there[SIZE_TEXT_MAX], total[SIZE_TEXT_MAX];

        ends(it, RESCUE_BLOCKED,
             "too little room on %s: it needs %s and %s to spare, and of %s are %s free. Nothing was done; "
             "`nvidia-smi` "
             "shows who has the rest",
             uuid, size_text_short(bytes, need), size_text_short(needed_bytes - bytes, slack),
             size_text_short(room->total_bytes, total), size_text_short(room->free_bytes, there));
}

/* All of the lease that is to come back to the device of item @first. False: it is said of each why not. */
static bool look_at_device(struct back *b, size_t first)
{
        struct room room = { 0 };
        struct error err = { 0 };
        char uuid[RECORD_UUID_TEXT_SIZE];
        uint64_t bytes = 0, needed_bytes = 0;

        for (size_t i = first; i < b->n; i++)
                if (b->items[i].wanted && is_away(&b->items[i]) && same_device(&b->items[i], &b->items[first]))
                        bytes = u64_add_sat(bytes, bytes_of(&b->items[i]));
        record_uuid_text(b->items[first].record.device_uuid, uuid);
        int r = room_look(uuid, 0, &room, &err);
        needed_bytes = r < 0 ? 0 : room_needed_bytes(&room, bytes);
        bool fits = r == 0 && needed_bytes <= room.free_bytes;
        for (size_t i = first; i < b->n; i++) {
                struct rescue_item *it = &b->items[i];
                if (!it->wanted || !is_away(it) || !same_device(it, &b->items[first]))
                        continue;
                /* The first waits for the room of all of them, each later one for its own. */
                it->used_at_most_bytes =
                        u64_sub0(room.total_bytes, i == first ? needed_bytes : room_needed_bytes(&room, bytes_of(it)));
                if (r < 0)
                        ends(it, RESCUE_BLOCKED, "%s. Nothing was done", err.msg);
                else if (!fits)
                        no_room(it, uuid, bytes, needed_bytes, &room);
        }
        return fits;
}

static bool is_first_of_its_device(const struct back *b, size_t i)
{
        for (size_t k = 0; k < i; k++)
                if (b->items[k].wanted && is_away(&b->items[k]) && same_device(&b->items[k], &b->items[i]))
                        return false;
        return true;
}

/* Every device of the lease; where one has no room, none of it is begun. */
static bool look_at_devices(struct back *b)
{
        bool fits = true;

        for (size_t i = 0; i < b->n; i++)
                if (b->items[i].wanted && is_away(&b->items[i]) && is_first_of_its_device(b, i))
                        fits = look_at_device(b, i) && fits;
        for (size_t i = 0; !fits && i < b->n; i++)
                if (b->items[i].wanted && b->items[i].end == RESCUE_NOT_TRIED)
                        ends(&b->items[i], RESCUE_BLOCKED,
                             "another process of its lease has no room. Nothing was done");
        return fits;
}

/* ---- one step ---- */

static enum warden_verb next_verb(enum record_step step)
{
        if (record_step_is_parked(step))
                return WARDEN_RESTORE;
        return step >= RECORD_LOCKING && step <= RECORD_UNLOCKING ? WARDEN_UNLOCK : WARDEN_VERB_NONE;
}

static int carry_out(struct back *b, const struct rescue_item *it, enum warden_verb verb, struct warden_answer *ret,
                     struct error *err)
{
        const struct record *r = &it->record;
        struct warden_order order = { .verb = verb,
                                      .pid = it->pid,
                                      .start_ticks = it->start_ticks,
                                      .pidfd_inode = r->pidfd_inode,
                                      .owner_uid = r->uid,
                                      .lease_id = r->lease_id,
                                      .bytes = r->bytes,
                                      .used_at_most_bytes = verb == WARDEN_RESTORE ? it->used_at_most_bytes : 0,
                                      .flags = r->flags };
        size_t slot;

        memcpy(order.device_uuid, r->device_uuid, WARDEN_UUID_SIZE);
        int e = rescue_hands_begin(&b->hands, &order, &slot, err);
        if (e < 0)
                return e;
        if (rescue_hands_wait(&b->hands, slot, PATIENCE_MS, ret) == 0)
                return 0;
        (void) fprintf(stderr,
                       "lessor rescue: the driver still works on process %" PRIu32
                       " (%s). It is not interrupted, also not "
                       "by Ctrl-C, which only ends this: another `lessor rescue` goes on from there.\n",
                       it->pid, warden_verb_name(verb));
        return rescue_hands_wait(&b->hands, slot, -1, ret);
}

static void refused(struct rescue_item *it, enum warden_verb verb, const struct warden_answer *answer)
{
        char words[RESCUE_WORDS_MAX];

        if (answer->why == WARDEN_WHY_STANDS_STILL)
                ends(it, RESCUE_BLOCKED,
                     "somebody stopped or froze it, and the driver would wait for it for ever: let it go on (`kill "
                     "-CONT "
                     "%" PRIu32 "`, or thaw its cgroup), then again",
                     it->pid);
        else
                ends(it, answer->result == WARDEN_FAILED ? RESCUE_FAILED : RESCUE_BLOCKED, "%s: %s",
                     warden_verb_name(verb), rescue_answer_words(answer, words));
}

static bool still_lives(const struct rescue_item *it)
{
        struct target t;

        return target_look(it->pid, &t) && t.start_ticks == it->start_ticks;
}

/*
 * From where the record says it stands towards running. @restore_only: as far as locked, because the others of its lease are not
 * back yet. An order that finds another state than the record's has the record put right, so each round begins by reading it.
 */
static void advance(struct back *b, struct rescue_item *it, bool restore_only)
{
        struct warden_answer answer = { 0 };
        struct error err = { 0 };

        for (int round = 0; round < ROUNDS_MAX && it->end == RESCUE_NOT_TRIED; round++) {
                int r = parked_read(b->parked, it->pid, it->start_ticks, &it->record, &err);
                if (r == -ENOENT || (r == 0 && it->record.step == RECORD_RESTORED)) {
                        if (still_lives(it))
                                ends(it, RESCUE_BACK, "it runs again");
                        else
                                ends(it, RESCUE_FAILED, "it ended meanwhile");
                        return;
                }
                enum warden_verb verb = r < 0 ? WARDEN_VERB_NONE : next_verb(it->record.step);
                if (restore_only && verb == WARDEN_UNLOCK)
                        return;
                if (verb == WARDEN_VERB_NONE) {
                        ends(it, RESCUE_FAILED, "%s",
                             r < 0 ? err.msg : "the driver failed on it for good; only ending it helps");
                        return;
                }
                if (carry_out(b, it, verb, &answer, &err) < 0)
                        ends(it, RESCUE_BLOCKED, "%s", err.msg);
                else if (answer.result != WARDEN_DONE && answer.why != WARDEN_WHY_STATE)
                        refused(it, verb, &answer);
                it->took_ms = u64_add_sat(it->took_ms, answer.duration_ms);
        }
        if (it->end == RESCUE_NOT_TRIED)
                ends(it, RESCUE_FAILED, "it does not come to run: its state changes under our hands");
}

/* ---- one lease, all of them ---- */

static void bring_back_lease(struct back *b)
{
        if (look_at_devices(b)) {
                for (size_t i = 0; i < b->n; i++)
                        if (b->items[i].wanted)
                                advance(b, &b->items[i], true);
                for (size_t i = 0; i < b->n; i++)
                        if (b->items[i].wanted && b->items[i].end == RESCUE_NOT_TRIED)
                                advance(b, &b->items[i], false);
        }
        for (size_t i = 0; i < b->n; i++)
                if (b->items[i].wanted)
                        b->said(&b->items[i]);
}

static size_t length_of_lease(const struct rescue *r, size_t first)
{
        const struct rescue_item *a = &r->items[first];
        size_t n = 1;

        while (first + n < r->n_items && a->record.lease_id != 0 && r->items[first + n].folder == a->folder &&
               r->items[first + n].record.lease_id == a->record.lease_id)
                n++;
        return n;
}

static bool is_wanted(const struct rescue_item *items, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (items[i].wanted)
                        return true;
        return false;
}

/* To write there takes being the folder's owner: what another user writes in it, its hands would not believe. */
static int open_folder(const struct rescue_folder *f, int *ret, struct error *err)
{
        if (f->owner == geteuid())
                return parked_open(f->path, (gid_t) -1, ret, err);
        if (f->owner == 0)
                return error_set(err, EPERM, "what is parked in %s is brought back by root: `sudo lessor rescue`",
                                 f->path);
        return error_set(err, EPERM,
                         "what is parked in %s is brought back by its owner: `sudo -u '#%u' lessor rescue --folder %s`",
                         f->path, f->owner, f->run_dir);
}

static int bring_back_in(struct rescue *rescue, const struct rescue_folder *f, struct back *b, struct error *err)
{
        auto_close int parked = -1;
        int r = open_folder(f, &parked, err);

        if (r < 0)
                return r;
        b->parked = parked;
        r = rescue_hands_open(&b->hands, parked, err);
        for (size_t i = 0, n; r == 0 && i < rescue->n_items; i += n) {
                n = length_of_lease(rescue, i);
                b->items = &rescue->items[i];
                b->n = n;
                if (b->items[0].folder == f && is_wanted(b->items, n))
                        bring_back_lease(b);
        }
        rescue_hands_close(&b->hands);
        return r;
}

int rescue_bring_back(struct rescue *rescue, void (*said)(const struct rescue_item *item), struct error *err)
{
        static struct back b;
        int r = 0;

        b.said = said;
        for (size_t i = 0; r == 0 && i < rescue->n_folders; i++) {
                const struct rescue_folder *f = &rescue->folders[i];
                bool any = false;
                for (size_t k = 0; k < rescue->n_items; k++)
                        any |= rescue->items[k].folder == f && rescue->items[k].wanted;
                if (any)
                        r = bring_back_in(rescue, f, &b, err);
        }
        return r;
}
