/* SPDX-License-Identifier: Apache-2.0 */
#include "api/audit_facts.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/place.h"
#include "api/told_json.h"
#include "base/escape.h"
#include "base/script.h"

/* A path may have 4095 bytes, each of which may take six in JSON: so much is kept. */
enum { TEXT_KEPT_MAX = 1024 };

/* Null where there is nothing. What is no UTF-8, or too long, is written as what it is made of, and cut. */
static json_t *text(const char *bytes, size_t n)
{
        char safe[TEXT_KEPT_MAX];
        json_t *whole = n == 0 ? json_null() : n < sizeof(safe) ? json_stringn(bytes, n) : NULL;

        return whole ? whole : json_string(text_escape(bytes, n, safe, sizeof(safe)));
}

static json_t *text_of(const char *bytes)
{
        return text(bytes, strlen(bytes));
}

static json_t *number(uint64_t n)
{
        return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t) n);
}

static json_t *program_object(json_t *path, bool deleted, uint64_t dev, uint64_t inode)
{
        return json_pack("{s:o, s:b, s:o, s:o}", "path", path, "deleted", (int) deleted, "dev", number(dev), "inode",
                         number(inode));
}

static json_t *program(const struct eyes_process *p)
{
        return p->exe_known ? program_object(text_of(p->exe_path), p->exe_deleted, p->exe_dev, p->exe_inode)
                            : json_null();
}

static json_t *script_object(enum script_kind kind, const char *path, bool known, uint64_t dev, uint64_t inode)
{
        if (!script_has_name(kind))
                return json_null();
        return json_pack("{s:o, s:b, s:o, s:o}", "path", text_of(path), "is_module", (int) (kind == SCRIPT_MODULE),
                         "dev", known ? number(dev) : json_null(), "inode", known ? number(inode) : json_null());
}

static json_t *script(const struct eyes_process *p)
{
        char path[EYES_CMDLINE_MAX + 1];

        if (!p->exe_known)
                return json_null();
        enum script_kind kind = script_of_command(p->exe_path, p->cmdline, p->n_cmdline, path, sizeof(path));
        return script_object(kind, path, p->script_known, p->script_dev, p->script_inode);
}

static json_t *command(const struct eyes_process *p)
{
        json_t *words = p->n_cmdline > 0 ? json_array() : json_null();

        for (size_t at = 0; json_is_array(words) && at < p->n_cmdline;) {
                size_t n = strnlen(p->cmdline + at, p->n_cmdline - at);
                json_t *word = n > 0 ? text(p->cmdline + at, n) : json_string("");
                if (json_array_append_new(words, word) < 0) {
                        json_decref(words);
                        return NULL;
                }
                at += n + 1;
        }
        return words;
}

static json_t *place(const struct eyes_process *p)
{
        struct place place = { 0 };

        if (p->cgroup_known)
                place_of_cgroup(p->cgroup_path, &place);
        if (place.kind == PLACE_NONE)
                return json_null();
        return json_pack("{s:s, s:o, s:o, s:b, s:n, s:n, s:n, s:n}", "kind",
                         place_kind_name((enum place_kind) place.kind), "unit", text_of(place.unit), "container",
                         text_of(place.container), "of_user", (int) place.of_user, "name", "image", "project",
                         "service");
}

static json_t *parents(const struct process *settled, const struct audit_ancestor *ancestors)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < settled->n_ancestors; i++) {
                const struct audit_ancestor *a = &ancestors[i];
                json_t *one = json_pack("{s:o, s:o, s:b, s:s}", "pid", number(settled->ancestors[i].pid), "comm",
                                        text_of(a->comm), "gone", (int) a->is_gone, "link",
                                        process_link_name((enum process_link) settled->links[i]));
                if (json_array_append_new(list, one) < 0) {
                        json_decref(list);
                        return NULL;
                }
        }
        return list;
}

