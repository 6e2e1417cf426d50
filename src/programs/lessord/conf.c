/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include "base/cleanup.h"
#include "base/duration.h"
#include "base/escape.h"
#include "base/number.h"
#include "base/size.h"
#include "model/limits.h"
#include "model/park.h"
#include "programs/lessord/conf.h"

enum kind {
        KIND_SPAN,
        KIND_LADDER, /* a span of the ladder of each class */
        KIND_AMOUNT,
        KIND_COUNT32,
        KIND_SHARE32, /* thousandths; text "10%" */
        KIND_WORD8,   /* which of its words, from 0 on */
        KIND_TEXT,    /* max: its room, the NUL included */
};

#define AT(field) offsetof(struct conf, field)
#define DAY_MS UINT64_C(86400000)
#define WORDS(list) 0, sizeof(list) / sizeof((list)[0]) - 1
#define DOOR_TEXT(field) KIND_TEXT, AT(doors.field), 0, sizeof(((struct conf *) 0)->doors.field)

static const char *const off_on[] = { "off", "on" };
static const char *const auto_off[] = { "auto", "off" };                     /* enum conf_units */
static const char *const enforce_modes[] = { "observe", "warn", "enforce" }; /* enum enforce_mode */
static const char *const auto_off_on[] = { "auto", "off", "on" };            /* enum conf_checkpoint */

