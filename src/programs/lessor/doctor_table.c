/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What works where. The place we are in is judged by what was found; the others by what would hold there on this machine.
 * Every "no" has its cure.
 */
#include <stdio.h>
#include "programs/lessor/doctor.h"

const char *const place_names[PLACE_N] = {
        [PLACE_SESSION] = "own session",
        [PLACE_SYSTEM] = "system",
        [PLACE_WSL] = "WSL",
        [PLACE_CONTAINER] = "container",
};
const char *const ability_names[ABILITY_N] = {
        [ABILITY_LEASE] = "lease",
        [ABILITY_RELEASE] = "release",
        [ABILITY_PARK] = "park",
        [ABILITY_ENFORCE] = "enforce",
};

static void no(struct cell_verdict *v, const char *why, const char *cure)
{
        v->works = false;
        (void) snprintf(v->why, sizeof(v->why), "%s", why);
        (void) snprintf(v->cure, sizeof(v->cure), "%s", cure);
}

static void judge_lease(const struct doctor *d, bool here, struct cell_verdict *v)
{
        switch (d->driver) {
        case DRIVER_NONE:
                no(v, "there is no driver", "install NVIDIA's driver, or give this container the GPU");
                return;
        case DRIVER_MISMATCH:
                no(v, "the driver was upgraded under its loaded module", "reboot");
                return;
        case DRIVER_SILENT:
        case DRIVER_FAILED:
                no(v, "the driver does not work", "look at dmesg for NVRM and Xid; a reset or a reboot may be needed");
                return;
        case DRIVER_OK:
                break;
        }
        if (here && !d->may_ask)
                no(v, d->why_not, d->why_not_cure);
        else if (here && !d->grants)
                no(v, d->grants_not, "see the checks above");
}

/* Ending what was named beforehand (--kill-at-end, --kill-left). */
static void judge_enforce(const struct doctor *d, enum place place, bool here, struct cell_verdict *v)
{
        if (place == PLACE_WSL) {
                no(v, "the driver tells no memory per process under WSL: who holds what is not proven there",
                   "none under WSL; on Linux itself it works");
                return;
        }
        if (place == PLACE_CONTAINER && !(here && d->host_pids)) {
                no(v, "a container sees its own processes only",
                   "run lessord on the host, or in a container with `--pid=host`");
                return;
        }
        if (here && !d->host_pids)
                no(v, "lessord runs in a pid namespace of its own", "run it on the host");
        else if (here && !d->may_ask)
                no(v, d->why_not, d->why_not_cure);
        else if (here && d->hands_known && !d->hands_up)
                no(v, d->hands_words, "`systemctl status lessor-warden`; in a session of one's own: restart lessord");
        else if (here && !d->hands_known)
                no(v, "this lessord has no warden", "install lessor-warden beside it, of the same version");
}

/* Checkpoints: by the hands, of processes they can see, with a driver and a machine that can. */
static void judge_park(const struct doctor *d, enum place place, bool here, struct cell_verdict *v)
{
        if (place == PLACE_WSL) {
                no(v, "the driver cannot checkpoint under WSL", "none under WSL; on Linux itself it works");
                return;
        }
        judge_enforce(d, place, here, v);
        if (v->works && d->driver != DRIVER_OK)
                judge_lease(d, here, v);
        if (v->works && here && d->checkpoint_known && !d->checkpoints)
                no(v, d->checkpoint_words, "see the check of the driver above; a driver of 570 or newer can");
        else if (v->works && here && !d->checkpoint_known)
                no(v, d->checkpoint_words, "lessord looks when its warden is up: ask again");
        if (v->works && here && d->proof == PROOF_BAD)
                no(v, d->proof_words, "see the checks above; other ways out work without it");
}

void doctor_judge(const struct doctor *d, enum place place, enum ability ability, struct cell_verdict *ret)
{
        bool here = place == d->place;

        *ret = (struct cell_verdict){ .works = true };
        switch (ability) {
        case ABILITY_LEASE:
                judge_lease(d, here, ret);
                break;
        case ABILITY_RELEASE: /* who is asked does it itself: nothing more is needed than for a lease */
                judge_lease(d, here, ret);
                break;
        case ABILITY_PARK:
                judge_park(d, place, here, ret);
                break;
        case ABILITY_ENFORCE:
                judge_enforce(d, place, here, ret);
                break;
        case ABILITY_N:
                break;
        }
}
