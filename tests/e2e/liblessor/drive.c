/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What test_liblessor.py lets liblessor do, a scene a word. Says on stdout what happened, a line each. Strict C11 with
 * nothing but lessor.h and POSIX, as any user of the library would write it.
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <lessor.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct lessor *l;
static volatile sig_atomic_t interrupted;

static void die(const char *what, int r, struct lessor_error *error)
{
        printf("failed %s %s %d %s\n", what, strerror(-r), lessor_error_status(error), lessor_error_type(error));
        printf("text %s\n", lessor_error_text(error));
        exit(3);
}

static struct lessor_request *request(const char *size)
{
        struct lessor_request *q = NULL;
        int r = lessor_request_new(&q);
        if (r == 0)
                r = lessor_request_set_size(q, size);
        if (r < 0)
                die("request", r, NULL);
        return q;
}

static void open_handle(void)
{
        struct lessor_error *error = NULL;
        int r = lessor_open(&l, NULL, &error);
        if (r < 0)
                die("open", r, error);
}

static void say_lease(const char *what, const struct lessor_lease *lease)
{
        printf("%s %s %d %s %llu\n", what, lessor_lease_id(lease), (int) lessor_lease_state(lease),
               lessor_lease_device(lease), (unsigned long long) lessor_lease_bytes(lease));
        fflush(stdout);
}

static void wait_for_stdin(void)
{
        char byte;
        while (read(STDIN_FILENO, &byte, 1) > 0)
                ;
}

static struct lessor_lease *acquire(const char *size)
{
        struct lessor_error *error = NULL;
        struct lessor_lease *lease = NULL;
        struct lessor_request *q = request(size);
        int r = lessor_acquire(l, q, NULL, NULL, &lease, &error);
        if (r < 0)
                die("acquire", r, error);
        lessor_request_free(q);
        return lease;
}

/* ---- scenes ---- */

static void scene_sync(const char *size)
{
        struct lessor_lease *lease = acquire(size);
        say_lease("granted", lease);
        wait_for_stdin();
        printf("released %d\n", lessor_lease_release(lease, NULL));
        printf("again %d\n", -lessor_lease_release(lease, NULL) == EIDRM);
        lessor_lease_free(lease);
}

/* The object goes, the lease stays. */
static void scene_keep(const char *size)
{
        struct lessor_lease *lease = acquire(size);
        say_lease("granted", lease);
        lessor_lease_free(lease);
        lessor_close(l);
        l = NULL;
        printf("freed\n");
        fflush(stdout);
        wait_for_stdin();
}

static void say_news(int news, struct lessor_lease *lease)
{
        static const char *const names[] = { "nothing", "queued",  "granted", "refused", "away", "back",
                                             "again",   "without", "changed", "warning", "ended" };
        const struct lessor_error *error = lessor_lease_error(lease);
        printf("%s %s", names[news], lessor_lease_id(lease));
        if (news == LESSOR_NEWS_REFUSED)
                printf(" %s %s", strerror(lessor_error_errno(error)), lessor_error_type(error));
        if (news == LESSOR_NEWS_WARNING || news == LESSOR_NEWS_ENDED)
                printf(" %s: %s", lessor_lease_rule(lease), lessor_lease_text(lease));
        printf("\n");
        fflush(stdout);
}

/* One lease by a loop of our own, until stdin ends; "release" on it releases. */
static void scene_poll(const char *size, const char *wait_ms)
{
        struct lessor_lease *lease = NULL;
        struct lessor_error *error = NULL;
        struct lessor_request *q = request(size);
        if (wait_ms)
                lessor_request_set_wait_ms(q, strtoull(wait_ms, NULL, 10));
        lessor_request_set_name(q, "poll");
        int r = lessor_acquire_begin(l, q, &lease, &error);
        if (r < 0)
                die("begin", r, error);
        lessor_request_free(q);
        for (;;) {
                int news;
                struct lessor_lease *which = NULL;
                while ((news = lessor_process(l, &which)) > 0) {
                        say_news(news, which);
                        if (which != lease)
                                die("news of another", 0, NULL);
                        if (news == LESSOR_NEWS_GRANTED)
                                lessor_lease_follow(lease);
                }
                if (news < 0)
                        die("process", news, NULL);
                struct pollfd fds[] = { { .fd = lessor_fd(l), .events = (short) lessor_events(l) },
                                        { .fd = STDIN_FILENO, .events = POLLIN } };
                poll(fds, 2, -1);
                if (fds[1].revents != 0) {
                        char byte;
                        if (read(STDIN_FILENO, &byte, 1) == 0)
                                break;
                        if (byte == 'r')
                                printf("released %d\n", lessor_lease_release(lease, NULL));
                        fflush(stdout);
                }
        }
        lessor_lease_free(lease);
}

