/* SPDX-License-Identifier: Apache-2.0 */
/* What a row of a verb table means: its help, its options, the words it takes. The tables are elsewhere. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/escape.h"
#include "programs/lessor/verb.h"

enum { WORD_MAX = 48, HELP_COLUMN = 26 };

const struct verb *verb_find(const struct verb *table, const char *name)
{
        for (const struct verb *verb = table; verb->name; verb++)
                if (strcmp(verb->name, name) == 0)
                        return verb;
        return NULL;
}

const struct option *verb_option(const struct verb *verb, int row)
{
        for (const struct option *option = verb->shared; option && option->name; option++, row--)
                if (row == 0)
                        return option;
        for (const struct option *option = verb->options; option->name; option++, row--)
                if (row == 0)
                        return option;
        return NULL;
}

/* ---- similar words ---- */

/* Changes that turn one into the other; neighbours swapped count as one. */
static size_t distance(const char *a, const char *b)
{
        size_t rows[3][WORD_MAX + 1];
        size_t n = strlen(a), m = strlen(b);
        if (n > WORD_MAX || m > WORD_MAX)
                return SIZE_MAX;
        for (size_t j = 0; j <= m; j++)
                rows[0][j] = j;
        for (size_t i = 1; i <= n; i++) {
                size_t *above2 = rows[(i + 1) % 3], *above = rows[(i + 2) % 3], *row = rows[i % 3];
                row[0] = i;
                for (size_t j = 1; j <= m; j++) {
                        size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
                        if (above[j] + 1 < best)
                                best = above[j] + 1;
                        if (row[j - 1] + 1 < best)
                                best = row[j - 1] + 1;
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && above2[j - 2] + 1 < best)
                                best = above2[j - 2] + 1;
                        row[j] = best;
                }
                /* rows rotate: i % 3 is this one, then above, then above2 */
        }
        return rows[n % 3][m];
}

const char *nearest_word(const char *word, const char *const *names)
{
        const char *best = NULL;
        size_t best_distance = SIZE_MAX;
        size_t n = strlen(word);

        for (; *names; names++) {
                size_t d = distance(word, *names);
                if (n >= 2 && strncmp(word, *names, n) == 0)
                        d = 1; /* the beginning of it */
                if (d < best_distance) {
                        best_distance = d;
                        best = *names;
                }
        }
        return best_distance <= (n <= 4 ? 2U : 3U) && best_distance < n ? best : NULL;
}

/* ---- help ---- */

int verb_print_help(const struct verb *verb)
{
        (void) printf("%s %s - %s\n\nusage: %s %s %s\n\n", verb_program, verb->name, verb->brief, verb_program,
                      verb->name, verb->synopsis);
        const struct option *row;
        for (int i = 0; (row = verb_option(verb, i)) != NULL; i++) {
                char left[64];
                (void) snprintf(left, sizeof(left), "--%s%s%s%s%.1s", row->name, row->value ? " " : "",
                                row->value ? row->value : "", row->letter ? ", -" : "", &row->letter);
                if (strlen(left) < HELP_COLUMN)
                        (void) printf("  %-*s %s\n", HELP_COLUMN, left, row->help);
                else
                        (void) printf("  %s\n  %-*s %s\n", left, HELP_COLUMN, "", row->help);
        }
        (void) printf("  %-*s %s\n", HELP_COLUMN, "--help", "this text");
        if (verb->more)
                (void) printf("\n%s\n", verb->more);
        return LESSOR_EXIT_OK;
}

int verb_usage_error(const struct verb *verb, const char *fmt, ...)
{
        va_list args;
        (void) fprintf(stderr, "%s %s: ", verb_program, verb->name);
        va_start(args, fmt);
        (void) vfprintf(stderr, fmt, args);
        va_end(args);
        (void) fprintf(stderr, "\nSee `%s %s --help`.\n", verb_program, verb->name);
        return verb->own_codes ? LESSOR_EXIT_OWN : LESSOR_EXIT_USAGE;
}

