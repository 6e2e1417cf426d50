/* SPDX-License-Identifier: Apache-2.0 */
/* `tenants match`: whose process is it, by which rule; or why by none. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/place.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "base/number.h"
#include "client/client.h"
#include "programs/lessor/show.h"
#include "programs/lessor/tenants.h"
#include "senses/process.h"
#include "tenants/subject.h"
#include "tenants/told.h"

const struct option tenants_match_options[] = {
        { "all", NULL, "also the rules of which no condition fits" },
        { "files", "DIR", "read tenants.json and tenants.d below DIR, not /etc/lessor", .words = "@files" },
        { "json", NULL, "print JSON" },
        { 0 },
};

const char tenants_match_more[] =
        "  lessor tenants match 4711               whose it is, and which rules come near\n"
        "  lessor tenants match 4711 NAME          why it is, or is not, that tenant's\n"
        "\n"
        "Each condition of a rule is a line: what the file wants, what the process has, and yes, no, or unknown with "
        "the reason.\n"
        "What you may not see of another user's process is unknown: ask as root. What a container is called is its "
        "engine's to\n"
        "say; lessord asks it (engine_socket) about each process that has device memory, and is asked here.\n"
        "\n"
        "Exit status: 0 it is a tenant's, 1 it is none's, or there is no such process, 78 a file is not good, 2 wrong "
        "use.";

/* All that is known of one process, and where it lies. */
struct looked {
        struct eyes_process process;
        struct subject_words words[1 + EYES_ANCESTORS_MAX];
        struct match_program ancestors[EYES_ANCESTORS_MAX];
        struct place place;
        struct match_subject subject;
        json_t *told; /* by lessord, of its container */
};

static void look_at_ancestors(const struct process_source *source, struct looked *l)
{
        auto_free struct eyes_process *p = malloc(sizeof(*p));

        l->subject.ancestors = l->ancestors;
        for (uint32_t i = 0; i < l->process.n_ancestors; i++) {
                const struct eyes_ancestor *who = &l->process.ancestors[i];
                if (who->pid == 1)
                        continue; /* under it is everybody */
                l->ancestors[l->subject.n_ancestors] = (struct match_program){ .program_known = false };
                if (p && process_identify(source, who->pid, p, NULL, NULL) == 0 && p->start_ticks == who->start_ticks)
                        subject_program(p, &l->words[1 + i], &l->ancestors[l->subject.n_ancestors]);
                l->subject.n_ancestors++;
        }
}

static const char *text_of(const json_t *place, const char *key)
{
        return json_string_value(json_object_get(place, key));
}

/* Only lessord may have asked the engine; where it did not, that stays unknown. */
static void ask_for_container(struct looked *l)
{
        struct client client;
        struct client_answer answer;
        char path[64];

        (void) snprintf(path, sizeof(path), "/api/audit?pid=%" PRIu32, l->process.pid);
        client_init(&client);
        if (client_call(&client, "GET", path, NULL, CLIENT_CALL_MS, &answer, NULL) < 0)
                return;
        const json_t *row = json_array_get(json_object_get(answer.body, "audits"), 0);
        const json_t *place = json_object_get(json_object_get(row, "facts"), "place");
        const char *container = text_of(place, "container");
        if (answer.status == 200 && container && strcmp(container, l->place.container) == 0 && text_of(place, "name")) {
                l->told = json_incref(answer.body);
                l->subject.container_known = true;
                l->subject.container = text_of(place, "name");
                l->subject.image = text_of(place, "image");
                l->subject.compose_service = text_of(place, "service");
                l->subject.compose_project = text_of(place, "project");
        }
        client_answer_fini(&answer);
}

static int look(uint32_t pid, struct looked *l, struct error *err)
{
        struct process_source source;

        int r = process_source_init(&source, "/proc", err);
        if (r == 0)
                r = process_identify(&source, pid, &l->process, NULL, err);
        if (r < 0)
                return r;
        subject_program(&l->process, &l->words[0], &l->subject.self);
        look_at_ancestors(&source, l);
        l->subject.place_known = l->process.cgroup_known;
        if (!l->process.cgroup_known)
                return 0;
        place_of_cgroup(l->process.cgroup_path, &l->place);
        l->subject.unit = l->place.unit[0] != '\0' ? l->place.unit : NULL;
        l->subject.in_container = l->place.container[0] != '\0';
        if (l->subject.in_container)
                ask_for_container(l);
        return 0;
}

