/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/ask.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/duration.h"
#include "base/escape.h"
#include "base/number.h"
#include "model/lease.h"
#include "model/way_out.h"

enum { SHOWN_MAX = 64, PID_MAX = 4194304 };
#define TTL_MIN_MS UINT64_C(1000)
#define TTL_MAX_MS (UINT64_C(24) * 3600 * 1000)

const struct option ask_options[] = {
        { "vram", "SIZE", "how much: 1500M, 12G, 90%, all", 0, "all" },
        { "exclusive", NULL, "a whole device with nothing else granted on it: for measurements" },
        { "gpus", "N", "how many devices, with the memory on each (1 to 8)", 0, "1" },
        { "priority", "N|NAME", "1 urgent, 2 interactive, 3 normal, 4 batch, 5 filler (default 3)", 0,
          "urgent|interactive|normal|batch|filler" },
        { "for", "TIME", "how long it will be needed: 90s, 2h; lets others plan", 0, "10m|30m|1h|2h|8h" },
        { "device", "UUID", "only on this device; a unique beginning will do", 0, "@devices" },
        { "name", "TEXT", "shown in `lessor status`" },
        { "consumer", "NAME", "the name its costs are remembered by (default: the script, else the program)" },
        { "yield-by", "WAYS", "how its memory may be taken back for others: cooperate,checkpoint,release,restart,kill",
          0, "cooperate|checkpoint|release|restart|kill" },
        { "filler", NULL, "priority 5, gives way to everybody: by checkpoint where that is proven, else by restart" },
        { "no-stop", NULL, "checkpointed, it is not stopped as well: it has a watchdog, or clients" },
        { "managed", NULL, "it uses managed memory, which hides from the driver's list" },
        { "kill-at-end", NULL, "when its time (--for) is over it is ended: SIGTERM, later SIGKILL" },
        { "kill-left", NULL, "processes its command leaves behind are ended, too" },
        { 0 },
};

static int parse_if_down(const char *what, const char *value, uint8_t *ret, struct error *err)
{
        static const char *const names[] = { [IF_DOWN_WAIT] = "wait", [IF_DOWN_RUN] = "run", [IF_DOWN_FAIL] = "fail" };
        char shown[SHOWN_MAX];
        for (uint8_t i = 0; i < 3; i++)
                if (strcmp(value, names[i]) == 0) {
                        *ret = i;
                        return 0;
                }
        return error_set(err, EINVAL,
                         "%s: \"%s\" is none of wait (for lessord, 60 s), run (without a lease) and fail (at once)",
                         what, text_escape(value, strlen(value), shown, sizeof(shown)));
}

int ask_init(struct ask *ask, struct error *err)
{
        *ask = (struct ask){ .wait_ms = UINT64_MAX };
        const char *told = getenv("LESSOR_IF_DOWN");
        if (!told || told[0] == '\0')
                return 0;
        return parse_if_down("LESSOR_IF_DOWN", told, &ask->if_down, err);
}

static int parse_priority(const char *value, uint8_t *ret, struct error *err)
{
        char shown[SHOWN_MAX];
        if (priority_parse(value, ret))
                return 0;
        return error_set(
                err, EINVAL,
                "--priority: \"%s\" is not a priority; allowed are 1 urgent, 2 interactive, 3 normal, 4 batch, "
                "5 filler, as a number or a name",
                text_escape(value, strlen(value), shown, sizeof(shown)));
}

/* A name the API takes as well: 1 to 63 bytes, nothing a terminal would obey. */
static int check_word(const char *what, const char *value, size_t max, struct error *err)
{
        size_t n = strlen(value);
        if (n == 0)
                return error_set(err, EINVAL, "%s is empty; leave it away or give 1 to %zu bytes", what, max);
        if (n > max)
                return error_set(err, EINVAL, "%s has %zu bytes; allowed are 1 to %zu", what, n, max);
        if (!text_is_plain(value, n))
                return error_set(err, EINVAL, "%s has control characters or is not UTF-8; use plain text", what);
        return 0;
}

static int parse_visible(const char *value, uint8_t *ret, struct error *err)
{
        static const char *const names[] = { "auto", "uuid", "index", "none" };
        char shown[SHOWN_MAX];
        for (uint8_t i = 0; i < 4; i++)
                if (strcmp(value, names[i]) == 0) {
                        *ret = i;
                        return 0;
                }
        return error_set(err, EINVAL, "--visible: \"%s\" is none of auto, uuid, index and none",
                         text_escape(value, strlen(value), shown, sizeof(shown)));
}

