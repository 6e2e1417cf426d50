/* SPDX-License-Identifier: Apache-2.0 */
/* lessord - grants leases on GPU memory. Options, start in order, the loop, a clean end in the opposite order. */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "api/json_memory.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/escape.h"
#include "base/log.h"
#include "base/pidfd.h"
#include "programs/lessord/checks.h"
#include "programs/lessord/daemon.h"
#include "programs/lessord/inherited.h"
#include "programs/lessord/libexec.h"
#include "programs/lessord/notify.h"
#include "programs/lessord/options.h"
#include "senses/proc.h"

enum {
        DESCRIPTORS_KEPT = 256,
        DESCRIPTORS_A_CONNECTION = 2, /* its socket and its caller's pidfd */
        DESCRIPTORS_WANTED = 16384,
};

/*
 * Before the first file is read, and for good (security S16, S22, S23). What needs rights is done by the warden; lessor-eyes is
 * our child and can do no more than this either.
 */
static int give_up_rights(struct error *err)
{
        int r = confine_unprivileged(err);

        if (r != -EOPNOTSUPP)
                return r;
        log_warning("event=not-filtered words=\"%s\"", err->msg);
        return 0;
}

/* Each connection and each owner of a lease is a descriptor: take as many as we may, and serve as many as that allows. */
static uint32_t connections_allowed(void)
{
        struct rlimit limit;
        uint64_t n;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return 64;
        rlim_t want = limit.rlim_max < DESCRIPTORS_WANTED ? limit.rlim_max : DESCRIPTORS_WANTED;
        if (limit.rlim_cur < want) {
                limit.rlim_cur = want;
                (void) setrlimit(RLIMIT_NOFILE, &limit);
                (void) getrlimit(RLIMIT_NOFILE, &limit);
        }
        n = limit.rlim_cur > DESCRIPTORS_KEPT + 64 ? (limit.rlim_cur - DESCRIPTORS_KEPT) / DESCRIPTORS_A_CONNECTION / 2
                                                   : 16;
        return n < API_CONNECTIONS_MAX ? (uint32_t) n : API_CONNECTIONS_MAX;
}

/* ---- the start, step by step ---- */