static const struct key {
        const char *name;
        enum kind kind;
        size_t at;
        uint64_t min, max;
        const char *help;
        const char *const *words; /* KIND_WORD8, max is the last one */
} keys[] = {
        { "aging", KIND_SPAN, AT(core.aging_ms), 1000, DAY_MS, "one priority level is gained per so much waiting" },
        { "usage_half_life", KIND_SPAN, AT(core.usage_half_life_ms), 60000, 365 * DAY_MS,
          "half-life of a user's GPU-byte-seconds" },
        { "usage_forgiven", KIND_SPAN, AT(core.usage_forgiven_ms), 1000, 30 * DAY_MS,
          "an entry that waited so long ranks as if its owner had used nothing" },
        { "keep_rank", KIND_SPAN, AT(core.keep_rank_ms), 0, 30 * DAY_MS,
          "a holder keeps the rank of its grant so long" },
        { "block_after", KIND_SPAN, AT(core.block_after_ms), 1000, 30 * DAY_MS,
          "a head without a start in sight blocks new work after so much waiting" },
        { "block_max", KIND_SPAN, AT(core.block_max_ms), 1000, 30 * DAY_MS, "and for at most so long" },
        { "collect", KIND_SPAN, AT(core.collect_ms), 1000, DAY_MS, "a grant nobody collects is given up after" },
        { "reading_max_age", KIND_SPAN, AT(core.reading_max_age_ms), 10, 60000, "grants use a reading at most so old" },
        { "slot_warning", KIND_SPAN, AT(core.slot_warning_ms), 0, DAY_MS, "warning before a slot ends" },
        { "display", KIND_AMOUNT, AT(core.display_bytes), 0, SIZE_BYTES_MAX,
          "kept for the display on a card with graphics clients" },
        { "over_use", KIND_AMOUNT, AT(core.over_use_bytes), 0, SIZE_BYTES_MAX,
          "what a lease may use beyond its reservation" },
        { "over_use_for", KIND_SPAN, AT(core.over_use_ms), 0, DAY_MS, "for so long, before it is warned of" },
        { "correct_sizes", KIND_WORD8, AT(core.correct_sizes), WORDS(off_on),
          "who names less than earlier runs of its program came to gets what those did", off_on },
        { "idle_notice", KIND_LADDER, AT(idle.notice_ms), 0, 365 * DAY_MS,
          "who holds and does nothing is told so after; 0: never" },
        { "idle_reclaimable", KIND_LADDER, AT(idle.reclaimable_ms), 0, 365 * DAY_MS,
          "and counts as idle for whoever needs memory after; 0: never" },
        { "idle_listed", KIND_LADDER, AT(idle.listed_ms), 0, 365 * DAY_MS,
          "and is listed for the administrator after; 0: never" },
        { "wsl_margin", KIND_AMOUNT, AT(wsl_margin_bytes), 0, SIZE_BYTES_MAX, "kept free on each card under WSL" },
        { "ledger_cap", KIND_AMOUNT, AT(core.ledger_cap_bytes), 0, SIZE_BYTES_MAX, "host memory for parked work" },
        { "host_reserve", KIND_AMOUNT, AT(core.host_reserve_bytes), 0, SIZE_BYTES_MAX,
          "host memory that parked work never takes: the larger of this" },
        { "host_reserve_percent", KIND_SHARE32, AT(core.host_reserve_milli), 0, 900, "and this much of all of it" },
        { "checkpoint", KIND_WORD8, AT(checkpoint), WORDS(auto_off_on),
          "CUDA checkpoints: as the driver can, never, or also with a driver known to be broken", auto_off_on },
        { "linger", KIND_SPAN, AT(core.linger_ms), 0, DAY_MS, "an idle holder is left alone so long by its equals" },
        { "linger_filler", KIND_SPAN, AT(core.linger_filler_ms), 0, DAY_MS, "and by a filler" },
        { "immune_max", KIND_SPAN, AT(core.immune_max_ms), 0, DAY_MS,
          "who came back to work is left alone for at most so long" },
        { "immune_kill", KIND_SPAN, AT(core.immune_kill_ms), 0, 30 * DAY_MS,
          "and so long after its grant, where killing is the only way out" },
        { "ask", KIND_SPAN, AT(core.ask_ms), 1000, DAY_MS, "for a program to give its memory back when it is asked" },
        { "lock", KIND_SPAN, AT(core.lock_ms), 100, 3600000, "for what runs on the card to end before a checkpoint" },
        { "yield_grace", KIND_SPAN, AT(core.yield_grace_ms), 1000, DAY_MS,
          "from SIGTERM to SIGKILL, for what --yield-by restart and kill end" },
        { "back_off", KIND_SPAN, AT(core.back_off_ms), 1000, DAY_MS, "after something that could not be tried" },
        { "card_quiet", KIND_SPAN, AT(core.card_quiet_ms), 0, 60000,
          "before work comes back, nobody outside leases may have grown for so long" },
        { "slack", KIND_SHARE32, AT(core.slack_milli), 0, 500,
          "what has to be free beyond the memory that comes back" },
        { "returns_per_hour", KIND_COUNT32, AT(core.returns_max), 1, RETURNS_KEPT,
          "how often a lease may be parked and come back" },
        { "strikes", KIND_COUNT32, AT(core.strikes_max), 1, STRIKES_MAX,
          "failures in a row, after which a way out is not used any more" },
        { "units", KIND_WORD8, AT(units), WORDS(auto_off),
          "adopted units are stopped and started by their service manager (D-Bus): auto, off", auto_off },
        { "sleep_waits", KIND_WORD8, AT(sleep_waits), WORDS(auto_off),
          "sleep and shutdown wait until what is half way has arrived (logind): auto, off", auto_off },
        { "sleep_thaws", KIND_WORD8, AT(sleep_thaws), WORDS(off_on),
          "what is parked and fits comes back before the machine sleeps: off, on", off_on },
        { "hold_in_place", KIND_WORD8, AT(core.hold_in_place), WORDS(off_on),
          "fillers stand still while somebody more important is busy beside them", off_on },
        { "hold_after", KIND_SPAN, AT(core.hold_after_ms), 0, 3600000, "and go on so long after that" },
        { "margin", KIND_COUNT32, AT(core.margin), 1, 4, "levels more important a demander must be" },
        { "ceiling_user", KIND_COUNT32, AT(core.ceiling_user), 1, 5, "smallest priority number a user may ask for" },
        { "ceiling_admin", KIND_COUNT32, AT(core.ceiling_admin), 1, 5, "the same for administrators" },
        { "leases_per_user_max", KIND_COUNT32, AT(core.leases_per_user_max), 1, LEASES_MAX,
          "leases of one user, waiting ones included" },
        { "bytes_per_user_max", KIND_AMOUNT, AT(core.bytes_per_user_max), 0, SIZE_BYTES_MAX,
          "what the leases of one user may come to; 0: no limit" },
        { "slot_max", KIND_SPAN, AT(core.slot_max_ms), 0, 365 * DAY_MS,
          "longest slot of a lease, which then has to be named; 0: no limit" },
        { "pins_per_user_max", KIND_COUNT32, AT(core.pins_per_user_max), 0, LEASES_MAX, "pinned leases of one user" },
        { "pin_max", KIND_SPAN, AT(core.pin_max_ms), 0, 365 * DAY_MS, "longest pin; 0: also without an end" },
        { "bookings_per_user_max", KIND_COUNT32, AT(core.bookings_per_user_max), 0, ENTRIES_MAX,
          "bookings of one user that have not begun" },
        { "booking_lead", KIND_SPAN, AT(core.booking_lead_ms), 0, 3600000,
          "memory for a booking is taken back so long before it begins" },
        { "booking_ahead", KIND_SPAN, AT(core.booking_ahead_ms), 60000, 365 * DAY_MS,
          "a booking may lie so far ahead, and last so long" },
        { "end_grace", KIND_SPAN, AT(core.end_grace_ms), 10000, DAY_MS,
          "between SIGTERM and SIGKILL, for what --kill-at-end and --kill-left end" },
        { "enforce_max", KIND_WORD8, AT(core.enforce_ceiling), WORDS(enforce_modes),
          "how far the enforcer may be switched on (`lessor enforce`)", enforce_modes },
        { "enforce_sweep", KIND_SPAN, AT(core.enforce_sweep_ms), 1000, 3600000,
          "after a start everything is seen once, and so long nobody is ended" },
        { "enforce_min", KIND_AMOUNT, AT(core.enforce_min_bytes), 1, SIZE_BYTES_MAX,
          "who has less device memory is left alone" },
        { "enforce_stay", KIND_SPAN, AT(core.enforce_stay_ms), 0, DAY_MS, "and who has not had it for so long" },
        { "enforce_notice", KIND_SPAN, AT(core.enforce_notice_ms), 1000, 30 * DAY_MS, "from the notice to SIGTERM" },
        { "enforce_grace", KIND_SPAN, AT(core.enforce_grace_ms[GRACE_PROGRAM]), 10000, DAY_MS,
          "from SIGTERM to SIGKILL, for a program" },
        { "enforce_grace_script", KIND_SPAN, AT(core.enforce_grace_ms[GRACE_SCRIPT]), 10000, DAY_MS,
          "for an interpreter with a script" },
        { "enforce_grace_place", KIND_SPAN, AT(core.enforce_grace_ms[GRACE_PLACE]), 10000, DAY_MS,
          "for what a unit or container runs" },
        { "warn_terminals", KIND_WORD8, AT(warn_terminals), WORDS(off_on),
          "owners of processes without a lease are told on their terminals", off_on },
        { "warn_hook", KIND_TEXT, AT(warn_hook), 0, sizeof(((struct conf *) 0)->warn_hook),
          "and by this program, with its arguments and no shell" },
        { "leases_max", KIND_COUNT32, AT(core.leases_max), 1, LEASES_MAX, "leases at a time" },
        { "entries_max", KIND_COUNT32, AT(core.entries_max), 1, ENTRIES_MAX, "queue entries at a time" },
        { "waiting_per_user_max", KIND_COUNT32, AT(core.waiting_per_user_max), 1, ENTRIES_MAX,
          "queue entries of one user" },
        { "poll", KIND_SPAN, AT(poll_ms), 10, 60000, "how often cards are looked at while leases exist" },
        { "poll_busy", KIND_SPAN, AT(poll_busy_ms), 10, 60000, "while something waits, drains or is to be collected" },
        { "poll_idle", KIND_SPAN, AT(poll_idle_ms), 10, 60000, "while there is no lease at all" },
        { "poll_activity", KIND_SPAN, AT(poll_activity_ms), 50, 600000, "how often is looked at what processes do" },
        { "eyes_deadline", KIND_SPAN, AT(eyes_deadline_ms), 100, 60000,
          "the driver hangs when it has not answered for so long" },
        { "accounting", KIND_TEXT, AT(accounting), 0, sizeof(((struct conf *) 0)->accounting),
          "where lessor-accounting keeps process accounting, if it runs" },
        { "keep_events", KIND_COUNT32, AT(keep_events), 1000, 100000000, "events that are kept for events and why" },
        { "socket_group", DOOR_TEXT(socket_group), "group that may use the socket of --system (gpu where it exists)" },
        { "admin_group", DOOR_TEXT(admin_group), "its members are administrators, as root is" },
        { "requests_per_s", KIND_COUNT32, AT(doors.requests_per_s), 0, 1000000,
          "changes one user may ask for a second, administrators excepted; 0: any number" },
        { "requests_burst", KIND_COUNT32, AT(doors.requests_burst), 1, 1000000, "and so many at once" },
        { "engine_socket", DOOR_TEXT(engine_socket), "of Docker or Podman, asked which container calls" },
        { "tcp_listen", DOOR_TEXT(tcp_listen), "address:port to serve by TCP as well" },
        { "tcp_token_file", DOOR_TEXT(tcp_token_file), "the token of users there" },
        { "tcp_admin_token_file", DOOR_TEXT(tcp_admin_token_file), "the token of administrators there" },
        { "tcp_uid", DOOR_TEXT(tcp_uid), "user whom the users' token acts as; without: it only reads" },
        { "tcp_hosts", DOOR_TEXT(tcp_hosts), "names of this machine that clients may use there" },
        { "tcp_cert", DOOR_TEXT(tcp_cert), "certificate chain for TLS, PEM" },
        { "tcp_key", DOOR_TEXT(tcp_key), "its key, PEM" },
        { "metrics_listen", DOOR_TEXT(metrics_listen), "address:port for /metrics and /healthz alone" },
        { "metrics_token_file", DOOR_TEXT(metrics_token_file), "the token to ask there" },
        { "metrics_hosts", DOOR_TEXT(metrics_hosts), "names of this machine that clients may use there" },
};
enum { KEYS_N = sizeof(keys) / sizeof(keys[0]) };

