/* SPDX-License-Identifier: Apache-2.0 */
/* What the eyes say, and in which order, over a card of our own: no driver, real processes, time as an argument. */
#include "senses/watcher.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "senses/proc.h"
#include "senses/process.h"

/* ---- the card ---- */

enum { CARDS_MAX = 4 };

static struct {
        enum eyes_driver_state driver;
        int32_t driver_rc;
        int n_starts;
        uint32_t n_cards, n_hidden;
        uint64_t used[CARDS_MAX];
        struct gpu_status memory[CARDS_MAX], list[CARDS_MAX];
        struct gpu_listed listed[CARDS_MAX][8];
        size_t n_listed[CARDS_MAX];
        struct gpu_status work[CARDS_MAX];
        uint32_t worked; /* pid that the driver has a sample of; 0 = nobody */
} card;

enum { TOTAL = 10000 };

static void card_start(void *gpu, struct gpu_driver *ret)
{
        (void) gpu;
        card.n_starts++;
        memset(ret, 0, sizeof(*ret));
        ret->state = card.driver;
        ret->rc = card.driver_rc;
        if (ret->state == EYES_DRIVER_OK)
                (void) snprintf(ret->version, sizeof(ret->version), "1.0");
        else
                (void) snprintf(ret->words, sizeof(ret->words), "broken");
}

static void card_stop(void *gpu)
{
        (void) gpu;
}

static struct gpu_status card_enumerate(void *gpu, struct eyes_device *devices, uint32_t *n, uint32_t *n_hidden)
{
        (void) gpu;
        for (uint32_t i = 0; i < card.n_cards; i++) {
                memset(&devices[i], 0, sizeof(devices[i]));
                (void) snprintf(devices[i].uuid, sizeof(devices[i].uuid), "GPU-%u", i);
        }
        *n = card.n_cards;
        *n_hidden = card.n_hidden;
        return (struct gpu_status){ 0 };
}

static struct gpu_status card_memory(void *gpu, const char *uuid, struct gpu_memory *ret)
{
        int i = atoi(uuid + 4);

        (void) gpu;
        *ret = (struct gpu_memory){ .total_bytes = TOTAL, .free_bytes = TOTAL - card.used[i] };
        return card.memory[i];
}

static struct gpu_status card_list(void *gpu, const char *uuid, struct gpu_listed *listed, size_t max, size_t *n)
{
        int i = atoi(uuid + 4);

        (void) gpu;
        (void) max;
        memcpy(listed, card.listed[i], card.n_listed[i] * sizeof(*listed));
        *n = card.n_listed[i];
        return card.list[i];
}

/* One sample, if there is one: a driver has none of who does nothing. */
static struct gpu_status card_work(void *gpu, const char *uuid, struct gpu_work *work)
{
        int i = atoi(uuid + 4);

        (void) gpu;
        if (card.work[i].error == EYES_ERROR_NONE && card.worked != 0) {
                work->any = true;
                work->since_us++;
                work->pids[work->n++] = card.worked;
        }
        return card.work[i];
}

static const struct gpu_ops card_ops = {
        .name = "test",
        .start = card_start,
        .stop = card_stop,
        .enumerate = card_enumerate,
        .read_memory = card_memory,
        .read_list = card_list,
        .read_work = card_work,
};

static void hold(int device, pid_t pid, uint64_t bytes)
{
        card.listed[device][card.n_listed[device]++] = (struct gpu_listed){
                .pid = (uint32_t) pid, .list = EYES_ROW_COMPUTE, .used_known = true, .used_bytes = bytes
        };
        card.used[device] += bytes;
}

/* ---- the brain ---- */

static struct {
        struct eyes_message *said[256];
        bool with_fd[256];
        size_t n;
        size_t read; /* those a test has looked at */
        int error;
} brain;