static int open_books(struct daemon *d, struct journal_restored *restored, struct error *err)
{
        const struct journal_options options = { .busy_ms = STORE_BUSY_MS, .keep_events = d->conf.keep_events };
        struct error clock_err = { 0 };
        int r = journal_open(&d->journal, d->paths.journal, &options, err);
        if (r < 0)
                return r;

        d->world = mmap(NULL, sizeof(*d->world), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (d->world == MAP_FAILED) {
                d->world = NULL;
                return error_set(err, ENOMEM, "no memory for the world");
        }
        r = turn_load_world(d, restored, err);
        if (r < 0)
                return error_wrap(err, r, "reading the journal");
        if (world_clock_init(&d->clock, d->paths.clock, d->processes.boot_id, d->world->now_ms, restored->last_wall_ms,
                             &clock_err) < 0)
                log_warning("event=clock-not-kept words=\"%s\"", clock_err.msg);
        r = journal_snapshot(d->journal, d->world, d->clock.boot_id, daemon_wall_ms(d), err);
        if (r < 0)
                return error_wrap(err, r, "beginning to write the journal");
        return host_load_told(d, err);
}

static void owner_submit(void *ctx, const struct input *input)
{
        daemon_submit(ctx, input);
}

/* No connection of before is there any more: leases that live as long as one are over, and a request whose client waited
 * on one has nobody who would take its grant. */
static void end_if_disconnected(struct daemon *d, const struct lease *lease)
{
        const struct entry *entry = world_entry_get(d->world, lease->entry);
        struct input input = { .call = { .lease_id = lease->id, .by_system = true } };

        if (lease->binding.kind == BINDING_CONNECTION) {
                input.kind = INPUT_OWNER_ENDED;
                input.call.end_reason = END_CONNECTION_CLOSED;
        } else if (lease->state == LEASE_QUEUED && entry && entry->collected) {
                input.kind = INPUT_RELEASE;
                input.call.end_reason = END_CANCELLED;
        } else {
                return;
        }
        daemon_submit(d, &input);
}

/* What changed while nobody looked: the configuration, this restart, the owners that are gone. */
static void tell_what_changed(struct daemon *d, const struct journal_restored *restored)
{
        bool rebooted = restored->boot_id[0] != '\0' && strcmp(restored->boot_id, d->clock.boot_id) != 0;
        struct input config = { .kind = INPUT_CONFIG, .config = d->conf.core };
        bool degraded = journal_degraded(d->journal) != NULL;
        struct input restart = { .kind = INPUT_RESTART, .restart = { .rebooted = rebooted, .degraded = degraded } };

        if (memcmp(&d->world->config, &d->conf.core, sizeof(d->conf.core)) != 0)
                daemon_submit(d, &config);
        if (restored->fresh && !degraded)
                return;
        daemon_submit(d, &restart);
        for (uint32_t i = 0; i < d->world->n_leases; i++)
                if (d->world->lease_ids[i] != 0)
                        end_if_disconnected(d, &d->world->leases[i]);
        bookings_look(d); /* before a tick ends those whose time went by */
        if (!rebooted)
                turn_watch_processes(d, END_OWNER_GONE_WHILE_AWAY);
}

static void on_before_sleep(uv_prepare_t *prepare)
{
        struct daemon *d = prepare->data;
        d->now_ms = 0;
}

/* The socket goes to its group where that may be done; where it was not asked for by name, not being able to is worth a line. */
static int listen_for_users(struct daemon *d, int *ret_fd, struct error *err)
{
        struct error why;
        bool known = false;
        gid_t group;

        if (d->paths.mode != PATHS_SYSTEM && !d->conf.doors.socket_group[0])
                return paths_listen(&d->paths, NULL, ret_fd, err);
        int r = doors_socket_group(&d->conf.doors, &known, &group, err);
        if (r < 0)
                return r;
        if (known) {
                r = paths_listen(&d->paths, &group, ret_fd, err);
                if (r != -EPERM || d->conf.doors.socket_group[0])
                        return r;
        }
        (void) error_set(&why, EPERM,
                         known ? "this daemon is not a member of group gpu: give its unit SupplementaryGroups=gpu"
                               : "there is no group gpu: `groupadd --system gpu` makes it, or socket_group in "
                                 "lessord.conf names another");
        log_warning("event=socket-group words=\"%s\"", why.msg);
        group = getegid();
        return paths_listen(&d->paths, &group, ret_fd, err);
}

void daemon_tell_limits(struct daemon *d)
{
        const struct conf_doors *conf = &d->conf.doors;
        const struct api_limits limits = {
                .requests_per_s = conf->requests_per_s,
                .requests_burst = conf->requests_burst,
                .containers = d->conf.sections.containers,
                .n_containers = d->conf.sections.n_containers,
                .engine_socket = conf->engine_socket[0] ? conf->engine_socket : NULL,
        };
        api_server_set_limits(d->api, &limits);
}

static int open_door(struct daemon *d, struct error *err)
{
        struct api_options options = {
                .doors = { { .kind = DOOR_UNIX, .listen_fd = -1, .name = "unix" } },
                .n_doors = 1,
                .tls_cert = d->doors.cert,
                .tls_key = d->doors.key,
                .rules = { .processes = &d->processes,
                           .own_session = d->paths.mode != PATHS_SYSTEM,
                           .own_uid = geteuid(),
                           .admin_gid_known = d->doors.admin_gid_known,
                           .admin_gid = d->doors.admin_gid,
                           .admin_group = d->doors.admin_gid_known ? d->doors.admin_group : NULL },
                .connections_max = connections_allowed(),
                .per_uid_max = API_CONNECTIONS_PER_UID_MAX,
                .waiting_max = API_WAITING_MAX,
        };
        struct api_host host = host_for_api(d);

        for (uint32_t i = 0; i < d->doors.n; i++)
                options.doors[options.n_doors++] = d->doors.items[i];
        int r = listen_for_users(d, &options.doors[0].listen_fd, err);
        if (r < 0)
                return r;
        r = api_server_new(&d->api, &d->loop, &options, &host, err);
        if (r < 0) {
                (void) close(options.doors[0].listen_fd);
                return r;
        }
        d->doors.n = 0; /* the server's now */
        daemon_tell_limits(d);
        doors_forget_key(&d->doors);
        return 0;
}

static void announce(struct daemon *d)
{
        /* A line of its own form: scripts wait for it. */
        (void) fprintf(stderr, "lessord: ready socket=%s\n", d->paths.socket);
        notify_service_manager("READY=1");
}

static void on_turn(uv_check_t *check)
{
        struct daemon *d = check->data;
        struct error err = { 0 };

        turn_run(d);
        /* The door opens after the first look at the cards (or its failure): a client that comes at once is not told that
         * there are none. */
        if (d->ready && !d->api && !d->stopping && d->inputs.n == 0 && turn_is_settled(d)) {
                if (open_door(d, &err) < 0)
                        daemon_give_up(d, "opening the socket", &err);
                else
                        announce(d);
        }
}

static void on_signal(uv_signal_t *signal_handle, int number)
{
        finish_begin(signal_handle->data, number);
}

/* Where lessor-accounting puts it by itself; in one's own session only where the file says so. */
static const char *accounting_folder(const struct daemon *d)
{
        return d->conf.accounting[0] == '\0' && d->paths.mode == PATHS_SYSTEM ? "/run/lessor/accounting"
                                                                              : d->conf.accounting;
}

static int start(struct daemon *d, struct error *err)
{
        struct journal_restored restored = { 0 };
        struct eyes_host eyes = host_for_eyes(d);
        char program[PATH_MAX];

        json_memory_watch();
        int r = pidfd_check_usable(err);
        if (r < 0)
                return r;
        r = libexec_find("lessor-eyes", program, err);
        if (r < 0)
                return r;
        r = paths_make(&d->paths, err);
        if (r < 0)
                return r;
        r = paths_lock(&d->paths, d->lock_fds, err);
        if (r < 0)
                return r;
        reload_accept(d);
        r = doors_open(&d->doors, &d->conf.doors, err);
        if (r < 0)
                return r;
        r = process_source_init(&d->processes, "/proc", err);
        if (r < 0)
                return r;
        r = open_books(d, &restored, err);
        if (r < 0)
                return r;
        r = writer_new(&d->writer, &d->loop, d->journal, turn_answered, d, err);
        if (r < 0)
                return r;
        r = eyes_link_new(&d->eyes, &d->loop, program, accounting_folder(d), d->conf.eyes_deadline_ms, &eyes, err);
        if (r < 0)
                return r;
        unseen_start(d);
        r = hands_start(d, err);
        if (r < 0)
                return r;
        owners_init(&d->owners, OWNERS_OF_LEASES, &d->loop, &d->processes, owner_submit, d);
        owners_init(&d->roots, ROOTS_OF_LEASES, &d->loop, &d->processes, owner_submit, d);
        parked_watch_init(&d->parked, &d->loop, &d->processes, owner_submit, d);
        looks_start(d);
        facts_start(d);
        gate_start(d);
        managers_start(d);
        log_info("event=started journal=%s restored=%d leases=%u records=%llu", d->paths.journal, !restored.fresh,
                 d->world->n_leases, (unsigned long long) restored.n_records);
        tell_what_changed(d, &restored);
        turn_run(d);
        eyes_link_start(d->eyes);
        return 0;
}

static void close_daemon(struct daemon *d)
{
        struct error err = { 0 };
        uv_handle_t *handles[] = {
                (uv_handle_t *) &d->before_sleep, (uv_handle_t *) &d->turn,       (uv_handle_t *) &d->busy,
                (uv_handle_t *) &d->tick,         (uv_handle_t *) &d->retry,      (uv_handle_t *) &d->signals[0],
                (uv_handle_t *) &d->signals[1],   (uv_handle_t *) &d->signals[2], (uv_handle_t *) &d->company,
        };

        writer_finish(d->writer); /* whoever asked in the last moment gets an answer */
        gate_finish(d);
        if (d->api) {
                (void) unlink(d->paths.socket);
                api_server_stop(d->api);
        }
        if (d->eyes)
                eyes_link_stop(d->eyes);
        hands_stop(d);
        gate_stop(d);
        owners_close(&d->owners);
        owners_close(&d->roots);
        parked_watch_close(&d->parked);
        facts_stop(d);
        managers_stop(d);
        looks_stop(d);
        warn_stop(d);
        audits_stop(&d->audits);
        unseen_stop(d);
        for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++)
                uv_close(handles[i], NULL);
        writer_finish(d->writer); /* a snapshot may have been due behind that */
        writer_stop(d->writer);
        (void) uv_run(&d->loop, UV_RUN_DEFAULT);
        (void) uv_loop_close(&d->loop);

        if (d->journal && d->world && d->eyes && d->exit_status == 0 && !d->store_failed) {
                d->now_ms = 0;
                if (journal_snapshot(d->journal, d->world, d->clock.boot_id, daemon_wall_ms(d), &err) < 0)
                        log_warning("event=snapshot-failed words=\"%s\"", err.msg);
        }
        api_server_free(d->api);
        doors_close(&d->doors);
        eyes_link_free(d->eyes);
        hands_free(d);
        gate_free(d);
        journal_close(d->journal);
        writer_free(d->writer);
        inputs_fini(&d->inputs);
        inputs_fini(&d->taken);
        audits_fini(&d->audits);
        tenants_fini(&d->tenants.set);
        free(d->batch.items);
        if (d->world)
                (void) munmap(d->world, sizeof(*d->world));
        for (size_t i = 0; i < 2; i++)
                if (d->lock_fds[i] >= 0)
                        (void) close(d->lock_fds[i]);
}

