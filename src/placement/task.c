/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/task.h"
#include <errno.h>

int task_check(const struct task *task, struct error *err)
{
        if (task->cpu_milli < 0 || task->cpu_milli > NODE_CPU_MILLI_MAX)
                return error_set(err, EINVAL, "cpu_milli is %d; it may be 0 to %d", task->cpu_milli,
                                 NODE_CPU_MILLI_MAX);
        if (task->mem_mib < 0 || task->mem_mib > NODE_MEM_MIB_MAX)
                return error_set(err, EINVAL, "mem_mib is %d; it may be 0 to %d", task->mem_mib, NODE_MEM_MIB_MAX);
        if (task->gpus > NODE_GPUS_MAX)
                return error_set(err, EINVAL, "gpus is %u; one task has at most %d, more is a gang", task->gpus,
                                 NODE_GPUS_MAX);
        if (task->gpus == 0 && task->gpu_milli != 0)
                return error_set(err, EINVAL, "gpu_milli is %u without a GPU; gpus must be 1, or gpu_milli 0",
                                 task->gpu_milli);
        if (task->gpus > 0 && (task->gpu_milli == 0 || task->gpu_milli > MILLI_PER_GPU))
                return error_set(err, EINVAL, "gpu_milli is %u; it may be 1 to %d of each GPU", task->gpu_milli,
                                 MILLI_PER_GPU);
        if (task->gpus > 1 && task->gpu_milli < MILLI_PER_GPU)
                return error_set(err, EINVAL,
                                 "gpu_milli is %u with %u GPUs; parts are of one GPU, several are whole (%d)",
                                 task->gpu_milli, task->gpus, MILLI_PER_GPU);
        return 0;
}