static void on_signal(int number)
{
        (void) number;
        interrupted = 1;
}

static int stop_when_interrupted(struct lessor_lease *lease, enum lessor_news news, void *userdata)
{
        (void) userdata;
        if (news == LESSOR_NEWS_QUEUED)
                say_news((int) news, lease);
        return interrupted;
}

static void scene_cancel(const char *size)
{
        struct lessor_lease *lease = NULL;
        struct sigaction action = { .sa_handler = on_signal };
        struct lessor_request *q = request(size);
        sigaction(SIGUSR1, &action, NULL);
        int r = lessor_acquire(l, q, stop_when_interrupted, NULL, &lease, NULL);
        printf("canceled %d %d\n", r == -ECANCELED, lease == NULL);
        lessor_request_free(q);
}

/* A fork's child may free everything, and nothing of its parent's changes by it. */
static void scene_fork(const char *size)
{
        struct lessor_lease *lease = acquire(size);
        int fd = lessor_fd(l);
        lessor_lease_follow(lease);
        while (lessor_process(l, NULL) > 0)
                ;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
                struct lessor_error *error = NULL;
                int bad = lessor_process(l, NULL) != -ECHILD;
                bad += lessor_fd(l) != -ECHILD;
                bad += lessor_lease_release(lease, &error) != -ECHILD;
                bad += lessor_error_text(error)[0] == '\0';
                bad += lessor_lease_refresh(lease, NULL) != -ECHILD;
                lessor_error_free(error);
                lessor_lease_free(lease);
                lessor_close(l);
                bad += lessor_open(&l, NULL, NULL) != 0;
                bad += lessor_call(l, "GET", "/healthz", NULL, NULL, NULL, NULL) != 0;
                lessor_close(l);
                _exit(bad);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        printf("child %d\n", status);
        printf("same fd %d\n", lessor_fd(l) == fd);
        printf("refresh %d\n", lessor_lease_refresh(lease, NULL));
        say_lease("parent", lease);
        wait_for_stdin();
        int news = 0; /* what was followed before the fork still comes */
        while (news != LESSOR_NEWS_ENDED) {
                struct pollfd p = { .fd = fd, .events = (short) lessor_events(l) };
                while ((news = lessor_process(l, NULL)) > 0 && news != LESSOR_NEWS_ENDED)
                        ;
                if (news != LESSOR_NEWS_ENDED)
                        poll(&p, 1, -1);
        }
        say_news(news, lease);
        lessor_lease_free(lease);
}

static void scene_two(const char *size)
{
        struct lessor *other = NULL;
        struct lessor_lease *first = acquire(size), *second = NULL;
        struct lessor_request *q = request(size);
        int r = lessor_open(&other, NULL, NULL);
        if (r == 0)
                r = lessor_acquire(other, q, NULL, NULL, &second, NULL);
        lessor_request_free(q);
        if (r < 0)
                die("second", r, NULL);
        say_lease("granted", first);
        say_lease("granted", second);
        printf("released %d\n", lessor_lease_release(first, NULL));
        say_lease("second", second);
        lessor_close(l); /* before its lease */
        lessor_lease_free(first);
        printf("refresh %d\n", lessor_lease_refresh(second, NULL));
        printf("released %d\n", lessor_lease_release(second, NULL));
        lessor_lease_free(second);
        l = other;
}

static int count_fds(void)
{
        int n = 0;
        DIR *dir = opendir("/proc/self/fd");
        while (dir && readdir(dir))
                n++;
        closedir(dir);
        return n;
}

static void one_round(const char *size)
{
        struct lessor *h = NULL;
        struct lessor_lease *lease = NULL;
        struct lessor_request *q = request(size);
        struct lessor_error *error = NULL;
        if (lessor_open(&h, NULL, NULL) < 0)
                die("open", 0, NULL);
        (void) lessor_fd(h);
        lessor_request_set_wait_ms(q, 0);
        if (lessor_acquire(h, q, NULL, NULL, &lease, NULL) == 0) {
                lessor_lease_follow(lease);
                (void) lessor_process(h, NULL);
                lessor_lease_release(lease, NULL);
                lessor_lease_free(lease);
        }
        lessor_request_bind_to_connection(q);
        if (lessor_acquire(h, q, NULL, NULL, &lease, NULL) == 0)
                lessor_lease_free(lease);
        lessor_request_set_size(q, "1000000G");
        (void) lessor_acquire(h, q, NULL, NULL, &lease, &error);
        lessor_error_free(error);
        if (lessor_acquire_begin(h, q, &lease, NULL) == 0) {
                (void) lessor_process(h, NULL);
                lessor_lease_free(lease);
        }
        lessor_request_free(q);
        lessor_close(h);
}

