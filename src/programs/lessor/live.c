/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/live.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/duration.h"
#include "base/number.h"
#include "programs/lessor/show.h"
#include "programs/lessor/signals.h"

enum { AWAY_MS = 60 * 1000, ROWS_ELSE = 24 };

/* The other screen, so that what was there before is there afterwards; long lines are cut, not folded. */
static const char screen_on[] = "\033[?1049h\033[?7l\033[?25l\033[H";
static const char screen_off[] = "\033[?7h\033[?25h\033[?1049l";

struct live {
        const struct verb *verb;
        const char *path;
        void (*print)(const json_t *body);
        struct client client;
        struct signals signals;
        uint64_t every_ms;
        uint64_t away_since_ms; /* 0 = it answered last time */
        bool json, on_terminal, on_screen;
        char *picture; /* the last one, as it was printed; free(3) */
        size_t n_blocks;
};

static void screen(struct live *l, bool on)
{
        if (!l->on_terminal || l->on_screen == on)
                return;
        (void) fputs(on ? screen_on : screen_off, stdout);
        (void) fflush(stdout);
        l->on_screen = on;
}

static size_t rows_of_terminal(void)
{
        struct winsize size;
        return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 2 ? size.ws_row : ROWS_ELSE;
}

static const char *time_text(char buf[32])
{
        struct tm tm;
        time_t now = (time_t) (clock_now_wall_ms() / 1000);
        if (!gmtime_r(&now, &tm) || strftime(buf, 32, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
                buf[0] = '\0';
        return buf;
}

/* As @print would print it. Printing goes to stdout everywhere: that is another stream meanwhile. */
static void take_picture(struct live *l, const json_t *body)
{
        char *text = NULL;
        size_t n = 0;
        FILE *real = stdout, *memory = open_memstream(&text, &n);
        if (!memory)
                return;
        stdout = memory;
        l->print(body);
        stdout = real;
        if (fclose(memory) != 0)
                return;
        free(l->picture);
        l->picture = text;
}

/* In place: each line over the old one, what is below it cleared. */
static void draw(const struct live *l)
{
        char now[32], away[DURATION_TEXT_MAX], every[DURATION_TEXT_MAX];
        size_t left = rows_of_terminal() - 1;
        const char *at = l->picture ? l->picture : "";

        (void) printf("\033[H%s%s · every %s · Ctrl-C ends%s", show_colour(SHOW_DIM), time_text(now),
                      duration_text(l->every_ms, every), show_colour(SHOW_PLAIN));
        if (l->away_since_ms != 0)
                (void) printf("  %s! lessord does not answer since %s: this is old%s", show_colour(SHOW_RED),
                              duration_text(clock_now_ms() - l->away_since_ms, away), show_colour(SHOW_PLAIN));
        (void) fputs("\033[K", stdout);
        while (*at != '\0' && left > 0) {
                size_t n = strcspn(at, "\n");
                bool last_row = left == 1 && at[n] == '\n' && at[n + 1] != '\0';
                (void) printf("\n%.*s\033[K", last_row ? 0 : (int) n, at);
                if (last_row)
                        (void) fputs("… (the terminal is too small for all of it)", stdout);
                at += n + (at[n] == '\n');
                left--;
        }
        (void) fputs("\033[J", stdout);
        (void) fflush(stdout);
}

static void show_picture(struct live *l, const json_t *body)
{
        char now[32];
        if (l->json) {
                show_json_line(body);
        } else if (l->on_terminal) {
                take_picture(l, body);
                draw(l);
        } else {
                (void) printf("%s%s\n", l->n_blocks > 0 ? "\n" : "", time_text(now));
                l->print(body);
        }
        l->n_blocks++;
        (void) fflush(stdout);
}

/* One look. LESSOR_EXIT_OK: go on, also while lessord is away for less than a minute. */
static int look(struct live *l)
{
        struct client_answer answer;
        int r = client_call(&l->client, "GET", l->path, NULL, CLIENT_CALL_MS, &answer, NULL);
        int code = LESSOR_EXIT_OK;
        uint64_t now_ms = clock_now_ms();

        if (r == -EINTR)
                return LESSOR_EXIT_OK; /* a signal: seen to by the caller */
        if (r < 0 && l->n_blocks > 0 && client_is_away(r)) {
                if (l->away_since_ms == 0)
                        l->away_since_ms = now_ms;
                if (now_ms - l->away_since_ms <= AWAY_MS) {
                        if (l->on_screen)
                                draw(l);
                        return LESSOR_EXIT_OK;
                }
        }
        if (r < 0) {
                screen(l, false);
                return show_away(l->verb->name, &l->client, r);
        }
        l->away_since_ms = 0;
        if (answer.status == 200 && answer.body) {
                screen(l, !l->json);
                show_picture(l, answer.body);
        } else if (answer.status != 503) { /* busy: the next look will tell */
                screen(l, false);
                show_problem(l->verb->name, &answer);
                code = LESSOR_EXIT_REFUSED;
        }
        client_answer_fini(&answer);
        return code;
}

/* Until it is time for the next look. False: the person has seen enough. */
static bool rest(struct live *l)
{
        struct pollfd fd = { .fd = l->signals.fd, .events = POLLIN };
        uint64_t until_ms = clock_now_ms() + l->every_ms;
        struct signalfd_siginfo info;

        for (;;) {
                uint64_t now_ms = clock_now_ms();
                if (poll(&fd, 1, now_ms < until_ms ? (int) (until_ms - now_ms) : 0) == 0)
                        return true;
                while (signals_next(&l->signals, &info)) {
                        int number = (int) info.ssi_signo;
                        if (number == SIGINT)
                                return false;
                        if (number == SIGWINCH && l->on_screen)
                                draw(l);
                        if (number == SIGTSTP) {
                                bool was_on = l->on_screen;
                                screen(l, false);
                                signals_stop_by(number);
                                screen(l, was_on);
                                until_ms = 0;
                        }
                        if (number == SIGTERM || number == SIGHUP || number == SIGQUIT) {
                                screen(l, false);
                                signals_die_by(number);
                        }
                }
        }
}

int live_show(const struct verb *verb, const char *path, uint64_t every_ms, bool json,
              void (*print)(const json_t *body))
{
        struct live l = { .verb = verb, .path = path, .print = print, .every_ms = every_ms, .json = json };
        client_init(&l.client);
        if (signals_init(&l.signals) < 0)
                return verb_usage_error(verb, "cannot watch signals");
        signals_take_all(&l.signals);
        l.client.wake_fd = l.signals.fd;
        l.on_terminal = isatty(STDOUT_FILENO) == 1 && !json;
        const char *term = getenv("TERM");
        if (!term || strcmp(term, "dumb") == 0)
                l.on_terminal = false;

        int code;
        do
                code = look(&l);
        while (code == LESSOR_EXIT_OK && rest(&l));
        bool was_on = l.on_screen;
        screen(&l, false);
        if (was_on && l.picture)
                (void) fputs(l.picture, stdout); /* the last one stays */
        free(l.picture);
        return code;
}
