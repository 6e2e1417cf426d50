/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include "api/view.h"
#include "base/duration.h"
#include "base/number.h"
#include "model/lease.h"

enum { WORDS_MAX = 128 };

static void say_state(const struct view *v, const struct lease *l, char buf[WORDS_MAX])
{
        char span[DURATION_TEXT_MAX], id[LEASE_ID_TEXT_MAX];
        bool begins = l->booked_ms > v->now_ms;

        if (begins)
                (void) duration_text(l->booked_ms - v->now_ms, span);
        if (l->state == LEASE_QUEUED && begins)
                (void) snprintf(buf, WORDS_MAX, "begins in %s", span);
        else if (l->state == LEASE_QUEUED)
                (void) snprintf(buf, WORDS_MAX, "it is time; what is in its way is not gone yet");
        else if (l->state == LEASE_GRANTED)
                (void) snprintf(buf, WORDS_MAX, "kept free%s%s; lessor run --booking %s -- COMMAND runs in it",
                                begins ? ", begins in " : "", begins ? span : "", lease_id_text(l->id, id));
        else
                (void) snprintf(buf, WORDS_MAX, "collected");
}

void view_booking(const struct view *v, struct fields *f, const struct lease *l)
{
        char start[VIEW_TIME_MAX], end[VIEW_TIME_MAX], local[16], words[WORDS_MAX];
        uint64_t end_ms = l->booked_wall_ms + l->slot_ms;

        if (l->booked_ms == 0) {
                fields_value(f, "booking", json_null());
                return;
        }
        if (l->slot_end_ms != 0)
                end_ms = v->host->wall_of_ms(v->host->ctx, l->slot_end_ms);
        (void) snprintf(local, sizeof(local), "%02u:%02u:%02u", l->day_s / 3600 % 24, l->day_s / 60 % 60,
                        l->day_s % 60);
        say_state(v, l, words);

        struct fields inner = fields_open(f, "booking");
        fields_text(&inner, "start", view_time_text(l->booked_wall_ms, start));
        fields_text(&inner, "end", view_time_text(end_ms, end));
        fields_u64_or_null(&inner, "begins_in_ms", l->booked_ms > v->now_ms, u64_sub0(l->booked_ms, v->now_ms));
        fields_text(&inner, "every", l->daily ? "day" : NULL);
        fields_text(&inner, "every_at", l->daily ? local : NULL);
        fields_text(&inner, "words", words);
        fields_close(f, &inner);
}
