/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Is there a lessord, or a lessor-warden, that answers for a folder of parked processes? Then bringing back is its business. */
#include "programs/lessor/rescue_find.h"

/* Fills keeper and warden_pid of @folder, whose paths are known. Takes two seconds where a lessord hangs. */
void rescue_keeper_find(struct rescue_folder *folder);
/* "lessord answers here: `lessor thaw …`", with what to do instead; "" for nobody. Returns @buf. */
const char *rescue_keeper_words(const struct rescue_folder *folder, char buf[RESCUE_WHY_MAX]);
