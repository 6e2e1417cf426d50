/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/look.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/duration.h"
#include "base/escape.h"
#include "base/number.h"
#include "base/size.h"
#include "model/lease.h"
#include "model/reason.h"
#include "programs/lessor/show.h"

enum { BAR_CELLS = 40, FIELD_MAX = 160, UUID_SHOWN = 12 };

int look_options(const struct verb *verb, int argc, char **argv, bool *ret_json)
{
        struct options o;
        options_init(&o, verb, argc, argv);
        for (;;) {
                int what = options_next(&o);
                if (what == OPTIONS_END)
                        return LOOK_ON;
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND)
                        return verb_usage_error(verb, "it takes no words");
                *ret_json = true;
        }
}

int look_id_options(const struct verb *verb, int argc, char **argv, bool *ret_json, char *ret_id, size_t id_size)
{
        struct options o;
        char shown[FIELD_MAX];
        const char *word = NULL;

        options_init(&o, verb, argc, argv);
        for (;;) {
                int what = options_next(&o);
                if (what == OPTIONS_END)
                        break;
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND && word)
                        return verb_usage_error(verb, "one lease at a time");
                if (what == OPTIONS_OPERAND)
                        word = o.value;
                else
                        *ret_json = true;
        }
        uint64_t id;
        if (!word)
                return verb_usage_error(verb, "which lease? Its id stands in `lessor status`: L17, for example");
        if (!lease_id_parse(word, &id))
                return verb_usage_error(verb, "\"%s\" is no lease: an id is L and a number, as L17 (`lessor status`)",
                                        text_escape(word, strlen(word), shown, sizeof(shown)));
        char text[LEASE_ID_TEXT_MAX];
        (void) snprintf(ret_id, id_size, "%s", lease_id_text(id, text));
        return LOOK_ON;
}

/* ---- devices ---- */

static size_t cells(uint64_t bytes, uint64_t total)
{
        return total == 0 ? 0 : (size_t) (((unsigned __int128) bytes * BAR_CELLS + total / 2) / total);
}

/* "####====....": used, promised beyond it, free. */
static void print_bar(const json_t *device)
{
        uint64_t total = json_amount_or(device, "total_bytes", 0), used, committed;
        bool known = json_amount(device, "used_bytes", &used);
        if (!json_amount(device, "committed_bytes", &committed))
                committed = known ? used : 0;
        size_t n_used = known ? cells(u64_min(used, total), total) : 0;
        size_t n_committed = cells(u64_min(committed, total), total);
        (void) fputs("  [", stdout);
        for (size_t i = 0; i < BAR_CELLS; i++)
                (void) fputc(!known ? '?' : i < n_used ? '#' : i < n_committed ? '=' : '.', stdout);
        (void) fputs("]\n", stdout);
}

static void print_holder(const json_t *holder)
{
        char kind[32], who[FIELD_MAX], reserved[SIZE_TEXT_MAX], used[SIZE_TEXT_MAX];
        const char *name = show_field(holder, "lease", "", who, sizeof(who));
        if (name[0] == '\0' && json_is_integer(json_object_get(holder, "pid"))) {
                char pid[32];
                (void) snprintf(who, sizeof(who), "pid %s", show_field(holder, "pid", "", pid, sizeof(pid)));
        }
        (void) printf("    %-12s %-12s promised %-12s used %s%s\n", show_field(holder, "kind", "?", kind, sizeof(kind)),
                      who, show_bytes(holder, "reserved_bytes", reserved), show_bytes(holder, "used_bytes", used),
                      json_is_true(json_object_get(holder, "managed")) ? "  (managed memory: more than is listed)"
                                                                       : "");
}

