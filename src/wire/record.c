/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/record.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/number.h"

enum { VALUE_SIZE = 64, ADJ_LEAST = -1000, ADJ_MOST = 1000 };

static const char *const step_names[RECORD_STEP_N] = {
        [RECORD_NO_STEP] = "none",
        [RECORD_LOCKING] = "locking",
        [RECORD_LOCKED] = "locked",
        [RECORD_HELD] = "held",
        [RECORD_CHECKPOINTING] = "checkpointing",
        [RECORD_CHECKPOINTED] = "checkpointed",
        [RECORD_STOPPED] = "stopped",
        [RECORD_RESTORING] = "restoring",
        [RECORD_UNLOCKING] = "unlocking",
        [RECORD_FAILED] = "failed",
        [RECORD_RESTORED] = "restored",
};

const char *record_step_name(enum record_step step)
{
        return (size_t) step < RECORD_STEP_N ? step_names[step] : "unknown";
}

/* ---- values ---- */

static int hex_of(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Between which bytes of a UUID a dash stands. */
static bool dash_before(size_t byte)
{
        return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void record_uuid_text(const uint8_t uuid[WARDEN_UUID_SIZE], char ret[RECORD_UUID_TEXT_SIZE])
{
        size_t n = (size_t) snprintf(ret, RECORD_UUID_TEXT_SIZE, "GPU-");

        for (size_t i = 0; i < WARDEN_UUID_SIZE; i++)
                n += (size_t) snprintf(ret + n, RECORD_UUID_TEXT_SIZE - n, "%s%02x", dash_before(i) ? "-" : "",
                                       uuid[i]);
}

bool record_uuid_parse(const char *text, uint8_t ret[WARDEN_UUID_SIZE])
{
        uint8_t uuid[WARDEN_UUID_SIZE];

        if (strlen(text) != RECORD_UUID_TEXT_SIZE - 1 || strncmp(text, "GPU-", 4) != 0)
                return false;
        text += 4;
        for (size_t i = 0; i < WARDEN_UUID_SIZE; i++) {
                if (dash_before(i) && *text++ != '-')
                        return false;
                int high = hex_of(text[0]), low = high < 0 ? -1 : hex_of(text[1]);
                if (low < 0)
                        return false;
                uuid[i] = (uint8_t) (high << 4 | low);
                text += 2;
        }
        memcpy(ret, uuid, sizeof(uuid));
        return true;
}

static bool boot_id_is_sane(const char *id)
{
        if (strnlen(id, RECORD_BOOT_ID_SIZE) != RECORD_BOOT_ID_SIZE - 1)
                return false;
        for (size_t i = 0; i < RECORD_BOOT_ID_SIZE - 1; i++)
                if (i == 8 || i == 13 || i == 18 || i == 23 ? id[i] != '-' : hex_of(id[i]) < 0)
                        return false;
        return true;
}

/* ---- the lines, each a key and a value that is read or written ---- */

struct lines {
        bool writing;
        char *out; /* writing */
        size_t size, n;
        const char *at;    /* reading; ends at a NUL */
        const char *wrong; /* the first key that is not as it should be */
};

static void put_line(struct lines *l, const char *key, const char *value)
{
        int n = snprintf(l->out + l->n, l->size - l->n, "%s=%s\n", key, value);

        if (n < 0 || (size_t) n >= l->size - l->n)
                l->wrong = l->wrong ? l->wrong : key;
        else
                l->n += (size_t) n;
}

/* The next line's value when its key is @key; else "" and it is wrong. */
static void take_line(struct lines *l, const char *key, char value[VALUE_SIZE])
{
        size_t n_key = strlen(key), n = strcspn(l->at, "\n");

        value[0] = '\0';
        if (l->wrong)
                return;
        if (l->at[n] != '\n' || n <= n_key || strncmp(l->at, key, n_key) != 0 || l->at[n_key] != '=' ||
            n - n_key - 1 >= VALUE_SIZE) {
                l->wrong = key;
                return;
        }
        memcpy(value, l->at + n_key + 1, n - n_key - 1);
        value[n - n_key - 1] = '\0';
        l->at += n + 1;
}

static void line_u64(struct lines *l, const char *key, uint64_t *v, uint64_t min, uint64_t max)
{
        char value[VALUE_SIZE];
        bool fits;

        if (l->writing) {
                (void) snprintf(value, sizeof(value), "%" PRIu64, *v);
                put_line(l, key, value);
                fits = *v >= min && *v <= max;
        } else {
                take_line(l, key, value);
                fits = parse_u64(key, value, min, max, v, NULL) == 0;
        }
        if (!fits && !l->wrong)
                l->wrong = key;
}

static void line_u32(struct lines *l, const char *key, uint32_t *v, uint32_t min, uint32_t max)
{
        uint64_t wide = *v;

        line_u64(l, key, &wide, min, max);
        *v = (uint32_t) wide;
}

static void line_bool(struct lines *l, const char *key, bool *v)
{
        uint64_t wide = *v;

        line_u64(l, key, &wide, 0, 1);
        *v = wide != 0;
}

static void line_adj(struct lines *l, int32_t *v, bool kept)
{
        static const char key[] = "oom_score_adj";
        char value[VALUE_SIZE];
        bool fits = true;
        uint64_t size = 0;

        if (l->writing) {
                (void) snprintf(value, sizeof(value), "%" PRId32, *v);
                put_line(l, key, value);
        } else {
                take_line(l, key, value);
                fits = parse_u64(key, value + (value[0] == '-'), 0, ADJ_MOST, &size, NULL) == 0;
                *v = value[0] == '-' ? -(int32_t) size : (int32_t) size;
        }
        if ((!fits || *v < ADJ_LEAST || *v > ADJ_MOST || (!kept && *v != 0)) && !l->wrong)
                l->wrong = key;
}

static void line_text(struct lines *l, const char *key, char value[VALUE_SIZE])
{
        if (l->writing)
                put_line(l, key, value);
        else
                take_line(l, key, value);
}

static void line_boot_id(struct lines *l, char id[RECORD_BOOT_ID_SIZE])
{
        char value[VALUE_SIZE];

        (void) snprintf(value, sizeof(value), "%.*s", RECORD_BOOT_ID_SIZE - 1, id);
        line_text(l, "boot_id", value);
        (void) snprintf(id, RECORD_BOOT_ID_SIZE, "%.*s", RECORD_BOOT_ID_SIZE - 1, value);
        if ((strlen(value) >= RECORD_BOOT_ID_SIZE || !boot_id_is_sane(id)) && !l->wrong)
                l->wrong = "boot_id";
}

static void line_device(struct lines *l, uint8_t uuid[WARDEN_UUID_SIZE])
{
        char value[VALUE_SIZE];

        record_uuid_text(uuid, value);
        line_text(l, "device", value);
        if (!record_uuid_parse(value, uuid) && !l->wrong)
                l->wrong = "device";
}

static void line_step(struct lines *l, enum record_step *step)
{
        char value[VALUE_SIZE];
        int found = RECORD_NO_STEP;

        (void) snprintf(value, sizeof(value), "%s", record_step_name(*step));
        line_text(l, "step", value);
        for (int i = RECORD_NO_STEP + 1; i < RECORD_STEP_N; i++)
                if (strcmp(step_names[i], value) == 0)
                        found = i;
        *step = (enum record_step) found;
        if (found == RECORD_NO_STEP && !l->wrong)
                l->wrong = "step";
}

static void all_lines(struct lines *l, struct record *r)
{
        line_boot_id(l, r->boot_id);
        line_u32(l, "pid", &r->pid, 1, INT32_MAX);
        line_u64(l, "start_ticks", &r->start_ticks, 0, UINT64_MAX);
        line_u64(l, "pidfd_inode", &r->pidfd_inode, 0, UINT64_MAX);
        line_u32(l, "uid", &r->uid, 0, UINT32_MAX - 1);
        line_device(l, r->device_uuid);
        line_u64(l, "bytes", &r->bytes, 0, UINT64_MAX);
        line_u64(l, "host_bytes", &r->host_bytes, 0, UINT64_MAX);
        line_step(l, &r->step);
        line_u64(l, "lease_id", &r->lease_id, 0, UINT64_MAX);
        line_u32(l, "flags", &r->flags, 0, WARDEN_FLAG_ALL);
        line_bool(l, "hold", &r->hold);
        line_bool(l, "ending", &r->ending);
        line_bool(l, "restored", &r->restored);
        line_bool(l, "oom_kept", &r->oom_kept);
        line_adj(l, &r->oom_score_adj, r->oom_kept);
        line_u64(l, "time_s", &r->time_s, 0, UINT64_MAX);
}

int record_format(const struct record *record, char *buf, size_t size, size_t *ret_n, struct error *err)
{
        struct record r = *record;
        struct lines l = { .writing = true, .out = buf, .size = size };
        uint64_t version = RECORD_VERSION;

        line_u64(&l, "lessor_record", &version, 1, UINT64_MAX);
        all_lines(&l, &r);
        if (l.wrong)
                return error_set(err, EINVAL, "record of process %" PRIu32 ": %s is outside its range", record->pid,
                                 l.wrong);
        *ret_n = l.n;
        return 0;
}

int record_parse(const void *data, size_t n_data, struct record *ret, struct error *err)
{
        char text[RECORD_MAX + 1], again[RECORD_MAX];
        struct lines l = { .at = text };
        struct record r = { 0 };
        uint64_t version = 0;
        size_t n_again = 0;

        memset(ret, 0, sizeof(*ret));
        if (n_data > RECORD_MAX || memchr(data, '\0', n_data))
                return error_set(err, EBADMSG, "a record is text of up to %d bytes", RECORD_MAX);
        memcpy(text, data, n_data);
        text[n_data] = '\0';
        line_u64(&l, "lessor_record", &version, 1, UINT64_MAX);
        if (!l.wrong && version != RECORD_VERSION)
                return error_set(err, EPROTONOSUPPORT, "record has version %" PRIu64 ", this program reads %d", version,
                                 RECORD_VERSION);
        all_lines(&l, &r);
        if (l.wrong)
                return error_set(err, EBADMSG, "record: %s is missing or damaged", l.wrong);
        /* Written again it must be the same: no other order, no leading zeros, nothing after the end. */
        if (record_format(&r, again, sizeof(again), &n_again, err) < 0 || n_again != n_data ||
            memcmp(again, data, n_data) != 0)
                return error_set(err, EBADMSG, "record: not as records are written");
        *ret = r;
        return 0;
}

/* ---- names ---- */

void record_name(uint32_t pid, uint64_t start_ticks, char ret[RECORD_NAME_SIZE])
{
        (void) snprintf(ret, RECORD_NAME_SIZE, "%" PRIu32 "-%" PRIu64, pid, start_ticks);
}

bool record_name_parse(const char *name, uint32_t *ret_pid, uint64_t *ret_start_ticks)
{
        const char *dash = strchr(name, '-');
        char pid_text[16], again[RECORD_NAME_SIZE];
        uint64_t pid;

        if (!dash || (size_t) (dash - name) >= sizeof(pid_text))
                return false;
        (void) snprintf(pid_text, sizeof(pid_text), "%.*s", (int) (dash - name), name);
        if (parse_u64("pid", pid_text, 1, INT32_MAX, &pid, NULL) < 0 ||
            parse_u64("start", dash + 1, 0, UINT64_MAX, ret_start_ticks, NULL) < 0)
                return false;
        *ret_pid = (uint32_t) pid;
        record_name(*ret_pid, *ret_start_ticks, again);
        return strcmp(name, again) == 0;
}
