/* SPDX-License-Identifier: Apache-2.0 */
#include "tenants/tenants.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/escape.h"
#include "tenants/tenant_read.h"

void tenants_fini(struct tenants *set)
{
        for (uint32_t i = 0; i < set->n_files; i++)
                json_decref(set->files[i].document);
        free(set->files);
        free(set->list);
        *set = (struct tenants){ 0 };
}

static struct tenant *find(const struct tenants *set, const char *name)
{
        for (uint32_t i = 0; i < set->n; i++)
                if (strcmp(set->list[i].name, name) == 0)
                        return &set->list[i];
        return NULL;
}

const struct tenant *tenants_find(const struct tenants *set, const char *name)
{
        return find(set, name);
}

/* ---- adding ---- */

static int find_or_add(struct tenants *set, const char *name, struct tenant **ret, struct error *err)
{
        *ret = find(set, name);
        if (*ret)
                return 0;
        if (set->n == TENANTS_MAX)
                return error_set(err, E2BIG, "more than %d tenants; put some of them together", TENANTS_MAX);
        if (set->n == set->cap) {
                uint32_t cap = set->cap ? 2 * set->cap : 16;
                void *grown = reallocarray(set->list, cap, sizeof(*set->list));
                if (!grown)
                        return error_set(err, ENOMEM, "no memory for tenants");
                set->list = grown;
                set->cap = cap;
        }
        *ret = &set->list[set->n++];
        **ret = (struct tenant){ .name = name };
        return 0;
}

/* The document is the set's from here on: what is read of it points into it. */
static int keep_document(struct tenants *set, const char *name, json_t *document, bool shipped, struct error *err)
{
        void *grown = set->n_files < TENANTS_FILES_MAX ? reallocarray(set->files, set->n_files + 1, sizeof(*set->files))
                                                       : NULL;
        if (!grown) {
                json_decref(document);
                return set->n_files < TENANTS_FILES_MAX
                               ? error_set(err, ENOMEM, "no memory for %s", name)
                               : error_set(err, E2BIG, "%s is one file more than the %d that are read", name,
                                           TENANTS_FILES_MAX);
        }
        set->files = grown;
        struct tenants_file *file = &set->files[set->n_files++];
        *file = (struct tenants_file){ .document = document, .shipped = shipped };
        (void) snprintf(file->name, sizeof(file->name), "%s", name);
        return 0;
}

static int add_tenants(struct tenants *set, struct reading_json *r, const json_t *tenants)
{
        auto_free struct tenant *one = malloc(sizeof(*one));
        struct tenant *t = NULL;

        if (!one)
                return error_set(r->err, ENOMEM, "no memory for tenants");
        if (!json_is_object(tenants))
                return read_refuse(r, tenants, "an object with one key a tenant", "write {\"tenants\": { … }}");
        for (void *at = json_object_iter((json_t *) (uintptr_t) tenants); at;
             at = json_object_iter_next((json_t *) (uintptr_t) tenants, at)) {
                const char *name = json_object_iter_key(at);
                if (name[0] == '_')
                        continue;
                size_t before = read_enter(r, name);
                int code = tenant_read(r, name, json_object_iter_value(at), one);
                if (code == 0)
                        code = find_or_add(set, name, &t, r->err);
                if (code < 0)
                        return code;
                tenant_lay_over(t, one, (uint8_t) (set->n_files - 1));
                read_leave(r, before);
        }
        return 0;
}

struct top {
        const json_t *tenants;
};

static int read_value(struct reading_json *r, const json_t *value, void *ret)
{
        (void) r;
        *(const json_t **) ret = value;
        return 0;
}

int tenants_add_text(struct tenants *set, const char *name, const char *text, size_t n, bool shipped, struct error *err)
{
        static const struct read_key keys[] = { { "tenants", offsetof(struct top, tenants), read_value } };
        struct reading_json r = { .file = name, .text = text, .n = n, .err = err };
        struct top top = { 0 };
        json_error_t wrong;
        char words[160];
        uint32_t given = 0;

        if (n > TENANTS_FILE_BYTES_MAX)
                return error_set(err, EFBIG, "%s is longer than %d bytes", name, TENANTS_FILE_BYTES_MAX);
        json_t *document = json_loadb(text, n, JSON_REJECT_DUPLICATES, &wrong);
        if (!document)
                return error_set(err, EINVAL, "%s:%d: no JSON, in column %d: %s", name, wrong.line, wrong.column,
                                 text_escape(wrong.text, strlen(wrong.text), words, sizeof(words)));
        int code = keep_document(set, name, document, shipped, err);
        if (code == 0)
                code = READ_OBJECT(&r, document, keys, &top, &given);
        if (code == 0)
                code = read_check_given(&r, document, keys, 1, given, 1, 0, "a file of tenants");
        if (code < 0)
                return code;
        (void) read_enter(&r, "tenants");
        return add_tenants(set, &r, top.tenants);
}

/* ---- the whole ---- */

static bool has_role(const struct tenant *t, const char *role)
{
        for (uint32_t i = 0; i < t->n_rules; i++)
                if (strcmp(t->rules[i].role ? t->rules[i].role : "main", role) == 0)
                        return true;
        return false;
}

static int check_role(const struct tenants *set, const struct tenant *t, enum tenant_key key, const char *role,
                      struct error *err)
{
        if (!role || has_role(t, role))
                return 0;
        return error_set(err, EINVAL,
                         "%s: tenants/%s/%s: given: role \"%s\"; allowed: the roles that its rules of match name; give "
                         "a rule this role, or leave it out",
                         set->files[t->from[key]].name, t->name, tenant_key_name(key), role);
}

static int check(const struct tenants *set, const struct tenant *t, struct error *err)
{
        int r = 0;

        if (t->n_rules == 0)
                return error_set(err, EINVAL,
                                 "tenants/%s: given: nothing that tells how its processes are recognised; allowed: any "
                                 "file may; add match, or correct the name if it is meant to be another's",
                                 t->name);
        for (uint32_t i = 0; r == 0 && i < t->busy.n; i++)
                r = check_role(set, t, TENANT_BUSY, t->busy.items[i].role, err);
        for (uint32_t i = 0; r == 0 && i < t->ways.n; i++)
                r = check_role(set, t, TENANT_WAYS_OUT, t->ways.items[i].role, err);
        return r < 0 ? r : check_role(set, t, TENANT_EVENTS, t->events.role, err);
}

static int by_name(const void *a, const void *b)
{
        return strcmp(((const struct tenant *) a)->name, ((const struct tenant *) b)->name);
}

int tenants_settle(struct tenants *set, struct error *err)
{
        int r = 0;

        if (set->n > 0)
                qsort(set->list, set->n, sizeof(*set->list), by_name);
        for (uint32_t i = 0; r == 0 && i < set->n; i++)
                r = check(set, &set->list[i], err);
        return r;
}

json_t *tenants_definition(const struct tenants *set, const struct tenant *t)
{
        json_t *ret = json_object();

        for (enum tenant_key key = 0; ret && key < TENANT_KEY_N; key++) {
                if (!tenant_gives(t, key))
                        continue;
                const json_t *tenants = json_object_get(set->files[t->from[key]].document, "tenants");
                json_t *value = json_object_get(json_object_get(tenants, t->name), tenant_key_name(key));
                if (json_object_set_nocheck(ret, tenant_key_name(key), value) < 0) {
                        json_decref(ret);
                        return NULL;
                }
        }
        return ret;
}
