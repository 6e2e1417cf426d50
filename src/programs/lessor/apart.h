/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Work that may hang or crash, such as asking a driver, done by a child of ours: then only the child does. */
#include <stddef.h>
#include <stdint.h>

/*
 * Calls @work with @answer in a child that says nothing on its outputs, and copies the child's @answer (@n bytes, no pointers) back
 * here. 0, -ETIMEDOUT: it hangs and was killed, -EIO: it died, or another negative errno; @answer is as it was then.
 */
int apart(void (*work)(void *answer), void *answer, size_t n, uint64_t deadline_ms);
