/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/managers.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "api/managed.h"
#include "base/cgroup2.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/number.h"
#include "programs/lessord/daemon.h"

enum { PROCS_MAX = 64 * 1024, NUMBER_MAX = 12 };

static struct bus *units_bus(struct daemon *d)
{
        return d->paths.mode == PATHS_SYSTEM ? &d->managers.system : &d->managers.user;
}

/* ---- who may ---- */

/* Of this cgroup itself: is each process in it @uid's, and is nothing below it? Whoever has one process in a service of others
 * (cron's, say) may not have the service stopped. */
static bool is_all_of(struct daemon *d, const char *cgroup_path, uint32_t uid)
{
        static struct eyes_process facts; /* 8 KiB */
        auto_free char *text = malloc(PROCS_MAX);
        auto_close int root = cgroup2_open_root();
        const char *shown = d->processes.cgroup_root;
        size_t n_shown = strcmp(shown, "/") == 0 ? 0 : strlen(shown);

        if (!text || root < 0 || strncmp(cgroup_path, shown, n_shown) != 0 || cgroup_path[n_shown] != '/')
                return false;
        auto_close int folder = cgroup2_open(root, cgroup_path + n_shown + 1);
        auto_close int procs = folder < 0 ? -1 : openat(folder, "cgroup.procs", O_RDONLY | O_CLOEXEC);
        ssize_t n = procs < 0 ? -1 : read(procs, text, PROCS_MAX - 1);
        if (n <= 0 || n == PROCS_MAX - 1)
                return false;
        text[n] = '\0';
        for (char *line = text; *line;) {
                size_t n_line = strcspn(line, "\n");
                char digits[NUMBER_MAX];
                uint64_t pid;
                if (n_line >= sizeof(digits))
                        return false;
                (void) snprintf(digits, sizeof(digits), "%.*s", (int) n_line, line);
                if (parse_u64("pid", digits, 1, INT32_MAX, &pid, NULL) < 0 ||
                    process_identify(&d->processes, (uint32_t) pid, &facts, NULL, NULL) < 0 || !facts.uid_known ||
                    facts.uid != uid)
                        return false;
                line += n_line + (line[n_line] == '\n');
        }
        int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = again < 0 ? NULL : fdopendir(again);
        bool has_folders = !dir;
        if (!dir && again >= 0)
                (void) close(again);
        for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
                has_folders = has_folders || (e->d_type == DT_DIR && e->d_name[0] != '.');
        if (dir)
                (void) closedir(dir);
        return !has_folders;
}

/* Below his own service manager anybody may make a cgroup that is called as somebody's container. */
static const char *container_is_out_of_reach(struct daemon *d, const struct managed *m)
{
        if (d->conf.doors.engine_socket[0] == '\0')
                return "its engine is not known: engine_socket in lessord.conf";
        if (m->of_user && d->paths.mode == PATHS_SYSTEM)
                return "it is a container of a person's own engine, which the machine's lessord does not reach";
        if (m->of_user && m->user_uid != geteuid())
                return "it is a container of somebody else's engine";
        return NULL;
}

static const char *unit_is_out_of_reach(struct daemon *d, const struct managed *m)
{
        bool system = d->paths.mode == PATHS_SYSTEM;

        if (d->conf.units == CONF_UNITS_OFF)
                return "units = off in lessord.conf";
        if (system && m->of_user)
                return "it is a unit of a person's own service manager, which the machine's lessord does not reach";
        if (!system && !m->of_user)
                return "it is a unit of the machine's service manager, which a person's own lessord leaves alone";
        if (m->of_user && m->user_uid != geteuid())
                return "it is a unit of somebody else's service manager";
        return units_bus(d)->up ? NULL : "its service manager cannot be asked: the bus is away";
}

bool managers_find(struct daemon *d, const char *cgroup_path, uint32_t uid, bool is_admin, struct manager *ret,
                   const char **ret_why)
{
        struct managed m;

        *ret_why = NULL;
        if (!managed_of_cgroup(cgroup_path, &m))
                *ret_why = "it runs neither in a unit that could be started again (a .service) nor in a container";
        else
                *ret_why = m.manager.kind == MANAGER_CONTAINER ? container_is_out_of_reach(d, &m)
                                                               : unit_is_out_of_reach(d, &m);
        if (!*ret_why && d->paths.mode == PATHS_SYSTEM && !is_admin && !is_all_of(d, cgroup_path, uid))
                *ret_why = "others have processes in it too: only an administrator may have it stopped";
        *ret = *ret_why ? (struct manager){ 0 } : m.manager;
        return !*ret_why;
}

/* ---- what they need of us ---- */

static void submit_outcome(void *ctx, const struct manager_outcome *outcome)
{
        struct input input = { .kind = INPUT_MANAGER, .manager = *outcome };

        daemon_submit(ctx, &input);
}

/* The kernel says where it is: a pid that its manager names counts in its manager's cgroup only. */
static bool identify(void *ctx, uint32_t pid, const char *name, struct manager_outcome *ret)
{
        static struct eyes_process facts;
        struct daemon *d = ctx;
        struct managed m;
        bool system = d->paths.mode == PATHS_SYSTEM;

        if (process_identify(&d->processes, pid, &facts, NULL, NULL) < 0 || !facts.cgroup_known ||
            !managed_of_cgroup(facts.cgroup_path, &m) || strcmp(m.manager.name, name) != 0 ||
            (m.of_user && (system || m.user_uid != geteuid())))
                return false;
        ret->root = (struct identity){ .pid = facts.pid, .start_ticks = facts.start_ticks };
        ret->cgroup_id = facts.cgroup_id_known ? facts.cgroup_id : 0;
        return true;
}