static int hear(void *ctx, const struct eyes_message *msg, int fd)
{
        static uint8_t buf[EYES_MESSAGE_MAX];
        struct error err = { 0 };
        size_t n = 0;

        (void) ctx;
        if (brain.error)
                return brain.error;
        assert_true(brain.n < 256);
        brain.said[brain.n] = malloc(sizeof(struct eyes_message));
        assert_non_null(brain.said[brain.n]);
        if (eyes_encode(msg, buf, sizeof(buf), &n, &err) < 0 || eyes_decode(buf, n, brain.said[brain.n], &err) < 0)
                fail_msg("%s", err.msg); /* whatever is said can be sent */
        brain.with_fd[brain.n++] = fd >= 0;
        return 0;
}

static const struct eyes_message *next(enum eyes_kind kind)
{
        if (brain.read == brain.n)
                fail_msg("wanted %s, heard nothing more", eyes_kind_name(kind));
        const struct eyes_message *m = brain.said[brain.read++];
        if (m->kind != kind)
                fail_msg("wanted %s, heard %s", eyes_kind_name(kind), eyes_kind_name(m->kind));
        return m;
}

static void assert_silence(void)
{
        if (brain.read < brain.n)
                fail_msg("wanted silence, heard %s", eyes_kind_name(brain.said[brain.read]->kind));
}

static struct watcher *w;

static int set_up(void **state)
{
        (void) state;
        memset(&card, 0, sizeof(card));
        memset(&brain, 0, sizeof(brain));
        card.n_cards = 1;
        card.used[0] = 500;
        w = calloc(1, sizeof(*w));
        return w ? watcher_init(w, &card_ops, NULL, "/proc", 100, hear, NULL, NULL) : -1;
}

static int tear_down(void **state)
{
        (void) state;
        watcher_fini(w);
        free(w);
        for (size_t i = 0; i < brain.n; i++)
                free(brain.said[i]);
        return 0;
}

/* Hello and the first look, taken as heard. */
static void greet(uint64_t now_ms)
{
        assert_int_equal(watcher_hello(w, now_ms), 0);
        assert_int_equal(watcher_turn(w, now_ms), 0);
        brain.read = brain.n;
}

static void ask(uint64_t id, const char *uuid)
{
        struct eyes_message m = { .kind = EYES_READ, .read = { .request_id = id } };

        (void) snprintf(m.read.uuid, sizeof(m.read.uuid), "%s", uuid);
        assert_int_equal(watcher_message(w, &m, 0), 0);
}

static pid_t start_child(void)
{
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        (void) pause();
        }
        return pid;
}

static void end_child(pid_t pid)
{
        (void) kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static pid_t start_busy_child(void)
{
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        (void) getppid();
        }
        return pid;
}

static uint64_t cpu_ticks(pid_t pid)
{
        struct proc_stat st = { 0 };
        int fd;

        assert_int_equal(proc_open_pid("/proc", (uint32_t) pid, &fd), 0);
        assert_int_equal(proc_read_stat(fd, &st), 0);
        (void) close(fd);
        return st.cpu_ticks;
}

/* The row of the next reading that is asked for. */
static uint32_t flags_now(uint64_t now_ms)
{
        brain.read = brain.n;
        ask(99, "");
        assert_int_equal(watcher_turn(w, now_ms), 0);
        while (brain.read < brain.n && brain.said[brain.read]->kind != EYES_READING)
                brain.read++;
        const struct eyes_reading *r = &next(EYES_READING)->reading;
        assert_int_equal(r->n_rows, 1);
        brain.read = brain.n;
        return r->rows[0].flags & (EYES_ROW_WORKED | EYES_ROW_RESTED);
}

static uint32_t nobody(void)
{
        return w->source.host_pids ? EYES_ROW_GHOST : EYES_ROW_FOREIGN;
}

/* ---- tests ---- */

static void hello_comes_before_devices_and_devices_before_readings(void **state)
{
        (void) state;
        card.n_cards = 2;
        assert_int_equal(watcher_hello(w, 1000), 0);
        assert_int_equal(watcher_turn(w, 1000), 0);
        const struct eyes_hello *hello = &next(EYES_HELLO)->hello;
        assert_int_equal(hello->driver_state, EYES_DRIVER_OK);
        assert_int_equal(hello->n_devices, 2);
        const struct eyes_device *dev = &next(EYES_DEVICE)->device;
        assert_string_equal(dev->uuid, "GPU-0");
        assert_true(dev->total_known);
        assert_int_equal(dev->total_bytes, TOTAL);
        assert_int_equal(dev->state, EYES_DEVICE_USABLE);
        (void) next(EYES_DEVICE);
        const struct eyes_reading *r = &next(EYES_READING)->reading;
        assert_string_equal(r->uuid, "GPU-0");
        assert_int_equal(r->request_id, 0);
        assert_int_equal(r->used_bytes, 500);
        assert_true(r->settled);
        (void) next(EYES_READING);
        assert_silence();
}

