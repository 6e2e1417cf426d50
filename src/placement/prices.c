/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/prices.h"

struct kind { /* of node, with nothing on it */
        int32_t cpu_milli;
        uint8_t gpus;
        uint64_t model_bit;
        int64_t capacity_milli;
        int64_t price;
};

struct kinds {
        uint32_t n;
        struct kind *rows;
        uint16_t *of_node; /* number + 1; 0: one kind too many */
};

static bool kind_hosts(const struct kind *kind, const struct task *task)
{
        return task->cpu_milli <= kind->cpu_milli && task->gpus <= kind->gpus &&
               (!task->models || (task->models & kind->model_bit));
}

static void kinds_of(struct kinds *kinds, const struct cluster *cluster)
{
        for (uint32_t n = 0; n < cluster->n_nodes; n++) {
                const struct node *node = &cluster->nodes[n];
                uint32_t i = 0;
                while (i < kinds->n &&
                       (kinds->rows[i].cpu_milli != node->cap_cpu_milli || kinds->rows[i].gpus != node->gpus ||
                        kinds->rows[i].model_bit != node->model_bit))
                        i++;
                if (i == NODE_KINDS_MAX)
                        continue;
                if (i == kinds->n)
                        kinds->rows[kinds->n++] = (struct kind){ .cpu_milli = node->cap_cpu_milli,
                                                                 .gpus = node->gpus,
                                                                 .model_bit = node->model_bit };
                kinds->rows[i].capacity_milli += node->gpus * MILLI_PER_GPU;
                kinds->of_node[n] = (uint16_t) (i + 1);
        }
}

/* Each shape asks for its GPUs of all nodes that could host it alike. */
static void price_kinds(struct kinds *kinds, const struct shapes *shapes)
{
        for (uint32_t m = 0; m < shapes->n_all; m++) {
                const struct task *task = &shapes->rows[m].task;
                int64_t capacity_milli = 0, price;
                for (uint32_t i = 0; i < kinds->n; i++)
                        capacity_milli += kind_hosts(&kinds->rows[i], task) ? kinds->rows[i].capacity_milli : 0;
                if (task->gpus == 0 || capacity_milli == 0)
                        continue;
                /* in millionths, so that many rare shapes add up */
                price = task_milli(task) * shapes->rows[m].count * PRICE_UNIT * PRICE_UNIT / capacity_milli;
                for (uint32_t i = 0; i < kinds->n; i++)
                        kinds->rows[i].price += kind_hosts(&kinds->rows[i], task) ? price : 0;
        }
}

/*
 * While CPU is left over, a GPU needs beside it what the GPU tasks take on average. Where tasks without a GPU want all the
 * rest, what they take is missing beside the GPUs too: then it is all CPU that comes with a GPU.
 */
static int64_t cpu_beside_a_gpu(const struct cluster *cluster, const struct shapes *shapes)
{
        int64_t cpu_milli = 0, gpu_task_cpu_milli = 0, gpu_milli = 0, capacity_cpu_milli = 0, wanted, short_by;

        for (uint32_t n = 0; n < cluster->n_nodes; n++)
                capacity_cpu_milli += cluster->nodes[n].cap_cpu_milli;
        for (uint32_t m = 0; m < shapes->n_all; m++) {
                const struct shape *shape = &shapes->rows[m];
                cpu_milli += shape->task.cpu_milli * shape->count;
                gpu_task_cpu_milli += shape->task.gpus > 0 ? shape->task.cpu_milli * shape->count : 0;
                gpu_milli += task_milli(&shape->task) * shape->count;
        }
        if (gpu_milli == 0 || capacity_cpu_milli == 0)
                return 0;
        wanted = cpu_milli * MILLI_PER_GPU / gpu_milli * cluster->capacity_milli / capacity_cpu_milli;
        short_by = wanted < CPU_SHORT_FROM     ? 0
                   : wanted > CPU_SHORT_WHOLLY ? CPU_SHORT_WHOLLY - CPU_SHORT_FROM
                                               : wanted - CPU_SHORT_FROM;
        return (gpu_task_cpu_milli +
                (cpu_milli - gpu_task_cpu_milli) / (CPU_SHORT_WHOLLY - CPU_SHORT_FROM) * short_by) *
               MILLI_PER_GPU / gpu_milli;
}

bool prices_learn(struct prices *prices, const struct cluster *cluster, const struct shapes *shapes,
                  struct arena *arena)
{
        struct kinds kinds = { .rows = arena_take(arena, NODE_KINDS_MAX, sizeof(*kinds.rows)),
                               .of_node = arena_take(arena, cluster->n_nodes, sizeof(*kinds.of_node)) };

        *prices = (struct prices){ .of_node = arena_take(arena, cluster->n_nodes, sizeof(*prices->of_node)) };
        if (!kinds.rows || !kinds.of_node || !prices->of_node || !shapes->rows)
                return false;
        kinds_of(&kinds, cluster);
        price_kinds(&kinds, shapes);
        for (uint32_t n = 0; n < cluster->n_nodes; n++) {
                int64_t price = kinds.of_node[n] ? kinds.rows[kinds.of_node[n] - 1].price / PRICE_UNIT : 0;
                price = price * KIND_WEIGHT / PRICE_UNIT;
                prices->of_node[n] = price < INT32_MAX ? (int32_t) price : INT32_MAX;
        }
        prices->cpu_milli_per_gpu = cpu_beside_a_gpu(cluster, shapes);
        return true;
}

int64_t prices_stranded(const struct prices *prices, int64_t free_milli, int64_t cpu_milli)
{
        int64_t stranded;

        if (prices->cpu_milli_per_gpu == 0)
                return 0;
        stranded = free_milli - MILLI_PER_GPU * cpu_milli / prices->cpu_milli_per_gpu;
        return stranded > 0 ? stranded : 0;
}

int64_t prices_of(const struct prices *prices, const struct cluster *cluster, const struct node *node,
                  const struct task *task)
{
        int64_t q = task_milli(task);
        int64_t before = prices_stranded(prices, node->free_milli, node->cpu_milli);
        int64_t after = prices_stranded(prices, node->free_milli - q, node->cpu_milli - task->cpu_milli);

        return PRICE_UNIT * (after - before) + prices->of_node[node - cluster->nodes] * q;
}