static int parse_span(const char *what, const char *value, uint64_t min_ms, uint64_t max_ms, uint64_t *ret,
                      struct error *err)
{
        uint64_t ms;
        char low[DURATION_TEXT_MAX], high[DURATION_TEXT_MAX];
        int r = duration_parse(what, value, &ms, err);
        if (r < 0)
                return r;
        if (ms < min_ms || ms > max_ms)
                return error_set(err, EINVAL, "%s: \"%s\" is too %s; allowed are %s to %s", what, value,
                                 ms < min_ms ? "short" : "long", duration_text(min_ms, low),
                                 duration_text(max_ms, high));
        *ret = ms;
        return 0;
}

static int parse_yield_by(const char *value, const char **ret, struct error *err)
{
        uint8_t mask;
        uint32_t bad_at = 0;
        char shown[SHOWN_MAX];
        if (ways_out_parse(value, &mask, &bad_at)) {
                *ret = value;
                return 0;
        }
        const char *bad = value + (bad_at <= strlen(value) ? bad_at : 0);
        return error_set(
                err, EINVAL,
                "--yield-by: \"%s\" is no way out; allowed are cooperate, checkpoint, release, restart and kill, "
                "with commas between them",
                text_escape(bad, strcspn(bad, ","), shown, sizeof(shown)));
}

/* "USR1", "SIGUSR1", "10": one that a process may want to hear. */
static int signal_of(const char *text, size_t n)
{
        char name[16];
        uint64_t number;

        if (n == 0 || n >= sizeof(name))
                return 0;
        memcpy(name, text, n);
        name[n] = '\0';
        const char *bare = strncasecmp(name, "SIG", 3) == 0 ? name + 3 : name;
        if (parse_u64("signal", name, 1, (uint64_t) SIGRTMAX, &number, NULL) == 0)
                return (int) number;
        for (int i = 1; i < SIGRTMIN; i++)
                if (sigabbrev_np(i) && strcasecmp(bare, sigabbrev_np(i)) == 0)
                        return i;
        return 0;
}

/* "USR1" or "USR1:USR2": to give way, and when it may have its memory again. */
static int parse_yield_signal(const char *value, struct ask *ask, struct error *err)
{
        char shown[SHOWN_MAX];
        size_t n = strcspn(value, ":");

        ask->yield_signal = signal_of(value, n);
        ask->back_signal = value[n] == ':' ? signal_of(value + n + 1, strlen(value + n + 1)) : SIGCONT;
        if (ask->yield_signal > 0 && ask->back_signal > 0 && ask->yield_signal != SIGKILL &&
            ask->yield_signal != SIGSTOP)
                return 0;
        return error_set(err, EINVAL,
                         "--yield-signal: \"%s\" is no signal that a program can hear; USR1, or USR1:USR2 with the one "
                         "that says it may have its memory again (default CONT)",
                         text_escape(value, strlen(value), shown, sizeof(shown)));
}

/* What was booked is as it was booked. */
static int check_booking(const struct ask *ask, struct error *err)
{
        const char *more = ask->has_size              ? "vram"
                           : ask->exclusive           ? "exclusive"
                           : ask->priority != 0       ? "priority"
                           : ask->for_ms != 0         ? "for"
                           : ask->device[0] != '\0'   ? "device"
                           : ask->name                ? "name"
                           : ask->consumer[0] != '\0' ? "consumer"
                           : ask->filler              ? "filler"
                           : ask->no_stop             ? "no-stop"
                           : ask->managed             ? "managed"
                           : ask->kill_at_end         ? "kill-at-end"
                           : ask->kill_left           ? "kill-left"
                           : ask->yield_by            ? "yield-by"
                                                      : NULL;

        if (!more)
                return 0;
        return error_set(err, EINVAL, "--booking and --%s: it has what was booked; leave one of the two away", more);
}

static int parse_booking(const char *value, struct ask *ask, struct error *err)
{
        char shown[SHOWN_MAX];
        uint64_t id;

        if (!lease_id_parse(value, &id))
                return error_set(err, EINVAL, "--booking: \"%s\" is none: an id is L and a number (`lessor book list`)",
                                 text_escape(value, strlen(value), shown, sizeof(shown)));
        (void) lease_id_text(id, ask->booking);
        return 0;
}