static void reading_without_a_change_is_kept_unless_asked_for(void **state)
{
        (void) state;
        greet(1000);
        assert_int_equal(watcher_turn(w, 2000), 0);
        assert_silence();
        card.used[0] = 600;
        assert_int_equal(watcher_turn(w, 2500), 0); /* not due yet */
        assert_silence();
        assert_int_equal(watcher_turn(w, 3000), 0);
        assert_int_equal(next(EYES_READING)->reading.used_bytes, 600);
        ask(7, "");
        assert_int_equal(watcher_timeout_ms(w, 3000), 0);
        assert_int_equal(watcher_turn(w, 3000), 0);
        assert_int_equal(next(EYES_READING)->reading.request_id, 7);
        assert_int_equal(next(EYES_DONE)->done.request_id, 7);
        assert_silence();
}

static void read_is_always_answered_with_done(void **state)
{
        (void) state;
        card.n_cards = 2;
        greet(1000);
        ask(1, "GPU-1");
        ask(2, "GPU-nobody");
        ask(3, "");
        assert_int_equal(watcher_turn(w, 1000), 0);
        assert_int_equal(next(EYES_READING)->reading.request_id, 3);
        assert_int_equal(next(EYES_READING)->reading.request_id, 1);
        assert_int_equal(next(EYES_READING)->reading.request_id, 3);
        assert_int_equal(next(EYES_DONE)->done.n_readings, 1);
        assert_int_equal(next(EYES_DONE)->done.n_readings, 0);
        assert_int_equal(next(EYES_DONE)->done.n_readings, 2);
        assert_silence();
}

static void read_without_a_driver_is_answered_too(void **state)
{
        (void) state;
        card.driver = EYES_DRIVER_NO_LIBRARY;
        assert_int_equal(watcher_hello(w, 1000), 0);
        assert_int_equal(next(EYES_HELLO)->hello.driver_state, EYES_DRIVER_NO_LIBRARY);
        ask(9, "");
        assert_int_equal(watcher_turn(w, 1000), 0);
        assert_int_equal(next(EYES_DONE)->done.n_readings, 0);
        assert_silence();
}

static void interval_outside_the_reader_changes_when_it_looks(void **state)
{
        (void) state;
        struct eyes_message m = { .kind = EYES_INTERVAL, .interval = { .ms = 10, .activity_ms = 10000 } };

        greet(1000);
        assert_int_equal(watcher_timeout_ms(w, 1000), 1000);
        assert_int_equal(watcher_message(w, &m, 1000), 0);
        assert_int_equal(watcher_timeout_ms(w, 1000), 10);
        m.kind = EYES_HELLO;
        assert_int_equal(watcher_message(w, &m, 1000), -EPROTO);
}

static void process_is_told_once_and_before_its_reading(void **state)
{
        (void) state;
        pid_t pid = start_child();

        greet(1000);
        hold(0, pid, 300);
        assert_int_equal(watcher_turn(w, 2000), 0);
        const struct eyes_process *p = &next(EYES_PROCESS)->process;
        assert_true(brain.with_fd[brain.read - 1]);
        assert_int_equal(p->pid, pid);
        const struct eyes_reading *r = &next(EYES_READING)->reading;
        assert_int_equal(r->n_rows, 1);
        assert_true(r->rows[0].start_ticks == p->start_ticks);
        card.listed[0][0].used_bytes = 301;
        assert_int_equal(watcher_turn(w, 3000), 0);
        (void) next(EYES_READING);
        assert_silence();
        end_child(pid);
}

