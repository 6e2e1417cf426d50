/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* abi - which driver the card plays: its version strings and the names that such a driver did not have yet */

#include "card/card.h"

struct abi {
        const char *word;          /* simgpu create --abi WORD */
        const char *driver;        /* "580.95.05" */
        int cuda_version;          /* 1000 * major + 10 * minor */
        const char *const *hidden; /* fnmatch patterns, NULL at the end */
        const char *help;
};
extern const struct abi abi_table[CARD_ABI_N];

const struct abi *abi_of(const struct card_file *file);

/* abi_hides - is this exported name absent on this card (by its driver, or by create --hide)? */
bool abi_hides(const struct card_file *file, const char *symbol);
