/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/gang.h"
#include <errno.h>

enum { ROOM_CLASSES = GANG_ON_NODE_MAX + 1 };

struct range { /* children of a domain: nodes, or domains of the level below, by their places in topology->nodes */
        uint32_t first, end;
        uint32_t level; /* of the children; 0: nodes */
};

bool gang_placer_init(struct gang_placer *placer, struct cluster *cluster, const struct topology *topology,
                      struct arena *arena)
{
        bool enough = true;

        *placer = (struct gang_placer){ .cluster = cluster, .topology = topology };
        placer->room = arena_take(arena, cluster->n_nodes, sizeof(*placer->room));
        placer->share = arena_take(arena, cluster->n_nodes, sizeof(*placer->share));
        for (uint32_t level = 1; level <= topology->top; level++) {
                placer->room_of[level] = arena_take(arena, cluster->n_nodes, sizeof(*placer->room));
                enough = enough && placer->room_of[level];
        }
        return enough && placer->room && placer->share;
}

uint32_t node_room(const struct node *node, const uint16_t *left, const struct task *task)
{
        uint32_t room = GANG_ON_NODE_MAX;

        if (!node_fits(node, task))
                return 0;
        if (task->cpu_milli > 0 && (uint32_t) (node->cpu_milli / task->cpu_milli) < room)
                room = (uint32_t) (node->cpu_milli / task->cpu_milli);
        if (task->mem_mib > 0 && (uint32_t) (node->mem_mib / task->mem_mib) < room)
                room = (uint32_t) (node->mem_mib / task->mem_mib);
        if (task_kind(task) == TASK_EXCLUSIVE)
                return (uint32_t) node->full / task->gpus < room ? (uint32_t) node->full / task->gpus : room;
        if (task_kind(task) == TASK_SHARING) {
                uint32_t parts = 0;
                for (unsigned i = 0; i < node->gpus; i++)
                        parts += (uint32_t) left[i] / task->gpu_milli;
                return parts < room ? parts : room;
        }
        return room;
}

int gang_check(const struct gang *gang, struct error *err)
{
        uint64_t count = 0;
        int r;

        if (gang->n_roles == 0 || gang->n_roles > GANG_ROLES_MAX)
                return error_set(err, EINVAL, "a gang has 1 to %d roles, not %u", GANG_ROLES_MAX, gang->n_roles);
        for (uint32_t i = 0; i < gang->n_roles; i++) {
                r = task_check(&gang->roles[i].task, err);
                if (r < 0)
                        return error_wrap(err, r, "role %u", i);
                if (gang->roles[i].count == 0)
                        return error_set(err, EINVAL, "role %u: count is 0; leave it out, or give it a task", i);
                count += gang->roles[i].count;
        }
        if (count > GANG_MEMBERS_MAX)
                return error_set(err, EINVAL, "a gang has at most %d members, not %llu", GANG_MEMBERS_MAX,
                                 (unsigned long long) count);
        if (gang->min > count)
                return error_set(err, EINVAL, "min is %u of %llu members; it may be 0 (all) to %llu", gang->min,
                                 (unsigned long long) count, (unsigned long long) count);
        if (gang->required && gang->preferred > gang->required)
                return error_set(err, EINVAL, "it prefers level %u and must stay within %u; that is the larger one",
                                 gang->preferred, gang->required);
        return 0;
}

/* ---- how much room there is ---- */

static struct range nodes_of(const struct topology *topology, uint32_t level, uint32_t domain)
{
        const struct topology_level *l = &topology->levels[level];

        return (struct range){ .first = l->first[domain], .end = l->first[domain] + l->size[domain] };
}

static struct range children_of(const struct topology *topology, uint32_t level, uint32_t domain)
{
        struct range range = nodes_of(topology, level, domain);

        range.level = level > 1 && topology->levels[level - 1].of ? level - 1 : 0;
        return range;
}

/* Of @task on each node of the range, and from there upwards; @sum: also of domains that hold the whole of them. */
static uint32_t look_for_room(struct gang_placer *placer, const struct task *task, struct range range)
{
        const struct cluster *cluster = placer->cluster;
        uint32_t sum = 0;

        for (uint32_t i = range.first; i < range.end; i++) {
                uint32_t n = placer->topology->nodes[i];
                const struct node *node = &cluster->nodes[n];
                sum += placer->room[n] = node_room(node, cluster_left(cluster, node), task);
        }
        return sum;
}

