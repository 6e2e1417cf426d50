/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a container engine says about a container (GET /containers/ID/json): name, image, labels. Pure over bytes, which are
 * read as strictly as any stranger's. */
#include "api/container.h"

/* False: not what an engine says. engine_facts_free() after success. */
bool engine_parse(const char *data, size_t n, struct container_facts *ret);
void engine_facts_free(struct container_facts *facts);
