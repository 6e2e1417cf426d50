/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the processes on the devices do: work that the driver sampled of them, and their time on a CPU, once an interval. A row
 * rested when both are known for the whole interval and both are nothing; what is not known stays unknown.
 *
 * A driver that has no sample says the same whether nobody worked or it never samples anything. So its silence counts only on a
 * device of which it has shown a sample before; and its first answer, which may be of long ago, only as that.
 */
#include <stdbool.h>
#include <stdint.h>
#include "senses/gpu.h"
#include "senses/process.h"
#include "senses/process_table.h"
#include "wire/eyes.h"

/* Of one device. */
struct device_activity {
        uint64_t since_us;
        bool asked;     /* at least once: what comes now is of the interval between */
        bool has_shown; /* samples, ever */
        bool is_known;  /* of the last whole interval */
        uint32_t n_worked;
        uint32_t worked[EYES_ROWS_MAX]; /* sorted */
};

/* CPU time of everybody in the table. */
void activity_of_processes(struct process_table *table, const struct process_source *source, uint64_t now_ms);
/* Samples of one device; @reachable false: it cannot be asked. */
void activity_of_device(struct device_activity *of, const struct gpu_ops *ops, void *gpu, const char *uuid,
                        bool reachable);
/* Sets EYES_ROW_WORKED or EYES_ROW_RESTED, or neither. @held: who the row is, NULL = nobody known. */
void activity_mark(const struct device_activity *of, const struct process_entry *held, struct eyes_row *row);
