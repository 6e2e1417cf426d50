/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/plan.h"
#include <sys/mman.h>
#include "arbiter/arbiter.h"

enum { PLAN_TOKEN = 1 };

static struct actions out; /* one thread; mostly never touched */

/* A plan may rest on an old look (a grant may not): what was seen last stands as if it had been seen now. Where nothing was
 * ever seen, or the driver is silent, the plan says so like the core does. */
static void look_young(struct world *w)
{
        for (uint32_t d = 0; d < w->n_devices; d++) {
                struct device *dev = &w->devices[d];
                if (dev->reading_ms == 0)
                        continue;
                dev->reading_ms = w->now_ms;
                dev->changed_ms = w->now_ms;
                dev->settled = true;
        }
}

static const struct action *answer(void)
{
        for (uint32_t i = 0; i < out.n; i++) {
                const struct action *a = &out.items[i];
                if (a->token == PLAN_TOKEN &&
                    (a->kind == ACTION_GRANTED || a->kind == ACTION_QUEUED || a->kind == ACTION_REFUSED))
                        return a;
        }
        return NULL;
}

bool plan_request(const struct world *world, uint64_t now_ms, const struct request *request, struct api_planned *ret)
{
        struct input input = { .kind = INPUT_REQUEST, .now_ms = now_ms, .request = *request };
        struct world *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (w == MAP_FAILED)
                return false;
        world_copy(w, world);
        if (now_ms > w->now_ms)
                w->now_ms = now_ms;
        look_young(w);
        input.request.token = PLAN_TOKEN;
        arbiter_step(w, &input, &out);

        const struct action *a = answer();
        if (a) {
                const struct lease *lease = world_lease_by_id(w, a->lease_id);
                const struct plan *plan = lease ? world_plan_of(w, lease->entry) : NULL;
                ret->answer = *a;
                ret->plan = plan ? *plan : (struct plan){ 0 };
                ret->bytes = lease ? lease->bytes : a->why.need_bytes;
                ret->sized = lease ? lease->sized : SIZED_ASKED;
                ret->sized_by = lease ? lease->sized_by : 0;
        }
        (void) munmap(w, sizeof(*w));
        return a != NULL;
}
