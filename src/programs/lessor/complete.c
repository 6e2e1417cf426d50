/* SPDX-License-Identifier: Apache-2.0 */
/* The words that only lessord knows. */
#include "programs/lessor/complete.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/size.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum { CALL_MS = 1000, FIELD_MAX = 128 };

/* A word is offered only where the shell could not take it for anything else. */
static bool is_harmless(const char *word)
{
        return word[0] != '\0' && word[0] != '-' &&
               word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:/")] == '\0';
}

static void offer(const char *word, const char *meaning)
{
        if (is_harmless(word))
                (void) printf("%s\t%s\n", word, meaning);
}

static bool is_mine(const json_t *object)
{
        uint64_t uid;
        return getuid() == 0 || (json_amount(object, "uid", &uid) && uid == getuid());
}

static void offer_lease(const json_t *lease)
{
        char id[FIELD_MAX], state[FIELD_MAX], name[FIELD_MAX], text[4 * FIELD_MAX];
        if (!is_mine(lease))
                return;
        const char *called = show_field(lease, "name", "", name, sizeof(name));
        if (called[0] == '\0')
                called = show_field(lease, "consumer", "", name, sizeof(name));
        (void) snprintf(text, sizeof(text), "%s %s", show_field(lease, "state", "?", state, sizeof(state)), called);
        offer(show_field(lease, "id", "", id, sizeof(id)), text);
}

static void offer_device(const json_t *device)
{
        char uuid[FIELD_MAX], name[FIELD_MAX];
        offer(show_field(device, "uuid", "", uuid, sizeof(uuid)), show_field(device, "name", "", name, sizeof(name)));
}

static void offer_stranger(const json_t *stranger)
{
        char pid[FIELD_MAX], comm[FIELD_MAX], used[SIZE_TEXT_MAX], text[2 * FIELD_MAX];
        if (!is_mine(stranger) || json_is_true(json_object_get(stranger, "ghost")))
                return;
        (void) snprintf(text, sizeof(text), "%s %s", show_field(stranger, "comm", "", comm, sizeof(comm)),
                        show_bytes(stranger, "used_bytes", used));
        offer(show_field(stranger, "pid", "", pid, sizeof(pid)), text);
}

static void offer_approval(const json_t *approval)
{
        char id[FIELD_MAX], comm[FIELD_MAX];

        offer(show_field(approval, "id", "", id, sizeof(id)), show_field(approval, "comm", "", comm, sizeof(comm)));
}

int complete_main(int argc, char **argv)
{
        static const struct {
                const char *kind, *path;
                void (*offer)(const json_t *object);
        } kinds[] = {
                { "leases", "/api/leases", offer_lease },
                { "devices", "/api/devices", offer_device },
                { "strangers", "/api/status", offer_stranger },
                { "approvals", "/api/approvals", offer_approval },
        };
        struct client client;
        struct client_answer answer;

        client_init(&client);
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                if (argc != 2 || strcmp(argv[1], kinds[i].kind) != 0)
                        continue;
                if (client_call(&client, "GET", kinds[i].path, NULL, CALL_MS, &answer, NULL) < 0)
                        break;
                size_t at;
                json_t *object;
                json_array_foreach(json_object_get(answer.body, kinds[i].kind), at, object) kinds[i].offer(object);
                client_answer_fini(&answer);
        }
        return LESSOR_EXIT_OK;
}
