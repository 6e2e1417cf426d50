/* SPDX-License-Identifier: Apache-2.0 */
#include "api/unfit.h"

static bool has(const struct request *r, enum way_out_kind way)
{
        return (r->ways.named & WAY_OUT_BIT(way)) != 0;
}

static bool is_unfit(struct unfit *ret, enum way_out_kind way, const char *why, const char *cure)
{
        *ret = (struct unfit){ .way = (uint8_t) way, .why = why, .cure = cure };
        return true;
}

bool unfit_find(const struct request *r, const struct unfit_facts *facts, struct unfit *ret)
{
        /* A filler that names nothing is checkpointed once that is proven, and until then ended and started again. */
        bool restarts = has(r, WAY_OUT_RESTART) || (r->filler && r->ways.named == 0);

        if (has(r, WAY_OUT_CHECKPOINT) && r->managed)
                return is_unfit(ret, WAY_OUT_CHECKPOINT, "managed memory cannot be checkpointed",
                                "name another way out, or leave managed out if it uses none");
        if (has(r, WAY_OUT_CHECKPOINT) && facts->only_mig)
                return is_unfit(ret, WAY_OUT_CHECKPOINT, "on a MIG instance nothing can be checkpointed",
                                "name another way out, or another device");
        if (restarts && r->adopt && !binding_is_managed(&r->binding))
                return is_unfit(ret, WAY_OUT_RESTART,
                                facts->unmanaged ? facts->unmanaged
                                                 : "it was started by somebody else, and nobody could start it again",
                                "name another way out, adopt its unit or container as a whole (`lessor adopt --unit`, "
                                "`--container`), or start it with `lessor run`");
        if (restarts && r->binding.kind == BINDING_CONNECTION)
                return is_unfit(
                        ret, WAY_OUT_RESTART,
                        "the lease ends with its connection, which its program holds: nobody could start it again",
                        "name another way out, or bind the lease to who starts the program");
        if (has(r, WAY_OUT_COOPERATE) && r->adopt && !facts->heard)
                return is_unfit(ret, WAY_OUT_COOPERATE, "nobody is there who would hear what it is asked for",
                                "name another way out, or let the program ask for its lease itself");
        return false;
}
