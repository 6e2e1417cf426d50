/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/move.h"

const struct move_rates move_rates_default = {
        .quiesce_ms = 500,
        .context_ms = 1000,
        .out_bytes_per_s = UINT64_C(25000000000),
        .in_bytes_per_s = UINT64_C(25000000000),
        .net_bytes_per_s = UINT64_C(12500000000),
};

static uint64_t carry_ms(uint64_t bytes, uint64_t bytes_per_s)
{
        return (uint64_t) ((unsigned __int128) bytes * 1000 / bytes_per_s);
}

uint64_t move_loss_gpu_ms(const struct move_rates *rates, uint32_t gpus, uint64_t bytes, bool other_node)
{
        uint64_t pause_ms = rates->quiesce_ms + carry_ms(bytes, rates->out_bytes_per_s);
        uint64_t move_ms = other_node ? carry_ms(bytes, rates->net_bytes_per_s) : 0;
        uint64_t resume_ms = carry_ms(bytes, rates->in_bytes_per_s) + rates->context_ms;

        return gpus * (pause_ms + move_ms + resume_ms);
}

uint64_t move_kill_loss_gpu_ms(uint32_t gpus, uint64_t since_checkpoint_ms, uint64_t restart_ms)
{
        return gpus * (since_checkpoint_ms + restart_ms);
}
