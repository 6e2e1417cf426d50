/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "card/abi.h"
#include "card/fault.h"
#include "card/memory.h"
#include "card/proc.h"
#include "cli/cli.h"

static const char *const state_words[] = { "running", "locked", "checkpointed", "failed" };

static const char *state_word(const struct card_proc *p)
{
        uint32_t s = atomic_load(&p->state);
        return s < sizeof state_words / sizeof *state_words ? state_words[s] : "?";
}

static const char *type_word(const struct card_proc *p)
{
        return p->graphics ? "G" : "C";
}

/* A process belongs to a device where it has anything: memory, a context, or parked bytes. */
static bool is_on(const struct card_proc *p, uint32_t device)
{
        const struct card_use *use = &p->use[device];
        return atomic_load(&p->pid) != 0 && (atomic_load(&use->bytes) || atomic_load(&use->managed_bytes) ||
                                             atomic_load(&use->parked_bytes) || atomic_load(&use->contexts));
}

static void show_process(const struct card *card, const struct card_proc *p, uint32_t d, bool json, bool first)
{
        const struct card_use *use = &p->use[d];
        unsigned long long bytes = memory_listed(card, p, d), managed = atomic_load(&use->managed_bytes),
                           parked = atomic_load(&use->parked_bytes);
        if (json)
                printf("%s{\"pid\":%u,\"start_time\":%llu,\"bytes\":%llu,\"managed_bytes\":%llu,\"parked_bytes\":%llu,"
                       "\"type\":\"%s\",\"state\":\"%s\"}",
                       first ? "" : ",", atomic_load(&p->pid), (unsigned long long) p->start_ticks, bytes, managed,
                       parked, managed > 0 && bytes == 0 ? "M" : type_word(p), state_word(p));
        else
                printf("  pid %u start %llu bytes %llu managed %llu parked %llu type %s state %s\n",
                       atomic_load(&p->pid), (unsigned long long) p->start_ticks, bytes, managed, parked,
                       managed > 0 && bytes == 0 ? "M" : type_word(p), state_word(p));
}

static void show_device(struct card *card, uint32_t d, bool json)
{
        const struct card_device *dev = &card->file->device[d];
        unsigned long long total = dev->total_bytes, used = memory_used_locked(card, d);
        const struct card_settings *s = &dev->settings;
        if (json) {
                printf("%s{\"index\":%u,\"uuid\":", d ? "," : "", d);
                json_text(dev->uuid);
                printf(",\"name\":");
                json_text(dev->name);
                printf(",\"pci\":\"%08x:%02x:%02x.0\",\"minor\":%u,\"total_bytes\":%llu,\"used_bytes\":%llu,"
                       "\"free_bytes\":%llu,\"reserve_bytes\":%llu,\"context_bytes\":%llu,"
                       "\"settings\":{\"persistence\":%u,\"power_limit_mw\":%u,\"gpu_lock_mhz\":[%u,%u],"
                       "\"memory_lock_mhz\":[%u,%u],\"gpu_offset_mhz\":%d,\"memory_offset_mhz\":%d,"
                       "\"accounting\":%u,\"compute_mode\":%u},\"processes\":[",
                       dev->pci_domain, dev->pci_bus, dev->pci_device, dev->minor, total, used, total - used,
                       (unsigned long long) dev->driver_reserve_bytes, (unsigned long long) dev->context_bytes,
                       dev->persistence, s->power_limit_mw, s->gpu_lock_min_mhz, s->gpu_lock_max_mhz,
                       s->mem_lock_min_mhz, s->mem_lock_max_mhz, s->gpu_offset_mhz, s->mem_offset_mhz, s->accounting,
                       s->compute_mode);
        } else {
                printf("%s %s total %llu used %llu free %llu\n", dev->uuid, dev->name, total, used, total - used);
        }
        bool first = true;
        for (uint32_t i = 0; i < CARD_PROCS_MAX; i++) {
                const struct card_proc *p = &card->file->proc[i];
                if (!is_on(p, d))
                        continue;
                show_process(card, p, d, json, first);
                first = false;
        }
        if (json)
                printf("]}");
}

static void show_faults(const struct card *card, bool json)
{
        bool first = true;
        for (int i = 0; i < CARD_FAULTS_MAX; i++) {
                const struct card_fault *f = &card->file->fault[i];
                if (f->kind == FAULT_NONE || f->kind >= FAULT_N)
                        continue;
                if (json) {
                        char symbol[CARD_SYMBOL_MAX];
                        snprintf(symbol, sizeof symbol, "%.*s", CARD_SYMBOL_MAX - 1, f->symbol);
                        printf("%s{\"kind\":\"%s\",\"args\":[%lld,%lld],\"device\":%d,\"pid\":%u,\"after\":%u,"
                               "\"times\":%u,\"symbol\":",
                               first ? "" : ",", fault_table[f->kind].word, (long long) f->a, (long long) f->b,
                               f->device, f->pid, f->after, f->times);
                        json_text(symbol);
                        printf("}");
                } else {
                        printf("fault %s %lld %lld device %d pid %u after %u times %u symbol %.*s\n",
                               fault_table[f->kind].word, (long long) f->a, (long long) f->b, f->device, f->pid,
                               f->after, f->times, CARD_SYMBOL_MAX - 1, f->symbol[0] ? f->symbol : "-");
                }
                first = false;
        }
}

int verb_show(int argc, char **argv)
{
        const char *file = NULL;
        bool json = false;
        const struct cli_option options[] = {
                { "file", "F", "the card (default $SIMGPU)", &file, NULL },
                { "json", NULL, "one JSON object", NULL, &json },
                { NULL, NULL, NULL, NULL, NULL },
        };
        if (cli_parse("show", options, argc, argv) > 0)
                cli_die(EXIT_USAGE, "show: what is \"%s\"?", argv[1]);
        struct card card;
        cli_open(&card, file);
        driver_settle(&card);
        if (card_lock(&card) < 0)
                cli_die(EXIT_FAILED, "show: the card's lock is held by something that does not let go");
        if (json)
                printf("{\"driver\":\"%s\",\"abi\":\"%s\",\"devices\":[", abi_of(card.file)->driver,
                       abi_of(card.file)->word);
        for (uint32_t d = 0; d < card.n_devices; d++)
                show_device(&card, d, json);
        if (json)
                printf("],\"faults\":[");
        show_faults(&card, json);
        if (json)
                printf("]}\n");
        card_unlock(&card);
        return EXIT_OK;
}