void conf_defaults(struct conf *conf)
{
        *conf = (struct conf){ .poll_ms = 1000, .poll_busy_ms = 100, .poll_idle_ms = 5000, .eyes_deadline_ms = 2000 };
        conf->poll_activity_ms = 10000;
        conf->keep_events = 100000;
        conf->warn_terminals = true;
        conf->doors.requests_per_s = 200;
        conf->doors.requests_burst = 1000;
        conf->wsl_margin_bytes = UINT64_C(2) << 30; /* residency was seen to fail with that much shown free */
        config_defaults(&conf->core);
        conf->idle = conf->core.idle[0];
        gate_conf_defaults(&conf->sections.gate);
}

static uint64_t get(const struct conf *conf, const struct key *key)
{
        const char *at = (const char *) conf + key->at;
        uint64_t v64;
        uint32_t v32;

        if (key->kind == KIND_WORD8)
                return *(const uint8_t *) at;
        if (key->kind == KIND_COUNT32 || key->kind == KIND_SHARE32) {
                memcpy(&v32, at, sizeof(v32));
                return v32;
        }
        memcpy(&v64, at, sizeof(v64));
        return v64;
}

static void set(struct conf *conf, const struct key *key, uint64_t value)
{
        char *at = (char *) conf + key->at;
        uint32_t v32 = (uint32_t) value;

        if (key->kind == KIND_WORD8)
                *(uint8_t *) at = (uint8_t) value;
        else if (key->kind == KIND_COUNT32 || key->kind == KIND_SHARE32)
                memcpy(at, &v32, sizeof(v32));
        else
                memcpy(at, &value, sizeof(value));
        for (unsigned class = 0; key->kind == KIND_LADDER && class < IDLE_CLASSES; class ++)
                memcpy((char *) &conf->core.idle[class] + key->at - AT(idle), &value, sizeof(value));
}

