/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What /api/enforce and /api/approvals show. A user sees what is his own of the lists, an administrator everybody's. */
#include "api/view.h"

json_t *view_enforce(const struct view *v);
json_t *view_approval(const struct view *v, const struct approval *approval);
json_t *view_approvals(const struct view *v);
