/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The name under which a command's costs and peaks are remembered (design 2, "consumer"): the script or module for
 * interpreters, else the program. "python3 -u /x/train.py" is "train.py", "python -m vllm.serve" is "vllm.serve",
 * "env A=1 nice -n 5 ./bench" is "bench".
 */
#include "model/limits.h"

/* @argv ends with NULL and has at least one word. Returns @buf: at most 63 bytes, no control characters, never empty. */
const char *consumer_of_command(char *const *argv, char buf[NAME_MAX_BYTES]);