static void sum_up(struct gang_placer *placer, struct range range)
{
        const struct topology *topology = placer->topology;

        for (uint32_t level = 1; level <= topology->top; level++) {
                const struct topology_level *l = &topology->levels[level];
                if (!l->of)
                        continue;
                for (uint32_t i = range.first; i < range.end; i++)
                        placer->room_of[level][l->of[topology->nodes[i]]] = 0;
                for (uint32_t i = range.first; i < range.end; i++)
                        placer->room_of[level][l->of[topology->nodes[i]]] += placer->room[topology->nodes[i]];
        }
}

/* ---- dealing them out ---- */

static uint32_t child_at(const struct gang_placer *placer, struct range range, uint32_t i)
{
        uint32_t node = placer->topology->nodes[i];

        return range.level ? placer->topology->levels[range.level].of[node] : node;
}

static uint32_t child_room(const struct gang_placer *placer, struct range range, uint32_t child)
{
        return range.level ? placer->room_of[range.level][child] : placer->room[child];
}

static uint32_t child_size(const struct gang_placer *placer, struct range range, uint32_t child)
{
        return range.level ? placer->topology->levels[range.level].size[child] : 1;
}

/*
 * Nodes, by how much room they have: those with most give all of it, until one could take the rest; the tightest that could
 * does. Two walks, however many nodes. Shares are left in placer->share, by place.
 */
static void deal_to_nodes(struct gang_placer *placer, struct range range, uint32_t need)
{
        uint32_t count[ROOM_CLASSES] = { 0 }, whole[ROOM_CLASSES] = { 0 }, last = 0;

        for (uint32_t i = range.first; i < range.end; i++) {
                count[placer->room[placer->topology->nodes[i]]]++;
        }
        for (uint32_t v = ROOM_CLASSES - 1; v > 0 && need > 0; v--) {
                uint32_t most = (need - 1) / v;
                whole[v] = count[v] < most ? count[v] : most;
                need -= whole[v] * v;
                if (whole[v] == count[v])
                        continue;
                /* here is one that takes all the rest: none with less, that has not given all of it, may be as good */
                for (last = need; last < v && count[last] == 0;)
                        last++;
                break;
        }
        for (uint32_t i = range.first; i < range.end; i++) {
                uint32_t v = placer->room[placer->topology->nodes[i]];
                placer->share[i] = 0;
                if (whole[v] > 0) {
                        whole[v]--;
                        placer->share[i] = v;
                } else if (v == last && v > 0) {
                        placer->share[i] = need;
                        last = 0;
                }
        }
}

/* The same for domains, of which there are few. A child's share stands at its first place. */
static void deal_to_domains(struct gang_placer *placer, struct range range, uint32_t need)
{
        for (uint32_t i = range.first; i < range.end; i++)
                placer->share[i] = 0;
        while (need > 0) {
                uint32_t most = 0, most_at = 0, tight = UINT32_MAX, tight_at = 0;
                for (uint32_t i = range.first, child; i < range.end; i += child_size(placer, range, child)) {
                        child = child_at(placer, range, i);
                        uint32_t room = placer->share[i] ? 0 : child_room(placer, range, child);
                        if (room >= need && room < tight) {
                                tight = room;
                                tight_at = i;
                        }
                        if (room > most) {
                                most = room;
                                most_at = i;
                        }
                }
                placer->share[tight < UINT32_MAX ? tight_at : most_at] = tight < UINT32_MAX ? need : most;
                need -= tight < UINT32_MAX ? need : most;
        }
}

