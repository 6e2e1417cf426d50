/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/card.h"
#include <assert.h>

enum { CARD_MILLI = 1000 };

enum card_verdict card_judge(const struct card *card, const struct share *share)
{
        if (card->n > 0 && card->isolation != share->isolation)
                return CARD_OTHER_KIND;
        if (card->n > 0 && card->tenant != share->tenant && card->isolation != ISOLATION_MIG)
                return CARD_OTHER_TENANT;
        if (card->n > 0 && share->isolation == ISOLATION_EXCLUSIVE)
                return CARD_NO_PART;
        if (share->milli > CARD_MILLI || card->used_milli > CARD_MILLI - share->milli)
                return CARD_NO_PART;
        if (share->vram_mib > card->vram_mib || card->used_mib > card->vram_mib - share->vram_mib)
                return CARD_NO_MEMORY;
        return CARD_FITS;
}

const char *card_verdict_words(enum card_verdict verdict)
{
        static const char *const words[] = {
                [CARD_FITS] = "has room",
                [CARD_OTHER_KIND] = "is shared in another way",
                [CARD_OTHER_TENANT] = "is another tenant's, and does not isolate",
                [CARD_NO_PART] = "has no such part left",
                [CARD_NO_MEMORY] = "has promised its memory to others",
        };

        return words[verdict];
}

void card_take(struct card *card, const struct share *share)
{
        assert(card_judge(card, share) == CARD_FITS);
        card->isolation = share->isolation;
        card->tenant = share->tenant;
        card->used_mib += share->vram_mib;
        card->used_milli += share->milli;
        card->n++;
}

void card_give(struct card *card, const struct share *share)
{
        assert(card->n > 0 && card->used_mib >= share->vram_mib && card->used_milli >= share->milli);
        card->used_mib -= share->vram_mib;
        card->used_milli -= share->milli;
        card->n--;
}