static void process_that_exits_is_told_and_looked_after_at_once(void **state)
{
        (void) state;
        pid_t pid = start_child();

        hold(0, pid, 300);
        greet(1000);
        uint64_t start = w->look.rows[0].start_ticks;
        end_child(pid);
        assert_int_equal(watcher_turn(w, 1001), 0); /* nothing is due, but somebody died; the driver lags behind */
        const struct eyes_exited *gone = &next(EYES_EXITED)->exited;
        assert_int_equal(gone->pid, pid);
        assert_true(gone->start_ticks == start);
        const struct eyes_reading *r = &next(EYES_READING)->reading;
        assert_int_equal(r->rows[0].flags & nobody(), nobody());
        assert_int_equal(r->rows[0].start_ticks, 0);
        assert_int_equal(r->rows[0].used_bytes, 300); /* a ghost's memory counts */
        assert_int_equal(watcher_turn(w, 1002), 0);
        assert_silence();
}

static void pid_nobody_has_is_a_ghost_and_never_a_process(void **state)
{
        (void) state;
        pid_t pid = start_child();

        end_child(pid);
        hold(0, pid, 300);
        assert_int_equal(watcher_hello(w, 1000), 0);
        assert_int_equal(watcher_turn(w, 1000), 0);
        (void) next(EYES_HELLO);
        (void) next(EYES_DEVICE);
        assert_int_equal(next(EYES_READING)->reading.rows[0].flags, EYES_ROW_USED_KNOWN | EYES_ROW_COMPUTE | nobody());
        assert_silence();
}

static void list_that_is_rejected_keeps_the_last_good_rows_with_their_age(void **state)
{
        (void) state;
        pid_t living = start_child(), dying = start_child();

        hold(0, living, 300);
        hold(0, dying, 200);
        greet(1000);
        uint64_t good_ms = w->look.rows_taken_ms;
        end_child(dying);
        card.listed[0][1].pid = 0; /* garbage */
        assert_int_equal(watcher_turn(w, 2000), 0);
        (void) next(EYES_EXITED);
        const struct eyes_alarm *alarm = &next(EYES_ALARM)->alarm;
        assert_int_equal(alarm->kind, EYES_ALARM_LIST_REJECTED);
        assert_non_null(strstr(alarm->text, "pid 0"));
        const struct eyes_reading *r = &next(EYES_READING)->reading;
        assert_false(r->per_process_valid);
        assert_false(r->settled);
        assert_int_equal(r->list_error, EYES_ERROR_REJECTED);
        assert_true(r->memory_valid);
        assert_true(r->rows_taken_ms == good_ms);
        assert_int_equal(r->n_rows, 2);
        for (uint32_t i = 0; i < 2; i++)
                assert_int_equal(r->rows[i].flags & nobody(), r->rows[i].pid == (uint32_t) dying ? nobody() : 0);
        assert_int_equal(watcher_turn(w, 3000), 0); /* the same again: no second alarm, no second reading */
        assert_silence();
        end_child(living);
}

/* A driver that has no list will not have one by asking again: its own figure is to be had, and two looks at it agree. */
static void A4_driver_without_a_process_list_settles_by_its_own_figure(void **state)
{
        (void) state;
        static const enum eyes_error absent[] = { EYES_ERROR_NOT_SUPPORTED, EYES_ERROR_NO_PERMISSION,
                                                  EYES_ERROR_NO_SYMBOL };

        greet(1000);
        for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++) {
                card.list[0] = (struct gpu_status){ absent[i], 3 };
                assert_int_equal(watcher_turn(w, 2000 + 1000 * i), 0);
                assert_true(w->look.settled);
                assert_false(w->look.per_process_valid);
        }
        card.list[0] = (struct gpu_status){ EYES_ERROR_OTHER, 999 };
        assert_int_equal(watcher_turn(w, 9000), 0);
        assert_false(w->look.settled);
}