int ask_check(const struct ask *ask, struct error *err)
{
        uint8_t ways = 0;
        uint32_t bad_at;

        if (ask->booking[0] != '\0' && check_booking(ask, err) < 0)
                return -EINVAL;

        if (ask->yield_by)
                (void) ways_out_parse(ask->yield_by, &ways, &bad_at);
        if (ask->filler && ask->priority != 0 && ask->priority != PRIORITY_FILLER)
                return error_set(err, EINVAL, "--filler and --priority: a filler has priority 5; leave one away");
        if (ask->yield_signal != 0 && ask->has_hook)
                return error_set(err, EINVAL, "--yield-signal and --yield-hook: it is told by one of the two");
        if ((ask->yield_signal != 0 || ask->has_hook) && ask->booking[0] == '\0' &&
            !(ways & WAY_OUT_BIT(WAY_OUT_COOPERATE)))
                return error_set(err, EINVAL, "--%s: that is how it cooperates; say --yield-by cooperate as well",
                                 ask->has_hook ? "yield-hook" : "yield-signal");
        return 0;
}

static int parse_gpus(const char *value, uint8_t *ret, struct error *err)
{
        uint64_t n;
        if (parse_u64("--gpus", value, 1, GANG_MAX, &n, err) < 0)
                return -EINVAL;
        *ret = (uint8_t) n;
        return 0;
}

int ask_option(struct ask *ask, const char *name, const char *value, struct error *err)
{
        int r;
        if (strcmp(name, "vram") == 0) {
                ask->has_size = true;
                return size_parse("--vram", value, &ask->size, err);
        }
        if (strcmp(name, "priority") == 0)
                return parse_priority(value, &ask->priority, err);
        if (strcmp(name, "for") == 0)
                return parse_span("--for", value, 1, DURATION_MAX_MS, &ask->for_ms, err);
        if (strcmp(name, "wait") == 0)
                return parse_span("--wait", value, 0, DURATION_MAX_MS, &ask->wait_ms, err);
        if (strcmp(name, "no-wait") == 0) {
                ask->wait_ms = 0;
                return 0;
        }
        if (strcmp(name, "name") == 0) {
                ask->name = value;
                return check_word("--name", value, NAME_MAX_BYTES - 1, err);
        }
        if (strcmp(name, "device") == 0) {
                r = check_word("--device", value, UUID_TEXT_MAX - 1, err);
                if (r == 0)
                        (void) snprintf(ask->device, sizeof(ask->device), "%s", value);
                return r;
        }
        if (strcmp(name, "consumer") == 0) {
                r = check_word("--consumer", value, NAME_MAX_BYTES - 1, err);
                if (r == 0)
                        (void) snprintf(ask->consumer, sizeof(ask->consumer), "%s", value);
                return r;
        }
        if (strcmp(name, "booking") == 0)
                return parse_booking(value, ask, err);
        if (strcmp(name, "gpus") == 0)
                return parse_gpus(value, &ask->gpus, err);
        if (strcmp(name, "visible") == 0)
                return parse_visible(value, &ask->visible, err);
        if (strcmp(name, "yield-by") == 0)
                return parse_yield_by(value, &ask->yield_by, err);
        if (strcmp(name, "yield-signal") == 0)
                return parse_yield_signal(value, ask, err);
        if (strcmp(name, "yield-hook") == 0) {
                ask->has_hook = true;
                return hook_parse(value, &ask->hook, err);
        }
        if (strcmp(name, "if-down") == 0)
                return parse_if_down("--if-down", value, &ask->if_down, err);
        if (strcmp(name, "ttl") == 0)
                return parse_span("--ttl", value, TTL_MIN_MS, TTL_MAX_MS, &ask->ttl_ms, err);
        if (strcmp(name, "pid") == 0)
                return parse_u64("--pid", value, 1, PID_MAX, &ask->pid, err) < 0 ? -EINVAL : 0;
        if (strcmp(name, "managed") == 0)
                ask->managed = true;
        else if (strcmp(name, "kill-at-end") == 0)
                ask->kill_at_end = true;
        else if (strcmp(name, "kill-left") == 0)
                ask->kill_left = true;
        else if (strcmp(name, "exclusive") == 0)
                ask->exclusive = true;
        else if (strcmp(name, "filler") == 0)
                ask->filler = true;
        else if (strcmp(name, "no-stop") == 0)
                ask->no_stop = true;
        else if (strcmp(name, "quiet") == 0)
                ask->quiet = true;
        else
                return -ENOENT;
        return 0;
}

