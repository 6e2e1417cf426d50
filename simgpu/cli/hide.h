/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * hide - copies of the two libraries in which chosen names cannot be found
 *
 * A name is hidden by spoiling its text in the copy's dynamic string table: the hash still leads there, the comparison
 * fails, dlsym says no, as with a driver that never had the function. One mechanism plays every old driver.
 */

#include "card/card.h"

/* hide_build - FILE.lib with both libraries for this card. Exits 1 with words on failure. */
void hide_build(const struct card_file *file, const char *card_path);