static void alarm_that_repeats_says_how_many_were_dropped(void **state)
{
        (void) state;
        card.list[0].error = EYES_ERROR_REJECTED;
        greet(1000);
        for (uint64_t ms = 2000; ms < 1000 + WATCHER_ALARM_EVERY_MS; ms += 1000)
                assert_int_equal(watcher_turn(w, ms), 0);
        assert_silence();
        assert_int_equal(watcher_turn(w, 1000 + WATCHER_ALARM_EVERY_MS), 0);
        assert_int_equal(next(EYES_ALARM)->alarm.n_dropped, WATCHER_ALARM_EVERY_MS / 1000 - 1);
        assert_silence();
}

static void device_that_is_lost_leaves_the_others_alone(void **state)
{
        (void) state;
        card.n_cards = 4;
        greet(1000);
        card.memory[2] = (struct gpu_status){ EYES_ERROR_LOST, 15 };
        assert_int_equal(watcher_turn(w, 2000), 0);
        (void) next(EYES_ALARM);
        const struct eyes_device *dev = &next(EYES_DEVICE)->device;
        assert_string_equal(dev->uuid, "GPU-2");
        assert_int_equal(dev->state, EYES_DEVICE_LOST);
        assert_int_equal(dev->rc, 15);
        assert_true(dev->total_known); /* what it was is still known; what is free is not */
        const struct eyes_reading *r = &next(EYES_READING)->reading;
        assert_false(r->memory_valid);
        assert_int_equal(r->memory_error, EYES_ERROR_LOST);
        assert_silence();
        card.memory[2] = (struct gpu_status){ 0 };
        assert_int_equal(watcher_turn(w, 3000), 0);
        assert_int_equal(next(EYES_DEVICE)->device.state, EYES_DEVICE_USABLE);
        assert_true(next(EYES_READING)->reading.memory_valid);
        assert_silence();
}

static void device_without_a_memory_figure_is_not_usable(void **state)
{
        (void) state;
        card.memory[0] = (struct gpu_status){ EYES_ERROR_NOT_SUPPORTED, 3 };
        assert_int_equal(watcher_hello(w, 1000), 0);
        (void) next(EYES_HELLO);
        const struct eyes_device *dev = &next(EYES_DEVICE)->device;
        assert_int_equal(dev->state, EYES_DEVICE_NO_MEMORY_READING);
        assert_false(dev->total_known);
}

static void driver_that_does_not_start_is_tried_at_most_ten_times_in_ten_minutes(void **state)
{
        (void) state;
        card.driver = EYES_DRIVER_MISMATCH;
        assert_int_equal(watcher_hello(w, 1000), 0);
        assert_int_equal(next(EYES_HELLO)->hello.driver_state, EYES_DRIVER_MISMATCH);
        assert_int_equal(next(EYES_ALARM)->alarm.kind, EYES_ALARM_DRIVER);
        for (uint64_t ms = 1000; ms <= 601000; ms += 100)
                assert_int_equal(watcher_turn(w, ms), 0);
        assert_in_range(card.n_starts, 3, 10);
        while (brain.read < brain.n) /* no second hello while nothing changed */
                (void) next(EYES_ALARM);
        card.driver = EYES_DRIVER_OK;
        for (uint64_t ms = 601000; ms <= 601000 + WATCHER_RETRY_MOST_MS; ms += 100)
                assert_int_equal(watcher_turn(w, ms), 0);
        assert_int_equal(next(EYES_HELLO)->hello.driver_state, EYES_DRIVER_OK);
        (void) next(EYES_DEVICE);
        (void) next(EYES_READING);
        assert_silence();
}

static void driver_that_is_well_is_started_once(void **state)
{
        (void) state;
        greet(1000);
        for (uint64_t i = 1; i <= 10000; i++)
                assert_int_equal(watcher_turn(w, 1000 + 1000 * i), 0);
        assert_int_equal(card.n_starts, 1);
        assert_silence();
}