static void percent_text(uint64_t percent_milli, char *buf, size_t buf_size)
{
        if (percent_milli % 1000 == 0)
                (void) snprintf(buf, buf_size, "%" PRIu64, percent_milli / 1000);
        else
                (void) snprintf(buf, buf_size, "%" PRIu64 ".%03" PRIu64, percent_milli / 1000, percent_milli % 1000);
}

static int set_size(const struct ask *ask, struct lessor_request *request)
{
        char number[32], text[40];
        if (!ask->has_size && (ask->exclusive || ask->size_from_use))
                return 0;
        if (!ask->has_size && ask->consumer[0] != '\0')
                return lessor_request_set_size(request, "learned");
        if (!ask->has_size || (ask->size.kind == SIZE_PERCENT && ask->size.percent_milli == 100000))
                return lessor_request_set_size(request, "all");
        if (ask->size.kind == SIZE_BYTES)
                return lessor_request_set_bytes(request, ask->size.bytes);
        percent_text(ask->size.percent_milli, number, sizeof(number));
        (void) snprintf(text, sizeof(text), "%s%%", number);
        return lessor_request_set_size(request, text);
}

static int set_binding(const struct ask *ask, struct lessor_request *request)
{
        return ask->ttl_ms > 0 ? lessor_request_bind_to_heartbeat(request, ask->ttl_ms)
                               : lessor_request_bind_to_process(request, (int) ask->pid);
}

static int set_the_rest(const struct ask *ask, struct lessor_request *request)
{
        int r = ask->consumer[0] != '\0' ? lessor_request_set_consumer(request, ask->consumer) : 0;
        if (r == 0 && ask->priority > 0)
                r = lessor_request_set_priority(request, ask->priority);
        if (r == 0 && ask->for_ms > 0)
                r = lessor_request_set_for_ms(request, ask->for_ms);
        if (r == 0 && ask->device[0] != '\0')
                r = lessor_request_set_device(request, ask->device);
        if (r == 0 && ask->gpus > 1)
                r = lessor_request_set_gpus(request, ask->gpus);
        if (r == 0 && ask->name)
                r = lessor_request_set_name(request, ask->name);
        if (r == 0 && ask->managed)
                r = lessor_request_set_managed(request, true);
        if (r == 0 && ask->kill_at_end)
                r = lessor_request_set_kill_at_end(request, true);
        if (r == 0 && ask->kill_left)
                r = lessor_request_set_kill_left(request, true);
        if (r == 0 && ask->exclusive)
                r = lessor_request_set_exclusive(request, true);
        if (r == 0 && ask->filler)
                r = lessor_request_set_filler(request, true);
        if (r == 0 && ask->no_stop)
                r = lessor_request_set_no_stop(request, true);
        if (r == 0 && ask->yield_by)
                r = lessor_request_set_yield_by(request, ask->yield_by);
        return r;
}

int ask_request(const struct ask *ask, uint64_t wait_ms, struct lessor_request **ret)
{
        struct lessor_request *request = NULL;
        int r = lessor_request_new(&request);
        if (r < 0)
                return r;
        r = set_size(ask, request);
        if (r == 0)
                r = set_binding(ask, request);
        if (r == 0)
                r = set_the_rest(ask, request);
        if (r == 0)
                r = lessor_request_set_wait_ms(request, wait_ms);
        if (r == 0)
                r = lessor_request_set_collect(request, !ask->collects_itself);
        if (r < 0) {
                lessor_request_free(request);
                return r;
        }
        *ret = request;
        return 0;
}

const char *ask_size_text(const struct ask *ask, char buf[SIZE_TEXT_MAX])
{
        char number[32];
        if (ask->has_size && ask->size.kind == SIZE_BYTES)
                return size_text(ask->size.bytes, buf);
        if (!ask->has_size || ask->size.percent_milli == 100000) {
                (void) snprintf(buf, SIZE_TEXT_MAX, "all a device can give");
                return buf;
        }
        percent_text(ask->size.percent_milli, number, sizeof(number));
        (void) snprintf(buf, SIZE_TEXT_MAX, "%s %% of a device", number);
        return buf;
}
