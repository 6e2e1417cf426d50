/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/visible.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* -1 = names no device, or more than one */
static int entry_device(const struct card *card, const uint32_t *order, const char *entry, size_t len)
{
        if (len >= 4 && strncasecmp(entry, "GPU-", 4) == 0) {
                int found = -1;
                for (uint32_t i = 0; i < card->n_devices; i++) {
                        if (strncasecmp(card->file->device[i].uuid, entry, len) != 0)
                                continue;
                        if (found >= 0)
                                return -1;
                        found = (int) i;
                }
                return found;
        }
        char *end;
        if (len == 0 || !isdigit((unsigned char) *entry))
                return -1;
        unsigned long n = strtoul(entry, &end, 10);
        if (end != entry + len || n >= card->n_devices)
                return -1;
        return (int) order[n];
}

int visible_devices(const struct card *card, uint32_t ret_device[CARD_DEVICES_MAX])
{
        uint32_t order[CARD_DEVICES_MAX];
        const char *by = getenv("CUDA_DEVICE_ORDER");
        bool reversed = card->file->reverse_cuda_order && !(by && strcmp(by, "PCI_BUS_ID") == 0);
        for (uint32_t i = 0; i < card->n_devices; i++)
                order[i] = reversed ? card->n_devices - 1 - i : i;

        const char *list = getenv("CUDA_VISIBLE_DEVICES");
        if (!list) {
                memcpy(ret_device, order, card->n_devices * sizeof *order);
                return (int) card->n_devices;
        }
        int n = 0;
        while (*list) {
                list += strspn(list, " \t");
                size_t len = strcspn(list, ","), trimmed = len;
                while (trimmed > 0 && isspace((unsigned char) list[trimmed - 1]))
                        trimmed--;
                int d = entry_device(card, order, list, trimmed);
                if (d < 0)
                        break;
                for (int i = 0; i < n; i++)
                        if (ret_device[i] == (uint32_t) d)
                                return 0;
                ret_device[n++] = (uint32_t) d;
                list += len;
                if (*list == ',')
                        list++;
        }
        return n;
}