static int set_text(struct conf *conf, const struct key *key, const char *text, struct error *err)
{
        char safe[96];
        size_t n = strlen(text);

        if (n == 0)
                return error_set(err, EINVAL, "%s: there is nothing behind the =; leave the line out", key->name);
        if (n >= key->max || !text_is_plain(text, n))
                return error_set(err, EINVAL,
                                 "%s: %s is not allowed; allowed: a text of at most %" PRIu64
                                 " bytes without control characters",
                                 key->name, text_escape(text, n, safe, sizeof(safe)), key->max - 1);
        if (strcmp(key->name, "warn_hook") == 0 && text[0] != '/')
                return error_set(err, EINVAL, "%s: %s is no absolute path; write the program with its whole path",
                                 key->name, text_escape(text, n, safe, sizeof(safe)));
        memcpy((char *) conf + key->at, text, n + 1);
        return 0;
}

void conf_fini(struct conf *conf)
{
        conf_sections_fini(&conf->sections);
}

static const char *value_text(const struct key *key, uint64_t value, char *buf, size_t size)
{
        if (key->kind == KIND_SPAN || key->kind == KIND_LADDER)
                (void) snprintf(buf, size, value % 1000 ? "%" PRIu64 "ms" : "%" PRIu64 "s",
                                value % 1000 ? value : value / 1000);
        else if (key->kind == KIND_AMOUNT && value != 0 && value % ((uint64_t) 1 << 20) == 0)
                (void) snprintf(buf, size, value % ((uint64_t) 1 << 30) ? "%" PRIu64 "MiB" : "%" PRIu64 "GiB",
                                value % ((uint64_t) 1 << 30) ? value >> 20 : value >> 30);
        else if (key->kind == KIND_SHARE32 && value % 10 != 0)
                (void) snprintf(buf, size, "%" PRIu64 ".%" PRIu64 "%%", value / 10, value % 10);
        else if (key->kind == KIND_SHARE32)
                (void) snprintf(buf, size, "%" PRIu64 "%%", value / 10);
        else if (key->kind == KIND_WORD8)
                (void) snprintf(buf, size, "%s", key->words[value]);
        else
                (void) snprintf(buf, size, "%" PRIu64, value);
        return buf;
}

