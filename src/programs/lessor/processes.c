/* SPDX-License-Identifier: Apache-2.0 */
/* `lessor processes`: who has device memory, under which lease, and by what that is known. */
#include <stdio.h>
#include <string.h>
#include "programs/lessor/look.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum { CELL_MAX = 160, NAME_COLUMNS = 16 };

const char processes_more[] = "  lessor processes\n"
                              "  lessor processes --json | jq '.[] | select(.lease == null)'\n"
                              "\n"
                              "What brought each under its lease: it is the root that the lease is bound to, lives in "
                              "the lease's cgroup, has\n"
                              "the root for an ancestor, or was adopted. Below it the steps to its ancestors, and how "
                              "each is known: \"parent\" "
                              "the\n"
                              "kernel says so of both; \"event\" it told of the fork; \"session\" it lives in the "
                              "session that the other began;\n"
                              "\"accounted\" its record of one that ended; \"token\" of several that are possible "
                              "LESSOR_TOKEN names one. Yours; "
                              "an\n"
                              "administrator sees all steps.\n"
                              "\n"
                              "Exit status: 0 done, 2 wrong use, 69 lessord is away.";

static uint64_t bytes_of(const json_t *process, bool *ret_known)
{
        const json_t *devices = json_object_get(process, "devices"), *device;
        uint64_t sum = 0, bytes;
        size_t i;

        *ret_known = true;
        json_array_foreach(devices, i, device)
        {
                if (json_amount(device, "used_bytes", &bytes))
                        sum += bytes;
                else
                        *ret_known = false;
        }
        return sum;
}

static const char *cell(const json_t *process, const char *key, size_t columns, char buf[CELL_MAX])
{
        char text[CELL_MAX];

        return show_cut(show_field(process, key, "-", text, sizeof(text)), columns, true, buf, CELL_MAX);
}

/* "      ← 4711 (event) ← 4690 (parent)" */
static void print_ancestors(const json_t *list)
{
        const json_t *step;
        size_t i;

        if (json_array_size(list) == 0)
                return;
        (void) fputs("     ", stdout);
        json_array_foreach(list, i, step)
        {
                char pid[32], link[32];
                (void) printf(" ← %s (%s)", show_field(step, "pid", "?", pid, sizeof(pid)),
                              show_field(step, "known_by", "?", link, sizeof(link)));
        }
        (void) fputc('\n', stdout);
}

static void print_process(const json_t *process)
{
        char pid[CELL_MAX], name[CELL_MAX], user[CELL_MAX], lease[CELL_MAX], by[CELL_MAX], guard[CELL_MAX],
                size[SIZE_TEXT_MAX] = "?", place[LOOK_PLACE_MAX];
        bool known;
        uint64_t bytes = bytes_of(process, &known);

        if (known)
                (void) size_text_short(bytes, size);
        (void) look_place(json_object_get(process, "place"), place);
        (void) show_field(process, "guard", "none", guard, sizeof(guard));
        (void) printf("  %s %s %s %9s  %s %s%s%s%s%s\n", cell(process, "pid", 8, pid),
                      cell(process, "comm", NAME_COLUMNS, name), cell(process, "user", 10, user), size,
                      cell(process, "lease", 6, lease), show_field(process, "by", "none", by, sizeof(by)),
                      strcmp(guard, "none") != 0 ? ", never a target: " : "", strcmp(guard, "none") != 0 ? guard : "",
                      place[0] ? ", in " : "", place);
        print_ancestors(json_object_get(process, "ancestors"));
}

int verb_processes_main(const struct verb *verb, int argc, char **argv)
{
        json_t *body = NULL, *process;
        bool json = false;
        size_t i;

        int code = look_options(verb, argc, argv, &json);
        if (code != LOOK_ON)
                return code;
        code = show_get(verb->name, "/api/processes", &body);
        if (code != LESSOR_EXIT_OK)
                return code;
        const json_t *list = json_object_get(body, "processes");
        if (json) {
                show_json(list);
        } else if (json_array_size(list) == 0) {
                (void) printf("nobody has device memory\n");
        } else {
                (void) printf("  %s%-8s %-*s %-10s %9s  %-6s %s%s\n", show_colour(SHOW_DIM), "pid", NAME_COLUMNS,
                              "program", "user", "has", "lease", "by", show_colour(SHOW_PLAIN));
                json_array_foreach(list, i, process) print_process(process);
        }
        json_decref(body);
        return LESSOR_EXIT_OK;
}
