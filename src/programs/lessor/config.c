/* SPDX-License-Identifier: Apache-2.0 */
/* `config check`, `config show`: lessord.conf as lessord itself reads it. Nothing is parsed here. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "client/client.h"
#include "programs/lessor/look.h"
#include "programs/lessor/lessord.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum { FIELD_MAX = 512 };

const char config_more[] = "  lessor config check ./lessord.conf   is this file good?\n"
                           "  lessor config show                   every key, what it is and what it would be else\n"
                           "\n"
                           "Each has --help.";

const char config_check_more[] =
        "  lessor config check ./lessord.conf && sudo systemctl reload lessord\n"
        "\n"
        "Reads the file as lessord would, and changes nothing. Without FILE: the one that the running lessord uses,\n"
        "else the one it would use when started. What is wrong is told with file and line.\n"
        "\n"
        "Exit status: 0 good, 78 not good, 2 wrong use, 69 there is no lessord to read it.";

const char config_show_more[] = "  lessor config show | grep priority\n"
                                "\n"
                                "What the running lessord goes by. Without one: what the file and the defaults say.\n"
                                "\n"
                                "Exit status: 0 done, 1 refused, 2 wrong use, 69 there is no lessord to ask, 78 the "
                                "file is not good.";

/* ---- check ---- */

/* The file of the lessord that runs; false: none runs, or it has no file. */
static bool file_in_use(char *ret, size_t size)
{
        struct client client;
        struct client_answer answer;
        client_init(&client);
        if (client_call(&client, "GET", "/api/config", NULL, CLIENT_CALL_MS, &answer, NULL) < 0)
                return false;
        (void) snprintf(ret, size, "%s", answer.status == 200 ? json_text(answer.body, "file", "") : "");
        client_answer_fini(&answer);
        return ret[0] == '/';
}

/* Becomes lessord; comes back only when that cannot be. */
static int become_lessord(const struct verb *verb, const char *file, bool print)
{
        char program[PATH_MAX];
        const char *argv[7] = { "lessord", "--check-config" };
        size_t n = 2;

        if (file || geteuid() == 0)
                argv[n++] = "--system"; /* with a file: only so that it needs no session to read it in */
        if (file) {
                argv[n++] = "--config";
                argv[n++] = file;
        }
        if (print)
                argv[n++] = "--print";
        (void) fflush(stdout);
        if (lessord_find(program, sizeof(program)))
                (void) execv(program, (char **) (uintptr_t) argv);
        (void) fprintf(stderr,
                       "lessor %s: there is no lessord beside lessor, and none in PATH, that could read the file.\n"
                       "Cure: install it, or name its folder in PATH.\n",
                       verb->name);
        return LESSOR_EXIT_AWAY;
}

int verb_config_check_main(const struct verb *verb, int argc, char **argv)
{
        struct options o;
        const char *file = NULL;
        char in_use[FIELD_MAX];

        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (file)
                        return verb_usage_error(verb, "one file at a time");
                file = o.value;
        }
        if (!file && file_in_use(in_use, sizeof(in_use))) {
                file = in_use;
                if (access(file, F_OK) < 0 && errno == ENOENT) {
                        (void) printf("%s: not there: the defaults count\n", file);
                        return LESSOR_EXIT_OK;
                }
        }
        return become_lessord(verb, file, false);
}

/* ---- show ---- */

static void print_key(const json_t *key)
{
        char name[FIELD_MAX], value[FIELD_MAX], otherwise[FIELD_MAX], help[FIELD_MAX];
        const char *is = show_field(key, "value", "", value, sizeof(value));
        const char *would_be = show_field(key, "default", "", otherwise, sizeof(otherwise));
        bool changed = strcmp(is, would_be) != 0;

        (void) printf("%s%-22s = %-14s%s", changed ? show_colour(SHOW_BOLD) : "",
                      show_field(key, "key", "?", name, sizeof(name)), is, changed ? show_colour(SHOW_PLAIN) : "");
        (void) printf(" ; %s", show_field(key, "help", "", help, sizeof(help)));
        if (changed)
                (void) printf(" (default: %s)", would_be[0] != '\0' ? would_be : "none");
        (void) fputc('\n', stdout);
}

static void print_config(const json_t *body)
{
        char text[SHOW_TEXT_MAX], from[FIELD_MAX];
        size_t i;
        json_t *one;

        (void) printf("; %s (%s)\n", show_field(body, "file", "no file", text, sizeof(text)),
                      show_field(body, "from", "?", from, sizeof(from)));
        if (json_is_string(json_object_get(body, "error")))
                (void) printf("%s; not taken: %s%s\n", show_colour(SHOW_RED),
                              show_field(body, "error", "", text, sizeof(text)), show_colour(SHOW_PLAIN));
        json_array_foreach(json_object_get(body, "keys"), i, one) print_key(one);
        json_array_foreach(json_object_get(body, "sections"), i, one) if (json_is_string(one))(void)
                printf("[%s]\n", json_string_value(one));
}

int verb_config_show_main(const struct verb *verb, int argc, char **argv)
{
        struct client client;
        struct client_answer answer;
        bool json = false;

        int code = look_options(verb, argc, argv, &json);
        if (code != LOOK_ON)
                return code;
        client_init(&client);
        int r = client_call(&client, "GET", "/api/config", NULL, CLIENT_CALL_MS, &answer, NULL);
        if (client_is_away(r) && !json)
                return become_lessord(verb, NULL, true);
        if (r < 0)
                return show_away(verb->name, &client, r);
        if (answer.status != 200) {
                show_problem(verb->name, &answer);
                code = LESSOR_EXIT_REFUSED;
        } else {
                code = LESSOR_EXIT_OK;
                if (json)
                        show_json(answer.body);
                else
                        print_config(answer.body);
        }
        client_answer_fini(&answer);
        return code;
}
