/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "model/enforce.h"
#include "model/lease.h"
#include "model/way_out.h"
#include "trial/script.h"

#define MINUTES(n) ((uint64_t) (n) *60000)
#define HOURS(n) MINUTES((uint64_t) (n) *60)
#define MIB(n) ((uint64_t) (n) << 20)

enum { SCRIPT_VERSION = 1, LINE_SIZE = 1024, ASKS_LEAST = 210, ASKS_MORE = 90, QUIET_HOURS = 1 };

static const struct {
        const char *name;
        const char *arg[EVENT_ARGS];
} kinds[EVENT_KIND_N] = {
        [EVENT_ASK] = { "ask",
                        { "n", "uid", "priority", "bytes", "percent", "slot", "wait", "card", "ways", "flags", "ttl",
                          "consumer", "run", "use", "processes", "idle", "start", "every" } },
        [EVENT_ADOPT] = { "adopt", { "n", "kill-left", "slot" } },
        [EVENT_RELEASE] = { "release", { "n" } },
        [EVENT_CHANGE] = { "change", { "n", "what", "priority", "slot", "pin", "admin" } },
        [EVENT_INTRUDE] = { "intrude", { "n", "uid", "call" } },
        [EVENT_PARK_CALL] = { "call", { "n", "what", "for", "admin" } },
        [EVENT_STRANGER] = { "stranger", { "card", "bytes", "life", "graphics", "grows" } },
        [EVENT_ENFORCE] = { "enforce", { "what", "mode", "for", "admin", "pick" } },
        [EVENT_HIDDEN] = { "hidden", { "card", "bytes" } },
        [EVENT_LOSE_CARD] = { "lose-card", { "card", "for" } },
        [EVENT_SILENCE] = { "silence", { "for" } },
        [EVENT_HANDS_AWAY] = { "hands-away", { "for" } },
        [EVENT_HANDS_KILLED] = { "hands-killed", { "for" } },
        [EVENT_CRASH] = { "crash", { "where", "for" } },
        [EVENT_POWER] = { "power", { "where", "for" } },
        [EVENT_SUSPEND] = { "suspend", { "for" } },
        [EVENT_CLOCK_AHEAD] = { "clock-ahead", { "by" } },
        [EVENT_CLOCK_SET] = { "clock-set", { "ahead", "behind" } },
        [EVENT_HOST] = { "host", { "available", "pressure", "for" } },
        [EVENT_CONFIG] = { "config", { "ledger", "cannot", "hold" } },
        [EVENT_DIE] = { "die", { "n" } },
};

const char *event_kind_name(enum event_kind kind)
{
        return kind < EVENT_KIND_N ? kinds[kind].name : "?";
}

/* ---- made from a seed ---- */

static struct event *add(struct script *s, uint64_t at_ms, enum event_kind kind)
{
        if (s->n_events == EVENTS_MAX)
                return &s->events[EVENTS_MAX - 1];
        struct event *e = &s->events[s->n_events++];
        *e = (struct event){ .at_ms = at_ms, .kind = (uint8_t) kind };
        return e;
}

static uint64_t some_ways(struct random *r)
{
        static const uint8_t likely[] = {
                WAY_OUT_BIT(WAY_OUT_CHECKPOINT),
                WAY_OUT_BIT(WAY_OUT_CHECKPOINT),
                WAY_OUT_BIT(WAY_OUT_CHECKPOINT),
                WAY_OUT_BIT(WAY_OUT_COOPERATE),
                WAY_OUT_BIT(WAY_OUT_COOPERATE) | WAY_OUT_BIT(WAY_OUT_CHECKPOINT),
                WAY_OUT_BIT(WAY_OUT_RESTART),
                WAY_OUT_BIT(WAY_OUT_CHECKPOINT) | WAY_OUT_BIT(WAY_OUT_RESTART),
                WAY_OUT_BIT(WAY_OUT_CHECKPOINT) | WAY_OUT_BIT(WAY_OUT_KILL),
                WAY_OUT_BIT(WAY_OUT_KILL),
        };
        return likely[random_below(r, sizeof(likely))];
}

