/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-warden-admin/keeper.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cgroup2.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "gate/place.h"

enum { DEVICES_FILE_MAX = 16384 };

/* ---- who passes ---- */

static int tell_kernel(struct keeper *k, uint64_t cgroup_id)
{
        return k->no_fence ? 0 : fence_pass(&k->fence, cgroup_id, table_how(&k->table, cgroup_id));
}

/* Folders that are gone are no more: their numbers do not come again, so this is only for the room. */
static void sweep(struct keeper *k)
{
        for (size_t i = 0; i < k->table.n; i++) {
                const struct table_row *row = &k->table.rows[i];
                if (row->cgroup_id == 0 || row->lease_id != 0)
                        continue;
                auto_close int folder = place_open_id(k->root, row->cgroup_id);
                if (folder < 0 && (errno == ESTALE || errno == ENOENT))
                        (void) tell_kernel(k, table_drop_at(&k->table, i));
        }
}

static void on_always(void *ctx, uint64_t cgroup_id, bool passes)
{
        struct keeper *k = ctx;
        uint64_t old;

        bool put = !passes || table_put(&k->table, 0, cgroup_id, FENCE_EXACT | FENCE_BELOW, &old);
        if (!put) { /* of folders that were made and removed */
                sweep(k);
                put = table_put(&k->table, 0, cgroup_id, FENCE_EXACT | FENCE_BELOW, &old);
        }
        if (!put)
                log_warning("event=gate-full words=\"a cgroup that always passes does not: the table is full\"");
        for (size_t i = 0; !passes && i < k->table.n; i++)
                if (k->table.rows[i].lease_id == 0 && k->table.rows[i].cgroup_id == cgroup_id)
                        (void) table_drop_at(&k->table, i);
        (void) tell_kernel(k, cgroup_id);
}

void keeper_allow(struct keeper *k, const struct gate_allow *allow, struct gate_answer *ret)
{
        struct gate_place place;
        uint64_t old = 0;

        *ret = (struct gate_answer){ .lease_id = allow->lease_id, .result = GATE_BLOCKED };
        ret->why = place_find(k->root, &k->conf, allow, &place);
        if (ret->why == GATE_WHY_SYSTEM)
                ret->error = errno;
        if (ret->why == GATE_WHY_NONE && !table_put(&k->table, allow->lease_id, place.cgroup_id, place.how, &old))
                ret->why = GATE_WHY_FULL;
        if (ret->why != GATE_WHY_NONE) { /* what it had before is not what it means now */
                keeper_forget(k, allow->lease_id);
                return;
        }
        if (old != 0)
                (void) tell_kernel(k, old);
        int r = tell_kernel(k, place.cgroup_id);
        if (r < 0) {
                keeper_forget(k, allow->lease_id);
                ret->result = GATE_FAILED;
                ret->why = GATE_WHY_SYSTEM;
                ret->error = -r;
                return;
        }
        ret->result = GATE_DONE;
        ret->why = place.covered ? GATE_WHY_NONE : GATE_WHY_OUTSIDE;
}

void keeper_forget(struct keeper *k, uint64_t lease_id)
{
        uint64_t cgroup_id = table_drop(&k->table, lease_id);

        if (cgroup_id != 0)
                (void) tell_kernel(k, cgroup_id);
}

void keeper_greet(struct keeper *k)
{
        table_doubt_leases(&k->table);
}

static void forget_unconfirmed(struct keeper *k)
{
        for (size_t i = 0; i < k->table.n; i++) {
                const struct table_row *row = &k->table.rows[i];
                if (row->lease_id != 0 && !row->confirmed)
                        (void) tell_kernel(k, table_drop_at(&k->table, i));
        }
}

/* Those that always pass are found anew: under another configuration, others do. */
static void look_for_always(struct keeper *k, uint64_t now_ms)
{
        struct error err = { 0 };

        for (size_t i = 0; i < k->table.n; i++)
                if (k->table.rows[i].cgroup_id != 0 && k->table.rows[i].lease_id == 0)
                        (void) tell_kernel(k, table_drop_at(&k->table, i));
        if (always_begin(&k->always, &k->conf, now_ms, &err) < 0)
                log_warning("event=gate-not-watching words=\"%s\"", err.msg);
}

/* ---- where it stands ---- */

static void look_at_devices(struct keeper *k)
{
        static char text[DEVICES_FILE_MAX];
        uint32_t majors[GATE_MAJORS_MAX];
        auto_close int fd = open("/proc/devices", O_RDONLY | O_CLOEXEC);
        ssize_t n = 0, got = 0;

        while (fd >= 0 && (size_t) n < sizeof(text) && (got = read(fd, text + n, sizeof(text) - (size_t) n)) > 0)
                n += got;
        fence_set_devices(&k->fence, majors, gate_conf_majors(&k->conf, text, (size_t) n, majors, GATE_MAJORS_MAX));
}

/* The configured cgroups that exist, open. What appears later is seen at a later look. */
static size_t open_cgroups(const struct keeper *k, int ret[GATE_CGROUPS_MAX], uint64_t ret_inodes[GATE_CGROUPS_MAX])
{
        size_t n = 0;
        struct stat st;

        for (uint32_t i = 0; k->root >= 0 && i < k->conf.n_cgroups; i++) {
                int folder = cgroup2_open(k->root, k->conf.cgroups[i]);
                if (folder < 0 || fstat(folder, &st) < 0) {
                        closep(&folder);
                        continue;
                }
                ret_inodes[n] = st.st_ino;
                ret[n++] = folder;
        }
        return n;
}

