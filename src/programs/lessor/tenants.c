/* SPDX-License-Identifier: Apache-2.0 */
/* `tenants list`, `tenants show`: applications as data, as the files have them. */
#include "programs/lessor/tenants.h"
#include <stdio.h>
#include <string.h>
#include "base/escape.h"
#include "model/lease.h"
#include "programs/lessor/show.h"
#include "tenants/told.h"

enum { SHOWN_MAX = 480 };
#define SYSTEM_FILES "/etc/lessor"

const struct option tenants_options[] = {
        { "files", "DIR", "read tenants.json and tenants.d below DIR, not /etc/lessor", .words = "@files" },
        { "json", NULL, "print JSON" },
        { 0 },
};

const char tenants_more[] = "  lessor tenants list                      which applications are known\n"
                            "  lessor tenants match 4711                whose process is that, and why\n"
                            "  lessor tenants check ./tenants.json      is this file good?\n"
                            "\n"
                            "Each has --help.";

const char tenants_list_more[] =
        "  lessor tenants list\n"
        "  lessor tenants list --json | jq -r '.tenants[].name'\n"
        "\n"
        "A way out in brackets is used only once somebody has said so. Read are those that came "
        "with lessor, and then the\n"
        "files of an administrator over them; no lessord is asked.\n"
        "\n"
        "Exit status: 0 done, 78 a file is not good, 2 wrong use.";

const char tenants_show_more[] = "  lessor tenants show NAME\n"
                                 "\n"
                                 "Prints it as one file would have it, with the file that each key is from.\n"
                                 "\n"
                                 "Exit status: 0 done, 1 there is no such tenant, 78 a file is not good, 2 wrong use.";

static int load(const struct verb *verb, const char *folder, struct tenants *ret)
{
        struct tenants_places places = { 0 };
        struct error err = { 0 };
        char safe[SHOWN_MAX];

        tenants_find_shipped(places.shipped);
        if ((size_t) snprintf(places.folder, sizeof(places.folder), "%s/tenants.d", folder) >= sizeof(places.folder) ||
            (size_t) snprintf(places.file, sizeof(places.file), "%s/tenants.json", folder) >= sizeof(places.file))
                return verb_usage_error(verb, "--files: the path is too long");
        if (tenants_load(&places, ret, &err) == 0)
                return -1;
        (void) fprintf(stderr, "lessor %s: %s\n", verb->name,
                       text_escape(err.msg, strlen(err.msg), safe, sizeof(safe)));
        return TENANTS_NOT_GOOD;
}

int tenants_options_read(const struct verb *verb, int argc, char **argv, size_t min, size_t max,
                         struct tenants_asked *ret)
{
        const char *folder = SYSTEM_FILES;
        struct options o;

        *ret = (struct tenants_asked){ .n_words = 0 };
        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND) {
                        if (ret->n_words == max)
                                return verb_usage_error(verb, "at most %zu words", max);
                        ret->words[ret->n_words++] = o.value;
                } else if (strcmp(option_name(&o, what), "files") == 0) {
                        folder = o.value;
                } else if (strcmp(option_name(&o, what), "all") == 0) {
                        ret->all = true;
                } else {
                        ret->json = true;
                }
        }
        if (ret->n_words < min)
                return verb_usage_error(verb, "a word is missing: lessor %s %s", verb->name, verb->synopsis);
        return load(verb, folder, &ret->set);
}

/* ---- list ---- */

static void print_ways(const struct tenant *t)
{
        for (uint32_t i = 0; i < t->ways.n; i++) {
                const struct tenant_way *way = &t->ways.items[i];
                bool on = tenant_way_is_on(way);
                (void) printf("%s%s%s%s", i > 0 ? ", " : "", on ? "" : "[",
                              tenant_way_name((enum tenant_way_by) way->by), on ? "" : "]");
        }
        if (t->ways.n == 0)
                (void) printf("%s", t->is_protected ? "protected" : "-");
}

static void print_list(const struct tenants *set)
{
        char title[SHOW_TEXT_MAX];

        (void) printf("%s%-27s %-12s %-28s %s%s\n", show_colour(SHOW_BOLD), "NAME", "PRIORITY", "TITLE", "WAYS OUT",
                      show_colour(SHOW_PLAIN));
        for (uint32_t i = 0; i < set->n; i++) {
                const struct tenant *t = &set->list[i];
                (void) printf("%-27s %-12s %s ", t->name, t->priority ? priority_name(t->priority) : "-",
                              show_cut(t->title ? t->title : t->name, 28, true, title, sizeof(title)));
                if (t->disabled)
                        (void) printf("disabled");
                else
                        print_ways(t);
                (void) fputc('\n', stdout);
        }
}

int verb_tenants_list_main(const struct verb *verb, int argc, char **argv)
{
        struct tenants_asked asked;

        int code = tenants_options_read(verb, argc, argv, 0, 0, &asked);
        if (code >= 0)
                return code;
        if (asked.json) {
                json_t *body = told_tenants(&asked.set);
                show_json(body);
                json_decref(body);
        } else {
                print_list(&asked.set);
        }
        tenants_fini(&asked.set);
        return LESSOR_EXIT_OK;
}

/* ---- show ---- */

static json_t *pick(const struct tenants *set, const char *name)
{
        json_t *all = told_tenants(set), *one, *found = NULL;
        size_t i;

        json_array_foreach(json_object_get(all, "tenants"), i, one)
        {
                const char *its = json_string_value(json_object_get(one, "name"));
                if (its && strcmp(its, name) == 0)
                        found = json_incref(one);
        }
        json_decref(all);
        return found;
}

static void print_one(const json_t *one)
{
        char text[SHOW_TEXT_MAX];
        const char *key;
        json_t *from;

        (void) printf("%s%s%s\n", show_colour(SHOW_BOLD), show_field(one, "name", "?", text, sizeof(text)),
                      show_colour(SHOW_PLAIN));
        show_json(json_object_get(one, "definition"));
        json_object_foreach(json_object_get(one, "from"), key, from)(void)
                printf("%-18s from %s\n", key, json_string_value(from));
}

int verb_tenants_show_main(const struct verb *verb, int argc, char **argv)
{
        struct tenants_asked asked;
        char safe[SHOWN_MAX];

        int code = tenants_options_read(verb, argc, argv, 1, 1, &asked);
        if (code >= 0)
                return code;
        json_t *one = pick(&asked.set, asked.words[0]);
        if (!one)
                (void) fprintf(stderr, "lessor %s: there is no tenant %s; `lessor tenants list` names them\n",
                               verb->name, text_escape(asked.words[0], strlen(asked.words[0]), safe, sizeof(safe)));
        else if (asked.json)
                show_json(one);
        else
                print_one(one);
        tenants_fini(&asked.set);
        code = one ? LESSOR_EXIT_OK : LESSOR_EXIT_REFUSED;
        json_decref(one);
        return code;
}
