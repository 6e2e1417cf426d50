/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether jansson ran out of memory. What is built of values then lacks parts without saying so (an empty list of devices),
 * and what json_dumps() writes may not even be JSON. So nobody checks each value: whoever sends asks here, once.
 * One thread, the loop's.
 */
#include <stdbool.h>

/* Before the first value is made. */
void json_memory_watch(void);
/* True: since this was last asked, an allocation failed; throw away what was built. */
bool json_memory_take_failed(void);