static uint64_t some_flags(struct random *r, uint64_t priority)
{
        uint64_t flags = 0;

        flags |= random_one_in(r, 5) || priority == PRIORITY_URGENT ? ASK_ADMIN : 0U;
        flags |= random_one_in(r, 15) ? ASK_NO_WAIT : 0U;
        flags |= random_one_in(r, 3) ? 0U : ASK_COLLECTED;
        flags |= random_one_in(r, 25) ? ASK_MANAGED : 0U;
        flags |= random_one_in(r, 5) ? ASK_KILL_AT_END : 0U;
        flags |= random_one_in(r, 4) ? ASK_KILL_LEFT : 0U;
        flags |= random_one_in(r, 30) ? ASK_EXCLUSIVE : 0U;
        flags |= random_one_in(r, 8) ? ASK_NO_STOP : 0U;
        flags |= random_one_in(r, 15) ? ASK_LEARNED : 0U;
        flags |= random_one_in(r, 6) ? ASK_PROVEN : 0U;
        flags |= priority == PRIORITY_FILLER && random_one_in(r, 2) ? ASK_FILLER : 0U;
        return flags;
}

static uint64_t some_priority(struct random *r)
{
        uint64_t dice = random_below(r, 20);

        return dice < 1    ? PRIORITY_URGENT
               : dice < 7  ? PRIORITY_INTERACTIVE
               : dice < 12 ? PRIORITY_NORMAL
               : dice < 15 ? PRIORITY_BATCH
                           : PRIORITY_FILLER;
}

/* For later: it is not collected at once, and waits for nobody. */
static void make_booking(struct random *r, uint64_t *a)
{
        a[ASK_START_MS] = MINUTES(1) + random_below(r, random_one_in(r, 2) ? MINUTES(20) : HOURS(4));
        a[ASK_EVERY_MS] = random_one_in(r, 3) ? HOURS(2) + random_below(r, HOURS(4)) : 0;
        a[ASK_FLAGS] &= ~(uint64_t) (ASK_NO_WAIT | ASK_COLLECTED | ASK_EXCLUSIVE | ASK_FILLER | ASK_LEARNED);
        a[ASK_SLOT_MS] = u64_max(a[ASK_RUN_MS] / 2 + random_below(r, 2 * a[ASK_RUN_MS]), MINUTES(1));
        a[ASK_TTL_MS] = a[ASK_WAIT_MS] = 0;
        if (a[ASK_BYTES] == 0 && a[ASK_PERCENT] == 0)
                a[ASK_PERCENT] = random_between(r, 1000, 100000);
}

/* It ends by itself when its time is over, whatever becomes of who asked. */
static void make_clear(uint64_t *a)
{
        a[ASK_PRIORITY] = PRIORITY_INTERACTIVE;
        a[ASK_FLAGS] = (a[ASK_FLAGS] & (ASK_ADMIN | ASK_NO_WAIT)) | ASK_COLLECTED | ASK_NO_COMMAND;
        a[ASK_SLOT_MS] = a[ASK_TTL_MS] = a[ASK_RUN_MS] + a[ASK_RUN_MS] / 4 + 1000;
        a[ASK_WAYS] = a[ASK_IDLE_MS] = a[ASK_CONSUMER] = 0;
        if (a[ASK_BYTES] == 0 && a[ASK_PERCENT] == 0)
                a[ASK_PERCENT] = 100000;
}

