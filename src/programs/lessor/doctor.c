/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/doctor.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "programs/lessor/look.h"
#include "programs/lessor/prove.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum { NAME_COLUMN = 19, PLACE_COLUMN = 14, CELL_COLUMN = 9 };

const char doctor_more[] =
        "  lessor doctor\n"
        "  lessor doctor --prove\n"
        "\n"
        "Looks at the driver, at lessord and its parts, and at what of this machine matters to them; then says what "
        "works "
        "where.\n"
        "Needs no rights, no lessord and no GPU, changes nothing, and ends within seconds whatever hangs.\n"
        "--prove also parks a process of its own, brings it back and looks at its memory: do that before anything is "
        "parked "
        "that\nmatters. Nothing else is touched.\n"
        "\n"
        "Exit status: 0 leases work here (and the trial came back), 1 not, 2 wrong use.";

const struct option doctor_options[] = {
        { "prove", NULL, "try a checkpoint and its way back on a throw-away process" },
        { "json", NULL, "print one object" },
        { 0 },
};

const char *const finding_names[FINDING_N] = {
        [FINDING_OK] = "ok",
        [FINDING_FACT] = "fact",
        [FINDING_WARN] = "warn",
        [FINDING_BAD] = "bad",
};

void doctor_add(struct doctor *d, const char *name, enum finding finding, const char *text, const char *cure)
{
        if (d->n_checks == DOCTOR_CHECKS_MAX)
                return;
        struct check *check = &d->checks[d->n_checks++];
        check->finding = (uint8_t) finding;
        (void) snprintf(check->name, sizeof(check->name), "%s", name);
        (void) snprintf(check->text, sizeof(check->text), "%s", text);
        (void) snprintf(check->cure, sizeof(check->cure), "%s", cure);
}

void doctor_addf(struct doctor *d, const char *name, enum finding finding, const char *cure, const char *fmt, ...)
{
        char text[DOCTOR_TEXT_MAX];
        va_list args;
        va_start(args, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, args);
        va_end(args);
        doctor_add(d, name, finding, text, cure);
}

/* ---- for people ---- */

static const char *colour_of(enum finding finding)
{
        return show_colour(finding == FINDING_OK     ? SHOW_GREEN
                           : finding == FINDING_WARN ? SHOW_YELLOW
                           : finding == FINDING_BAD  ? SHOW_RED
                                                     : SHOW_DIM);
}

/* Lines of one text, each below the other. */
static void print_indented(const char *text, int column)
{
        while (*text != '\0') {
                size_t n = strcspn(text, "\n");
                (void) printf("%.*s\n", (int) n, text);
                text += n + (text[n] == '\n');
                if (*text != '\0')
                        (void) printf("%*s", column, "");
        }
}

static void print_check(const struct check *check)
{
        (void) printf("%-*s%s%-5s%s ", NAME_COLUMN, check->name, colour_of((enum finding) check->finding),
                      finding_names[check->finding], show_colour(SHOW_PLAIN));
        print_indented(check->text, NAME_COLUMN + 6);
        if (check->cure[0] == '\0')
                return;
        (void) printf("%*sCure: ", NAME_COLUMN + 6, "");
        print_indented(check->cure, NAME_COLUMN + 6);
}

static void print_cells(const struct doctor *d, enum place place)
{
        struct cell_verdict verdict;
        (void) printf("%s%-*s", place == d->place ? "→ " : "  ", PLACE_COLUMN, place_names[place]);
        for (int ability = 0; ability < ABILITY_N; ability++) {
                doctor_judge(d, place, (enum ability) ability, &verdict);
                (void) printf("%s%-*s%s", show_colour(verdict.works ? SHOW_GREEN : SHOW_RED),
                              ability + 1 < ABILITY_N ? CELL_COLUMN : 0, verdict.works ? "yes" : "no",
                              show_colour(SHOW_PLAIN));
        }
        (void) fputc('\n', stdout);
}

/* Each "no" once, with all the places it holds for. */
static void print_reasons(const struct doctor *d, enum ability ability)
{
        struct cell_verdict all[PLACE_N];
        bool told[PLACE_N] = { false };

        for (int place = 0; place < PLACE_N; place++)
                doctor_judge(d, (enum place) place, ability, &all[place]);
        for (int place = 0; place < PLACE_N; place++) {
                if (all[place].works || told[place])
                        continue;
                (void) printf("no %s (%s", ability_names[ability], place_names[place]);
                for (int other = place + 1; other < PLACE_N; other++) {
                        if (all[other].works || strcmp(all[other].why, all[place].why) != 0)
                                continue;
                        told[other] = true;
                        (void) printf(", %s", place_names[other]);
                }
                (void) printf("): %s\n  Cure: %s\n", all[place].why, all[place].cure);
        }
}

