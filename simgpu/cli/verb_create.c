/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "card/abi.h"
#include "cli/cli.h"
#include "cli/hide.h"

/* A small generator of our own, so that a seed means the same cards everywhere. */
static uint64_t next_random(uint64_t *state)
{
        uint64_t z = *state += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
}

static void make_uuid(char *to, size_t size, uint64_t *state)
{
        uint64_t a = next_random(state), b = next_random(state);
        snprintf(to, size, "GPU-%08x-%04x-4%03x-%04x-%012llx", (unsigned) (a >> 32), (unsigned) (a >> 16) & 0xffff,
                 (unsigned) a & 0xfff, ((unsigned) (b >> 48) & 0x3fff) | 0x8000,
                 (unsigned long long) b & 0xffffffffffffull);
}

static bool yes_no(const char *what, const char *text)
{
        if (strcmp(text, "on") == 0 || strcmp(text, "off") == 0)
                return text[1] == 'n';
        cli_die(EXIT_USAGE, "%s: on or off, not \"%s\"", what, text);
}

static void hidden_names(struct card_file *f, const char *list)
{
        while (*list) {
                size_t len = strcspn(list, ",");
                if (len == 0 || len >= CARD_SYMBOL_MAX || f->n_hidden == CARD_HIDDEN_MAX)
                        cli_die(EXIT_USAGE, "--hide: at most %d names of at most %d characters", CARD_HIDDEN_MAX,
                                CARD_SYMBOL_MAX - 1);
                memcpy(f->hidden[f->n_hidden++], list, len);
                list += len + (list[len] == ',');
        }
}

static void first_pci(const char *text, uint32_t *domain, uint32_t *bus)
{
        char rest;
        unsigned slot;
        if (sscanf(text, "%x:%x:%x.%c", domain, bus, &slot, &rest) != 4 || *bus > 0xff)
                cli_die(EXIT_USAGE, "--pci: \"%s\" is no address like 0000:65:00.0", text);
}

int verb_create(int argc, char **argv)
{
        const char *file = NULL, *gpus = "1", *memory = "3G", *name = "Simulated GPU", *reserve = "0", *context = "0",
                   *cc = "9.0";
        const char *pci = "0000:65:00.0", *seed = NULL, *abi = "new", *hide = NULL, *persistence = "on";
        bool reverse = false, json = false, shared = false;
        const struct cli_option options[] = {
                { "file", "F", "the card's file (default $SIMGPU)", &file, NULL },
                { "gpus", "N", "devices (1)", &gpus, NULL },
                { "memory", "SIZE", "of each device, exactly (3G)", &memory, NULL },
                { "name", "TEXT", "product name", &name, NULL },
                { "driver-reserve", "SIZE", "used on an idle device (0)", &reserve, NULL },
                { "context", "SIZE", "what a context costs each process (0; real ones 300M to 800M)", &context, NULL },
                { "cc", "X.Y", "compute capability (9.0)", &cc, NULL },
                { "pci", "ADDRESS", "of the first device; the others follow on the next buses (0000:65:00.0)", &pci,
                  NULL },
                { "seed", "N", "the same UUIDs each time (default: random)", &seed, NULL },
                { "persistence", "on|off",
                  "off: settings vanish when the last client leaves, and Restore wants cuInit in its caller (on)",
                  &persistence, NULL },
                { "reverse-cuda", NULL, "CUDA numbers the devices in the opposite order of NVML", NULL, &reverse },
                { "abi", "new|r535|old", "which driver it plays: R580, R535.54, R450 (new)", &abi, NULL },
                { "hide", "NAME,…", "names (patterns) that dlsym does not find", &hide, NULL },
                { "shared", NULL, "every user may use the card, not only the one who made it", NULL, &shared },
                { "json", NULL, "print path and UUIDs as JSON", NULL, &json },
                { NULL, NULL, NULL, NULL, NULL },
        };
        if (cli_parse("create", options, argc, argv) > 0)
                cli_die(EXIT_USAGE, "create: what is \"%s\"?", argv[1]);

        static struct card_file f;
        f.n_devices = (uint32_t) cli_number("--gpus", gpus, 1, CARD_DEVICES_MAX);
        f.reverse_cuda_order = reverse;
        for (f.abi = 0; f.abi < CARD_ABI_N && strcmp(abi, abi_table[f.abi].word) != 0;)
                f.abi++;
        if (f.abi == CARD_ABI_N)
                cli_die(EXIT_USAGE, "--abi: new, r535 or old, not \"%s\"", abi);
        if (hide)
                hidden_names(&f, hide);
        uint64_t state;
        if (seed)
                state = (uint64_t) cli_number("--seed", seed, 0, INT64_MAX);
        else if (getrandom(&state, sizeof state, 0) != (ssize_t) sizeof state)
                state = card_now_ns();
        unsigned major, minor;
        char rest;
        if (sscanf(cc, "%u.%u%c", &major, &minor, &rest) != 2 || major > 99 || minor > 9)
                cli_die(EXIT_USAGE, "--cc: \"%s\" is no compute capability like 9.0", cc);
        uint32_t domain, bus;
        first_pci(pci, &domain, &bus);
        if (strlen(name) >= sizeof f.device[0].name || bus + f.n_devices - 1 > 0xff)
                cli_die(EXIT_USAGE, "create: the name is too long, or the buses do not suffice");
        for (uint32_t i = 0; i < f.n_devices; i++) {
                struct card_device *d = &f.device[i];
                *d = (struct card_device){ .total_bytes = cli_size("--memory", memory),
                                           .driver_reserve_bytes = cli_size("--driver-reserve", reserve),
                                           .context_bytes = cli_size("--context", context),
                                           .pci_domain = domain,
                                           .pci_bus = bus + i,
                                           .minor = i,
                                           .cc_major = major,
                                           .cc_minor = minor,
                                           .persistence = yes_no("--persistence", persistence) };
                snprintf(d->name, sizeof d->name, "%s", name);
                make_uuid(d->uuid, sizeof d->uuid, &state);
                if (d->total_bytes == 0 || d->driver_reserve_bytes > d->total_bytes)
                        cli_die(EXIT_USAGE, "create: a card needs memory, and more than its driver keeps");
        }
        const char *path = cli_card_path(file);
        char err[256];
        if (card_create(path, &f, shared, err, sizeof err) < 0)
                cli_die(EXIT_FAILED, "create: %s", err);
        path = cli_card_path(file); /* absolute, now that it exists */
        if (f.abi != CARD_ABI_NEW || f.n_hidden > 0)
                hide_build(&f, path);
        if (json) {
                printf("{\"file\":");
                json_text(path);
                printf(",\"uuids\":[");
        }
        for (uint32_t i = 0; i < f.n_devices; i++) {
                const struct card_device *d = &f.device[i];
                if (json)
                        printf("%s\"%s\"", i ? "," : "", d->uuid);
                else
                        printf("%s %s %llu bytes\n", d->uuid, d->name, (unsigned long long) d->total_bytes);
        }
        if (json)
                printf("]}\n");
        return EXIT_OK;
}
