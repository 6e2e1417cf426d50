/* SPDX-License-Identifier: Apache-2.0 */
#include "hands/settings.h"
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>
#include "base/escape.h"
#include "base/number.h"
#include "base/root_file.h"

enum {
        FILE_MAX = 16384,
        LINE_MAX_BYTES = INI_MAX_LINE - 2, /* inih cuts longer ones in two without a word */
        UID_LAST = 0xfffffffd,
        UID_UNMAPPED = 65534, /* what the kernel says of users that this user namespace does not know */
};

void settings_own(struct settings *ret, uid_t uid)
{
        settings_system(ret);
        ret->uid_ranges[0].first = ret->uid_ranges[0].last = uid;
}

void settings_system(struct settings *ret)
{
        *ret = (struct settings){
                .n_uid_ranges = 1,
                .uid_ranges = { { 1000, 59999 } }, /* people, as Debian numbers them; no system users, no containers' */
                .grace_min_ms = SETTINGS_GRACE_DEFAULT_MS,
                .rate_per_s = SETTINGS_RATE_DEFAULT,
                .burst = SETTINGS_BURST_DEFAULT,
                .kill_wait_ms = SETTINGS_KILL_WAIT_DEFAULT_MS,
                .freeze_wait_ms = SETTINGS_FREEZE_WAIT_DEFAULT_MS,
                .look_ms = SETTINGS_LOOK_DEFAULT_MS,
        };
}

bool settings_allow_uid(const struct settings *s, uid_t uid)
{
        for (size_t i = 0; i < s->n_uid_ranges; i++)
                if (uid >= s->uid_ranges[i].first && uid <= s->uid_ranges[i].last && uid != UID_UNMAPPED)
                        return true;
        return false;
}

/* "1000-59999, 70000" */
static int read_uids(struct settings *s, const char *value, struct error *err)
{
        char text[INI_MAX_LINE];
        char *rest = NULL;

        s->n_uid_ranges = 0;
        (void) snprintf(text, sizeof(text), "%s", value);
        for (char *one = strtok_r(text, ", ", &rest); one; one = strtok_r(NULL, ", ", &rest)) {
                uint64_t first, last;
                char *dash = strchr(one, '-');

                if (dash)
                        *dash = '\0';
                int r = parse_u64("signal_uids", one, 0, UID_LAST, &first, err);
                if (r == 0)
                        r = parse_u64("signal_uids", dash ? dash + 1 : one, first, UID_LAST, &last, err);
                if (r < 0)
                        return r;
                if (s->n_uid_ranges == SETTINGS_UID_RANGES_MAX)
                        return error_set(err, EINVAL, "signal_uids: at most %d ranges", SETTINGS_UID_RANGES_MAX);
                s->uid_ranges[s->n_uid_ranges].first = (uid_t) first;
                s->uid_ranges[s->n_uid_ranges++].last = (uid_t) last;
        }
        return 0; /* an empty value: nobody's */
}

static int read_protected(struct settings *s, const char *value, struct error *err)
{
        char safe[96];

        if (value[0] != '/' || strlen(value) >= PROTECT_PATH_SIZE)
                return error_set(err, EINVAL, "protected: %s is no absolute path of up to %d bytes; one program a line",
                                 text_escape(value, strlen(value), safe, sizeof(safe)), PROTECT_PATH_SIZE - 1);
        if (s->protect.n == PROTECT_EXTRA_MAX)
                return error_set(err, EINVAL, "protected: at most %d programs", PROTECT_EXTRA_MAX);
        (void) snprintf(s->protect.paths[s->protect.n++], PROTECT_PATH_SIZE, "%s", value);
        return 0;
}

enum { KEY_UIDS, KEY_PROTECTED, KEY_GRACE, KEY_RATE, KEY_BURST, KEYS_N };

struct load {
        struct settings *settings;
        struct error first; /* what went wrong first; inih tells the line */
        bool seen[KEYS_N];
};

static int read_key(struct load *load, const char *section, const char *name, const char *value, struct error *err)
{
        struct settings *s = load->settings;
        const struct {
                const char *name;
                uint32_t *number; /* NULL: it is none */
                uint32_t min, max;
        } keys[KEYS_N] = {
                [KEY_UIDS] = { "signal_uids" },
                [KEY_PROTECTED] = { "protected" },
                [KEY_GRACE] = { "grace_min_ms", &s->grace_min_ms, SETTINGS_GRACE_LEAST_MS, SETTINGS_GRACE_MOST_MS },
                [KEY_RATE] = { "rate_per_s", &s->rate_per_s, 1, SETTINGS_RATE_MOST },
                [KEY_BURST] = { "burst", &s->burst, 1, SETTINGS_RATE_MOST },
        };
        char safe[96];
        size_t key = 0;
        uint64_t v;

        if (section[0])
                return error_set(err, EINVAL, "sections are not used here");
        while (key < KEYS_N && strcmp(keys[key].name, name) != 0)
                key++;
        if (key == KEYS_N)
                return error_set(err, EINVAL,
                                 "%s is no key of this file; those are signal_uids, grace_min_ms, "
                                 "rate_per_s, burst and protected",
                                 text_escape(name, strlen(name), safe, sizeof(safe)));
        if (load->seen[key] && key != KEY_PROTECTED)
                return error_set(err, EINVAL, "%s stands here a second time", name);
        load->seen[key] = true;
        if (!keys[key].number)
                return key == KEY_UIDS ? read_uids(s, value, err) : read_protected(s, value, err);
        int r = parse_u64(name, value, keys[key].min, keys[key].max, &v, err);
        if (r == 0)
                *keys[key].number = (uint32_t) v;
        return r;
}

static int on_ini(void *user, const char *section, const char *name, const char *value)
{
        struct load *load = user;
        struct error err = { 0 };

        if (read_key(load, section, name, value, &err) == 0)
                return 1;
        if (load->first.code == 0)
                load->first = err;
        return 0;
}

int settings_load(struct settings *s, const char *path, struct error *err)
{
        static char text[FILE_MAX];
        struct settings loaded = *s;
        struct load load = { .settings = &loaded };

        int r = root_file_read(path, text, sizeof(text), err);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        int line = root_file_long_line(text, LINE_MAX_BYTES, true);
        if (line > 0)
                return error_set(err, EINVAL, "%s:%d: the line is longer than %d bytes", path, line, LINE_MAX_BYTES);
        line = ini_parse_string(text, on_ini, &load);
        if (line < 0)
                return error_set(err, ENOMEM, "reading %s failed", path);
        if (line > 0)
                return error_set(err, EINVAL, "%s:%d: %s", path, line,
                                 load.first.code ? load.first.msg : "a line is `key = value`");
        *s = loaded;
        return 0;
}