static void make_ask(struct script *s, struct random *r, uint64_t at_ms, uint64_t n)
{
        struct event *e = add(s, at_ms, EVENT_ASK);
        uint64_t *a = e->arg, largest = 0;

        for (uint32_t c = 0; c < s->n_cards; c++)
                largest = u64_max(largest, s->cards[c].total_bytes);
        a[ASK_N] = n;
        a[ASK_UID] = 1000 + random_below(r, 5);
        a[ASK_PRIORITY] = some_priority(r);
        a[ASK_FLAGS] = some_flags(r, a[ASK_PRIORITY]);
        uint64_t most = random_one_in(r, 3) ? largest + largest / 50 : largest / 3;
        a[ASK_BYTES] = MIB(256) + random_below(r, most >> 20) * MIB(1) - random_below(r, 2);
        if (random_one_in(r, 20)) {
                a[ASK_BYTES] = 0;
                a[ASK_PERCENT] = random_between(r, 1, 100000);
        }
        if ((a[ASK_FLAGS] & ASK_EXCLUSIVE) && random_one_in(r, 2))
                a[ASK_BYTES] = a[ASK_PERCENT] = 0;
        bool limited = a[ASK_PRIORITY] == PRIORITY_URGENT || random_one_in(r, 2);
        a[ASK_RUN_MS] =
                random_one_in(r, 4) ? MINUTES(1) + random_below(r, MINUTES(90)) : 2000 + random_below(r, MINUTES(20));
        if (limited)
                a[ASK_SLOT_MS] = a[ASK_RUN_MS] / 2 + random_below(r, 2 * a[ASK_RUN_MS]);
        a[ASK_WAIT_MS] = random_one_in(r, 4) ? MINUTES(1) + random_below(r, MINUTES(120)) : 0;
        a[ASK_CARD] = random_one_in(r, 5) ? 1 + random_below(r, s->n_cards) : 0;
        a[ASK_WAYS] = random_one_in(r, 3) && a[ASK_PRIORITY] != PRIORITY_URGENT ? 0 : some_ways(r);
        if (a[ASK_FLAGS] & ASK_FILLER)
                a[ASK_WAYS] = 0;
        a[ASK_TTL_MS] = random_one_in(r, 6) ? MINUTES(5) : 0;
        a[ASK_CONSUMER] = random_below(r, 5);
        a[ASK_USE_MILLI] = random_one_in(r, 4) ? 1000 : random_below(r, 1001);
        a[ASK_PROCESSES] = random_one_in(r, 4) ? 2 + random_below(r, 3) : 1;
        a[ASK_IDLE_MS] = random_one_in(r, 4) ? 1000 + random_below(r, MINUTES(10)) : 0;
        if (random_one_in(r, 14))
                make_booking(r, a);
        else if (random_one_in(r, 30))
                make_clear(a);
}

/* Some want several devices at once. Of its own random, so that all else is as it is without. */
static void make_gang(const struct script *s, uint64_t n, uint64_t *a)
{
        struct random r = random_of(s->seed, 19, n);

        if (!random_one_in(&r, 8) || a[ASK_START_MS] != 0 || a[ASK_CARD] != 0)
                return;
        a[ASK_FLAGS] |= s->n_cards > 2 && random_one_in(&r, 3) ? ASK_GANG_3 : ASK_GANG_2;
        a[ASK_PROCESSES] = 1 + random_below(&r, 4);
}

static void make_crash(struct script *s, struct random *r, uint64_t at_ms)
{
        struct event *e = add(s, at_ms, random_one_in(r, 6) ? EVENT_POWER : EVENT_CRASH);

        e->arg[0] = random_below(r, 3);
        e->arg[1] = random_one_in(r, 5) ? random_below(r, MINUTES(30)) : 200 + random_below(r, 8000);
}

/* What else happens around client @n, a while after it asked. */
static void make_story(struct script *s, struct random *r, uint64_t at_ms, uint64_t n)
{
        uint64_t later_ms = at_ms + 1000 + random_below(r, MINUTES(30));
        struct event *e;

        switch (random_below(r, 14)) {
        case 0:
                add(s, later_ms, EVENT_RELEASE)->arg[0] = n;
                break;
        case 1:
        case 2:
                e = add(s, later_ms, EVENT_CHANGE);
                e->arg[0] = n;
                e->arg[1] = UINT64_C(1) << random_below(r, 5) | (random_one_in(r, 4) ? 1U : 0U);
                e->arg[2] = 1 + random_below(r, 5);
                e->arg[3] = random_one_in(r, 4) ? 0 : random_below(r, MINUTES(30));
                e->arg[4] = random_one_in(r, 6) ? 0 : random_below(r, MINUTES(10));
                e->arg[5] = random_one_in(r, 4);
                break;
        case 3:
                e = add(s, later_ms, EVENT_INTRUDE);
                e->arg[0] = n;
                e->arg[1] = 2000 + random_below(r, 3);
                e->arg[2] = random_below(r, 4);
                break;
        case 4:
        case 5:
        case 6:
        case 7:
                e = add(s, later_ms, EVENT_PARK_CALL);
                e->arg[0] = n;
                e->arg[1] = random_below(r, 6);
                e->arg[2] = random_one_in(r, 3) ? 0 : random_below(r, MINUTES(20));
                e->arg[3] = random_one_in(r, 4);
                break;
        case 8:
                add(s, later_ms, EVENT_DIE)->arg[0] = n;
                break;
        default:
                break;
        }
}