/* As few children as can be, each with as much as another, as far as they have room. */
static void deal_evenly(struct gang_placer *placer, struct range range, uint32_t need)
{
        uint32_t chosen = 0;

        for (uint32_t i = range.first; i < range.end; i++)
                placer->share[i] = 0;
        for (uint32_t sum = 0; sum < need; chosen++) { /* the next largest */
                uint32_t most = 0, most_at = 0;
                for (uint32_t i = range.first, child; i < range.end; i += child_size(placer, range, child)) {
                        child = child_at(placer, range, i);
                        if (!placer->share[i] && child_room(placer, range, child) > most) {
                                most = child_room(placer, range, child);
                                most_at = i;
                        }
                }
                placer->share[most_at] = most;
                sum += most;
        }
        while (chosen > 0) { /* whoever has least room is given first: what it cannot take the others share */
                uint32_t least = UINT32_MAX, least_at = 0;
                for (uint32_t i = range.first; i < range.end; i++)
                        if (placer->share[i] && !(placer->share[i] & 1U << 31) && placer->share[i] < least) {
                                least = placer->share[i];
                                least_at = i;
                        }
                uint32_t even = need / chosen, share = even < least ? even : least;
                placer->share[least_at] = share | 1U << 31; /* done */
                need -= share;
                chosen--;
        }
        for (uint32_t i = range.first; i < range.end; i++)
                placer->share[i] &= ~(1U << 31);
}

/* ---- taking ---- */

struct taking {
        struct gang_placer *placer;
        const struct task *task;
        uint32_t role;
        bool balanced;
        struct gang_member *members;
        uint32_t n;
};

static void take_on_node(struct taking *taking, uint32_t n, uint32_t count)
{
        struct cluster *cluster = taking->placer->cluster;

        for (; count > 0; count--) {
                struct placement where = { .node = n, .gpus = node_gpus(cluster, &cluster->nodes[n], taking->task) };
                cluster_take(cluster, taking->task, &where);
                taking->members[taking->n++] = (struct gang_member){ .role = taking->role, .where = where };
        }
}

/* Its room for them is known: placer->room, and in domains. Goes down level by level. */
static void take_in_domain(struct taking *taking, uint32_t level, uint32_t domain, uint32_t need)
{
        struct gang_placer *placer = taking->placer;
        struct range range = children_of(placer->topology, level, domain);

        if (taking->balanced)
                deal_evenly(placer, range, need);
        else if (range.level == 0)
                deal_to_nodes(placer, range, need);
        else
                deal_to_domains(placer, range, need);
        for (uint32_t i = range.first, child; i < range.end; i += child_size(placer, range, child)) {
                child = child_at(placer, range, i);
                uint32_t share = placer->share[i];
                if (share == 0)
                        continue;
                if (range.level == 0)
                        take_on_node(taking, child, share);
                else
                        take_in_domain(taking, range.level, child, share); /* writes shares of its own places only */
        }
}

void gang_give(struct cluster *cluster, const struct gang *gang, const struct gang_member *members, uint32_t n)
{
        while (n-- > 0)
                cluster_give(cluster, &gang->roles[members[n].role].task, &members[n].where);
}

/* ---- the search ---- */

static bool larger(const struct task *a, const struct task *b)
{
        int32_t qa = task_milli(a), qb = task_milli(b);

        return qa != qb ? qa > qb : a->cpu_milli > b->cpu_milli;
}

/* Roles by falling size, those alike as given; with @first before all others. */
static void order_roles(struct gang_placer *placer, const struct gang *gang, uint32_t first)
{
        uint32_t n = 0;

        for (uint32_t r = 0; r < gang->n_roles; r++) {
                uint32_t at = n++;
                for (; at > 0 && larger(&gang->roles[r].task, &gang->roles[placer->order[at - 1]].task); at--)
                        placer->order[at] = placer->order[at - 1];
                placer->order[at] = r;
        }
        for (uint32_t at = first; at > 0; at--) { /* the role at that rank comes to the front */
                uint32_t swap = placer->order[at];
                placer->order[at] = placer->order[at - 1];
                placer->order[at - 1] = swap;
        }
}

/* Role after role in one domain, at most @most members. Fewer than @least: gives them back, 0. */
static uint32_t try_domain(struct gang_placer *placer, const struct gang *gang, uint32_t level, uint32_t domain,
                           uint32_t least, struct gang_member *members)
{
        bool node_level = !placer->topology->levels[level].of;
        uint32_t n = 0;

        for (uint32_t i = 0; i < gang->n_roles; i++) {
                const struct gang_role *role = &gang->roles[placer->order[i]];
                struct taking taking = { .placer = placer,
                                         .task = &role->task,
                                         .role = placer->order[i],
                                         .balanced = gang->balanced,
                                         .members = members,
                                         .n = n };
                uint32_t room;
                if (node_level) {
                        const struct node *node = &placer->cluster->nodes[domain];
                        room = node_room(node, cluster_left(placer->cluster, node), &role->task);
                } else {
                        struct range range = nodes_of(placer->topology, level, domain);
                        room = look_for_room(placer, &role->task, range);
                        sum_up(placer, range);
                }
                uint32_t need = room < role->count ? room : role->count;
                if (need > 0 && node_level)
                        take_on_node(&taking, domain, need);
                else if (need > 0)
                        take_in_domain(&taking, level, domain, need);
                n = taking.n;
        }
        if (n >= least)
                return n;
        gang_give(placer->cluster, gang, members, n);
        return 0;
}

