/* SPDX-License-Identifier: Apache-2.0 */
/* What a person says of the journal: of whom, and since when. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "api/told_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_word(const char *text)
{
        char again[STORY_SUBJECT_TEXT_MAX];
        struct story_word word = { 0 };
        struct error err = { 0 };

        if (story_word_parse(text, &word, &err) < 0) {
                assert(err.code > 0 && err.msg[0] != '\0');
                return;
        }
        assert(word.n >= 1 && word.n <= 3);
        for (uint32_t i = 0; i < word.n; i++) {
                assert(word.subjects[i].id != 0 && word.subjects[i].kind <= STORY_PROCESS);
                assert(word.subjects[i].kind != STORY_PROCESS || word.subjects[i].id <= UINT32_MAX);
                assert(strlen(story_subject_text(&word.subjects[i], again)) > 0);
        }
}

/* A moment that is taken is said again as it was written, but for its milliseconds. */
static void read_time(const char *text)
{
        struct error err = { 0 };
        uint64_t wall_ms = 0;

        if (told_time_parse("since", text, &wall_ms, &err) < 0) {
                assert(err.code > 0 && strncmp(err.msg, "since", 5) == 0);
                return;
        }
        assert(wall_ms % 1000 == 0);
        json_t *json = told_time(wall_ms);
        const char *again = json_string_value(json);
        assert(wall_ms == 0 ||
               (again && strncmp(again, text, strlen(text) - 1) == 0 && again[strlen(text) - 1] == '.'));
        json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = malloc(size + 1);

        if (!text)
                return 0;
        if (size > 0)
                memcpy(text, data, size);
        text[size] = '\0';
        read_word(text);
        read_time(text);
        free(text);
        return 0;
}