static void on_reload(uv_signal_t *handle, int signal)
{
        struct error err = { 0 };
        char reloading[64];

        (void) signal;
        (void) snprintf(reloading, sizeof(reloading), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_now_ms() * 1000);
        notify_service_manager(reloading);     /* with the time, or Type=notify-reload does not believe it */
        (void) reload_now(handle->data, &err); /* what was wrong is in the log and in status */
        notify_service_manager("READY=1");
}

static void init_loop(struct daemon *d)
{
        (void) uv_loop_init(&d->loop);
        (void) uv_prepare_init(&d->loop, &d->before_sleep);
        (void) uv_check_init(&d->loop, &d->turn);
        (void) uv_idle_init(&d->loop, &d->busy);
        (void) uv_timer_init(&d->loop, &d->tick);
        (void) uv_timer_init(&d->loop, &d->retry);
        (void) uv_timer_init(&d->loop, &d->company);
        for (size_t i = 0; i < sizeof(d->signals) / sizeof(d->signals[0]); i++) {
                (void) uv_signal_init(&d->loop, &d->signals[i]);
                d->signals[i].data = d;
        }
        d->before_sleep.data = d->turn.data = d->busy.data = d;
        d->tick.data = d->retry.data = d->company.data = d;
        (void) uv_prepare_start(&d->before_sleep, on_before_sleep);
        (void) uv_check_start(&d->turn, on_turn);
        (void) uv_signal_start(&d->signals[0], on_signal, SIGTERM);
        (void) uv_signal_start(&d->signals[1], on_signal, SIGINT);
        (void) uv_signal_start(&d->signals[2], on_reload, SIGHUP);
}

