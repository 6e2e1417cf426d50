/* SPDX-License-Identifier: Apache-2.0 */
/* An object is the same whether it becomes a value or is written as text. */
#include <stdlib.h>
#include <string.h>
#include "api/fields.h"
#include "cm.h"

static void fill(struct fields *f)
{
        static const char *const texts[] = {
                NULL, "", "plain", "a \"quote\" and a \\", "\t\n\x01", "caf\xc3\xa9", "\xff is none", "\x7f",
        };
        char key[16];

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                (void) snprintf(key, sizeof(key), "text%zu", i);
                fields_text(f, key, texts[i]);
        }
        fields_u64(f, "nothing", 0);
        fields_u64(f, "ten", 10);
        fields_u64(f, "most", INT64_MAX);
        fields_u64(f, "more", UINT64_MAX);
        fields_u64_or_null(f, "unknown", false, 7);
        fields_u64_or_null(f, "known", true, 7);
        fields_bool(f, "yes", true);
        fields_bool(f, "no", false);
        struct fields inner = fields_open(f, "inner");
        fields_text(&inner, "deep", "down");
        fields_value(&inner, "list", json_pack("[i, i]", 1, 2));
        fields_close(f, &inner);
        fields_value(f, "long", json_sprintf("%02000d", 1)); /* more than is kept on the stack */
}

static void text_and_value_say_the_same(void **state)
{
        struct fields value = { .object = json_object() };
        struct strbuf text;
        struct fields written = { .text = &text };

        (void) state;
        strbuf_init(&text, 65536);
        fields_begin(&value);
        fill(&value);
        fields_end(&value);
        fields_begin(&written);
        fill(&written);
        fields_end(&written);
        assert_false(text.failed);

        json_t *read = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(read);
        assert_true(json_equal(read, value.object));
        assert_int_equal(json_integer_value(json_object_get(read, "more")), INT64_MAX);
        assert_string_equal(json_string_value(json_object_get(read, "text4")), "\t\n\x01");
        assert_true(json_is_null(json_object_get(read, "unknown")));
        json_decref(read);
        json_decref(value.object);
        strbuf_fini(&text);
}

/* Whatever does not fit, no half of an object is left for an answer. */
static void text_without_room_or_without_a_value_has_failed(void **state)
{
        struct strbuf text;
        struct fields f = { .text = &text };

        (void) state;
        strbuf_init(&text, 65536);
        fields_begin(&f);
        fill(&f);
        fields_end(&f);
        size_t n = text.len;
        strbuf_fini(&text);
        for (size_t max = 0; max < n; max += 7) {
                strbuf_init(&text, max);
                fields_begin(&f);
                fill(&f);
                fields_end(&f);
                assert_true(text.failed);
                assert_null(strbuf_steal(&text));
                strbuf_fini(&text);
        }
        strbuf_init(&text, 65536);
        fields_begin(&f);
        fields_u64(&f, "before", 1);
        fields_value(&f, "lost", NULL);
        fields_end(&f);
        assert_null(strbuf_steal(&text));
        strbuf_fini(&text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(text_and_value_say_the_same),
                cmocka_unit_test(text_without_room_or_without_a_value_has_failed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
