/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the hands may do. In system mode it is read once from a file that only root can change (/etc/lessor/warden.conf,
 * man lessor-warden(8)): the brain has no say in it. In a person's own session there is no file: their own processes, no others.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "hands/protect.h"

enum {
        SETTINGS_UID_RANGES_MAX = 8,
        SETTINGS_GRACE_DEFAULT_MS = 10000,
        SETTINGS_GRACE_LEAST_MS = 1000, /* of the file: no configuration makes SIGKILL a first word */
        SETTINGS_GRACE_MOST_MS = 3600000,
        SETTINGS_RATE_DEFAULT = 20,
        SETTINGS_BURST_DEFAULT = 64,
        SETTINGS_RATE_MOST = 1000,
        SETTINGS_KILL_WAIT_DEFAULT_MS = 10000,
        SETTINGS_FREEZE_WAIT_DEFAULT_MS = 10000,
        SETTINGS_LOOK_DEFAULT_MS = 10000,
};

struct settings {
        size_t n_uid_ranges;
        struct {
                uid_t first, last;
        } uid_ranges[SETTINGS_UID_RANGES_MAX]; /* whose processes may be signalled */
        uint32_t grace_min_ms;                 /* from SIGTERM to SIGKILL */
        uint32_t rate_per_s, burst;            /* orders, carried out or refused */
        uint32_t kill_wait_ms;                 /* after each of three SIGKILLs */
        uint32_t freeze_wait_ms;
        uint32_t look_ms;    /* to look at all processes of a tree, once */
        bool no_cgroup_kill; /* act as on a kernel before 5.14 */
        struct protect_extra protect;
};

/* A person's own session. */
void settings_own(struct settings *ret, uid_t uid);
/* The system's, before its file is read. */
void settings_system(struct settings *ret);
/* A file that is not there leaves @s as it is. -EINVAL: "FILE:LINE: …"; -EPERM: somebody else could change the file. */
int settings_load(struct settings *s, const char *path, struct error *err);
bool settings_allow_uid(const struct settings *s, uid_t uid);