static enum gate_why stand(struct keeper *k, bool only_if_changed, struct error *err)
{
        int folders[GATE_CGROUPS_MAX];
        uint64_t inodes[GATE_CGROUPS_MAX] = { 0 };
        size_t n = open_cgroups(k, folders, inodes);
        enum gate_why why = GATE_WHY_NONE;

        bool same = n == k->n_standing && memcmp(inodes, k->standing, sizeof(inodes[0]) * n) == 0;
        if (n == 0)
                why = GATE_WHY_NO_CGROUP;
        else if ((!same || !only_if_changed) &&
                 fence_set(&k->fence, k->wanted, k->conf.users_from, folders, n, err) < 0)
                why = err->code == EPERM || err->code == EACCES || err->code == EINVAL || err->code == ENOSYS
                              ? GATE_WHY_KERNEL
                              : GATE_WHY_SYSTEM;
        if (why == GATE_WHY_NONE) {
                memcpy(k->standing, inodes, sizeof(inodes));
                k->n_standing = n;
        }
        for (size_t i = 0; i < n; i++)
                (void) close(folders[i]);
        return why;
}

void keeper_open(struct keeper *k, const char *why)
{
        if (k->fence.mode != GATE_OFF)
                log_info("event=gate-open words=\"%s\"", why);
        if (!k->no_fence)
                (void) fence_set(&k->fence, GATE_OFF, 0, NULL, 0, NULL);
        k->wanted = GATE_OFF;
        k->n_standing = 0;
        always_end(&k->always);
}

static enum gate_why set(struct keeper *k, enum gate_mode mode, uint64_t now_ms, struct error *err)
{
        if (mode == GATE_OFF) {
                keeper_open(k, "lessord has it off");
                return GATE_WHY_NONE;
        }
        if (gate_conf_load(&k->conf, k->config, err) < 0) {
                keeper_open(k, "the configuration cannot be used");
                return GATE_WHY_CONFIG;
        }
        if (k->conf.mode != mode) {
                keeper_open(k, "the configuration has another mode than lessord asks for");
                return GATE_WHY_MODE;
        }
        if (k->no_fence) {
                (void) error_errno(err, k->no_fence, "device programs of cgroups");
                return GATE_WHY_KERNEL;
        }
        look_at_devices(k);
        look_for_always(k, now_ms);
        k->wanted = mode;
        enum gate_why why = stand(k, false, err);
        if (why == GATE_WHY_NO_CGROUP) { /* asked again at each look */
                (void) fence_set(&k->fence, GATE_OFF, 0, NULL, 0, NULL);
                k->n_standing = 0;
        } else if (why == GATE_WHY_KERNEL) {
                keeper_open(k, "the kernel would not have it");
        }
        return why;
}

void keeper_set(struct keeper *k, enum gate_mode mode, uint64_t now_ms, struct gate_answer *ret)
{
        struct error err = { 0 };

        forget_unconfirmed(k);
        enum gate_why why = set(k, mode, now_ms, &err);
        *ret = (struct gate_answer){
                .result = why == GATE_WHY_NONE     ? GATE_DONE
                          : why == GATE_WHY_SYSTEM ? GATE_FAILED
                                                   : GATE_BLOCKED,
                .why = why,
                .error = why == GATE_WHY_SYSTEM || why == GATE_WHY_KERNEL ? err.code : 0,
        };
        if (why != GATE_WHY_NONE)
                log_warning("event=gate-not-set mode=%s why=%s words=\"%s\"", gate_mode_name(mode), gate_why_name(why),
                            err.msg[0] ? err.msg : gate_why_words(why));
        else
                log_info("event=gate-set mode=%s cgroups=%zu leases=%zu", gate_mode_name(mode), k->n_standing,
                         table_count_leases(&k->table));
}

void keeper_look(struct keeper *k, uint64_t now_ms)
{
        struct error err = { 0 };

        (void) now_ms;
        if (k->wanted == GATE_OFF || k->no_fence)
                return;
        look_at_devices(k);
        sweep(k);
        enum gate_why why = stand(k, true, &err);
        if (why != GATE_WHY_NONE && why != GATE_WHY_NO_CGROUP)
                log_warning("event=gate-not-set why=%s words=\"%s\"", gate_why_name(why), err.msg);
        if (why == GATE_WHY_NO_CGROUP)
                k->n_standing = 0; /* a cgroup that was removed took the gate in front of it along */
}

void keeper_state(const struct keeper *k, struct gate_state *ret)
{
        size_t n = table_count_leases(&k->table);

        *ret = (struct gate_state){ .mode = k->n_standing ? k->fence.mode : GATE_OFF,
                                    .n_cgroups = (uint32_t) k->n_standing,
                                    .n_leases = (uint32_t) (n < UINT16_MAX ? n : UINT16_MAX) };
        fence_counts(&k->fence, &ret->refused, &ret->last_uid);
        if (ret->refused == 0)
                ret->last_uid = 0;
}

void keeper_init(struct keeper *k, const char *config, const char *sessions)
{
        const struct always_host host = { .ctx = k, .pass = on_always };
        struct error err = { 0 };

        k->config = config;
        k->root = cgroup2_open_root();
        gate_conf_defaults(&k->conf);
        /* What is gated decides whether a lease may be let through: known before the first is told of. */
        if (gate_conf_load(&k->conf, config, &err) < 0)
                log_warning("event=gate-config words=\"%s\"", err.msg);
        err = (struct error){ 0 };
        if (fence_init(&k->fence, &err) < 0) {
                k->no_fence = err.code;
                log_warning("event=gate-not-possible words=\"%s\"", err.msg);
        }
        always_init(&k->always, k->root, sessions, &host);
}
