/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "api/view.h"
#include "base/escape.h"
#include "model/lease.h"

bool view_shows_detail(const struct view *v, uint32_t owner_uid)
{
        return v->viewer_is_admin || v->viewer_uid == owner_uid;
}

json_t *view_u64(uint64_t n)
{
        return json_integer((json_int_t) (n < INT64_MAX ? n : INT64_MAX));
}

json_t *view_u64_or_null(bool known, uint64_t n)
{
        return known ? view_u64(n) : json_null();
}

json_t *view_text(const char *text)
{
        char safe[512];

        json_t *plain = json_string(text); /* NULL where it is not UTF-8 */
        return plain ? plain : json_string(text_escape(text, strlen(text), safe, sizeof(safe)));
}

json_t *view_text_or_null(const char *text)
{
        return text && text[0] != '\0' ? view_text(text) : json_null();
}

const char *view_time_text(uint64_t wall_ms, char buf[VIEW_TIME_MAX])
{
        struct tm tm;
        time_t seconds = (time_t) (wall_ms / 1000);

        if (!gmtime_r(&seconds, &tm))
                return NULL;
        (void) snprintf(buf, VIEW_TIME_MAX, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", tm.tm_year + 1900, tm.tm_mon + 1,
                        tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (unsigned) (wall_ms % 1000));
        return buf;
}

json_t *view_wall_time(uint64_t wall_ms)
{
        char text[VIEW_TIME_MAX];
        const char *at = view_time_text(wall_ms, text);
        return at ? json_string(at) : json_null();
}

json_t *view_time(const struct view *v, uint64_t world_ms)
{
        return world_ms == 0 ? json_null() : view_wall_time(v->host->wall_of_ms(v->host->ctx, world_ms));
}

json_t *view_lease_id(uint64_t lease_id)
{
        char text[LEASE_ID_TEXT_MAX];
        return lease_id == 0 ? json_null() : json_string(lease_id_text(lease_id, text));
}

json_t *view_device_uuid(const struct world *world, uint32_t device)
{
        return device < world->n_devices ? view_text_or_null(world->devices[device].uuid) : json_null();
}
