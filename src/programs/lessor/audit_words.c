/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/audit.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/escape.h"
#include "programs/lessor/show.h"

enum { TIME_MAX = 48, NUMBER_MAX = 32, COMM_SHOWN_MAX = 256, LEVELS_MAX = 32 };

/* How the step from who stands above is known. */
static const char *evidence(const json_t *above)
{
        static const struct {
                const char *link, *words;
        } rows[] = {
                { "parent", "its child, as the kernel has it" },
                { "event", "forked by it, the kernel told" },
                { "session", "lives in the session that it began" },
                { "accounted", "its child, by process accounting" },
                { "token", "its descendant, by the token of a lease" },
        };
        const char *link = json_string_value(json_object_get(above, "link"));

        for (size_t i = 0; link && i < sizeof(rows) / sizeof(rows[0]); i++)
                if (strcmp(rows[i].link, link) == 0)
                        return rows[i].words;
        return "nobody knows how";
}

/* @above: NULL at the top */
static void print_node(const json_t *node, const json_t *above, size_t level, enum show_colour colour)
{
        char pid[NUMBER_MAX], comm[COMM_SHOWN_MAX];
        bool is_gone = json_is_true(json_object_get(node, "gone"));

        (void) printf("  ");
        if (level > 0)
                (void) printf("%*s└ ", (int) (2 * (level < LEVELS_MAX ? level : LEVELS_MAX) - 2), "");
        (void) printf("%s%s(%s)%s", show_colour(colour),
                      show_field(node, "comm", is_gone ? "~" : "?", comm, sizeof(comm)),
                      show_field(node, "pid", "?", pid, sizeof(pid)), show_colour(SHOW_PLAIN));
        if (above || is_gone)
                (void) printf("  %s%s%s%s%s", show_colour(SHOW_DIM), above ? evidence(above) : "",
                              above && is_gone ? "; " : "", is_gone ? "gone when it was first seen" : "",
                              show_colour(SHOW_PLAIN));
        (void) fputc('\n', stdout);
}

/* The oldest stands above. */
static void print_tree(const json_t *row, const json_t *facts)
{
        const json_t *parents = json_object_get(facts, "parents"), *above = NULL;
        size_t n = json_array_size(parents);

        for (size_t i = n; i > 0; i--) {
                const json_t *parent = json_array_get(parents, i - 1);
                print_node(parent, above, n - i, SHOW_PLAIN);
                above = parent;
        }
        print_node(row, above, n, SHOW_BOLD);
}

static bool is_bare(const char *word, size_t n)
{
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./:,@%^*";

        return n > 0 && strspn(word, plain) == n;
}

/* For reading, not for running again: words with anything in them stand in quotes. */
static void print_command(const json_t *facts)
{
        const json_t *words = json_object_get(facts, "command"), *word;
        size_t i;

        if (json_array_size(words) == 0)
                return;
        (void) printf("  command   ");
        json_array_foreach(words, i, word)
        {
                char text[SHOW_TEXT_MAX];
                const char *from = json_string_value(word);
                size_t n = json_string_length(word);
                const char *quote = from && is_bare(from, n) ? "" : "'";
                (void) printf("%s%s%s%s", i > 0 ? " " : "", quote, text_escape(from ? from : "", n, text, sizeof(text)),
                              quote);
        }
        (void) printf("%s\n", json_is_true(json_object_get(facts, "command_cut")) ? " …" : "");
}

static void print_program(const json_t *facts)
{
        const json_t *program = json_object_get(facts, "program"), *script = json_object_get(facts, "script");
        char path[SHOW_TEXT_MAX];

        if (json_is_object(program))
                (void) printf("  program   %s%s\n", show_field(program, "path", "?", path, sizeof(path)),
                              json_is_true(json_object_get(program, "deleted"))
                                      ? " (replaced or deleted since it began)"
                                      : "");
        else
                (void) printf("  program   not to be seen\n");
        if (json_is_object(script))
                (void) printf("  %s    %s\n", json_is_true(json_object_get(script, "is_module")) ? "module" : "script",
                              show_field(script, "path", "?", path, sizeof(path)));
}

/* What its engine said of it. */
static void print_container(const json_t *place)
{
        static const char *const keys[] = { "name", "image", "project", "service" };
        char text[SHOW_TEXT_MAX];

        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
                if (json_is_string(json_object_get(place, keys[i])))
                        (void) printf("  %-9s %s\n", keys[i], show_field(place, keys[i], "?", text, sizeof(text)));
}

