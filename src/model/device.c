/* SPDX-License-Identifier: Apache-2.0 */
#include "model/device.h"

const char *device_health_name(enum device_health health)
{
        static const char *const names[DEVICE_HEALTH_N] = {
                [DEVICE_ABSENT] = "absent", [DEVICE_OK] = "ok",       [DEVICE_NO_MEMORY_READING] = "no-memory-reading",
                [DEVICE_LOST] = "lost",     [DEVICE_FAULT] = "fault", [DEVICE_PARENT] = "mig-parent",
        };
        return health < DEVICE_HEALTH_N ? names[health] : "?";
}
