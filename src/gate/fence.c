/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/fence.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include "base/cleanup.h"

enum {
        INSNS_MAX = 512,
        JUMPS_MAX = 64,
        LEVELS_MAX = 16, /* how deep a cgroup may lie that lets those below it through */
};

/* The value of the one row of `counts`. */
struct counts {
        uint64_t refused;
        uint64_t last_uid;
};

/* ---- the program ---- */

/* Instructions one after the other; those that jump to the end where everybody passes are put right when it is known. */
struct listing {
        struct bpf_insn insns[INSNS_MAX];
        size_t n;
        size_t to_pass[JUMPS_MAX];
        size_t n_to_pass;
};

static struct bpf_insn *add(struct listing *l, int code, int dst, int src, int off, int imm)
{
        struct bpf_insn *i = &l->insns[l->n < INSNS_MAX ? l->n++ : INSNS_MAX - 1];

        *i = (struct bpf_insn){ .code = (uint8_t) code, .off = (int16_t) off, .imm = imm };
        i->dst_reg = (unsigned) dst & 0xfU;
        i->src_reg = (unsigned) src & 0xfU;
        return i;
}

static void set(struct listing *l, int dst, int imm)
{
        add(l, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm);
}

static void copy(struct listing *l, int dst, int src)
{
        add(l, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

static void call(struct listing *l, int helper)
{
        add(l, BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

static void pass_if(struct listing *l, int condition, int reg, int imm)
{
        if (l->n_to_pass < JUMPS_MAX)
                l->to_pass[l->n_to_pass++] = l->n;
        add(l, BPF_JMP | condition | BPF_K, reg, 0, 0, imm);
}

/* r0 = where the row for the key at r10+@key_at is, or 0. */
static void look_up(struct listing *l, int map, int key_at)
{
        add(l, BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map);
        add(l, 0, 0, 0, 0, 0); /* the upper half */
        copy(l, BPF_REG_2, BPF_REG_10);
        add(l, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, key_at);
        call(l, BPF_FUNC_map_lookup_elem);
}

enum { KEY32_AT = -8, KEY64_AT = -16 }; /* on the stack */

/* Only who opens one of the devices is looked at any further. r6 is the context all along. */
static void look_at_device(struct listing *l, const struct fence *f)
{
        copy(l, BPF_REG_6, BPF_REG_1);
        add(l, BPF_LDX | BPF_W | BPF_MEM, BPF_REG_2, BPF_REG_6, offsetof(struct bpf_cgroup_dev_ctx, access_type), 0);
        copy(l, BPF_REG_3, BPF_REG_2);
        add(l, BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_3, 0, 0, 0xffff);
        pass_if(l, BPF_JNE, BPF_REG_3, BPF_DEVCG_DEV_CHAR);
        add(l, BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_2, 0, 0, 16);
        add(l, BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_2, 0, 0, BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE);
        pass_if(l, BPF_JEQ, BPF_REG_2, 0);
        add(l, BPF_LDX | BPF_W | BPF_MEM, BPF_REG_2, BPF_REG_6, offsetof(struct bpf_cgroup_dev_ctx, major), 0);
        add(l, BPF_STX | BPF_W | BPF_MEM, BPF_REG_10, BPF_REG_2, KEY32_AT, 0);
        look_up(l, f->devices, KEY32_AT);
        pass_if(l, BPF_JEQ, BPF_REG_0, 0);
}

/* r7 is the user from here on. */
static void look_at_user(struct listing *l, uint32_t users_from)
{
        call(l, BPF_FUNC_get_current_uid_gid);
        add(l, BPF_ALU | BPF_MOV | BPF_X, BPF_REG_7, BPF_REG_0, 0, 0); /* the lower half */
        pass_if(l, BPF_JLT, BPF_REG_7, (int) users_from);
}

/* Its own cgroup by any row, those around it by rows that hold for all below. */
static void look_at_cgroups(struct listing *l, const struct fence *f)
{
        size_t outermost[LEVELS_MAX];

        call(l, BPF_FUNC_get_current_cgroup_id);
        add(l, BPF_STX | BPF_DW | BPF_MEM, BPF_REG_10, BPF_REG_0, KEY64_AT, 0);
        look_up(l, f->passes, KEY64_AT);
        pass_if(l, BPF_JNE, BPF_REG_0, 0);
        for (int level = 1; level <= LEVELS_MAX; level++) {
                set(l, BPF_REG_1, level);
                call(l, BPF_FUNC_get_current_ancestor_cgroup_id);
                outermost[level - 1] = l->n;
                add(l, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 0, 0); /* it does not lie that deep: refused */
                add(l, BPF_STX | BPF_DW | BPF_MEM, BPF_REG_10, BPF_REG_0, KEY64_AT, 0);
                look_up(l, f->passes, KEY64_AT);
                add(l, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 3, 0); /* to the next level */
                add(l, BPF_LDX | BPF_DW | BPF_MEM, BPF_REG_1, BPF_REG_0, 0, 0);
                add(l, BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_1, 0, 0, FENCE_BELOW);
                pass_if(l, BPF_JNE, BPF_REG_1, 0);
        }
        for (int i = 0; i < LEVELS_MAX; i++)
                l->insns[outermost[i]].off = (int16_t) (l->n - outermost[i] - 1);
}

static void refuse(struct listing *l, const struct fence *f, enum gate_mode mode)
{
        add(l, BPF_ST | BPF_W | BPF_MEM, BPF_REG_10, 0, KEY32_AT, 0);
        look_up(l, f->counts, KEY32_AT);
        add(l, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 3, 0);
        set(l, BPF_REG_1, 1);
        add(l, BPF_STX | BPF_DW | BPF_ATOMIC, BPF_REG_0, BPF_REG_1, offsetof(struct counts, refused), BPF_ADD);
        add(l, BPF_STX | BPF_DW | BPF_MEM, BPF_REG_0, BPF_REG_7, offsetof(struct counts, last_uid), 0);
        set(l, BPF_REG_0, mode == GATE_ON ? 0 : 1);
        add(l, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
        for (size_t i = 0; i < l->n_to_pass; i++)
                l->insns[l->to_pass[i]].off = (int16_t) (l->n - l->to_pass[i] - 1);
        set(l, BPF_REG_0, 1);
        add(l, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static int load_program(const struct fence *f, enum gate_mode mode, uint32_t users_from, struct error *err)
{
        static struct listing l;

        l.n = l.n_to_pass = 0;
        look_at_device(&l, f);
        look_at_user(&l, users_from);
        look_at_cgroups(&l, f);
        refuse(&l, f, mode);
        int fd = bpf_prog_load(BPF_PROG_TYPE_CGROUP_DEVICE, "lessor_gate", "Apache-2.0", l.insns, l.n, NULL);
        return fd < 0 ? error_errno(err, errno, "giving the kernel the program of the gate") : fd;
}

/* ---- the tables ---- */

int fence_init(struct fence *f, struct error *err)
{
        LIBBPF_OPTS(bpf_map_create_opts, as_needed, .map_flags = BPF_F_NO_PREALLOC);

        *f = (struct fence){ .passes = -1, .devices = -1, .counts = -1 };
        for (size_t i = 0; i < GATE_CGROUPS_MAX; i++)
                f->links[i] = -1;
        f->passes = bpf_map_create(BPF_MAP_TYPE_HASH, "lessor_passes", sizeof(uint64_t), sizeof(uint64_t),
                                   FENCE_PASSES_MAX, &as_needed);
        if (f->passes >= 0)
                f->devices = bpf_map_create(BPF_MAP_TYPE_HASH, "lessor_devices", sizeof(uint32_t), sizeof(uint32_t),
                                            GATE_MAJORS_MAX, &as_needed);
        if (f->devices >= 0)
                f->counts = bpf_map_create(BPF_MAP_TYPE_ARRAY, "lessor_counts", sizeof(uint32_t), sizeof(struct counts),
                                           1, NULL);
        return f->counts >= 0 ? 0 : error_errno(err, errno, "making the tables of the gate");
}

int fence_pass(struct fence *f, uint64_t cgroup_id, uint64_t how)
{
        if (how != 0)
                return bpf_map_update_elem(f->passes, &cgroup_id, &how, BPF_ANY) < 0 ? -errno : 0;
        return bpf_map_delete_elem(f->passes, &cgroup_id) < 0 && errno != ENOENT ? -errno : 0;
}

void fence_set_devices(struct fence *f, const uint32_t *majors, size_t n)
{
        uint32_t old[GATE_MAJORS_MAX], key = 0, yes = 1;
        size_t n_old = 0;

        for (bool first = true;
             n_old < GATE_MAJORS_MAX && bpf_map_get_next_key(f->devices, first ? NULL : &key, &key) == 0; first = false)
                old[n_old++] = key;
        for (size_t i = 0; i < n; i++)
                (void) bpf_map_update_elem(f->devices, &majors[i], &yes, BPF_ANY);
        for (size_t i = 0; i < n_old; i++) {
                bool stays = false;
                for (size_t k = 0; k < n; k++)
                        stays = stays || majors[k] == old[i];
                if (!stays)
                        (void) bpf_map_delete_elem(f->devices, &old[i]);
        }
}

void fence_counts(const struct fence *f, uint64_t *ret_refused, uint32_t *ret_last_uid)
{
        struct counts counts = { 0 };
        uint32_t key = 0;

        if (f->counts >= 0)
                (void) bpf_map_lookup_elem(f->counts, &key, &counts);
        *ret_refused = counts.refused;
        *ret_last_uid = (uint32_t) counts.last_uid;
}

/* ---- where it stands ---- */

static void close_links(int *links, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                closep(&links[i]);
                links[i] = -1;
        }
}

int fence_set(struct fence *f, enum gate_mode mode, uint32_t users_from, const int *folders, size_t n,
              struct error *err)
{
        int links[GATE_CGROUPS_MAX];
        auto_close int program = -1;

        if (mode == GATE_OFF || n == 0) {
                close_links(f->links, GATE_CGROUPS_MAX);
                f->mode = GATE_OFF;
                return 0;
        }
        program = load_program(f, mode, users_from, err);
        if (program < 0)
                return program;
        for (size_t i = 0; i < GATE_CGROUPS_MAX; i++)
                links[i] = -1;
        for (size_t i = 0; i < n && i < GATE_CGROUPS_MAX; i++) {
                links[i] = bpf_link_create(program, folders[i], BPF_CGROUP_DEVICE, NULL);
                if (links[i] < 0) {
                        int code = errno;
                        close_links(links, GATE_CGROUPS_MAX);
                        return error_errno(err, code, "putting the gate in front of a cgroup");
                }
        }
        close_links(f->links, GATE_CGROUPS_MAX); /* for a moment both stood there */
        memcpy(f->links, links, sizeof(links));
        f->mode = mode;
        return 0;
}
