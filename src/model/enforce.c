/* SPDX-License-Identifier: Apache-2.0 */
#include "model/enforce.h"
#include <string.h>

static const char *const modes[ENFORCE_MODE_N] = {
        [ENFORCE_OBSERVE] = "observe", [ENFORCE_WARN] = "warn", [ENFORCE_ENFORCE] = "enforce"
};

const char *enforce_mode_name(enum enforce_mode mode)
{
        return mode < ENFORCE_MODE_N ? modes[mode] : "?";
}

bool enforce_mode_parse(const char *text, enum enforce_mode *ret)
{
        for (unsigned i = 0; i < ENFORCE_MODE_N; i++)
                if (strcmp(text, modes[i]) == 0) {
                        *ret = (enum enforce_mode) i;
                        return true;
                }
        return false;
}

const char *verdict_name(enum verdict verdict)
{
        static const char *const names[VERDICT_N] = {
                [VERDICT_NONE] = "none", [VERDICT_SPARE] = "spared", [VERDICT_WOULD_END] = "would-end",
                [VERDICT_WARN] = "warn", [VERDICT_END] = "end",      [VERDICT_STOPPED] = "stopped",
        };
        return verdict < VERDICT_N ? names[verdict] : "?";
}

static const struct {
        const char *name;
        const char *text;
} whys[VERDICT_WHY_N] = {
        [VERDICT_WHY_NONE] = { "none", "nobody has looked at it yet" },
        [VERDICT_WHY_BELOW] = { "below-threshold", "it has too little memory to matter" },
        [VERDICT_WHY_UNKNOWN] = { "unknown-memory", "how much memory it has is not known" },
        [VERDICT_WHY_YOUNG] = { "young", "it is not there for long enough" },
        [VERDICT_WHY_GUARD] = { "guarded", "it may never be a target" },
        [VERDICT_WHY_GRAPHICS] = { "graphics", "it draws somebody's screen" },
        [VERDICT_WHY_LEASE] = { "leased-elsewhere", "it is under a lease on another device" },
        [VERDICT_WHY_UNSEEN] = { "unseen", "who it is is not known for certain" },
        [VERDICT_WHY_OTHER] = { "not-yours", "it belongs to somebody else" },
        [VERDICT_WHY_APPROVED] = { "approved", "its program is approved" },
        [VERDICT_WHY_LAPSED] = { "approval-lapsed", "its approval lapsed within the last day" },
        [VERDICT_WHY_MODE] = { "mode", "as the mode says" },
        [VERDICT_WHY_RETURNS] = { "returns", "it was ended and was started again" },
        [VERDICT_WHY_PARKED] = { "parked", "it is parked, or on its way" },
        [VERDICT_WHY_UNKILLABLE] = { "unkillable", "the kernel does not end it" },
};

const char *verdict_why_name(enum verdict_why why)
{
        return why < VERDICT_WHY_N ? whys[why].name : "?";
}

const char *verdict_why_text(enum verdict_why why)
{
        return why < VERDICT_WHY_N ? whys[why].text : "?";
}

static const struct {
        const char *name;
        const char *text;
} doubts[DOUBT_N] = {
        [DOUBT_NONE] = { "none", "nothing is in doubt" },
        [DOUBT_BOOKS] = { "books-damaged", "the books were damaged; it begins again at the next clean start" },
        [DOUBT_EYES] = { "eyes-stale", "the driver does not answer" },
        [DOUBT_SWEEP] = { "not-swept", "not every device was seen yet since the start" },
        [DOUBT_BLIND] = { "blind", "a process holds memory, and who it is cannot be seen from here" },
        [DOUBT_FULL] = { "audit-full", "more processes hold memory without a lease than can be remembered" },
};

const char *enforce_doubt_name(enum enforce_doubt doubt)
{
        return doubt < DOUBT_N ? doubts[doubt].name : "?";
}

const char *enforce_doubt_text(enum enforce_doubt doubt)
{
        return doubt < DOUBT_N ? doubts[doubt].text : "?";
}
