/* SPDX-License-Identifier: Apache-2.0 */
#include "client/visible.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/escape.h"
#include "base/number.h"

enum { SHOWN_MAX = 64 };

static int by_pci(const void *a, const void *b)
{
        const struct visible_device *left = a, *right = b;
        int r = strcasecmp(left->pci_bus_id, right->pci_bus_id);
        return r != 0 ? r : strcmp(left->uuid, right->uuid); /* MIG instances share a bus id */
}

void visible_sort(struct visible_device *devices, size_t n_devices)
{
        qsort(devices, n_devices, sizeof(devices[0]), by_pci);
}

static int parse_index(const char *word, bool pci_order, size_t n_devices, uint64_t *ret_mask, struct error *err)
{
        uint64_t index;
        if (parse_u64("CUDA_VISIBLE_DEVICES", word, 0, n_devices - 1, &index, err) < 0)
                return -EINVAL;
        if (n_devices > 1 && !pci_order)
                return error_set(err, EINVAL,
                                 "CUDA_VISIBLE_DEVICES=%s names a card by its index, and CUDA's own order is not the "
                                 "driver's; set CUDA_DEVICE_ORDER=PCI_BUS_ID as well, or name the card by its UUID "
                                 "(`lessor devices`)",
                                 word);
        *ret_mask |= UINT64_C(1) << index;
        return 0;
}

static int parse_uuid(const char *word, const char *shown, const struct visible_device *devices, size_t n_devices,
                      uint64_t *ret_mask, struct error *err)
{
        size_t n_found = 0, found = 0;
        for (size_t i = 0; i < n_devices; i++)
                if (strncasecmp(devices[i].uuid, word, strlen(word)) == 0) {
                        n_found++;
                        found = i;
                }
        if (n_found == 0)
                return error_set(err, EINVAL,
                                 "CUDA_VISIBLE_DEVICES names %s, which lessord does not know; `lessor devices` lists "
                                 "what it knows",
                                 shown);
        if (n_found > 1)
                return error_set(err, EINVAL,
                                 "CUDA_VISIBLE_DEVICES: %s is the beginning of %zu cards' UUIDs; write "
                                 "more of it",
                                 shown, n_found);
        *ret_mask |= UINT64_C(1) << found;
        return 0;
}

int visible_parse(const char *value, bool pci_order, const struct visible_device *devices, size_t n_devices,
                  uint64_t *ret_mask, struct error *err)
{
        uint64_t mask = 0;
        const char *at = value;

        if (n_devices == 0)
                return error_set(err, EINVAL, "lessord knows no device at all");
        while (*at != '\0') {
                char word[UUID_TEXT_MAX], shown[SHOWN_MAX];
                size_t n = strcspn(at, ",");
                const char *next = at[n] == ',' ? at + n + 1 : at + n;
                while (n > 0 && *at == ' ') {
                        at++;
                        n--;
                }
                while (n > 0 && at[n - 1] == ' ')
                        n--;
                (void) text_escape(at, n, shown, sizeof(shown));
                if (n >= sizeof(word))
                        return error_set(err, EINVAL, "CUDA_VISIBLE_DEVICES names %s, which is no device", shown);
                memcpy(word, at, n);
                word[n] = '\0';
                at = next;
                if (n == 0 || word[0] == '-' || strcasecmp(word, "NoDevFiles") == 0 || strcasecmp(word, "none") == 0)
                        break; /* CUDA stops reading at the first entry that is none */
                int r = word[0] >= '0' && word[0] <= '9' && strlen(word) < 4
                                ? parse_index(word, pci_order, n_devices, &mask, err)
                                : parse_uuid(word, shown, devices, n_devices, &mask, err);
                if (r < 0)
                        return r;
        }
        if (mask == 0)
                return error_set(err, EINVAL,
                                 "CUDA_VISIBLE_DEVICES allows no card at all; unset it, or name the card the command "
                                 "shall use");
        *ret_mask = mask;
        return 0;
}
