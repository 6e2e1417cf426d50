/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/rescue_room.h"
#include <errno.h>
#include <stdio.h>
#include "base/number.h"
#include "programs/lessor/apart.h"
#include "senses/nvml.h"

enum { LOOK_MS = 10000, SLACK_MILLI = 20 };

struct asked {
        char uuid[EYES_UUID_SIZE];
        uint32_t pid;
        struct room room;
        bool driver_ok, read;
        char words[EYES_ALARM_SIZE];
};

static bool is_listed(struct nvml *nvml, const struct asked *a)
{
        static struct gpu_listed listed[GPU_LISTED_MAX];
        size_t n = 0;

        if (a->pid == 0 || nvml_ops.read_list(nvml, a->uuid, listed, GPU_LISTED_MAX, &n).error != EYES_ERROR_NONE)
                return false;
        for (size_t i = 0; i < n; i++)
                if (listed[i].pid == a->pid && (!listed[i].used_known || listed[i].used_bytes > 0))
                        return true;
        return false;
}

static void look(void *answer)
{
        static struct nvml nvml;
        static struct eyes_device devices[EYES_DEVICES_MAX];
        struct asked *a = answer;
        struct gpu_driver driver = { 0 };
        struct gpu_memory memory = { 0 };
        uint32_t n = 0, n_hidden = 0;

        nvml_ops.start(&nvml, &driver);
        a->driver_ok = driver.state == EYES_DRIVER_OK;
        (void) snprintf(a->words, sizeof(a->words), "%s", driver.words);
        if (!a->driver_ok || nvml_ops.enumerate(&nvml, devices, &n, &n_hidden).error != EYES_ERROR_NONE ||
            nvml_ops.read_memory(&nvml, a->uuid, &memory).error != EYES_ERROR_NONE)
                return;
        a->read = memory.total_bytes > 0 && memory.free_bytes <= memory.total_bytes;
        a->room = (struct room){ memory.total_bytes, memory.free_bytes, is_listed(&nvml, a) };
}

int room_look(const char *uuid, uint32_t pid, struct room *ret, struct error *err)
{
        struct asked a = { .pid = pid };

        (void) snprintf(a.uuid, sizeof(a.uuid), "%s", uuid);
        int r = apart(look, &a, sizeof(a), LOOK_MS);
        if (r == -ETIMEDOUT)
                return error_set(err, ETIMEDOUT, "the driver does not answer within %d s", LOOK_MS / 1000);
        if (r < 0)
                return error_errno(err, -r, "asking the driver about %s", uuid);
        a.words[sizeof(a.words) - 1] = '\0';
        if (!a.driver_ok)
                return error_set(err, ENODEV, "the driver cannot be asked about %s%s%s", uuid,
                                 a.words[0] != '\0' ? ": " : "", a.words);
        if (!a.read)
                return error_set(err, ENODEV, "how full %s is cannot be seen here (`nvidia-smi -L` lists the devices)",
                                 uuid);
        *ret = a.room;
        return 0;
}

uint64_t room_needed_bytes(const struct room *room, uint64_t bytes)
{
        uint64_t with_slack = u64_add_sat(bytes, room->total_bytes / 1000 * SLACK_MILLI);

        return u64_max(bytes, u64_min(with_slack, room->total_bytes));
}