static void print_place(const json_t *facts)
{
        const json_t *place = json_object_get(facts, "place");
        char text[SHOW_TEXT_MAX], container[COMM_SHOWN_MAX], unit[SHOW_TEXT_MAX];

        if (json_is_string(json_object_get(place, "container"))) {
                (void) printf("  container %s%s\n", show_field(place, "container", "?", container, sizeof(container)),
                              json_is_true(json_object_get(place, "of_user")) ? " (a user's own)" : "");
                print_container(place);
        } else if (json_is_string(json_object_get(place, "unit")))
                (void) printf("  unit      %s%s\n", show_field(place, "unit", "?", unit, sizeof(unit)),
                              json_is_true(json_object_get(place, "of_user")) ? " (a user's own)" : "");
        else if (json_is_string(json_object_get(facts, "cgroup")))
                (void) printf("  cgroup    %s\n", show_field(facts, "cgroup", "?", text, sizeof(text)));
}

static void print_memory(const json_t *row)
{
        const json_t *memory = json_object_get(row, "memory"), *point;
        char hour[TIME_MAX], least[SIZE_TEXT_MAX], most[SIZE_TEXT_MAX], last[SIZE_TEXT_MAX];
        size_t i;

        json_array_foreach(memory, i, point)(void)
                printf("  %s  %.16s  %s … %s, then %s\n", i == 0 ? "memory  " : "        ",
                       show_field(point, "hour", "?", hour, sizeof(hour)), show_bytes(point, "min_bytes", least),
                       show_bytes(point, "max_bytes", most), show_bytes(point, "last_bytes", last));
}

static void print_displaced(const json_t *row)
{
        const json_t *list = json_object_get(row, "displaced"), *one;
        char lease[NUMBER_MAX], first[TIME_MAX], bytes[SIZE_TEXT_MAX];
        size_t i;

        json_array_foreach(list, i, one)(void)
                printf("  %s %s was told at %s that %s of it are in the way\n", i == 0 ? "displaced" : "         ",
                       show_field(one, "lease", "?", lease, sizeof(lease)),
                       show_field(one, "first", "?", first, sizeof(first)), show_bytes(one, "bytes", bytes));
}

static void print_head(const json_t *row)
{
        char pid[NUMBER_MAX], user[SHOW_TEXT_MAX], since[TIME_MAX], bytes[SIZE_TEXT_MAX], lease[NUMBER_MAX],
                uid[NUMBER_MAX];
        const json_t *live = json_object_get(row, "live");

        (void) printf("%sP%s%s  ", show_colour(SHOW_BOLD), show_field(row, "pid", "?", pid, sizeof(pid)),
                      show_colour(SHOW_PLAIN));
        if (json_is_string(json_object_get(row, "user")))
                (void) printf("%s", show_field(row, "user", "?", user, sizeof(user)));
        else
                (void) printf("uid %s", show_field(row, "uid", "?", uid, sizeof(uid)));
        if (json_is_true(live))
                (void) printf(", has %s%s%s", show_bytes(row, "used_bytes", bytes),
                              json_is_string(json_object_get(row, "lease")) ? " under " : "",
                              show_field(row, "lease", "", lease, sizeof(lease)));
        else if (json_is_false(live))
                (void) printf(", gone");
        (void) printf(", first seen %s\n", show_field(row, "first_seen", "?", since, sizeof(since)));
}

static void print_row(const json_t *row)
{
        const json_t *facts = json_object_get(row, "facts");
        char started[TIME_MAX], comm[COMM_SHOWN_MAX];

        print_head(row);
        if (json_is_object(facts)) {
                print_tree(row, facts);
                print_program(facts);
                print_command(facts);
                print_place(facts);
                if (json_is_string(json_object_get(facts, "started")))
                        (void) printf("  started   %s\n", show_field(facts, "started", "?", started, sizeof(started)));
        } else {
                (void) printf("  %s; what it runs is told to its user and to administrators\n",
                              show_field(row, "comm", "?", comm, sizeof(comm)));
        }
        print_memory(row);
        print_displaced(row);
}

void audit_print(const json_t *body)
{
        const json_t *audits = json_object_get(body, "audits"), *row;
        size_t i;

        json_array_foreach(audits, i, row)
        {
                if (i > 0)
                        (void) fputc('\n', stdout);
                print_row(row);
        }
        if (json_array_size(audits) == 0)
                (void) printf("nobody has device memory without a lease\n");
        if (json_amount_or(body, "damages", 0) > 0)
                (void) printf("the journal is damaged: `lessor journal verify` says where\n");
}