static int parse_word(const struct key *key, const char *text, uint64_t *ret, struct error *err)
{
        char allowed[64] = "", safe[64];

        for (uint64_t i = 0; i <= key->max; i++) {
                if (strcmp(text, key->words[i]) == 0) {
                        *ret = i;
                        return 0;
                }
                size_t n = strlen(allowed);
                (void) snprintf(allowed + n, sizeof(allowed) - n, "%s%s", i ? ", " : "", key->words[i]);
        }
        return error_set(err, EINVAL, "%s: %s is not allowed; allowed: %s", key->name,
                         text_escape(text, strlen(text), safe, sizeof(safe)), allowed);
}

/* In thousandths, from "10%" or "2.5%". */
static int parse_share(const struct key *key, const char *text, uint64_t *ret, struct error *err)
{
        struct size share;
        char safe[64];

        *ret = 0;
        if (strcmp(text, "0") == 0 || strcmp(text, "0%") == 0)
                return 0;
        int r = size_parse(key->name, text, &share, err);
        if (r < 0)
                return r;
        if (share.kind != SIZE_PERCENT || share.percent_milli % 100 != 0)
                return error_set(err, EINVAL,
                                 "%s: %s is not allowed: write a percentage such as 10%% or 2.5%%, with one digit "
                                 "behind the point at most",
                                 key->name, text_escape(text, strlen(text), safe, sizeof(safe)));
        *ret = share.percent_milli / 100;
        return 0;
}

