/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/conf.h"
#include <errno.h>
#include <fnmatch.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>
#include "base/escape.h"
#include "base/number.h"
#include "base/root_file.h"

enum {
        FILE_MAX = 256 * 1024,
        LINE_MAX_BYTES = INI_MAX_LINE - 2, /* inih cuts longer ones in two without a word */
        MAJOR_MAX = 4095,                  /* of Linux: twelve bits */
        NVIDIA_MAJOR = 195,                /* registered for good: Documentation/admin-guide/devices.txt */
        USERS_FROM = 1000,                 /* where the people begin, by login.defs */
        USERS_FROM_MOST = INT32_MAX,
};

void gate_conf_defaults(struct gate_conf *conf)
{
        *conf = (struct gate_conf){ .users_from = USERS_FROM, .n_always = 1, .n_devices = 2 };
        /* Where systemd's desktops put what a person's screen hangs on. */
        (void) snprintf(conf->always[0], GATE_PATH_SIZE, "user.slice/user-*.slice/user@*.service/session.slice");
        (void) snprintf(conf->devices[0], GATE_DEVICE_SIZE, "%d", NVIDIA_MAJOR);
        (void) snprintf(conf->devices[1], GATE_DEVICE_SIZE, "nvidia*");
}

/* ---- lines ---- */

/* Words between blanks, one after the other, into rows of @size bytes. */
static int read_words(const char *key, const char *value, char *rows, size_t size, uint32_t max, uint32_t *ret_n,
                      struct error *err)
{
        char safe[96];

        *ret_n = 0;
        while (*(value += strspn(value, " \t"))) {
                size_t n = strcspn(value, " \t");
                if (*ret_n == max)
                        return error_set(err, ENOSPC, "%s: at most %u", key, max);
                if (n >= size || !text_is_plain(value, n))
                        return error_set(err, EINVAL, "%s: %s is longer than %zu bytes, or no plain text", key,
                                         text_escape(value, n, safe, sizeof(safe)), size - 1);
                memcpy(rows + *ret_n * size, value, n);
                rows[(*ret_n)++ * size + n] = '\0';
                value += n;
        }
        return 0;
}

/* "/user.slice/" → "user.slice". False: the root itself, or with a step that is none. */
static bool tidy_path(char *path)
{
        size_t n = strlen(path), from = strspn(path, "/");

        while (n > from && path[n - 1] == '/')
                n--;
        memmove(path, path + from, n - from);
        path[n - from] = '\0';
        if (path[0] == '\0')
                return false;
        for (const char *step = path; step; step = strchr(step, '/')) {
                step += *step == '/';
                size_t len = strcspn(step, "/");
                if (len == 0 || (len <= 2 && strncmp(step, "..", len) == 0))
                        return false;
        }
        return true;
}

static int read_paths(const char *key, const char *value, char (*rows)[GATE_PATH_SIZE], uint32_t max, uint32_t *ret_n,
                      struct error *err)
{
        char safe[96];
        int r = read_words(key, value, rows[0], GATE_PATH_SIZE, max, ret_n, err);

        for (uint32_t i = 0; r == 0 && i < *ret_n; i++)
                if (!tidy_path(rows[i]))
                        return error_set(err, EINVAL,
                                         "%s: %s is not allowed; write a folder below the root of the hierarchy, such "
                                         "as user.slice",
                                         key, text_escape(rows[i], strlen(rows[i]), safe, sizeof(safe)));
        return r;
}

static int read_mode(struct gate_conf *conf, const char *value, struct error *err)
{
        char safe[64];

        for (int mode = 0; mode < GATE_MODE_N; mode++) {
                if (strcmp(value, gate_mode_name((enum gate_mode) mode)) == 0) {
                        conf->mode = (uint8_t) mode;
                        return 0;
                }
        }
        return error_set(err, EINVAL, "mode: %s is not allowed; allowed: off, log, on",
                         text_escape(value, strlen(value), safe, sizeof(safe)));
}

int gate_conf_line(struct gate_conf *conf, const char *key, const char *value, struct error *err)
{
        enum { KEY_MODE, KEY_CGROUPS, KEY_DEVICES, KEY_ALWAYS, KEY_USERS_FROM, KEYS_N };
        static const char *const names[KEYS_N] = { "mode", "cgroups", "devices", "always", "users_from" };
        uint64_t v;
        unsigned k = 0;
        int r;

        while (k < KEYS_N && strcmp(names[k], key) != 0)
                k++;
        if (k == KEYS_N)
                return error_set(err, EINVAL, "%s is no key of [gate]; allowed: mode cgroups devices always users_from",
                                 key);
        if (conf->seen & (1U << k))
                return error_set(err, EINVAL, "%s stands in [gate] a second time", key);
        conf->seen |= 1U << k;
        switch (k) {
        case KEY_MODE:
                return read_mode(conf, value, err);
        case KEY_CGROUPS:
                return read_paths(key, value, conf->cgroups, GATE_CGROUPS_MAX, &conf->n_cgroups, err);
        case KEY_ALWAYS:
                return read_paths(key, value, conf->always, GATE_ALWAYS_MAX, &conf->n_always, err);
        case KEY_DEVICES:
                r = read_words(key, value, conf->devices[0], GATE_DEVICE_SIZE, GATE_DEVICES_MAX, &conf->n_devices, err);
                if (r == 0 && conf->n_devices == 0)
                        r = error_set(err, EINVAL, "devices: there is nothing behind the =; leave the line out");
                return r;
        default:
                r = parse_u64(key, value, 0, USERS_FROM_MOST, &v, err);
                if (r == 0)
                        conf->users_from = (uint32_t) v;
                return r;
        }
}