static void make_weather(struct script *s, struct random *r, uint64_t at_ms)
{
        struct event *e;

        switch (random_below(r, 17)) {
        case 0:
        case 1:
        case 2:
                e = add(s, at_ms, EVENT_STRANGER);
                e->arg[0] = random_below(r, s->n_cards);
                e->arg[1] = MIB(100) + random_below(r, s->cards[e->arg[0]].total_bytes / 4);
                e->arg[2] = 1000 + random_below(r, MINUTES(40));
                e->arg[3] = random_one_in(r, 4);
                e->arg[4] = random_one_in(r, 2);
                break;
        case 3:
                e = add(s, at_ms, EVENT_HIDDEN);
                e->arg[0] = random_below(r, s->n_cards);
                e->arg[1] = random_one_in(r, 2) ? 0 : random_below(r, s->cards[e->arg[0]].total_bytes / 5);
                break;
        case 4:
                e = add(s, at_ms, EVENT_LOSE_CARD);
                e->arg[0] = random_below(r, s->n_cards);
                e->arg[1] = 1000 + random_below(r, MINUTES(15));
                break;
        case 5:
                add(s, at_ms, EVENT_SILENCE)->arg[0] = 1000 + random_below(r, MINUTES(3));
                break;
        case 6:
                add(s, at_ms, EVENT_HANDS_AWAY)->arg[0] = 1000 + random_below(r, MINUTES(2));
                break;
        case 7:
                add(s, at_ms, EVENT_HANDS_KILLED)->arg[0] = 100 + random_below(r, 5000);
                break;
        case 8:
        case 9:
        case 10:
        case 11:
                make_crash(s, r, at_ms);
                break;
        case 12:
                add(s, at_ms, EVENT_SUSPEND)->arg[0] = MINUTES(1) + random_below(r, HOURS(1));
                break;
        case 13:
                add(s, at_ms, EVENT_CLOCK_AHEAD)->arg[0] = 1 + random_below(r, HOURS(2));
                break;
        case 14:
                e = add(s, at_ms, EVENT_HOST);
                e->arg[0] = MIB(500) + random_below(r, MIB(20000));
                e->arg[1] = random_one_in(r, 2);
                e->arg[2] = 1000 + random_below(r, MINUTES(20));
                break;
        case 15:
                e = add(s, at_ms, EVENT_CLOCK_SET);
                e->arg[random_below(r, 2)] = 1 + random_below(r, random_one_in(r, 2) ? 5000 : HOURS(1));
                break;
        default:
                e = add(s, at_ms, EVENT_CONFIG);
                e->arg[0] = random_below(r, 40) * MIB(1024);
                e->arg[1] = random_one_in(r, 4);
                e->arg[2] = random_below(r, 4) != 0;
                break;
        }
}