static int parse_value(const struct key *key, const char *text, uint64_t *ret, struct error *err)
{
        char min[32], max[32];
        struct size amount;
        uint64_t value;
        int r;

        if (key->kind == KIND_SPAN || key->kind == KIND_LADDER) {
                r = duration_parse(key->name, text, &value, err);
        } else if (key->kind == KIND_AMOUNT && strcmp(text, "0") != 0) {
                r = size_parse(key->name, text, &amount, err);
                if (r == 0 && amount.kind != SIZE_BYTES)
                        r = error_set(err, EINVAL, "%s: %s is not allowed: write an amount such as 1GiB, no percentage",
                                      key->name, text);
                value = amount.bytes;
        } else if (key->kind == KIND_SHARE32) {
                r = parse_share(key, text, &value, err);
        } else if (key->kind == KIND_WORD8) {
                r = parse_word(key, text, &value, err);
        } else {
                r = parse_u64(key->name, text, 0, UINT64_MAX, &value, err);
        }
        if (r < 0)
                return r;
        if (value < key->min || value > key->max)
                return error_set(err, ERANGE, "%s: %s is not allowed; allowed: %s to %s", key->name, text,
                                 value_text(key, key->min, min, sizeof(min)),
                                 value_text(key, key->max, max, sizeof(max)));
        *ret = value;
        return 0;
}

struct source {
        FILE *f;
        int line, too_long; /* the first such line */
};

struct load {
        struct conf *conf;
        struct error first; /* what went wrong first; inih tells the line */
        bool seen[KEYS_N];
};

static int on_line(struct load *load, const char *section, const char *name, const char *value, struct error *err)
{
        char safe[96];

        if (section[0])
                return conf_sections_line(&load->conf->sections, &load->conf->core, section, name, value ? value : "",
                                          err);
        for (size_t i = 0; i < KEYS_N; i++) {
                uint64_t parsed = 0;
                if (strcmp(keys[i].name, name) != 0)
                        continue;
                if (load->seen[i])
                        return error_set(err, EINVAL, "%s stands here a second time", name);
                load->seen[i] = true;
                if (keys[i].kind == KIND_TEXT)
                        return set_text(load->conf, &keys[i], value ? value : "", err);
                int r = parse_value(&keys[i], value ? value : "", &parsed, err);
                if (r == 0)
                        set(load->conf, &keys[i], parsed);
                return r;
        }
        return error_set(err, EINVAL, "%s is no key of lessord.conf; lessord --help lists them",
                         text_escape(name, strlen(name), safe, sizeof(safe)));
}

static int on_ini(void *user, const char *section, const char *name, const char *value)
{
        struct load *load = user;
        struct error err = { 0 };

        if (on_line(load, section, name, value, &err) == 0)
                return 1;
        if (load->first.code == 0)
                load->first = err;
        return 0;
}

/* inih takes what does not fit into its buffer for a line of its own: the end of a long comment would be a key. */
static char *read_line(char *buf, int size, void *stream)
{
        struct source *source = stream;
        int c;

        if (!fgets(buf, size, source->f))
                return NULL;
        source->line++;
        if (strchr(buf, '\n'))
                return buf;
        if ((c = getc(source->f)) == EOF || c == '\n')
                return buf;
        char first = buf[strspn(buf, " \t")];
        if (first != '#' && first != ';' && source->too_long == 0)
                source->too_long = source->line;
        while ((c = getc(source->f)) != EOF && c != '\n')
                ;
        return buf;
}