int gate_conf_end(const struct gate_conf *conf, struct error *err)
{
        if (conf->mode != GATE_OFF && conf->n_cgroups == 0)
                return error_set(err, EINVAL,
                                 "[gate] has mode = %s and no cgroups: name those whose processes need a lease to open "
                                 "the device, such as cgroups = user.slice",
                                 gate_mode_name((enum gate_mode) conf->mode));
        return 0;
}

/* ---- the section alone ---- */

struct load {
        struct gate_conf *conf;
        struct error first; /* what went wrong first */
};

static int on_ini(void *user, const char *section, const char *name, const char *value)
{
        struct load *load = user;
        struct error err = { 0 };
        char safe[96];

        if (strcmp(section, "gate") != 0)
                return 1; /* lessord's to judge */
        (void) text_escape(name, strlen(name), safe, sizeof(safe));
        if (gate_conf_line(load->conf, safe, value ? value : "", &err) == 0)
                return 1;
        if (load->first.code == 0)
                load->first = err;
        return 0;
}

int gate_conf_load(struct gate_conf *conf, const char *path, struct error *err)
{
        static char text[FILE_MAX];
        struct gate_conf loaded;
        struct load load = { .conf = &loaded };

        gate_conf_defaults(&loaded);
        int r = root_file_read(path, text, sizeof(text), err);
        if (r < 0 && r != -ENOENT)
                return r;
        int line = r == 0 ? root_file_long_line(text, LINE_MAX_BYTES, false) : 0;
        if (line > 0)
                return error_set(err, EINVAL, "%s: line %d is longer than %d bytes", path, line, LINE_MAX_BYTES);
        /* inih goes on behind a line that was refused and tells of the first: only ours can have been. */
        if (r == 0 && ini_parse_string(text, on_ini, &load) != 0 && load.first.code != 0)
                return error_set(err, EINVAL, "%s: %s", path, load.first.msg);
        r = gate_conf_end(&loaded, err);
        if (r < 0)
                return error_wrap(err, r, "%s", path);
        *conf = loaded;
        return 0;
}

/* ---- devices ---- */

static void add_major(uint64_t major, uint32_t *ret, size_t max, size_t *n)
{
        for (size_t i = 0; i < *n; i++)
                if (ret[i] == major)
                        return;
        if (*n < max)
                ret[(*n)++] = (uint32_t) major;
}

size_t gate_conf_majors(const struct gate_conf *conf, const char *text, size_t n, uint32_t *ret, size_t max)
{
        size_t found = 0;
        uint64_t major;

        for (uint32_t i = 0; i < conf->n_devices; i++)
                if (parse_u64("major", conf->devices[i], 0, MAJOR_MAX, &major, NULL) == 0)
                        add_major(major, ret, max, &found);
        while (n > 0) {
                char line[96], *name;
                const char *end = memchr(text, '\n', n);
                size_t len = end ? (size_t) (end - text) : n,
                       used = len < sizeof(line) ? len : 0; /* longer: none of ours */
                memcpy(line, text, used);
                line[used] = '\0';
                text += len + (end != NULL);
                n -= len + (end != NULL);
                if (strcmp(line, "Block devices:") == 0)
                        break;
                char *number = line + strspn(line, " ");
                name = strchr(number, ' ');
                if (!name)
                        continue;
                *name++ = '\0';
                if (parse_u64("major", number, 0, MAJOR_MAX, &major, NULL) < 0)
                        continue;
                for (uint32_t i = 0; i < conf->n_devices; i++)
                        if (fnmatch(conf->devices[i], name, 0) == 0)
                                add_major(major, ret, max, &found);
        }
        return found;
}

/* ---- folders ---- */

bool gate_conf_covers(const struct gate_conf *conf, const char *path)
{
        for (uint32_t i = 0; i < conf->n_cgroups; i++) {
                size_t n = strlen(conf->cgroups[i]);
                if (strncmp(path, conf->cgroups[i], n) == 0 && (path[n] == '\0' || path[n] == '/'))
                        return true;
        }
        return false;
}

/* Step by step, so that a * never reaches over a slash. */
bool gate_pattern_matches(const char *pattern, const char *path, bool *ret_deeper)
{
        *ret_deeper = false;
        while (*path) {
                char p[GATE_PATH_SIZE], s[GATE_PATH_SIZE];
                size_t n_p = strcspn(pattern, "/"), n_s = strcspn(path, "/");
                if (n_p == 0 || n_p >= sizeof(p) || n_s >= sizeof(s))
                        return false;
                memcpy(p, pattern, n_p);
                p[n_p] = '\0';
                memcpy(s, path, n_s);
                s[n_s] = '\0';
                if (fnmatch(p, s, FNM_NOESCAPE) != 0)
                        return false;
                pattern += n_p + (pattern[n_p] == '/');
                path += n_s + (path[n_s] == '/');
        }
        *ret_deeper = *pattern != '\0';
        return *pattern == '\0';
}