/* What is said about strangers, and some who stay longer. Of its own random, so that all else is as it is without. */
static void make_enforcement(struct script *s, uint64_t length_ms)
{
        struct random r = random_of(s->seed, 18, 0);
        uint64_t n = random_one_in(&r, 4) ? 0 : s->hours;

        for (uint64_t i = 0; i < n; i++) {
                struct event *e = add(s, random_below(&r, i < 2 ? HOURS(1) : length_ms), EVENT_ENFORCE);
                uint64_t dice = random_below(&r, 8);
                e->arg[0] = i < 2 || dice < 4 ? ENFORCE_EVENT_MODE : dice - 3;
                e->arg[1] = random_one_in(&r, 3) ? random_below(&r, ENFORCE_MODE_N) : ENFORCE_ENFORCE;
                e->arg[2] = random_one_in(&r, 4) ? 0 : random_below(&r, HOURS(2));
                e->arg[3] = random_below(&r, 6) != 0;
                e->arg[4] = random_below(&r, 1000);
        }
        for (uint64_t i = 0; i < n; i++) {
                struct event *e = add(s, random_below(&r, length_ms), EVENT_STRANGER);
                e->arg[0] = random_below(&r, s->n_cards);
                e->arg[1] = MIB(10) + random_below(&r, s->cards[e->arg[0]].total_bytes / 8);
                e->arg[2] = MINUTES(5) + random_below(&r, HOURS(1));
                e->arg[4] = random_one_in(&r, 2);
        }
}

static int by_time(const void *a, const void *b)
{
        const struct event *x = a, *y = b;

        return x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms;
}

void script_make(struct script *s, uint64_t seed, uint64_t hours)
{
        struct random r = random_of(seed, 1, 0);

        memset(s, 0, sizeof(*s));
        s->seed = seed;
        s->hours = hours;
        s->hurried = random_one_in(&r, 3);
        s->n_cards = 2 + (uint32_t) random_below(&r, 3);
        for (uint32_t c = 0; c < s->n_cards; c++) {
                s->cards[c].total_bytes = MIB(1024) * (8 + random_below(&r, 17));
                s->cards[c].driver_bytes = random_below(&r, 2) * MIB(300);
        }

        uint64_t length_ms = HOURS(hours > QUIET_HOURS ? hours - QUIET_HOURS : 1);
        uint64_t n_asks = (ASKS_LEAST + random_below(&r, ASKS_MORE)) * u64_max(hours, 24) / 24;
        uint64_t at_ms = 1000;
        if (n_asks > 2000)
                n_asks = 2000;
        for (uint64_t n = 1; n <= n_asks; n++) {
                /* Some come one after the other, some alone. */
                at_ms = random_one_in(&r, 4) ? random_below(&r, length_ms) : at_ms + random_below(&r, 20000);
                if (at_ms >= length_ms)
                        at_ms = random_below(&r, length_ms);
                make_ask(s, &r, at_ms, n);
                make_gang(s, n, s->events[s->n_events - 1].arg);
                make_story(s, &r, at_ms, n);
        }
        for (uint64_t n = 0; n < 4 * hours; n++)
                make_weather(s, &r, random_below(&r, length_ms));
        for (uint64_t n = 1; n <= hours / 4; n++) {
                struct event *e = add(s, random_below(&r, length_ms), EVENT_ADOPT);
                e->arg[0] = n_asks + n;
                e->arg[1] = random_one_in(&r, 3);
                e->arg[2] = random_below(&r, 2) * MINUTES(10);
        }
        make_enforcement(s, length_ms);
        for (uint32_t i = 0; i < s->n_events; i++) /* no two at one time: their order is then nobody's choice */
                s->events[i].at_ms = s->events[i].at_ms / EVENTS_MAX * EVENTS_MAX + i;
        qsort(s->events, s->n_events, sizeof(s->events[0]), by_time);
}

/* ---- as text ---- */

void script_print(const struct script *s, FILE *to)
{
        fprintf(to, "lessor-trial-scenario %d\nseed %" PRIu64 " hours %" PRIu64 " hurried %d\n", SCRIPT_VERSION,
                s->seed, s->hours, s->hurried);
        for (uint32_t c = 0; c < s->n_cards; c++)
                fprintf(to, "card total=%" PRIu64 " driver=%" PRIu64 "\n", s->cards[c].total_bytes,
                        s->cards[c].driver_bytes);
        for (unsigned f = 0; f < FAULT_N; f++)
                if (s->off[f])
                        fprintf(to, "off %s\n", fault_name((enum fault) f));
        for (uint32_t i = 0; i < s->n_events; i++) {
                const struct event *e = &s->events[i];
                fprintf(to, "at %" PRIu64 " %s", e->at_ms, kinds[e->kind].name);
                for (unsigned a = 0; a < EVENT_ARGS && kinds[e->kind].arg[a]; a++)
                        if (e->arg[a] != 0)
                                fprintf(to, " %s=%" PRIu64, kinds[e->kind].arg[a], e->arg[a]);
                fputc('\n', to);
        }
}