static void scene_fds(const char *size)
{
        one_round(size);
        int before = count_fds();
        for (int i = 0; i < 30; i++)
                one_round(size);
        printf("leaked %d\n", count_fds() - before);
}

/* A program that closed its standard descriptors: what it prints must not land in a connection. */
static void scene_closed(const char *size)
{
        int out = dup(STDOUT_FILENO);
        while (out <= STDERR_FILENO)
                out = dup(out);
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
                close(fd);
        struct lessor_lease *lease = acquire(size);
        int fd = lessor_fd(l), free_ones = 0;
        lessor_lease_follow(lease);
        (void) lessor_process(l, NULL);
        for (int i = 0; i <= STDERR_FILENO; i++)
                free_ones += write(i, "x", 1) < 0 && errno == EBADF;
        dprintf(out, "free %d fd %d\n", free_ones, fd > STDERR_FILENO);
        lessor_lease_free(lease);
}

/* Bound to the connection: freeing is releasing. */
static void scene_connection(const char *size)
{
        struct lessor_error *error = NULL;
        struct lessor_lease *lease = NULL;
        struct lessor_request *q = request(size);
        lessor_request_bind_to_connection(q);
        int r = lessor_acquire(l, q, NULL, NULL, &lease, &error);
        if (r < 0)
                die("acquire", r, error);
        say_lease("granted", lease);
        wait_for_stdin();
        lessor_lease_free(lease);
        lessor_request_free(q);
        printf("freed\n");
        fflush(stdout);
        pause();
}

static void say_change(const char *what, int r, struct lessor_error **error, struct lessor_lease *lease)
{
        uint64_t left_ms = 0;
        bool known = lessor_lease_slot_left_ms(lease, &left_ms);
        printf("%s %d %d %llu %s\n", what, r, lessor_lease_priority(lease), known ? (unsigned long long) left_ms : 0,
               lessor_error_text(*error));
        lessor_error_free(*error);
        *error = NULL;
}

static void scene_changes(const char *size)
{
        struct lessor_error *error = NULL;
        struct lessor_lease *lease = NULL;
        struct lessor_request *q = request(size);
        char *json = NULL;
        lessor_request_set_for_ms(q, 600000);
        int r = lessor_plan(l, q, &json, &error);
        printf("plan %d %s\n", r, json ? json : lessor_error_text(error));
        free(json);
        lessor_error_free(error);
        error = NULL;
        r = lessor_acquire(l, q, NULL, NULL, &lease, &error);
        if (r < 0)
                die("acquire", r, error);
        r = lessor_lease_renice(lease, 4, &error);
        say_change("renice", r, &error, lease);
        r = lessor_lease_extend(lease, "1h", &error);
        say_change("extend", r, &error, lease);
        r = lessor_lease_pin(lease, "5m", &error);
        say_change("pin", r, &error, lease);
        r = lessor_lease_unpin(lease, &error);
        say_change("unpin", r, &error, lease);
        r = lessor_lease_set_for(lease, "5m", &error);
        say_change("for", r, &error, lease);
        r = lessor_lease_renice(lease, 9, &error);
        say_change("bad", r, &error, lease);
        printf("released %d\n", lessor_lease_release(lease, NULL));
        lessor_lease_free(lease);
        lessor_request_free(q);
}

static void scene_adopt(const char *pid)
{
        struct lessor_error *error = NULL;
        struct lessor_lease *lease = NULL;
        struct lessor_request *q = NULL;
        lessor_request_new(&q);
        int r = lessor_adopt(l, q, atoi(pid), false, &lease, &error);
        if (r < 0)
                die("adopt", r, error);
        say_lease("adopted", lease);
        wait_for_stdin();
        printf("released %d\n", lessor_lease_release(lease, NULL));
        lessor_lease_free(lease);
        lessor_request_free(q);
}

int main(int argc, char **argv)
{
        const char *scene = argc > 1 ? argv[1] : "", *word = argc > 2 ? argv[2] : "";
        static const struct {
                const char *name;
                void (*play)(const char *word);
        } scenes[] = {
                { "sync", scene_sync },     { "keep", scene_keep },       { "cancel", scene_cancel },
                { "fork", scene_fork },     { "two", scene_two },         { "fds", scene_fds },
                { "closed", scene_closed }, { "changes", scene_changes }, { "connection", scene_connection },
                { "adopt", scene_adopt },
        };
        open_handle();
        if (strcmp(scene, "poll") == 0)
                scene_poll(word, argc > 3 ? argv[3] : NULL);
        for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
                if (strcmp(scene, scenes[i].name) == 0)
                        scenes[i].play(word);
        lessor_close(l);
        return 0;
}
