/* SPDX-License-Identifier: Apache-2.0 */
/* `lessor costs`: what it took to take memory back, measured. */
#include <stdio.h>
#include "programs/lessor/look.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum { CELL_MAX = 160, NAME_COLUMNS = 24 };

const char costs_more[] = "  lessor costs\n"
                          "\n"
                          "By program and way out: how often, seconds until its memory was gone and until it was back "
                          "at work (means of the "
                          "last\n"
                          "runs, the newest counts a quarter; +- is how far they lie apart), and how much came free. "
                          "Plans price with it. "
                          "Yours;\n"
                          "an administrator sees all.\n"
                          "\n"
                          "Exit status: 0 done, 2 wrong use, 69 lessord is away.";

static const char *seconds(const json_t *cost, const char *key, char buf[32])
{
        uint64_t ms;
        if (json_amount(cost, key, &ms))
                (void) snprintf(buf, 32, "%.2f s", (double) ms / 1000);
        else
                (void) snprintf(buf, 32, "-");
        return buf;
}

static void print_cost(const json_t *cost)
{
        char name[CELL_MAX], cut[CELL_MAX], user[CELL_MAX], way[32], runs[32], out[32], back[32], spread[32],
                bytes[SIZE_TEXT_MAX];
        uint64_t n;

        (void) printf(
                "  %s %-10s %6s  %9s %9s %9s %11s  %s%s\n",
                show_cut(show_field(cost, "consumer", "?", name, sizeof(name)), NAME_COLUMNS, true, cut, sizeof(cut)),
                show_field(cost, "way", "?", way, sizeof(way)), show_field(cost, "runs", "?", runs, sizeof(runs)),
                seconds(cost, "out_ms", out), seconds(cost, "back_ms", back), seconds(cost, "spread_ms", spread),
                json_amount(cost, "bytes", &n) ? show_bytes(cost, "bytes", bytes) : "-",
                show_field(cost, "user", "?", user, sizeof(user)),
                json_is_true(json_object_get(cost, "proven")) ? "  proven" : "");
}

int verb_costs_main(const struct verb *verb, int argc, char **argv)
{
        bool json = false;
        json_t *body = NULL, *cost;
        size_t i;

        int code = look_options(verb, argc, argv, &json);
        if (code != LOOK_ON)
                return code;
        code = show_get(verb->name, "/api/costs", &body);
        if (code != LESSOR_EXIT_OK)
                return code;
        const json_t *costs = json_object_get(body, "costs");
        if (json) {
                show_json(costs);
        } else if (json_array_size(costs) == 0) {
                (void) printf("nothing was ever taken back\n");
        } else {
                (void) printf("  %s%-*s %-10s %6s  %9s %9s %9s %11s%s\n", show_colour(SHOW_DIM), NAME_COLUMNS,
                              "program", "way out", "runs", "out", "back", "+-", "came free", show_colour(SHOW_PLAIN));
                json_array_foreach(costs, i, cost) print_cost(cost);
        }
        json_decref(body);
        return LESSOR_EXIT_OK;
}