static void print_all(const struct doctor *d)
{
        for (size_t i = 0; i < d->n_checks; i++)
                print_check(&d->checks[i]);
        (void) printf("\n%s  %-*s", show_colour(SHOW_BOLD), PLACE_COLUMN, "what works");
        for (int ability = 0; ability < ABILITY_N; ability++)
                (void) printf("%-*s", ability + 1 < ABILITY_N ? CELL_COLUMN : 0, ability_names[ability]);
        (void) printf("%s\n", show_colour(SHOW_PLAIN));
        for (int place = 0; place < PLACE_N; place++)
                print_cells(d, (enum place) place);
        (void) fputc('\n', stdout);
        for (int ability = 0; ability < ABILITY_N; ability++)
                print_reasons(d, (enum ability) ability);
}

/* ---- for programs ---- */

static const char *const proof_names[] = {
        [PROOF_NONE] = "",
        [PROOF_GOOD] = "good",
        [PROOF_BLOCKED] = "blocked",
        [PROOF_BAD] = "bad",
};

static json_t *text_or_null(const char *text)
{
        return text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *row_json(const struct doctor *d, enum place place)
{
        struct cell_verdict verdict;
        json_t *row = json_pack("{s:s, s:b}", "place", place_names[place], "current", (int) (place == d->place));
        for (int ability = 0; row && ability < ABILITY_N; ability++) {
                doctor_judge(d, place, (enum ability) ability, &verdict);
                (void) json_object_set_new(row, ability_names[ability],
                                           json_pack("{s:b, s:o, s:o}", "works", (int) verdict.works, "why",
                                                     text_or_null(verdict.why), "cure", text_or_null(verdict.cure)));
        }
        return row;
}

static void print_json(const struct doctor *d)
{
        json_t *checks = json_array(), *table = json_array(), *rights = json_array();
        for (size_t i = 0; i < d->n_checks; i++)
                (void) json_array_append_new(checks,
                                             json_pack("{s:s, s:s, s:s, s:o}", "name", d->checks[i].name, "finding",
                                                       finding_names[d->checks[i].finding], "text", d->checks[i].text,
                                                       "cure", text_or_null(d->checks[i].cure)));
        for (int place = 0; place < PLACE_N; place++)
                (void) json_array_append_new(table, row_json(d, (enum place) place));
        for (const struct right *right = doctor_right_rows; right->feature; right++)
                (void) json_array_append_new(rights, json_pack("{s:s, s:s, s:s}", "feature", right->feature, "who",
                                                               right->who, "needs", right->needs));
        json_t *whole = json_pack("{s:s, s:o, s:o, s:o, s:o}", "place", place_names[d->place], "checks", checks,
                                  "table", table, "rights", rights, "proof", text_or_null(proof_names[d->proof]));
        if (whole)
                show_json(whole);
        json_decref(whole);
}

/* LOOK_ON, or the exit code. */
static int read_words(const struct verb *verb, int argc, char **argv, bool *ret_json, bool *ret_prove)
{
        struct options o;

        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND)
                        return verb_usage_error(verb, "it takes no words");
                bool *found = strcmp(option_name(&o, what), "prove") == 0 ? ret_prove : ret_json;
                *found = true;
        }
        return LOOK_ON;
}

int verb_doctor_main(const struct verb *verb, int argc, char **argv)
{
        static struct doctor d;
        struct cell_verdict leases;
        bool json = false, prove = false;

        int code = read_words(verb, argc, argv, &json, &prove);
        if (code != LOOK_ON)
                return code;
        doctor_driver(&d);
        doctor_lessord(&d);
        doctor_host(&d);
        doctor_rights(&d);
        if (prove)
                doctor_prove(&d);
        if (json)
                print_json(&d);
        else
                print_all(&d);
        doctor_judge(&d, d.place, ABILITY_LEASE, &leases);
        bool proven = !prove || d.proof == PROOF_GOOD;
        return leases.works && proven ? LESSOR_EXIT_OK : LESSOR_EXIT_REFUSED;
}
