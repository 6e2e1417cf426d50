/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/replay_story.h"
#include <stdlib.h>
#include <string.h>

void stories_fini(struct stories *s)
{
        free(s->items);
        for (int side = 0; side < SIDES_N; side++)
                free(s->of_lease[side]);
        *s = (struct stories){ 0 };
}

/* ---- the list ---- */

static void *grown(struct stories *s, void *items, size_t n, size_t *cap, size_t size)
{
        if (n < *cap)
                return items;
        size_t more = *cap ? *cap * 2 : 64;
        void *bigger = reallocarray(items, more, size);
        if (!bigger) {
                s->failed = true;
                return items;
        }
        *cap = more;
        return bigger;
}

static struct story *add(struct stories *s)
{
        s->items = grown(s, s->items, s->n, &s->cap, sizeof(*s->items));
        if (s->failed)
                return NULL;
        s->items[s->n] = (struct story){ 0 };
        return &s->items[s->n++];
}

/* Ids only go up, so each list stays in order. */
static void note_lease(struct stories *s, int side, uint64_t lease_id, size_t story)
{
        s->of_lease[side] =
                grown(s, s->of_lease[side], s->n_of_lease[side], &s->cap_of_lease[side], sizeof(*s->of_lease[side]));
        if (s->failed || lease_id == 0)
                return;
        s->items[story].fates[side].lease_id = lease_id;
        s->of_lease[side][s->n_of_lease[side]++] = (struct story_of_lease){ .lease_id = lease_id, .story = story };
}

static int by_id(const void *a, const void *b)
{
        const struct story_of_lease *x = a, *y = b;
        return x->lease_id < y->lease_id ? -1 : x->lease_id > y->lease_id;
}

struct story *stories_of_lease(struct stories *s, int side, uint64_t lease_id)
{
        const struct story_of_lease key = { .lease_id = lease_id };

        if (s->n_of_lease[side] == 0)
                return NULL;
        const struct story_of_lease *found = bsearch(&key, s->of_lease[side], s->n_of_lease[side], sizeof(key), by_id);
        return found ? &s->items[found->story] : NULL;
}

static void take_lease(struct story *story, const struct lease *lease)
{
        story->bytes = lease->bytes;
        story->uid = lease->uid;
        story->priority = lease->priority;
        memcpy(story->name, lease->name[0] ? lease->name : lease->consumer, sizeof(story->name));
        for (int side = 0; side < SIDES_N; side++) {
                struct fate *fate = &story->fates[side];
                fate->granted = lease->granted_ms != 0;
                fate->granted_ms = lease->granted_ms;
                fate->device = lease->device;
                fate->ended = lease->state == LEASE_DRAINING;
        }
}

void stories_begin(struct stories *s, const struct world *world)
{
        struct stories before = *s;
        size_t n_before = before.n_of_lease[AS_WAS];

        s->of_lease[AS_WAS] = NULL;
        s->cap_of_lease[AS_WAS] = 0;
        for (int side = 0; side < SIDES_N; side++)
                s->n_of_lease[side] = 0;
        for (uint32_t i = 0; i < world->n_leases && !s->failed; i++) {
                const struct story_of_lease key = { .lease_id = world->lease_ids[i] };
                if (key.lease_id == 0)
                        continue;
                const struct story_of_lease *known =
                        n_before > 0 ? bsearch(&key, before.of_lease[AS_WAS], n_before, sizeof(key), by_id) : NULL;
                size_t at = known ? known->story : s->n;
                struct story *story = known ? &s->items[at] : add(s);
                if (!story)
                        break;
                take_lease(story, &world->leases[i]);
                for (int side = 0; side < SIDES_N; side++)
                        note_lease(s, side, key.lease_id, at);
        }
        free(before.of_lease[AS_WAS]);
        for (int side = 0; side < SIDES_N; side++)
                if (s->n_of_lease[side] > 0)
                        qsort(s->of_lease[side], s->n_of_lease[side], sizeof(struct story_of_lease), by_id);
}

