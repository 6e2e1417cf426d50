/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_scene.h"
#include <stdlib.h>
#include "cm.h"

void cluster_scene_init(struct cluster_scene *scene, const struct node_spec *specs, size_t n, const char *policy,
                        const struct task *past, size_t n_past)
{
        struct error err = { 0 };
        size_t bytes = cluster_bytes(specs, n);

        *scene = (struct cluster_scene){ .cluster_memory = malloc(bytes) };
        assert_non_null(scene->cluster_memory);
        assert_int_equal(cluster_init(&scene->cluster, specs, n, scene->cluster_memory, bytes, &err), 0);
        if (!policy)
                return;
        const struct placement_policy *found = placement_policy_find(policy);
        assert_non_null(found);
        bytes = placer_bytes(&scene->cluster, n_past, SCENE_NODES);
        scene->placer_memory = malloc(bytes);
        assert_non_null(scene->placer_memory);
        assert_int_equal(placer_init(&scene->placer, found, &scene->cluster, past, n_past, SCENE_NODES,
                                     scene->placer_memory, bytes, &err),
                         0);
}

void cluster_scene_equal(struct cluster_scene *scene, size_t n, unsigned gpus, const char *policy)
{
        struct node_spec specs[SCENE_NODES];

        assert_in_range(n, 1, SCENE_NODES);
        for (size_t i = 0; i < n; i++)
                specs[i] = (struct node_spec){
                        .cpu_milli = 128000, .mem_mib = 1 << 20, .gpus = (uint16_t) gpus, .model = SCENE_MODEL
                };
        cluster_scene_init(scene, specs, n, policy, NULL, 0);
}

void cluster_scene_end(struct cluster_scene *scene)
{
        struct error err = { 0 };

        assert_int_equal(cluster_check(&scene->cluster, &err), 0);
        free(scene->cluster_memory);
        free(scene->placer_memory);
}

int scene_place(struct cluster_scene *scene, struct task task)
{
        struct placement where;

        return placer_place(&scene->placer, &task, 0, &where) ? (int) where.node : -1;
}

void scene_set_left(struct cluster_scene *scene, uint32_t n, int32_t cpu_milli, const uint16_t *left)
{
        const struct node *node = &scene->cluster.nodes[n];
        struct task rest = { .cpu_milli = node->cpu_milli - cpu_milli };

        cluster_take(&scene->cluster, &rest, &(struct placement){ .node = n });
        for (unsigned i = 0; i < node->gpus; i++) {
                struct task task = PART((uint16_t) (MILLI_PER_GPU - left[i]));
                if (task.gpu_milli > 0)
                        cluster_take(&scene->cluster, &task,
                                     &(struct placement){ .node = n, .gpus = UINT32_C(1) << i });
        }
}
