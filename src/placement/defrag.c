/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/defrag.h"

bool defrag_init(struct defrag *defrag, struct cluster *cluster, const struct topology *topology, uint32_t jobs,
                 struct arena *arena)
{
        *defrag = (struct defrag){ .cluster = cluster, .topology = topology, .jobs_max = jobs };
        defrag->order = arena_take(arena, jobs, sizeof(*defrag->order));
        defrag->leaves = arena_take(arena, jobs, sizeof(*defrag->leaves));
        bool enough = cluster_clone(&defrag->trial, cluster, arena);
        return gang_placer_init(&defrag->placer, &defrag->trial, topology, arena) && enough && defrag->order &&
               defrag->leaves;
}

static bool inside(const struct topology *topology, uint32_t level, uint32_t domain, uint32_t node)
{
        const struct topology_level *l = &topology->levels[level];

        return l->of ? l->of[node] == domain : node == domain;
}

static bool has_member_in(const struct defrag *defrag, const struct defrag_job *job, uint32_t level, uint32_t domain)
{
        for (uint32_t i = 0; i < job->n; i++)
                if (inside(defrag->topology, level, domain, job->members[i].where.node))
                        return true;
        return false;
}

static int64_t milli_of(const struct gang *gang, const struct gang_member *members, uint32_t n)
{
        int64_t milli = 0;

        for (uint32_t i = 0; i < n; i++)
                milli += task_milli(&gang->roles[members[i].role].task);
        return milli;
}

/* What a job loses for each milli-GPU that it frees; ties by order. */
static bool cheaper(const struct defrag_job *a, const struct defrag_job *b)
{
        return (unsigned __int128) a->loss_gpu_ms * (uint64_t) milli_of(b->gang, b->members, b->n) <
               (unsigned __int128) b->loss_gpu_ms * (uint64_t) milli_of(a->gang, a->members, a->n);
}

static void order_jobs(struct defrag *defrag, const struct defrag_job *jobs, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                uint32_t at = i;
                for (; at > 0 && cheaper(&jobs[i], &jobs[defrag->order[at - 1]]); at--)
                        defrag->order[at] = defrag->order[at - 1];
                defrag->order[at] = i;
        }
}

/* Nothing new outside of a domain, as far as that was open. */
static void close_outside(struct defrag *defrag, uint32_t level, uint32_t domain, bool closed)
{
        for (uint32_t n = 0; n < defrag->trial.n_nodes; n++)
                if (!inside(defrag->topology, level, domain, n))
                        cluster_close(&defrag->trial, n, closed || defrag->cluster->nodes[n].closed);
}

/* Cheapest first, until @gang fits there. False: it never does. */
static bool clear_domain(struct defrag *defrag, const struct gang *gang, struct gang_member *members, uint32_t level,
                         uint32_t domain, const struct defrag_job *jobs, uint32_t n)
{
        struct gang_found found;

        cluster_copy(&defrag->trial, defrag->cluster);
        close_outside(defrag, level, domain, true);
        for (uint32_t i = 0; i < n; i++)
                defrag->leaves[i] = false;
        for (uint32_t i = 0; i < n; i++) {
                uint32_t j = defrag->order[i];
                if (!jobs[j].movable || !has_member_in(defrag, &jobs[j], level, domain))
                        continue;
                gang_give(&defrag->trial, jobs[j].gang, jobs[j].members, jobs[j].n);
                defrag->leaves[j] = true;
                if (gang_place(&defrag->placer, gang, members, &found)) {
                        close_outside(defrag, level, domain, false);
                        return true;
                }
        }
        return false;
}

/* Each that left finds another place beside the gang; its places in job->to. */
static bool place_elsewhere(struct defrag *defrag, struct defrag_job *jobs, uint32_t n, uint64_t *loss_gpu_ms)
{
        struct gang_found found;

        *loss_gpu_ms = 0;
        for (uint32_t i = 0; i < n; i++) {
                if (!defrag->leaves[i])
                        continue;
                struct gang_role roles[GANG_ROLES_MAX];
                struct gang as_it_is = *jobs[i].gang; /* with as many as it has, where it started with fewer */
                as_it_is.roles = roles;
                as_it_is.min = 0;
                for (uint32_t r = 0; r < as_it_is.n_roles; r++)
                        roles[r] = (struct gang_role){ .task = jobs[i].gang->roles[r].task };
                for (uint32_t m = 0; m < jobs[i].n; m++)
                        roles[jobs[i].members[m].role].count++;
                if (!gang_place(&defrag->placer, &as_it_is, jobs[i].to, &found))
                        return false;
                *loss_gpu_ms += jobs[i].loss_gpu_ms;
        }
        return true;
}

static bool try_domain(struct defrag *defrag, const struct gang *gang, struct gang_member *members, uint32_t level,
                       uint32_t domain, struct defrag_job *jobs, uint32_t n, uint64_t *loss_gpu_ms)
{
        return clear_domain(defrag, gang, members, level, domain, jobs, n) &&
               place_elsewhere(defrag, jobs, n, loss_gpu_ms);
}

bool defrag_plan(struct defrag *defrag, const struct gang *gang, struct gang_member *members, uint64_t saved_ms,
                 struct defrag_job *jobs, uint32_t n, uint64_t *loss_gpu_ms)
{
        uint32_t top = defrag->topology->top, best_level = 0, best_domain = 0, looked = 0;
        uint32_t last = gang->required && gang->required < top ? gang->required : top;
        int64_t milli = 0;
        uint64_t loss;

        *loss_gpu_ms = UINT64_MAX;
        if (n > defrag->jobs_max)
                n = defrag->jobs_max;
        order_jobs(defrag, jobs, n);
        for (uint32_t i = 0; i < n; i++)
                jobs[i].moves = false;
        for (uint32_t r = 0; r < gang->n_roles; r++)
                milli += (int64_t) gang->roles[r].count * task_milli(&gang->roles[r].task);
        for (uint32_t level = 1; level <= last; level++) {
                const struct topology_level *l = &defrag->topology->levels[level];
                uint32_t domains = l->of ? l->n : defrag->cluster->n_nodes;
                for (uint32_t d = 0; d < domains && looked < DEFRAG_DOMAINS_MAX; d++, looked++)
                        if (try_domain(defrag, gang, members, level, d, jobs, n, &loss) && loss < *loss_gpu_ms) {
                                *loss_gpu_ms = loss;
                                best_level = level;
                                best_domain = d;
                        }
        }
        if (*loss_gpu_ms == UINT64_MAX ||
            (unsigned __int128) milli * saved_ms * 100 <=
                    (unsigned __int128) *loss_gpu_ms * DEFRAG_MARGIN_PERCENT * MILLI_PER_GPU)
                return false;
        (void) try_domain(defrag, gang, members, best_level, best_domain, jobs, n,
                          &loss); /* once more, for its places */
        for (uint32_t i = 0; i < n; i++)
                jobs[i].moves = defrag->leaves[i];
        return true;
}