static void print_device(const json_t *device, bool with_holders)
{
        char name[FIELD_MAX], uuid[FIELD_MAX], health[32], buf[SIZE_TEXT_MAX];
        (void) printf("%s%s%s  %s  %s", show_colour(SHOW_BOLD), show_field(device, "name", "?", name, sizeof(name)),
                      show_colour(SHOW_PLAIN), show_field(device, "uuid", "?", uuid, sizeof(uuid)),
                      show_bytes(device, "total_bytes", buf));
        (void) show_field(device, "health", "ok", health, sizeof(health));
        if (strcmp(health, "ok") != 0 || json_is_false(json_object_get(device, "usable")))
                (void) printf("  %s%s%s", show_colour(SHOW_RED), strcmp(health, "ok") == 0 ? "not usable now" : health,
                              show_colour(SHOW_PLAIN));
        (void) fputc('\n', stdout);
        print_bar(device);
        (void) printf("  used %s", show_bytes(device, "used_bytes", buf));
        (void) printf(" · promised %s", show_bytes(device, "reserved_bytes", buf));
        (void) printf(" · committed %s", show_bytes(device, "committed_bytes", buf));
        (void) printf(" · %sfree %s%s\n", show_colour(SHOW_GREEN), show_bytes(device, "free_bytes", buf),
                      show_colour(SHOW_PLAIN));
        if (!with_holders)
                return;

        uint64_t age, bytes;
        char text[DURATION_TEXT_MAX];
        if (json_amount(device, "reading_age_ms", &age))
                (void) printf("  read %s ago", duration_text(age, text));
        else
                (void) printf("  never read");
        (void) printf(" · at most one lease can get %s\n", show_bytes(device, "ceiling_bytes", buf));
        size_t i;
        json_t *holder;
        json_array_foreach(json_object_get(device, "holders"), i, holder) print_holder(holder);
        if (json_amount(device, "unattributed_bytes", &bytes) && bytes > 0)
                (void) printf("    %-12s %-12s %-21s used %s\n", "unattributed", "", "", size_text_short(bytes, buf));
}

void look_devices(const json_t *devices, bool with_holders)
{
        size_t i;
        json_t *device;
        if (json_array_size(devices) == 0)
                (void) printf("no device: the driver lists none (`lessor status` says whether it answers)\n");
        json_array_foreach(devices, i, device)
        {
                if (i > 0 && with_holders)
                        (void) fputc('\n', stdout);
                print_device(device, with_holders);
        }
}

/* ---- leases, queue, strangers ---- */

/* Of several the first, and how many more there are. */
static const char *short_uuid(const json_t *object, char *buf, size_t buf_size)
{
        size_t n = json_array_size(json_object_get(object, "devices"));
        char uuid[FIELD_MAX];

        (void) show_cut(show_field(object, "device", "-", uuid, sizeof(uuid)), UUID_SHOWN, true, buf, buf_size);
        size_t len = strlen(buf);
        if (n > 1)
                (void) snprintf(buf + len, buf_size - len, " +%zu", n - 1);
        return buf;
}

static const char *span(const json_t *object, const char *key, char buf[DURATION_TEXT_MAX])
{
        uint64_t ms;
        if (json_amount(object, key, &ms))
                return duration_text(ms, buf);
        (void) snprintf(buf, DURATION_TEXT_MAX, "-");
        return buf;
}

static enum show_colour colour_of_state(const char *state)
{
        if (strcmp(state, "active") == 0)
                return SHOW_GREEN;
        if (strcmp(state, "stuck") == 0 || strcmp(state, "lost") == 0)
                return SHOW_RED;
        return SHOW_YELLOW;
}

static const char *who_of(const json_t *object, char *buf, size_t buf_size)
{
        char name[FIELD_MAX], user[FIELD_MAX], whole[2 * FIELD_MAX + 4];
        (void) show_field(object, "name", "", name, sizeof(name));
        if (name[0] == '\0')
                (void) show_field(object, "consumer", "", name, sizeof(name));
        (void) snprintf(whole, sizeof(whole), "%s%s%s", name, name[0] != '\0' ? " · " : "",
                        show_field(object, "user", "?", user, sizeof(user)));
        return show_cut(whole, 30, false, buf, buf_size);
}

/* What its owner should know, beyond why it was granted. */
static bool is_warned(const json_t *lease)
{
        static const enum rule warnings[] = { RULE_SLOT_WARNING,  RULE_SLOT_OVER,      RULE_OTHER_DEVICE,
                                              RULE_OVER_USE,      RULE_DEVICE_CHANGED, RULE_STILL_DRAINING,
                                              RULE_STILL_ORPHANED };
        const char *rule = json_text(json_object_get(lease, "reason"), "rule", "");
        for (size_t i = 0; i < sizeof(warnings) / sizeof(warnings[0]); i++)
                if (strcmp(rule, rule_name(warnings[i])) == 0)
                        return true;
        return false;
}