static uint64_t lease_of_unit(void *ctx, const char *unit)
{
        const struct daemon *d = ctx;
        const struct world *w = d->world;

        for (uint32_t i = 0; i < w->n_leases; i++) {
                const struct binding *b = &w->leases[i].binding;
                if (w->lease_ids[i] != 0 && w->leases[i].state == LEASE_PARKED &&
                    (b->manager.kind == MANAGER_USER_UNIT || b->manager.kind == MANAGER_SYSTEM_UNIT) &&
                    strcmp(b->manager.name, unit) == 0)
                        return w->lease_ids[i];
        }
        return 0;
}

static void submit_pause(void *ctx, const struct input *input)
{
        daemon_submit(ctx, input);
}

static bool is_ready(void *ctx, enum pause_what what)
{
        const struct daemon *d = ctx;

        return d->store_failed || (turn_is_settled(d) && d->world->pause == what && finish_half_way(d->world) == 0);
}

static bool thaws_before_sleep(void *ctx)
{
        return ((const struct daemon *) ctx)->conf.sleep_thaws != 0;
}

/* ---- life ---- */

static void on_user_bus(void *ctx, bool up)
{
        units_bus_changed(&((struct daemon *) ctx)->managers.units, up);
}

static void on_system_bus(void *ctx, bool up)
{
        struct daemon *d = ctx;

        if (d->managers.units.bus == &d->managers.system)
                units_bus_changed(&d->managers.units, up);
        if (d->managers.has_inhibit)
                inhibit_bus_changed(&d->managers.inhibit, up);
}

void managers_start(struct daemon *d)
{
        struct managers *m = &d->managers;
        struct units_host units = {
                .ctx = d, .submit = submit_outcome, .identify = identify, .lease_of = lease_of_unit
        };
        struct containers_host containers = { .ctx = d, .submit = submit_outcome, .identify = identify };
        struct inhibit_host inhibit = {
                .ctx = d, .submit = submit_pause, .ready = is_ready, .thaws_before_sleep = thaws_before_sleep
        };
        bool wants_units = d->conf.units != CONF_UNITS_OFF, wants_sleep = d->conf.sleep_waits != CONF_UNITS_OFF;
        bool system = d->paths.mode == PATHS_SYSTEM;

        units_init(&m->units, units_bus(d), &units);
        containers_init(&m->containers, &d->loop, &containers);
        if (wants_units && !system)
                bus_start(&m->user, &d->loop, BUS_USER, on_user_bus, d);
        if (wants_sleep || (wants_units && system)) {
                m->system.loop = &d->loop;
                if (wants_sleep)
                        inhibit_init(&m->inhibit, &m->system, &inhibit);
                m->has_inhibit = wants_sleep;
                bus_start(&m->system, &d->loop, BUS_SYSTEM, on_system_bus, d);
        }
}

void managers_stop(struct daemon *d)
{
        struct managers *m = &d->managers;

        units_stop(&m->units);
        containers_stop(&m->containers);
        if (m->has_inhibit)
                inhibit_stop(&m->inhibit);
        m->has_inhibit = false;
        bus_stop(&m->user);
        bus_stop(&m->system);
}

static void blocked(struct daemon *d, const struct action *a)
{
        submit_outcome(d, &(struct manager_outcome){ .order_id = a->id,
                                                     .lease_id = a->lease_id,
                                                     .outcome = OUTCOME_BLOCKED,
                                                     .why = HAND_WHY_MANAGER_AWAY });
}

void managers_act(struct daemon *d, const struct action *a)
{
        const struct lease *lease = world_lease_by_id(d->world, a->lease_id);
        enum manager_verb verb = (enum manager_verb) a->manage;

        if (!lease || lease->park.order_id != a->id)
                return; /* it has ended in this very turn, or something newer was ordered */
        const struct manager *m = &lease->binding.manager;
        enum manager_kind own = d->paths.mode == PATHS_SYSTEM ? MANAGER_SYSTEM_UNIT : MANAGER_USER_UNIT;
        if (m->kind == MANAGER_CONTAINER && manager_container_is_valid(m->name))
                containers_order(&d->managers.containers, d->conf.doors.engine_socket, m->name, verb, a->wait_ms, a->id,
                                 a->lease_id);
        else if (m->kind == own && manager_unit_is_valid(m->name) && d->conf.units != CONF_UNITS_OFF)
                units_order(&d->managers.units, m->name, verb, a->id, a->lease_id);
        else
                blocked(d, a);
}

const char *managers_units_words(const struct daemon *d)
{
        const struct bus *bus = d->paths.mode == PATHS_SYSTEM ? &d->managers.system : &d->managers.user;

        if (d->conf.units == CONF_UNITS_OFF)
                return "units = off in lessord.conf";
        return bus->up ? "" : bus->words[0] ? bus->words : "the bus is not to be had yet";
}

const char *managers_sleep_words(const struct daemon *d)
{
        return d->managers.has_inhibit ? inhibit_words(&d->managers.inhibit) : "sleep_waits = off in lessord.conf";
}