static bool is_number(const char *text, uint64_t *ret)
{
        return text && parse_u64("number", text, 0, UINT64_MAX, ret, NULL) == 0;
}

/* "name=12" or "name 12". */
static bool take_number(char **words, const char *name, uint64_t *ret)
{
        char *word = strsep(words, " \n");
        size_t n = strlen(name);

        if (!word || strncmp(word, name, n) != 0)
                return false;
        char *text = word[n] == '=' ? word + n + 1 : word[n] == '\0' ? strsep(words, " \n") : NULL;
        return is_number(text, ret);
}

static bool read_event(struct script *s, char *words)
{
        struct event e = { 0 };
        char *at = strsep(&words, " \n"), *name = strsep(&words, " \n");

        if (!at || !name || !is_number(at, &e.at_ms) || s->n_events == EVENTS_MAX)
                return false;
        for (e.kind = 0; e.kind < EVENT_KIND_N && strcmp(kinds[e.kind].name, name) != 0;)
                e.kind++;
        if (e.kind == EVENT_KIND_N)
                return false;
        for (char *word; (word = strsep(&words, " \n"));) {
                char *value = strchr(word, '=');
                unsigned a = 0;
                if (*word == '\0')
                        continue;
                if (!value)
                        return false;
                *value++ = '\0';
                while (a < EVENT_ARGS && kinds[e.kind].arg[a] && strcmp(kinds[e.kind].arg[a], word) != 0)
                        a++;
                if (a == EVENT_ARGS || !kinds[e.kind].arg[a] || !is_number(value, &e.arg[a]))
                        return false;
        }
        if (s->n_events > 0 && e.at_ms < s->events[s->n_events - 1].at_ms)
                return false;
        s->events[s->n_events++] = e;
        return true;
}

static bool read_line(struct script *s, char *line)
{
        char *words = line, *what = strsep(&words, " \n");
        uint64_t number, hurried;
        enum fault fault;

        if (*what == '\0' || *what == '#')
                return true;
        if (strcmp(what, "lessor-trial-scenario") == 0)
                return words && is_number(strsep(&words, "\n"), &number) && number == SCRIPT_VERSION;
        if (strcmp(what, "seed") == 0) {
                char *seed = strsep(&words, " \n");
                if (!is_number(seed, &s->seed) || !take_number(&words, "hours", &s->hours) ||
                    !take_number(&words, "hurried", &hurried))
                        return false;
                s->hurried = hurried != 0;
                return s->hours >= 1 && s->hours <= 1000;
        }
        if (strcmp(what, "card") == 0) {
                struct card_plan *card = &s->cards[s->n_cards];
                if (s->n_cards == CARDS_MAX || !take_number(&words, "total", &card->total_bytes) ||
                    !take_number(&words, "driver", &card->driver_bytes))
                        return false;
                s->n_cards++;
                return card->total_bytes > card->driver_bytes;
        }
        if (strcmp(what, "off") == 0) {
                char *name = strsep(&words, " \n");
                if (!name || !fault_parse(name, &fault))
                        return false;
                return s->off[fault] = true;
        }
        return strcmp(what, "at") == 0 && words && read_event(s, words);
}

int script_read(struct script *s, FILE *from, struct error *err)
{
        char line[LINE_SIZE], words[LINE_SIZE];

        memset(s, 0, sizeof(*s));
        for (unsigned n = 1; fgets(line, sizeof(line), from); n++) {
                memcpy(words, line, sizeof(words));
                if (!read_line(s, words))
                        return error_set(err, EBADMSG, "line %u: \"%.*s\" is no line of a scenario", n,
                                         (int) strcspn(line, "\n"), line);
        }
        if (s->n_cards == 0 || s->hours == 0)
                return error_set(err, EBADMSG, "a scenario names its seed and hours, and at least one card");
        return 0;
}
