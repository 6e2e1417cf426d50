/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "model/world.h"

/* Where @identity stands in the audit, or would. */
static uint32_t place_of(const struct world *w, struct identity identity)
{
        uint32_t low = 0, high = w->n_audits;

        while (low < high) {
                uint32_t mid = low + (high - low) / 2;
                if (identity_compare(w->audits[mid].identity, identity) < 0)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

struct audit *world_audit_find(struct world *w, struct identity identity)
{
        uint32_t at = place_of(w, identity);
        bool found = at < w->n_audits && identity_equal(w->audits[at].identity, identity);

        return found ? &w->audits[at] : NULL;
}

void world_audit_drop(struct world *w, struct audit *audit)
{
        uint32_t at = (uint32_t) (audit - w->audits);

        w->n_audits--;
        memmove(audit, audit + 1, (w->n_audits - at) * sizeof(*audit));
        memset(&w->audits[w->n_audits], 0, sizeof(*audit));
}

/* Who is gone for the longest makes room; who lives does not. */
static bool make_room(struct world *w)
{
        struct audit *oldest = NULL;

        if (w->n_audits < AUDITS_MAX)
                return true;
        for (uint32_t i = 0; i < w->n_audits; i++) {
                struct audit *a = &w->audits[i];
                if (a->gone_ms != 0 && (!oldest || a->gone_ms < oldest->gone_ms))
                        oldest = a;
        }
        if (oldest)
                world_audit_drop(w, oldest);
        return oldest != NULL;
}

struct audit *world_audit_new(struct world *w, struct identity identity)
{
        if (!make_room(w))
                return NULL;

        uint32_t at = place_of(w, identity);
        struct audit *audit = &w->audits[at];
        memmove(audit + 1, audit, (w->n_audits - at) * sizeof(*audit));
        w->n_audits++;
        *audit = (struct audit){ .identity = identity };
        return audit;
}

struct approval *world_approval_by_id(struct world *w, uint64_t id)
{
        for (uint32_t i = 0; i < w->n_approvals; i++)
                if (w->approvals[i].id == id)
                        return &w->approvals[i];
        return NULL;
}

struct approval *world_approval_new(struct world *w)
{
        if (w->n_approvals == APPROVALS_MAX)
                return NULL;

        struct approval *approval = &w->approvals[w->n_approvals++];
        *approval = (struct approval){ .id = w->next_approval_id++ };
        return approval;
}

void world_approval_drop(struct world *w, struct approval *approval)
{
        uint32_t at = (uint32_t) (approval - w->approvals);

        w->n_approvals--;
        memmove(approval, approval + 1, (w->n_approvals - at) * sizeof(*approval));
        memset(&w->approvals[w->n_approvals], 0, sizeof(*approval));
}