/* ---- reading options ---- */

void options_init(struct options *o, const struct verb *verb, int argc, char **argv)
{
        *o = (struct options){ .verb = verb, .argc = argc, .argv = argv, .at = 1 };
}

static int unknown_option(const struct options *o, const char *word)
{
        enum { ROWS_MAX_HERE = 48 };
        const char *names[ROWS_MAX_HERE + 1] = { 0 };
        char plain[WORD_MAX + 1], shown[WORD_MAX];
        size_t n = 0;

        for (const struct option *row; n < ROWS_MAX_HERE && (row = verb_option(o->verb, (int) n)) != NULL;)
                names[n++] = row->name;
        (void) snprintf(plain, sizeof(plain), "%.*s", (int) strcspn(word + strspn(word, "-"), "="),
                        word + strspn(word, "-"));
        const char *near = nearest_word(plain, names);
        (void) text_escape(word, strcspn(word, "="), shown, sizeof(shown));
        if (near)
                (void) verb_usage_error(o->verb, "there is no option %s; did you mean --%s?", shown, near);
        else
                (void) verb_usage_error(o->verb, "there is no option %s", shown);
        return OPTIONS_WRONG;
}

/* How a word that may be left away is told from what follows: by its first letter. */
static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static int long_option(struct options *o, const char *word)
{
        const char *name = word + 2;
        size_t n = strcspn(name, "=");

        if (n == 4 && strncmp(name, "help", n) == 0)
                return OPTIONS_HELP;
        const struct option *option;
        for (int row = 0; (option = verb_option(o->verb, row)) != NULL; row++) {
                if (strlen(option->name) != n || strncmp(option->name, name, n) != 0)
                        continue;
                o->value = name[n] == '=' ? name + n + 1 : NULL;
                if (o->value && !option->value) {
                        (void) verb_usage_error(o->verb, "--%s takes no value", option->name);
                        return OPTIONS_WRONG;
                }
                if (option->value && option->value[0] == '[') {
                        if (!o->value && o->at < o->argc && is_digit(o->argv[o->at][0]))
                                o->value = o->argv[o->at++];
                        return row;
                }
                if (option->value && !o->value) {
                        if (o->at >= o->argc) {
                                (void) verb_usage_error(o->verb, "--%s needs a value: --%s %s", option->name,
                                                        option->name, option->value);
                                return OPTIONS_WRONG;
                        }
                        o->value = o->argv[o->at++];
                }
                return row;
        }
        return unknown_option(o, word);
}

/* Of an option that takes no value; letters are not joined ("-qv"). -1 = there is none such. */
static int row_of_letter(const struct options *o, const char *word)
{
        const struct option *option;
        for (int row = 0; (option = verb_option(o->verb, row)) != NULL; row++)
                if (option->letter != 0 && option->letter == word[1] && word[2] == '\0')
                        return row;
        return -1;
}

int options_next(struct options *o)
{
        o->value = NULL;
        if (o->at >= o->argc)
                return OPTIONS_END;
        const char *word = o->argv[o->at];
        bool is_option = !o->only_operands && word[0] == '-' && word[1] != '\0';
        if (!is_option && o->operands_end_it)
                return OPTIONS_END;
        o->at++;
        if (!is_option) {
                o->value = word;
                return OPTIONS_OPERAND;
        }
        if (strcmp(word, "--") == 0) {
                o->only_operands = true;
                return options_next(o);
        }
        if (strcmp(word, "-h") == 0)
                return OPTIONS_HELP;
        if (word[1] == '-')
                return long_option(o, word);
        int row = row_of_letter(o, word);
        return row >= 0 ? row : unknown_option(o, word);
}

const char *option_name(const struct options *o, int row)
{
        const struct option *option = row >= 0 ? verb_option(o->verb, row) : NULL;
        return option ? option->name : "";
}