char *audit_facts_text(const struct eyes_process *told, const struct process *settled,
                       const struct audit_ancestor *ancestors, uint64_t started_wall_ms, size_t *ret_n)
{
        json_t *whole = json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "comm", text_of(told->comm),
                                  "program", program(told), "script", script(told), "command", command(told),
                                  "command_cut", (int) told->cmdline_cut, "cgroup",
                                  told->cgroup_known ? text_of(told->cgroup_path) : json_null(), "place", place(told),
                                  "started", told_time(started_wall_ms), "parents", parents(settled, ancestors));
        char *text = whole ? json_dumps(whole, JSON_COMPACT) : NULL;

        json_decref(whole);
        if (text)
                *ret_n = strlen(text);
        return text;
}

/* ---- what the hands say ---- */

/* The command line of facts, as /proc has one. A word that is no UTF-8 is written as what it is made of: it names another file, or none. */
static size_t words_of(const json_t *whole, char *buf, size_t size)
{
        const json_t *word;
        size_t i, at = 0, n_words = json_array_size(json_object_get(whole, "command"));

        json_array_foreach(json_object_get(whole, "command"), i, word)
        {
                size_t n = json_string_length(word);
                if (n >= size - at)
                        return at;
                memcpy(buf + at, n > 0 ? json_string_value(word) : "", n);
                at += n;
                bool is_cut = i + 1 == n_words && json_is_true(json_object_get(whole, "command_cut"));
                if (!is_cut)
                        buf[at++] = '\0';
        }
        return at;
}

static enum script_kind script_of(const json_t *whole, const char *program, char *ret, size_t size)
{
        char words[2 * EYES_CMDLINE_MAX];

        return script_of_command(program, words, words_of(whole, words, sizeof(words)), ret, size);
}

enum script_kind audit_facts_script(const char *text, size_t n, const char *program, char *ret, size_t size)
{
        json_t *whole = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
        enum script_kind kind = script_of(whole, program, ret, size);

        json_decref(whole);
        return kind;
}

char *audit_facts_add_program(const char *text, size_t n, const struct audit_program *seen, size_t *ret_n)
{
        static const char gone[] = " (deleted)"; /* so says the kernel of a file that has no name any more */
        json_t *whole = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
        char script[EYES_CMDLINE_MAX + 1], path[TEXT_KEPT_MAX], *again = NULL;
        size_t n_path = strlen(seen->path), n_gone = sizeof(gone) - 1;
        bool deleted = n_path > n_gone && strcmp(seen->path + n_path - n_gone, gone) == 0;

        (void) snprintf(path, sizeof(path), "%.*s", (int) (n_path - (deleted ? n_gone : 0)), seen->path);
        if (json_is_null(json_object_get(whole, "program"))) {
                enum script_kind kind = script_of(whole, seen->path, script, sizeof(script));
                if ((json_object_set_new(whole, "program",
                                         program_object(text_of(path), deleted, seen->dev, seen->inode)) |
                     json_object_set_new(whole, "script",
                                         script_object(kind, script, seen->script_inode != 0, seen->script_dev,
                                                       seen->script_inode))) == 0)
                        again = json_dumps(whole, JSON_COMPACT);
        }
        json_decref(whole);
        if (again)
                *ret_n = strlen(again);
        return again;
}

/* ---- what an engine says ---- */

/* "" where there is no such label. */
static const char *label_of(const struct container_facts *facts, const char *key)
{
        size_t n = strlen(key);

        for (size_t i = 0; i < facts->n_labels; i++)
                if (strncmp(facts->labels[i], key, n) == 0 && facts->labels[i][n] == '=')
                        return facts->labels[i] + n + 1;
        return "";
}

char *audit_facts_add_container(const char *text, size_t n, const struct container_facts *facts, size_t *ret_n)
{
        json_t *whole = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL), *place = json_object_get(whole, "place");
        char *again = NULL;

        if (json_is_object(place) &&
            (json_object_set_new(place, "name", text_of(facts->name)) |
             json_object_set_new(place, "image", text_of(facts->image)) |
             json_object_set_new(place, "project", text_of(label_of(facts, "com.docker.compose.project"))) |
             json_object_set_new(place, "service", text_of(label_of(facts, "com.docker.compose.service")))) == 0)
                again = json_dumps(whole, JSON_COMPACT);
        json_decref(whole);
        if (again)
                *ret_n = strlen(again);
        return again;
}
