/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * lessord.conf: `key = value` lines, # and ; begin comments; sections for users, groups and containers behind them
 * (conf_sections.h). The keys are a table (conf.c) with a parser, a range and one line of help each; spans and amounts are text ("10m", "1GiB"). An unknown, doubled or bad key is an error
 * that names file and line.
 */
#include <stdbool.h>
#include <stdio.h>
#include "base/error.h"
#include "model/config.h"
#include "programs/lessord/conf_sections.h"

enum { CONF_ADDRESS_MAX = 96, CONF_PATH_MAX = 256, CONF_HOSTS_MAX = 256, CONF_GROUP_MAX = 33, CONF_SOCKET_MAX = 104 };

/* The ways in besides the unix socket, and who may use that one; "" = not given (programs/lessord/doors.c). */
struct conf_doors {
        char tcp_listen[CONF_ADDRESS_MAX]; /* "127.0.0.1:8787", "[::1]:8787" */
        char tcp_token_file[CONF_PATH_MAX];
        char tcp_admin_token_file[CONF_PATH_MAX];
        char tcp_uid[CONF_GROUP_MAX]; /* user the token acts as: name or number */
        char tcp_hosts[CONF_HOSTS_MAX];
        char tcp_cert[CONF_PATH_MAX];
        char tcp_key[CONF_PATH_MAX];
        char metrics_listen[CONF_ADDRESS_MAX];
        char metrics_token_file[CONF_PATH_MAX];
        char metrics_hosts[CONF_HOSTS_MAX];
        char socket_group[CONF_GROUP_MAX];
        char admin_group[CONF_GROUP_MAX];
        char engine_socket[CONF_SOCKET_MAX]; /* of Docker or Podman: asked for names, images and labels */
        uint32_t requests_per_s;             /* of one user, beyond which the rest is refused; 0 = no limit */
        uint32_t requests_burst;
};

/* Whether CUDA checkpoints are used. */
enum conf_checkpoint {
        CONF_CHECKPOINT_AUTO, /* as the driver can */
        CONF_CHECKPOINT_OFF,
        CONF_CHECKPOINT_ON, /* also with a driver that is too old, unknown, or known to be broken */
};

/* Whether units are stopped and started by D-Bus; and whether sleep and shutdown wait for us. */
enum conf_units { CONF_UNITS_AUTO, /* where there is a bus */ CONF_UNITS_OFF };

struct conf {
        struct config core;
        struct conf_sections sections;
        struct conf_doors doors;
        uint64_t poll_ms;               /* how often the cards are looked at while leases exist */
        uint64_t poll_busy_ms;          /* … while something waits, drains or is to be collected */
        uint64_t poll_idle_ms;          /* … while there is no lease at all */
        uint64_t poll_activity_ms;      /* how often is looked at what processes do */
        struct idle_ladder idle;        /* of each class without a section of its own */
        uint64_t wsl_margin_bytes;      /* core.kept_free_bytes where the kernel is WSL's (F33) */
        uint32_t keep_events;           /* in the journal */
        uint8_t checkpoint;             /* enum conf_checkpoint */
        uint8_t units;                  /* enum conf_units */
        uint8_t sleep_waits;            /* enum conf_units */
        uint8_t sleep_thaws;            /* 1: what is parked and fits comes back before the machine sleeps */
        bool warn_terminals;            /* owners of strangers are told on their terminals */
        char accounting[CONF_PATH_MAX]; /* where lessor-accounting keeps process accounting; "" = nowhere */
        char warn_hook[CONF_PATH_MAX];  /* and by this program with its arguments; "" = none */
        uint64_t eyes_deadline_ms;      /* no answer for so long: the driver hangs */
};

void conf_defaults(struct conf *conf);
void conf_fini(struct conf *conf);
/* @required: a missing file is an error; else it means the defaults. */
int conf_load(const char *path, bool required, struct conf *conf, struct error *err);
/* The keys in their order, for whoever shows them: false behind the last. Texts are good until the next call. */
struct conf_shown {
        const char *name, *help;
        char value[CONF_PATH_MAX],
                otherwise[CONF_PATH_MAX]; /* as lessord.conf would have it; and without a line there */
};
bool conf_show(const struct conf *conf, size_t i, struct conf_shown *ret);
/* The first key whose change only a restart of lessord takes up; NULL: there is none. */
const char *conf_needs_restart(const struct conf *a, const struct conf *b);
/* Every key with its value now and its help, as lessord.conf would have it. */
void conf_print(FILE *out, const struct conf *conf);