const char *look_whom(const json_t *park, char buf[LOOK_WHOM_MAX])
{
        char lease[32], user[64], priority[32];
        const char *cause = json_text(park, "cause", "");

        if (strcmp(cause, "person") == 0)
                (void) snprintf(buf, LOOK_WHOM_MAX, "by request");
        else if (strcmp(cause, "rehearsal") == 0)
                (void) snprintf(buf, LOOK_WHOM_MAX, "for a rehearsal");
        else if (!json_is_string(json_object_get(park, "for_user")))
                (void) snprintf(buf, LOOK_WHOM_MAX, "for %s",
                                show_field(park, "for", "somebody", lease, sizeof(lease)));
        else
                (void) snprintf(buf, LOOK_WHOM_MAX, "for %s (%s, %s)",
                                show_field(park, "for", "?", lease, sizeof(lease)),
                                show_field(park, "for_user", "?", user, sizeof(user)),
                                show_field(park, "for_priority", "?", priority, sizeof(priority)));
        return buf;
}

/* "13:37:00" of the day is enough beside a lease that is away now. */
static const char *clock_of(const json_t *object, const char *key, char buf[16])
{
        const char *time = json_text(object, key, "");
        (void) snprintf(buf, 16, "%.8s", strlen(time) > 19 ? time + 11 : "?");
        return buf;
}

/* Whether, by which way and for whom it is not where it was; and until when. */
static void print_park(const json_t *lease, const char *indent)
{
        char who[LOOK_WHOM_MAX], way[32], since[16], span[DURATION_TEXT_MAX];
        const json_t *park = json_object_get(lease, "park");
        uint64_t ms;

        if (!json_is_object(park))
                return;
        (void) printf("%s%s%s %s since %s UTC", indent, show_colour(SHOW_YELLOW),
                      show_field(park, "way", "?", way, sizeof(way)), look_whom(park, who),
                      clock_of(park, "since", since));
        if (json_amount(park, "expected_back_ms", &ms))
                (void) printf("; expected back in about %s", duration_text(ms, span));
        else if (json_amount(park, "deadline_ms", &ms))
                (void) printf("; has %s for it", duration_text(ms, span));
        if (json_amount(park, "host_bytes", &ms) && ms > 0) {
                char size[SIZE_TEXT_MAX];
                (void) printf("; %s of host memory", size_text_short(ms, size));
        }
        (void) printf("%s\n", show_colour(SHOW_PLAIN));
}

/* That it does nothing, or takes more than it asked for. A short pause is nobody's business. */
static void print_idle(const json_t *lease)
{
        enum { PAUSE_MS = 60000 };
        char text[DURATION_TEXT_MAX];
        uint64_t ms;

        if (json_amount(lease, "idle_ms", &ms) && ms >= PAUSE_MS)
                (void) printf("  %sidle for %s%s", show_colour(SHOW_YELLOW), duration_text(ms, text),
                              show_colour(SHOW_PLAIN));
        if (json_amount(lease, "over_use_ms", &ms))
                (void) printf("  %suses more than it reserved%s", show_colour(SHOW_YELLOW), show_colour(SHOW_PLAIN));
}

void look_listed(const json_t *leases)
{
        size_t i, n = 0;
        json_t *lease;

        json_array_foreach(leases, i, lease) n += json_is_true(json_object_get(lease, "idle_listed"));
        if (n == 0)
                return;
        (void) printf("\n%sidle for long: memory that does nothing%s (%zu)\n", show_colour(SHOW_BOLD),
                      show_colour(SHOW_PLAIN), n);
        json_array_foreach(leases, i, lease)
        {
                char id[32], held[SIZE_TEXT_MAX], idle[DURATION_TEXT_MAX], who[128];
                if (json_is_true(json_object_get(lease, "idle_listed")))
                        (void) printf("  %-6s holds %-11s idle for %-12s %s\n",
                                      show_field(lease, "id", "?", id, sizeof(id)),
                                      show_bytes(lease, "reserved_bytes", held), span(lease, "idle_ms", idle),
                                      who_of(lease, who, sizeof(who)));
        }
}

