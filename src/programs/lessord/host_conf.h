/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Members of struct api_host (api/host.h); @ctx is the daemon. */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

uint32_t host_quota_row(void *ctx, uint32_t uid, const uint32_t *gids, size_t n_gids);
const char *host_quota_name(void *ctx, uint32_t row);
json_t *host_config_json(void *ctx);
json_t *host_tenants_json(void *ctx);
int host_reload(void *ctx, struct error *err);