static void F26_driver_is_started_anew_once_after_each_sleep(void **state)
{
        (void) state;
        greet(1000);
        watcher_clock(w, 60000, 1000); /* slept before we were there */
        for (uint64_t ms = 1000; ms <= 5000; ms += 100) {
                watcher_clock(w, 60000 + ms % 3, ms); /* two clocks are never read at the same moment */
                assert_int_equal(watcher_turn(w, ms), 0);
        }
        watcher_clock(w, 60000 + WATCHER_SLEPT_MS, 5000);
        assert_int_equal(watcher_turn(w, 5000), 0);
        assert_int_equal(card.n_starts, 1);
        assert_silence();
        for (int sleep = 1; sleep <= 3; sleep++) {
                uint64_t asleep_ms = 60000 + (uint64_t) sleep * 8 * 3600 * 1000;

                for (uint64_t ms = 6000; ms <= 20000; ms += 100) {
                        watcher_clock(w, asleep_ms, ms);
                        assert_int_equal(watcher_turn(w, ms), 0);
                        assert_int_equal(card.n_starts, 1 + sleep);
                }
                (void) next(EYES_DEVICE);  /* what was told of it before counts no more ... */
                (void) next(EYES_READING); /* ... and the first look after it is told although nothing changed */
                assert_silence();
        }
}

static void F26_rows_of_before_a_sleep_are_not_used_after_it(void **state)
{
        (void) state;
        pid_t pid = start_child();

        hold(0, pid, 300);
        greet(1000);
        watcher_clock(w, 0, 1000);
        card.list[0].error = EYES_ERROR_REJECTED;
        assert_int_equal(watcher_turn(w, 2000), 0);
        assert_int_equal(w->look.n_rows, 1); /* the last good ones */
        watcher_clock(w, 8 * 3600 * 1000, 3000);
        assert_int_equal(watcher_turn(w, 3000), 0);
        assert_int_equal(w->look.n_rows, 0);
        assert_int_equal(w->look.rows_taken_ms, 0);
        end_child(pid);
}

static void F26_driver_that_does_not_come_back_after_a_sleep_is_failed_and_tried_again(void **state)
{
        (void) state;
        greet(1000);
        watcher_clock(w, 0, 1000);
        card.driver = EYES_DRIVER_FAILED;
        card.driver_rc = 999;
        watcher_clock(w, 8 * 3600 * 1000, 2000);
        assert_int_equal(watcher_turn(w, 2000), 0);
        const struct eyes_hello *hello = &next(EYES_HELLO)->hello;
        assert_int_equal(hello->driver_state, EYES_DRIVER_FAILED);
        assert_int_equal(hello->rc, 999);
        assert_int_equal(next(EYES_DEVICE)->device.state, EYES_DEVICE_FAILING);
        assert_int_equal(next(EYES_ALARM)->alarm.kind, EYES_ALARM_DRIVER);
        const struct eyes_reading *r = &next(EYES_READING)->reading;
        assert_false(r->memory_valid);
        assert_int_equal(r->memory_rc, 999);
        assert_silence();
        card.driver = EYES_DRIVER_OK;
        card.driver_rc = 0;
        assert_int_equal(watcher_turn(w, 2000 + WATCHER_RETRY_FIRST_MS - 1), 0);
        assert_silence();
        assert_int_equal(watcher_turn(w, 2000 + WATCHER_RETRY_FIRST_MS), 0);
        assert_int_equal(card.n_starts, 3);
        assert_int_equal(next(EYES_HELLO)->hello.driver_state, EYES_DRIVER_OK);
        assert_int_equal(next(EYES_DEVICE)->device.state, EYES_DEVICE_USABLE);
        assert_true(next(EYES_READING)->reading.settled);
        assert_silence();
}

static void device_missing_after_a_restart_of_the_driver_is_gone_or_lost(void **state)
{
        (void) state;
        card.n_cards = 2;
        greet(1000);
        card.memory[0] = (struct gpu_status){ EYES_ERROR_OTHER, 999 }; /* a need to initialise again */
        assert_int_equal(watcher_turn(w, 2000), 0);
        brain.read = brain.n;
        card.memory[0] = (struct gpu_status){ 0 };
        card.n_cards = 1;
        card.n_hidden = 1;
        assert_int_equal(watcher_turn(w, 2000 + WATCHER_REVIVE_FIRST_MS), 0);
        assert_int_equal(card.n_starts, 2);
        assert_int_equal(next(EYES_HELLO)->hello.n_hidden, 1);
        assert_int_equal(next(EYES_DEVICE)->device.state, EYES_DEVICE_USABLE);
        const struct eyes_device *dev = &next(EYES_DEVICE)->device;
        assert_string_equal(dev->uuid, "GPU-1");
        assert_int_equal(dev->state, EYES_DEVICE_LOST);
        (void) next(EYES_READING);
        assert_int_equal(next(EYES_READING)->reading.memory_error, EYES_ERROR_LOST);
        assert_silence();
}