/* What is unusual about it, behind its line. */
static void print_terms(const json_t *lease)
{
        static const char *const terms[] = { "exclusive", "adopted", "pinned", "ending", "filler" };
        for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++)
                if (json_is_true(json_object_get(lease, terms[i])))
                        (void) printf("  %s%s%s", show_colour(SHOW_YELLOW), terms[i], show_colour(SHOW_PLAIN));
        (void) fputc('\n', stdout);
}

void look_leases(const json_t *leases)
{
        size_t i;
        json_t *lease;
        json_array_foreach(leases, i, lease)
        {
                char id[32], state[32], priority[32], bytes[SIZE_TEXT_MAX], used[SIZE_TEXT_MAX], device[64], who[128];
                char left[DURATION_TEXT_MAX], padded[64];
                (void) show_field(lease, "state", "?", state, sizeof(state));
                (void) printf("  %-6s %s%s%s %-12s %11s  used %-11s %s %s",
                              show_field(lease, "id", "?", id, sizeof(id)), show_colour(colour_of_state(state)),
                              show_cut(state, 9, true, padded, sizeof(padded)), show_colour(SHOW_PLAIN),
                              show_field(lease, "priority_name", "?", priority, sizeof(priority)),
                              show_bytes(lease, "bytes", bytes), show_bytes(lease, "used_bytes", used),
                              short_uuid(lease, device, sizeof(device)), who_of(lease, who, sizeof(who)));
                if (json_is_true(json_object_get(lease, "over_time")))
                        (void) printf("  %sover its time%s", show_colour(SHOW_YELLOW), show_colour(SHOW_PLAIN));
                else if (json_is_integer(json_object_get(lease, "slot_left_ms")))
                        (void) printf("  %s left", span(lease, "slot_left_ms", left));
                print_idle(lease);
                print_terms(lease);
                print_park(lease, "         ");
                if (is_warned(lease)) {
                        char why[SHOW_TEXT_MAX];
                        (void) printf("         %s%s%s\n", show_colour(SHOW_YELLOW),
                                      show_field(lease, "why", "", why, sizeof(why)), show_colour(SHOW_PLAIN));
                }
        }
}

void look_queue(const json_t *queue)
{
        size_t i;
        json_t *entry;
        if (json_array_size(queue) == 0)
                (void) printf("nobody waits\n");
        json_array_foreach(queue, i, entry)
        {
                char place[16], lease[32], who[128], bytes[SIZE_TEXT_MAX], waited[DURATION_TEXT_MAX],
                        why[SHOW_TEXT_MAX];
                uint64_t level = json_amount_or(entry, "priority", 0), start;
                (void) printf("  %3s. %-6s %-12s %11s  waited %-11s %s\n",
                              show_field(entry, "place", "?", place, sizeof(place)),
                              show_field(entry, "lease", "?", lease, sizeof(lease)), priority_name((unsigned) level),
                              show_bytes(entry, "bytes", bytes), span(entry, "waited_ms", waited),
                              who_of(entry, who, sizeof(who)));
                (void) printf("       %s%s",
                              strcmp(json_text(entry, "kind", ""), "thaw") == 0 ? "is parked, comes back: " : "",
                              show_field(entry, "why", "", why, sizeof(why)));
                if (json_amount(entry, "expected_start_ms", &start))
                        (void) printf("; expected in %s", duration_text(start, waited));
                else
                        (void) printf("; start unknown");
                (void) fputc('\n', stdout);
        }
}

/* One of the caller's own, and there to be named. */
static bool is_ones_own(const json_t *stranger)
{
        uint64_t uid;
        return json_amount(stranger, "uid", &uid) && uid == getuid() &&
               !json_is_true(json_object_get(stranger, "ghost"));
}