struct story *stories_add(struct stories *s, const uint64_t lease_ids[SIDES_N])
{
        if (!add(s))
                return NULL;
        for (int side = 0; side < SIDES_N; side++)
                note_lease(s, side, lease_ids[side], s->n - 1);
        return s->failed ? NULL : &s->items[s->n - 1];
}

void stories_forget_lease(struct stories *s, int side, uint64_t lease_id)
{
        size_t n = s->n_of_lease[side];

        if (n == 0 || s->of_lease[side][n - 1].lease_id != lease_id)
                return;
        s->items[s->of_lease[side][n - 1].story].fates[side].lease_id = 0;
        s->n_of_lease[side]--;
}

/* ---- what is decided ---- */

static void take_why(struct fate *fate, const struct action *a, const struct story_moment *at)
{
        fate->why = a->why;
        fate->why_ms = at->now_ms;
}

void stories_tell(struct stories *s, int side, const struct action *a, struct story *request,
                  const struct story_moment *at)
{
        bool refuses = a->kind == ACTION_REFUSED && request != NULL && a->lease_id == 0;
        struct story *story = refuses ? request : stories_of_lease(s, side, a->lease_id);

        if (!story)
                return;
        struct fate *fate = &story->fates[side];
        if (refuses) {
                fate->refused = true;
                take_why(fate, a, at);
        } else if (a->kind == ACTION_GRANTED && !fate->granted) {
                fate->granted = true;
                fate->granted_ms = at->now_ms;
                fate->granted_wall_ms = at->wall_ms;
                fate->device = a->device;
                take_why(fate, a, at);
        } else if ((a->kind == ACTION_QUEUED || a->kind == ACTION_WAITING) && !fate->granted) {
                take_why(fate, a, at);
                return; /* a word on the way */
        } else if ((a->kind == ACTION_DRAINING || a->kind == ACTION_ENDED) && !fate->ended) {
                fate->ended = true;
                fate->ended_ms = at->now_ms;
                fate->end = (uint8_t) a->why.end;
        } else {
                return;
        }
        story->counts = story->counts || at->counts;
}

/* ---- in which they differ ---- */

enum story_change story_change(const struct story *story)
{
        const struct fate *was = &story->fates[AS_WAS], *would = &story->fates[WOULD_BE];

        if (was->refused || would->refused)
                return !was->refused                      ? STORY_REFUSED
                       : !would->refused                  ? STORY_NOT_REFUSED
                       : was->why.rule != would->why.rule ? STORY_OTHER_REFUSAL
                                                          : STORY_SAME;
        if (was->granted != would->granted)
                return was->granted ? STORY_NEVER : STORY_ALSO;
        if (was->granted && was->granted_ms != would->granted_ms)
                return would->granted_ms < was->granted_ms ? STORY_EARLIER : STORY_LATER;
        if (was->granted && was->device != would->device)
                return STORY_ELSEWHERE;
        if (was->ended != would->ended || was->end != would->end || was->ended_ms != would->ended_ms)
                return STORY_ENDS;
        return STORY_SAME;
}

static const struct {
        const char *name, *text;
} changes[STORY_CHANGE_N] = {
        [STORY_SAME] = { "same", "would have been the same" },
        [STORY_EARLIER] = { "earlier", "would have been granted earlier" },
        [STORY_LATER] = { "later", "would have been granted later" },
        [STORY_NEVER] = { "never", "would not have been granted" },
        [STORY_ALSO] = { "also", "would have been granted as well" },
        [STORY_REFUSED] = { "refused", "would have been refused" },
        [STORY_NOT_REFUSED] = { "not-refused", "would not have been refused" },
        [STORY_OTHER_REFUSAL] = { "other-refusal", "would have been refused for another reason" },
        [STORY_ELSEWHERE] = { "elsewhere", "would have been granted on another device" },
        [STORY_ENDS] = { "ends", "would have ended otherwise" },
};

const char *story_change_name(enum story_change change)
{
        return change < STORY_CHANGE_N ? changes[change].name : "?";
}

const char *story_change_text(enum story_change change)
{
        return change < STORY_CHANGE_N ? changes[change].text : "?";
}
