/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of tenants, and one laid over it. Any bytes are safe; what is taken keeps within its tables, can be written as a
 * file again, and that file is taken and says the same. A refusal has words. Lines are within the text.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "tenants/glob.h"
#include "tenants/line.h"
#include "tenants/match.h"
#include "tenants/tenants.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct tenants *set, const struct tenant *t)
{
        struct tenants again = { 0 };
        struct error err = { 0 };

        json_t *file = json_pack("{s:{s:o}}", "tenants", t->name, tenants_definition(set, t));
        char *text = json_dumps(file, 0);
        if (!text) {
                json_decref(file);
                return;
        }
        assert(tenants_add_text(&again, "again", text, strlen(text), false, &err) == 0);
        assert(again.n == 1 && again.list[0].given == t->given && again.list[0].n_rules == t->n_rules);
        assert(again.list[0].ways.n == t->ways.n && again.list[0].busy.n == t->busy.n);
        free(text);
        json_decref(file);
        tenants_fini(&again);
}

static void check_tenant(const struct tenants *set, const struct tenant *t)
{
        static const char *const argv[] = { "server", "serve", "--port" };
        const struct match_program self = { true, "/usr/bin/server", true, false, 3, argv };
        const struct match_subject subject = {
                .self = self, .n_ancestors = 1, .ancestors = &self, .place_known = true
        };
        uint32_t rule = UINT32_MAX;

        assert(t->n_rules <= TENANT_RULES_MAX && t->busy.n <= TENANT_BUSY_MAX && t->ways.n <= TENANT_WAYS_MAX);
        for (uint32_t i = 0; i < t->ways.n; i++)
                assert(!tenant_way_is_on(&t->ways.items[i]) ||
                       (t->ways.items[i].documented && !t->ways.items[i].drops));
        for (uint32_t key = 0; key < TENANT_KEY_N; key++)
                assert(t->from[key] < set->n_files);
        enum match_verdict v = match_tenant(set, t, &subject, &rule);
        assert(v == MATCH_NO || rule < t->n_rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char base[] = "{\"tenants\": {\"a\": {\"match\": [{\"unit\": \"a\"}], \"priority\": 2}}}";
        const char *text = (const char *) data;
        struct tenants set = { 0 };
        struct error err = { 0 };

        assert(tenants_add_text(&set, "base", base, sizeof(base) - 1, true, &err) == 0);
        int r = tenants_add_text(&set, "fuzz", text, size, false, &err);
        if (r == 0)
                r = tenants_settle(&set, &err);
        assert(r == 0 || (r < 0 && err.msg[0] != '\0'));
        for (uint32_t i = 0; r == 0 && i < set.n; i++) {
                check_tenant(&set, &set.list[i]);
                check_again(&set, &set.list[i]);
        }
        tenants_fini(&set);

        unsigned lines = 1;
        for (size_t i = 0; i < size; i++)
                lines += data[i] == '\n';
        assert(line_of_pointer(text, size, "/tenants/a/match/0/unit") <= lines);
        return 0;
}
