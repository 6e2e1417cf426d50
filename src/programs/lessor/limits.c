/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/duration.h"
#include "base/strbuf.h"
#include "model/lease.h"
#include "programs/lessor/look.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum { PATH_MAX_BYTES = 512, CELL_MAX = 96 };

const struct option limits_options[] = {
        { "user", "NAME", "of this user (administrators only)", 0, "@users" },
        { "json", NULL, "print JSON, as the API gives it" },
        { 0 },
};

const char limits_more[] =
        "  lessor limits\n"
        "  sudo lessor limits --user alice\n"
        "\n"
        "The limits stand in lessord.conf, for everyone and in [user NAME] and [group NAME]; `lessor "
        "config show` prints them.\n"
        "\n"
        "Exit status: 0 done, 1 refused, 2 wrong use, 69 lessord is away.";

/* One row: what one may have, and has. */
struct row {
        const char *label;
        const char *may, *has; /* keys; @has NULL = nothing to count */
        char kind;             /* n count, b bytes, d span, p priority */
};

static const char *cell(const json_t *object, const char *key, char kind, char buf[CELL_MAX])
{
        uint64_t value;
        char size[SIZE_TEXT_MAX], span[DURATION_TEXT_MAX];

        if (!key)
                buf[0] = '\0';
        else if (!json_amount(object, key, &value))
                (void) snprintf(buf, CELL_MAX, "no limit");
        else if (kind == 'b')
                (void) snprintf(buf, CELL_MAX, "%s", size_text_short(value, size));
        else if (kind == 'd')
                (void) snprintf(buf, CELL_MAX, "%s", duration_text(value, span));
        else if (kind == 'p')
                (void) snprintf(buf, CELL_MAX, "%" PRIu64 " %s", value, priority_name((unsigned) value));
        else
                (void) snprintf(buf, CELL_MAX, "%" PRIu64, value);
        return buf;
}

static void print_limits(const json_t *body)
{
        static const struct row rows[] = {
                { "highest priority", "priority_min", NULL, 'p' },    { "leases", "leases_max", "leases", 'n' },
                { "of them waiting", "waiting_max", "waiting", 'n' }, { "memory together", "bytes_max", "bytes", 'b' },
                { "longest slot (--for)", "slot_max_ms", NULL, 'd' }, { "pinned leases", "pins_max", "pins", 'n' },
                { "longest pin", "pin_max_ms", NULL, 'd' },           { "bookings", "bookings_max", "bookings", 'n' },
                { "booked ahead", "booking_ahead_ms", NULL, 'd' },
        };
        char user[CELL_MAX], uid[24], row[CELL_MAX], may[CELL_MAX], has[CELL_MAX];
        const json_t *limits = json_object_get(body, "limits"), *had = json_object_get(body, "has");
        uint64_t mib_s;

        (void) printf("%s (uid %s): limits of %s%s\n", show_field(body, "user", "?", user, sizeof(user)),
                      show_field(body, "uid", "?", uid, sizeof(uid)), show_field(body, "row", "?", row, sizeof(row)),
                      json_is_true(json_object_get(body, "administrator"))
                              ? "; as an administrator, any priority, and no limit on slots and pins"
                              : "");
        (void) printf("  %s%-22s %-14s %s%s\n", show_colour(SHOW_DIM), "", "may have", "has", show_colour(SHOW_PLAIN));
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                (void) printf("  %-22s %-*s%s%s\n", rows[i].label, rows[i].has ? 14 : 0,
                              cell(limits, rows[i].may, rows[i].kind, may), rows[i].has ? " " : "",
                              cell(had, rows[i].has, rows[i].kind, has));
        if (json_amount(had, "usage_mib_s", &mib_s))
                (void) printf("  used lately: %.1f GiB hours; who used less goes first among equals\n",
                              (double) mib_s / 1024 / 3600);
}

/* A name as part of a query: all but letters and digits as %XX. */
static void put_encoded(struct strbuf *sb, const char *text)
{
        for (; *text != '\0'; text++) {
                unsigned char c = (unsigned char) *text;
                if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || strchr("._-", c))
                        strbuf_printf(sb, "%c", c);
                else
                        strbuf_printf(sb, "%%%02X", c);
        }
}

int verb_limits_main(const struct verb *verb, int argc, char **argv)
{
        struct options o;
        struct strbuf path;
        const char *user = NULL;
        json_t *body = NULL;
        bool json = false;

        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND)
                        return verb_usage_error(verb, "it takes no words; did you mean --user?");
                if (strcmp(option_name(&o, what), "json") == 0)
                        json = true;
                else
                        user = o.value;
        }
        strbuf_init(&path, PATH_MAX_BYTES);
        strbuf_puts(&path, "/api/limits");
        if (user) {
                strbuf_puts(&path, "?user=");
                put_encoded(&path, user);
        }
        int code = path.failed ? verb_usage_error(verb, "--user is too long for a name")
                               : show_get(verb->name, strbuf_text(&path), &body);
        if (code == LESSOR_EXIT_OK && json)
                show_json(body);
        else if (code == LESSOR_EXIT_OK)
                print_limits(body);
        json_decref(body);
        strbuf_fini(&path);
        return code;
}