/* A folder reads as an empty file, which would mean the defaults, and a pipe would keep us waiting: neither is one. */
static int open_regular(const char *path, FILE **ret, struct error *err)
{
        auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd < 0)
                return error_errno(err, errno, "reading the configuration %s", path);
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return error_set(err, EINVAL, "the configuration %s is no regular file; move it away, or name another",
                                 path);
        *ret = fdopen(fd, "r");
        if (!*ret)
                return error_errno(err, errno, "reading the configuration %s", path);
        (void) take_fd(fd);
        return 0;
}

int conf_load(const char *path, bool required, struct conf *conf, struct error *err)
{
        struct conf loaded = *conf;
        struct load load = { .conf = &loaded };
        struct source source = { 0 };
        int r = open_regular(path, &source.f, err);
        if (r < 0)
                return r == -ENOENT && !required ? 0 : r;

        int line = ini_parse_stream(read_line, &source, on_ini, &load);
        bool failed = ferror(source.f) != 0;
        (void) fclose(source.f);
        r = 0;
        if (line < 0 || failed)
                r = error_set(err, EIO, "reading the configuration %s failed", path);
        else if (source.too_long > 0 && (line == 0 || source.too_long <= line))
                r = error_set(err, EINVAL, "%s:%d: the line is too long; write long comments on lines of their own",
                              path, source.too_long);
        else if (line > 0)
                r = error_set(err, EINVAL, "%s:%d: %s", path, line,
                              load.first.code ? load.first.msg : "a line is `key = value`");
        else if (conf_sections_end(&loaded.sections, err) < 0)
                r = error_wrap(err, -EINVAL, "%s", path);
        if (r < 0) {
                conf_fini(&loaded);
                return r;
        }
        *conf = loaded;
        return 0;
}

static void show_value(const struct conf *conf, const struct key *key, char *buf, size_t size)
{
        if (key->kind == KIND_TEXT)
                (void) snprintf(buf, size, "%s", (const char *) conf + key->at);
        else
                (void) value_text(key, get(conf, key), buf, size);
}

bool conf_show(const struct conf *conf, size_t i, struct conf_shown *ret)
{
        struct conf defaults;

        if (i >= KEYS_N)
                return false;
        conf_defaults(&defaults);
        ret->name = keys[i].name;
        ret->help = keys[i].help;
        show_value(conf, &keys[i], ret->value, sizeof(ret->value));
        show_value(&defaults, &keys[i], ret->otherwise, sizeof(ret->otherwise));
        return true;
}

/* What is set up once: the doors, and what the eyes were started with. */
static bool is_set_up_once(const struct key *key)
{
        return (key->kind == KIND_TEXT && strcmp(key->name, "engine_socket") != 0 &&
                strcmp(key->name, "warn_hook") != 0) ||
               strcmp(key->name, "units") == 0 || strcmp(key->name, "sleep_waits") == 0 ||
               strcmp(key->name, "eyes_deadline") == 0 || strcmp(key->name, "keep_events") == 0;
}

const char *conf_needs_restart(const struct conf *a, const struct conf *b)
{
        char was[CONF_PATH_MAX], is[CONF_PATH_MAX];

        for (size_t i = 0; i < KEYS_N; i++) {
                if (!is_set_up_once(&keys[i]))
                        continue;
                show_value(a, &keys[i], was, sizeof(was));
                show_value(b, &keys[i], is, sizeof(is));
                if (strcmp(was, is) != 0)
                        return keys[i].name;
        }
        return NULL;
}

void conf_print(FILE *out, const struct conf *conf)
{
        struct conf_shown key;

        for (size_t i = 0; conf_show(conf, i, &key); i++)
                (void) fprintf(out, "  %-21s %-12s %s\n", key.name, key.value, key.help);
}
