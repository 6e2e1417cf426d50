/* SPDX-License-Identifier: Apache-2.0 */
#include "model/process.h"
#include <stddef.h>

#define NAME_OR_UNKNOWN(table, value)                                                                                  \
        ((size_t) (value) < sizeof(table) / sizeof(*(table)) && (table)[value] ? (table)[value] : "unknown")

const char *process_guard_name(enum process_guard guard)
{
        static const char *const names[GUARD_N] = {
                [GUARD_NONE] = "none",       [GUARD_INIT] = "init",       [GUARD_KERNEL] = "kernel",
                [GUARD_LESSOR] = "lessor",   [GUARD_DISPLAY] = "display", [GUARD_SSHD] = "sshd",
                [GUARD_FOREIGN] = "foreign", [GUARD_UNSEEN] = "unseen",
        };
        return NAME_OR_UNKNOWN(names, guard);
}

const char *process_runs_name(enum process_runs runs)
{
        static const char *const names[RUNS_N] = {
                [RUNS_UNKNOWN] = "unknown",
                [RUNS_PROGRAM] = "program",
                [RUNS_SCRIPT] = "script",
                [RUNS_COMMAND] = "command",
        };
        return NAME_OR_UNKNOWN(names, runs);
}

const char *process_link_name(enum process_link link)
{
        static const char *const names[LINK_N] = {
                [LINK_PARENT] = "parent", [LINK_EVENT] = "event",     [LINK_ACCOUNTED] = "accounted",
                [LINK_TOKEN] = "token",   [LINK_SESSION] = "session",
        };
        return NAME_OR_UNKNOWN(names, link);
}

const char *attributed_by_name(enum attributed_by by)
{
        static const char *const names[ATTRIBUTED_N] = {
                [ATTRIBUTED_NOT] = "none",          [ATTRIBUTED_ROOT] = "root",   [ATTRIBUTED_CGROUP] = "cgroup",
                [ATTRIBUTED_ANCESTOR] = "ancestor", [ATTRIBUTED_TOKEN] = "token", [ATTRIBUTED_ADOPTED] = "adopted",
                [ATTRIBUTED_RECORD] = "record",
        };
        return NAME_OR_UNKNOWN(names, by);
}