/* What was lacking may be there the next time: a service manager should try again. */
static bool may_pass(const struct error *err)
{
        static const int codes[] = { ENOSPC, EDQUOT, EFBIG, ENOMEM,     EMFILE,
                                     ENFILE, EAGAIN, EIO,   EADDRINUSE, EADDRNOTAVAIL };

        for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
                if (err->code == codes[i])
                        return true;
        return false;
}

int main(int argc, char **argv)
{
        static struct daemon d = { .lock_fds = { -1, -1 }, .hands.launcher = -1 };
        struct options options;
        struct error err = { 0 };

        inherited_put_right();
        /* One busy turn, or one snapshot, is no reason to keep its memory: left alone, glibc raises both with every large
         * block that is freed. */
        (void) mallopt(M_MMAP_THRESHOLD, 64 * 1024);
        (void) mallopt(M_TRIM_THRESHOLD, 128 * 1024);
        (void) mallopt(M_ARENA_MAX, 1); /* nor is a thread that waits for the disk one to have a heap of its own */
        log_init("lessord", LOG_LEVEL_INFO);
        if (options_parse(argc, argv, &options) < 0)
                return EXIT_USAGE;
        log_init("lessord", options.level);
        (void) umask(0077);

        if (paths_find(options.mode, options.dir, &d.paths, &err) < 0) {
                log_error("%s", err.msg);
                return EXIT_REFUSED;
        }
        if (options.check_config)
                return check_config(&options, &d.paths);
        if (options.check_journal)
                return check_journal(&d.paths);
        hands_prepare(&d);
        if (give_up_rights(&err) < 0 || reload_first(&d, options.conf, &err) < 0) {
                log_error("%s", err.msg);
                return EXIT_REFUSED;
        }
        d.started_wall_ms = clock_now_wall_ms();
        init_loop(&d);
        if (start(&d, &err) < 0) {
                log_error("%s", err.msg);
                d.exit_status = may_pass(&err) ? EXIT_FAILURE : EXIT_REFUSED;
        } else {
                (void) uv_run(&d.loop, UV_RUN_DEFAULT);
        }
        close_daemon(&d);
        return d.exit_status;
}