static void table_that_is_full_leaves_processes_unidentified(void **state)
{
        (void) state;
        pid_t pid = start_child();

        w->table.max = 0;
        hold(0, pid, 300);
        assert_int_equal(watcher_hello(w, 1000), 0);
        assert_int_equal(watcher_turn(w, 1000), 0);
        (void) next(EYES_HELLO);
        (void) next(EYES_DEVICE);
        assert_int_equal(next(EYES_ALARM)->alarm.kind, EYES_ALARM_DESCRIPTORS);
        const struct eyes_reading *r = &next(EYES_READING)->reading;
        assert_true((r->rows[0].flags & EYES_ROW_UNIDENTIFIED) != 0);
        assert_int_equal(r->rows[0].used_bytes, 300);
        end_child(pid);
}

static void brain_that_is_gone_ends_the_turn(void **state)
{
        (void) state;
        greet(1000);
        brain.error = -EPIPE;
        card.used[0] = 600;
        assert_int_equal(watcher_turn(w, 2000), -EPIPE);
}

static void requests_beyond_the_limit_wait_for_the_next_turn(void **state)
{
        (void) state;
        struct eyes_message m = { .kind = EYES_READ, .read = { .request_id = 1 } };

        greet(1000);
        for (int i = 0; i < WATCHER_REQUESTS_MAX; i++)
                assert_int_equal(watcher_message(w, &m, 1000), 0);
        assert_int_equal(watcher_message(w, &m, 1000), -EBUSY);
        assert_int_equal(watcher_turn(w, 1000), 0);
        assert_int_equal(watcher_message(w, &m, 1000), 0);
}

/* Ten seconds are an interval. */
static void row_that_does_nothing_says_so_once_it_is_known(void **state)
{
        (void) state;
        pid_t pid = start_child();

        w->source.host_pids = true;
        hold(0, pid, 300);
        greet(1000);
        assert_int_equal(flags_now(2000), 0);
        card.worked = (uint32_t) pid; /* the driver's first answer: of whenever */
        assert_int_equal(flags_now(11000), EYES_ROW_WORKED);
        card.worked = 0;
        assert_int_equal(flags_now(12000), EYES_ROW_WORKED); /* of the last whole interval still */
        assert_int_equal(flags_now(21000), EYES_ROW_RESTED);
        assert_int_equal(watcher_turn(w, 31000), 0);
        assert_int_equal(watcher_turn(w, 41000), 0);
        assert_silence(); /* and goes on resting without a word */
        card.worked = (uint32_t) pid;
        assert_int_equal(watcher_turn(w, 51000), 0);
        assert_true((next(EYES_READING)->reading.rows[0].flags & EYES_ROW_WORKED) != 0);
        end_child(pid);
}

static void what_the_driver_does_not_sample_is_not_known(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct gpu_status work;
                bool foreign, mps;
        } rows[] = {
                { "never a sample of anybody", { EYES_ERROR_NONE, 0 }, false, false },
                { "not supported, as on MIG", { EYES_ERROR_NOT_SUPPORTED, 3 }, false, false },
                { "no permission", { EYES_ERROR_NO_PERMISSION, 4 }, false, false },
                { "another pid namespace", { EYES_ERROR_NONE, 0 }, true, false },
                { "a client of MPS", { EYES_ERROR_NONE, 0 }, false, true },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                (void) tear_down(NULL);
                assert_int_equal(set_up(NULL), 0);
                pid_t pid = start_child();
                w->source.host_pids = !rows[i].foreign;
                hold(0, pid, 300);
                if (rows[i].mps)
                        card.listed[0][0].list = EYES_ROW_MPS;
                card.work[0] = rows[i].work;
                greet(1000);
                if (rows[i].foreign || rows[i].mps) {
                        card.worked = 1; /* the driver does sample: somebody else */
                        assert_int_equal(flags_now(11000), 0);
                        card.worked = 0;
                }
                assert_int_equal(flags_now(21000), 0);
                assert_int_equal(flags_now(31000), 0);
                end_child(pid);
        }
}

