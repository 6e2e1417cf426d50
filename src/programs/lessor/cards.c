/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/cards.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "client/visible.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

static size_t read_devices(const json_t *body, struct visible_device *devices)
{
        size_t i, n = 0;
        json_t *device;
        json_array_foreach(json_object_get(body, "devices"), i, device)
        {
                if (n == DEVICES_MAX)
                        break;
                (void) snprintf(devices[n].uuid, sizeof(devices[n].uuid), "%s", json_text(device, "uuid", ""));
                (void) snprintf(devices[n].pci_bus_id, sizeof(devices[n].pci_bus_id), "%s",
                                json_text(device, "pci_bus_id", ""));
                n++;
        }
        visible_sort(devices, n);
        return n;
}

static int load_devices(struct obtain *o, struct visible_device *devices, size_t *ret_n)
{
        json_t *body = NULL;
        int code = obtain_get(o, "/api/devices", &body);
        if (code != 0)
                return code;
        *ret_n = read_devices(body, devices);
        json_decref(body);
        return OBTAINED;
}

static bool order_is_pci(void)
{
        const char *order = getenv("CUDA_DEVICE_ORDER");
        return order && strcmp(order, "PCI_BUS_ID") == 0;
}

int cards_apply_constraint(struct obtain *o, struct ask *ask)
{
        struct visible_device devices[DEVICES_MAX];
        struct error err = { 0 };
        size_t n = 0, last = 0, n_allowed = 0;
        uint64_t mask;
        const char *value = getenv("CUDA_VISIBLE_DEVICES");

        if (!value || ask->visible == VISIBLE_NONE)
                return OBTAINED;
        int code = load_devices(o, devices, &n);
        if (code != OBTAINED)
                return code;
        if (n == 0)
                return OBTAINED; /* the daemon says what is wrong there, better than we could */
        if (visible_parse(value, order_is_pci(), devices, n, &mask, &err) < 0) {
                (void) fprintf(stderr, "lessor run: %s\n", err.msg);
                return LESSOR_EXIT_OWN;
        }
        for (size_t i = 0; i < n; i++) {
                bool allowed = (mask >> i & 1) != 0;
                if (allowed && ask->device[0] != '\0' &&
                    strncasecmp(devices[i].uuid, ask->device, strlen(ask->device)) != 0)
                        allowed = false;
                if (allowed) {
                        n_allowed++;
                        last = i;
                }
        }
        if (n_allowed == 0) {
                (void) fprintf(
                        stderr,
                        "lessor run: --device names a device that CUDA_VISIBLE_DEVICES does not allow; unset one "
                        "of the two\n");
                return LESSOR_EXIT_OWN;
        }
        if (n_allowed == 1)
                (void) snprintf(ask->device, sizeof(ask->device), "%s", devices[last].uuid);
        else if (n_allowed < n) {
                (void) fprintf(
                        stderr,
                        "lessor run: CUDA_VISIBLE_DEVICES allows %zu of %zu devices, and asking for one of some is "
                        "not possible yet; name one with --device, or unset it\n",
                        n_allowed, n);
                return LESSOR_EXIT_OWN;
        }
        return OBTAINED;
}

/* Does the person's own setting already name exactly the granted devices? Then it stays as it was written. */
static bool already_exact(const struct visible_device *devices, size_t n, uint64_t granted)
{
        uint64_t mask;
        const char *value = getenv("CUDA_VISIBLE_DEVICES");
        return value && visible_parse(value, order_is_pci(), devices, n, &mask, NULL) == 0 && mask == granted;
}

static bool find_granted(const struct visible_device *devices, size_t n, const char *uuid, size_t *ret)
{
        for (*ret = 0; *ret < n; ++*ret)
                if (strcmp(devices[*ret].uuid, uuid) == 0)
                        return true;
        return false;
}

/* One word after another, with commas between. */
static void add_word(char *list, size_t size, const char *word)
{
        size_t len = strlen(list);

        (void) snprintf(list + len, size - len, "%s%s", len > 0 ? "," : "", word);
}

int cards_set_visible(struct obtain *o)
{
        struct visible_device devices[DEVICES_MAX];
        char uuids[GANG_MAX * UUID_TEXT_MAX] = "", indices[GANG_MAX * 24] = "", index[24];
        uint64_t mask = 0;
        size_t n = 0, at;
        uint8_t how = o->ask->visible;

        if (how == VISIBLE_NONE)
                return OBTAINED;
        int code = load_devices(o, devices, &n);
        if (code != OBTAINED)
                return code;
        for (int i = 0; i < o->n_devices; i++) {
                if (!find_granted(devices, n, o->devices[i], &at)) {
                        progress_fail(&o->progress, "%s is on %s, which lessord does not list", o->id, o->devices[i]);
                        return LESSOR_EXIT_OWN;
                }
                mask |= UINT64_C(1) << at;
                add_word(uuids, sizeof(uuids), o->devices[i]);
                (void) snprintf(index, sizeof(index), "%zu", at);
                add_word(indices, sizeof(indices), index);
        }
        if (o->n_devices == 0 || (how == VISIBLE_AUTO && (n == 1 || already_exact(devices, n, mask))))
                return OBTAINED;
        if (how == VISIBLE_INDEX && strncmp(o->device, "MIG-", 4) != 0) {
                (void) setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
                (void) setenv("CUDA_VISIBLE_DEVICES", indices, 1);
        } else { /* a MIG instance has no index */
                (void) setenv("CUDA_VISIBLE_DEVICES", uuids, 1);
        }
        return OBTAINED;
}