/* ---- in words ---- */

static bool says(const json_t *object, const char *word)
{
        const char *verdict = text_of(object, "verdict");

        return verdict && strcmp(verdict, word) == 0;
}

/* It is not denied, or one of its conditions fits. */
static bool comes_near(const json_t *rule)
{
        size_t i;
        json_t *line;

        json_array_foreach(json_object_get(rule, "conditions"), i, line) if (says(line, "yes")) return true;
        return !says(rule, "no");
}

static void print_line(const json_t *line)
{
        char wanted[SHOW_TEXT_MAX], had[SHOW_TEXT_MAX], why[SHOW_TEXT_MAX];

        (void) printf("    %-8s %-16s %-32s %s%s%s\n", text_of(line, "verdict"), text_of(line, "key"),
                      show_field(line, "wanted", "", wanted, sizeof(wanted)),
                      show_field(line, "had", "", had, sizeof(had)),
                      json_is_string(json_object_get(line, "had")) && text_of(line, "why") ? "; " : "",
                      show_field(line, "why", "", why, sizeof(why)));
}

static void print_tenant(const json_t *tenant, bool all)
{
        const char *colour = says(tenant, "yes") ? show_colour(SHOW_GREEN) : "";
        size_t i, k;
        json_t *rule, *line;
        bool begun = false;

        json_array_foreach(json_object_get(tenant, "rules"), i, rule)
        {
                if (!all && !comes_near(rule))
                        continue;
                if (!begun)
                        (void) printf("%s%s: %s%s%s\n", colour, text_of(tenant, "name"), text_of(tenant, "verdict"),
                                      json_is_true(json_object_get(tenant, "disabled")) ? " (disabled)" : "",
                                      colour[0] != '\0' ? show_colour(SHOW_PLAIN) : "");
                begun = true;
                (void) printf("  rule %zu, %s: %s\n", i + 1, text_of(rule, "role"), text_of(rule, "verdict"));
                json_array_foreach(json_object_get(rule, "conditions"), k, line) print_line(line);
        }
}

static void print_match(const json_t *body, uint32_t pid, bool all)
{
        const char *name = text_of(body, "tenant");
        size_t i;
        json_t *tenant;

        if (name)
                (void) printf("process %" PRIu32 " is %s's, as %s, by %s\n", pid, name, text_of(body, "role"),
                              strcmp(text_of(body, "by"), "place") == 0 ? "where it runs"
                                                                        : "what it is, which is its own word");
        else
                (void) printf("process %" PRIu32 " is no tenant's\n", pid);
        json_array_foreach(json_object_get(body, "tenants"), i, tenant) print_tenant(tenant, all);
}

int verb_tenants_match_main(const struct verb *verb, int argc, char **argv)
{
        auto_free struct looked *l = calloc(1, sizeof(*l));
        struct tenants_asked asked;
        struct error err = { 0 };
        char safe[SHOW_TEXT_MAX];
        uint64_t pid;

        int code = tenants_options_read(verb, argc, argv, 1, 2, &asked);
        if (code >= 0)
                return code;
        const char *name = asked.words[1];
        if (parse_u64("a process", asked.words[0], 1, INT32_MAX, &pid, &err) < 0) {
                code = verb_usage_error(verb, "%s", err.msg);
        } else if (name && !tenants_find(&asked.set, name)) {
                code = LESSOR_EXIT_REFUSED;
                (void) error_set(&err, ENOENT, "there is no tenant %s; `lessor tenants list` names them", name);
        } else if (!l || look((uint32_t) pid, l, &err) < 0) {
                code = LESSOR_EXIT_REFUSED;
        }
        if (code == LESSOR_EXIT_REFUSED)
                (void) fprintf(stderr, "lessor %s: %s\n", verb->name,
                               text_escape(err.msg, strlen(err.msg), safe, sizeof(safe)));
        if (code < 0) {
                json_t *body = told_match(&asked.set, &l->subject, name);
                (void) json_object_set_new(body, "pid", json_integer((json_int_t) pid));
                if (asked.json)
                        show_json(body);
                else
                        print_match(body, (uint32_t) pid, asked.all || name);
                code = json_is_string(json_object_get(body, "tenant")) ? LESSOR_EXIT_OK : LESSOR_EXIT_REFUSED;
                json_decref(body);
        }
        if (l)
                json_decref(l->told);
        tenants_fini(&asked.set);
        return code;
}
