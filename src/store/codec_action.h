/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Actions as bytes: what the journal keeps of a decision, and what replay compares. A version comes first.
 *
 * encode: writes into @buf. -EINVAL: a field has a value that could not be read back (our own bug; the words name it);
 * -EMSGSIZE: no room. decode: any bytes are safe and the work is bounded by their number; -EBADMSG with words, and
 * -EPROTONOSUPPORT for another version. What it accepts it encodes again to the same bytes. @ret is undefined on failure.
 */
#include <stddef.h>
#include "base/error.h"
#include "model/action.h"

enum {
        CODEC_ACTION_MAX = 512, /* one; a test holds the largest against it */
        CODEC_ACTIONS_MAX = 16 + ACTIONS_MAX * CODEC_ACTION_MAX,
};

int codec_action_encode(const struct action *action, void *buf, size_t buf_size, size_t *ret_n, struct error *err);
int codec_action_decode(const void *data, size_t n_data, struct action *ret, struct error *err);

/* The whole list of one step, `more` included. Only items[0, n) travel; the others are left alone. */
int codec_actions_encode(const struct actions *actions, void *buf, size_t buf_size, size_t *ret_n, struct error *err);
int codec_actions_decode(const void *data, size_t n_data, struct actions *ret, struct error *err);
