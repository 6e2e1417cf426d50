/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The name under which measured costs and peaks are remembered (design 2): the script or module for interpreters, else
 * the program. From the facts /proc gave; pure. The result is plain text (escaped), never empty.
 */
#include "model/limits.h"
#include "wire/eyes.h"

void consumer_of_process(const struct eyes_process *facts, char ret[NAME_MAX_BYTES]);