struct choice {               /* of a domain, one after the other */
        uint32_t level, need; /* room that it must have for the largest role */
        bool widest;          /* most room first; else least */
        bool begun;
        uint32_t key, domain; /* of the last one */
};

/* Ties by order. False: there is no other. */
static bool choose_next(const struct gang_placer *placer, struct choice *choice)
{
        const struct topology_level *l = &placer->topology->levels[choice->level];
        const uint32_t *rooms = l->of ? placer->room_of[choice->level] : placer->room;
        uint32_t n = l->of ? l->n : placer->cluster->n_nodes, best = UINT32_MAX, at = 0;

        for (uint32_t d = 0; d < n; d++) {
                uint32_t key = choice->widest ? UINT32_MAX - 1 - rooms[d] : rooms[d];
                if (rooms[d] < choice->need || (l->of && l->size[d] == 0) || key >= best)
                        continue;
                if (choice->begun && (key < choice->key || (key == choice->key && d <= choice->domain)))
                        continue;
                best = key;
                at = d;
        }
        choice->begun = true;
        choice->key = best;
        choice->domain = at;
        return best < UINT32_MAX;
}

/* Room of the largest role everywhere: what domains are chosen by. */
static void look_everywhere(struct gang_placer *placer, const struct gang *gang)
{
        struct range all = { .end = placer->topology->n_nodes };

        look_for_room(placer, &gang->roles[placer->order[0]].task, all);
        sum_up(placer, all);
}

/* @least members in one domain of the levels @from to @to; @need: of the largest role. */
static bool search(struct gang_placer *placer, const struct gang *gang, uint32_t from, uint32_t to, bool widest,
                   uint32_t least, uint32_t need, struct gang_member *members, struct gang_found *found)
{
        uint32_t tries = 0;

        look_everywhere(placer, gang);
        for (uint32_t level = from; level <= to; level++) {
                struct choice choice = { .level = level, .need = need, .widest = widest };
                while (choose_next(placer, &choice)) {
                        found->n = try_domain(placer, gang, level, choice.domain, least, members);
                        found->level = level;
                        found->domain = choice.domain;
                        if (found->n > 0)
                                return true;
                        if (++tries >= GANG_TRIES_MAX)
                                return false;
                        look_everywhere(placer, gang);
                }
        }
        return false;
}

bool gang_place(struct gang_placer *placer, const struct gang *gang, struct gang_member *members,
                struct gang_found *found)
{
        uint32_t count = 0, top = placer->topology->top;
        uint32_t to = gang->required && gang->required < top ? gang->required : top;
        uint32_t from = gang->preferred < 1 ? 1 : gang->preferred < to ? gang->preferred : to;

        for (uint32_t r = 0; r < gang->n_roles; r++)
                count += gang->roles[r].count;
        for (uint32_t first = 0; first < gang->n_roles; first++) {
                order_roles(placer, gang, first);
                if (search(placer, gang, from, to, false, count, gang->roles[placer->order[0]].count, members, found))
                        return true;
        }
        if (gang->min == 0 || gang->min == count)
                return false;
        order_roles(placer, gang, 0); /* fewer: as many as can be, as wide as it may reach */
        return search(placer, gang, to, to, true, gang->min, 0, members, found);
}

bool gang_join(struct gang_placer *placer, const struct gang *gang, uint32_t role, const struct gang_found *found,
               struct gang_member *member)
{
        struct gang_role one = { .task = gang->roles[role].task, .count = 1 };
        struct gang single = { .roles = &one, .n_roles = 1 };

        placer->order[0] = 0;
        if (try_domain(placer, &single, found->level, found->domain, 1, member) == 0)
                return false;
        member->role = role;
        return true;
}
