/* SPDX-License-Identifier: Apache-2.0 */
/* `tenants check`: files of tenants as lessord reads them, without one. */
#include <stdio.h>
#include <string.h>
#include "base/escape.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"
#include "tenants/tenants.h"

enum { NOT_GOOD = 78, CHECKED_MAX = 64, SHOWN_MAX = 480 };

const char tenants_check_more[] = "  lessor tenants check ./tenants.json && sudo systemctl reload lessord\n"
                                  "\n"
                                  "Reads the files as lessord would: those that came with lessor first, then each FILE "
                                  "over what is there already, key by\n"
                                  "key. Nothing is asked and nothing is changed. What is wrong is told with file, "
                                  "line, the path of the field, what is\n"
                                  "allowed, and the cure.\n"
                                  "\n"
                                  "Exit status: 0 good, 78 not good, 2 wrong use.";

/* Every tenant that one of @files speaks of. */
static json_t *names_of(const struct tenants *set, uint32_t first)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < set->n; i++)
                for (uint32_t f = first; f < set->n_files; f++)
                        if (json_object_get(json_object_get(set->files[f].document, "tenants"), set->list[i].name)) {
                                (void) json_array_append_new(list, json_string(set->list[i].name));
                                break;
                        }
        return list;
}

static int answer(const struct tenants *set, uint32_t first, int r, const struct error *err, bool json)
{
        char safe[SHOWN_MAX];

        if (json) {
                json_t *body = json_pack("{s:b, s:o, s:o}", "good", r == 0, "tenants",
                                         r == 0 ? names_of(set, first) : json_array(), "error",
                                         r == 0 ? json_null() : json_string(err->msg));
                show_json(body);
                json_decref(body);
        } else if (r < 0) {
                (void) fprintf(stderr, "lessor tenants check: %s\n",
                               text_escape(err->msg, strlen(err->msg), safe, sizeof(safe)));
        } else {
                json_t *names = names_of(set, first);
                (void) printf("good: %zu tenants\n", json_array_size(names));
                json_decref(names);
        }
        return r == 0 ? LESSOR_EXIT_OK : NOT_GOOD;
}

int verb_tenants_check_main(const struct verb *verb, int argc, char **argv)
{
        struct tenants_places places = { 0 };
        const char *files[CHECKED_MAX];
        struct tenants set;
        struct error err = { 0 };
        struct options o;
        size_t n_files = 0;
        bool json = false;

        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what != OPTIONS_OPERAND)
                        json = true;
                else if (n_files < CHECKED_MAX)
                        files[n_files++] = o.value;
                else
                        return verb_usage_error(verb, "at most %d files at a time", CHECKED_MAX);
        }
        if (n_files == 0)
                return verb_usage_error(verb, "which file? lessor tenants check FILE…");

        tenants_find_shipped(places.shipped);
        int r = tenants_load(&places, &set, &err);
        uint32_t first = set.n_files;
        for (size_t i = 0; r == 0 && i < n_files; i++)
                r = tenants_add_file(&set, files[i], false, &err);
        if (r == 0)
                r = tenants_settle(&set, &err);
        int code = answer(&set, first, r, &err, json);
        tenants_fini(&set);
        return code;
}
