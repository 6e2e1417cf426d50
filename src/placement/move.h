/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What it costs to take work off its GPUs and put it back, there or elsewhere, or to end it: in GPU-milliseconds that nobody
 * computes in. Measured times are better; this is what is reckoned with before there are any.
 */
#include <stdbool.h>
#include <stdint.h>

struct move_rates {
        uint64_t quiesce_ms;      /* until it stands still */
        uint64_t context_ms;      /* until it works again, after its bytes are back */
        uint64_t out_bytes_per_s; /* to host memory; 0 in none of them */
        uint64_t in_bytes_per_s;
        uint64_t net_bytes_per_s; /* to another node */
};

/* 0.5 s, 1 s, 25 GB/s out and in, 12.5 GB/s between nodes. */
extern const struct move_rates move_rates_default;

/* Paused and resumed; @bytes on @gpus GPUs. */
uint64_t move_loss_gpu_ms(const struct move_rates *rates, uint32_t gpus, uint64_t bytes, bool other_node);
/* Ended and begun again from its last checkpoint. */
uint64_t move_kill_loss_gpu_ms(uint32_t gpus, uint64_t since_checkpoint_ms, uint64_t restart_ms);