static void time_on_a_cpu_is_work(void **state)
{
        (void) state;
        pid_t pid = start_busy_child();

        w->source.host_pids = true;
        hold(0, pid, 300);
        greet(1000);
        card.worked = 1; /* somebody else: so the driver does sample */
        (void) flags_now(11000);
        uint64_t before = cpu_ticks(pid);
        while (cpu_ticks(pid) < before + 12) /* 120 ms: more than 1 % of ten seconds */
                (void) usleep(1000);
        assert_int_equal(flags_now(21000), EYES_ROW_WORKED);
        (void) kill(pid, SIGSTOP);
        (void) flags_now(31000);
        assert_int_equal(flags_now(41000), EYES_ROW_RESTED);
        end_child(pid);
}

static void process_that_came_within_the_interval_is_not_known_yet(void **state)
{
        (void) state;
        pid_t pid = start_child();

        w->source.host_pids = true;
        greet(1000);
        card.worked = 1;
        assert_int_equal(watcher_turn(w, 11000), 0);
        hold(0, pid, 300);
        assert_int_equal(flags_now(12000), 0);
        assert_int_equal(flags_now(21000), 0); /* seen for the first time with its CPU time */
        assert_int_equal(flags_now(31000), EYES_ROW_RESTED);
        end_child(pid);
}

/* Rows that stand in for ones that were refused say nothing of what anybody does now. */
static void rows_of_before_do_not_say_that_anybody_rests(void **state)
{
        (void) state;
        pid_t pid = start_child();

        w->source.host_pids = true;
        hold(0, pid, 300);
        greet(1000);
        card.worked = 1;
        (void) flags_now(11000);
        assert_int_equal(flags_now(21000), EYES_ROW_RESTED);
        card.list[0] = (struct gpu_status){ EYES_ERROR_REJECTED, 0 };
        assert_int_equal(flags_now(22000), 0);
        end_child(pid);
}

#define card_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                card_test(hello_comes_before_devices_and_devices_before_readings),
                card_test(reading_without_a_change_is_kept_unless_asked_for),
                card_test(read_is_always_answered_with_done),
                card_test(read_without_a_driver_is_answered_too),
                card_test(interval_outside_the_reader_changes_when_it_looks),
                card_test(process_is_told_once_and_before_its_reading),
                card_test(process_that_exits_is_told_and_looked_after_at_once),
                card_test(pid_nobody_has_is_a_ghost_and_never_a_process),
                card_test(list_that_is_rejected_keeps_the_last_good_rows_with_their_age),
                card_test(A4_driver_without_a_process_list_settles_by_its_own_figure),
                card_test(alarm_that_repeats_says_how_many_were_dropped),
                card_test(device_that_is_lost_leaves_the_others_alone),
                card_test(device_without_a_memory_figure_is_not_usable),
                card_test(driver_that_does_not_start_is_tried_at_most_ten_times_in_ten_minutes),
                card_test(driver_that_is_well_is_started_once),
                card_test(F26_driver_is_started_anew_once_after_each_sleep),
                card_test(F26_rows_of_before_a_sleep_are_not_used_after_it),
                card_test(F26_driver_that_does_not_come_back_after_a_sleep_is_failed_and_tried_again),
                card_test(device_missing_after_a_restart_of_the_driver_is_gone_or_lost),
                card_test(table_that_is_full_leaves_processes_unidentified),
                card_test(brain_that_is_gone_ends_the_turn),
                card_test(requests_beyond_the_limit_wait_for_the_next_turn),
                card_test(row_that_does_nothing_says_so_once_it_is_known),
                card_test(what_the_driver_does_not_sample_is_not_known),
                card_test(time_on_a_cpu_is_work),
                card_test(process_that_came_within_the_interval_is_not_known_yet),
                card_test(rows_of_before_do_not_say_that_anybody_rests),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