const char *look_place(const json_t *place, char buf[LOOK_PLACE_MAX])
{
        char name[64], image[64], service[64];

        buf[0] = '\0';
        if (!json_is_object(place))
                return buf;
        if (!json_is_string(json_object_get(place, "container"))) {
                (void) show_field(place, "unit", "", buf, LOOK_PLACE_MAX);
                return buf;
        }
        if (!json_is_string(json_object_get(place, "name"))) {
                (void) show_field(place, "container", "?", name, sizeof(name));
                (void) snprintf(buf, LOOK_PLACE_MAX, "container %.12s", name);
                return buf;
        }
        (void) show_field(place, "name", "?", name, sizeof(name));
        (void) show_field(place, "image", "?", image, sizeof(image));
        (void) show_field(place, "service", "", service, sizeof(service));
        (void) snprintf(buf, LOOK_PLACE_MAX, "container %s (%s%s%s)", name, image, service[0] ? ", service " : "",
                        service);
        return buf;
}

void look_strangers(const json_t *strangers)
{
        size_t i;
        json_t *stranger;
        json_array_foreach(strangers, i, stranger)
        {
                char pid[32], user[FIELD_MAX], comm[FIELD_MAX], used[SIZE_TEXT_MAX], device[64], place[LOOK_PLACE_MAX];
                (void) look_place(json_object_get(stranger, "place"), place);
                (void) printf("  pid %-8s %-16s used %-11s %s %s%s%s\n",
                              show_field(stranger, "pid", "?", pid, sizeof(pid)),
                              show_field(stranger, "comm", "?", comm, sizeof(comm)),
                              show_bytes(stranger, "used_bytes", used), short_uuid(stranger, device, sizeof(device)),
                              show_field(stranger, "user", "?", user, sizeof(user)), place[0] ? "  in " : "", place);
                if (is_ones_own(stranger))
                        (void) printf("           yours: `lessor adopt %s` gives it a lease\n", pid);
        }
}

/* "checkpoint (proven), restart (2 strikes)": what its memory may be taken back by. */
static void print_ways(const json_t *lease)
{
        const json_t *ways = json_object_get(lease, "ways");
        size_t i;
        json_t *way;

        if (json_array_size(ways) == 0)
                return;
        (void) printf("  %-12s ", "gives way by");
        json_array_foreach(ways, i, way)
        {
                char name[32];
                uint64_t strikes = json_amount_or(way, "strikes", 0);
                (void) printf("%s%s", i > 0 ? ", " : "", show_field(way, "way", "?", name, sizeof(name)));
                if (json_is_true(json_object_get(way, "proven")))
                        (void) printf(" (proven)");
                if (strikes > 0)
                        (void) printf(" (%" PRIu64 " strike%s)", strikes, strikes == 1 ? "" : "s");
        }
        (void) fputc('\n', stdout);
}

void look_lease(const json_t *lease)
{
        static const struct {
                const char *key, *label;
                char kind; /* t text, b bytes, d duration */
        } rows[] = {
                { "state", "state", 't' },
                { "name", "name", 't' },
                { "consumer", "consumer", 't' },
                { "user", "user", 't' },
                { "priority_name", "priority", 't' },
                { "bytes", "asked for", 'b' },
                { "used_bytes", "uses", 'b' },
                { "device", "device", 't' },
                { "waited_ms", "waited", 'd' },
                { "slot_left_ms", "slot left", 'd' },
                { "pin_left_ms", "pinned for", 'd' },
                { "idle_ms", "idle for", 'd' },
                { "idle_by", "idle, says", 't' },
                { "idle_counts_in_ms", "takeable in", 'd' },
                { "over_use_ms", "over-use for", 'd' },
                { "place", "place", 't' },
                { "why", "why", 't' },
                { "expectation", "expectation", 't' },
        };
        char id[32];
        (void) printf("%s\n", show_field(lease, "id", "?", id, sizeof(id)));
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                char buf[SHOW_TEXT_MAX], bytes[SIZE_TEXT_MAX], text[DURATION_TEXT_MAX];
                uint64_t value;
                const json_t *field = json_object_get(lease, rows[i].key);
                if (!field || json_is_null(field) || (json_is_string(field) && json_string_length(field) == 0))
                        continue;
                const char *shown = rows[i].kind == 't' ? show_field(lease, rows[i].key, "", buf, sizeof(buf))
                                    : !json_amount(lease, rows[i].key, &value) ? "?"
                                    : rows[i].kind == 'b'                      ? size_text(value, bytes)
                                                                               : duration_text(value, text);
                (void) printf("  %-12s %s\n", rows[i].label, shown);
        }
        print_ways(lease);
        print_park(lease, "  away         ");
}
