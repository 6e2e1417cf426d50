/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include "programs/lessor/look.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

/* What a person must know before reading on: figures that are old, a store that fails, a card that is not ours. */
static void print_banners(const json_t *status)
{
        char gpu[32], text[SHOW_TEXT_MAX];
        (void) show_field(status, "gpu", "?", gpu, sizeof(gpu));
        if (strcmp(gpu, "stale") == 0)
                (void) printf("%s! the driver does not answer: figures are old, nothing is granted%s\n",
                              show_colour(SHOW_RED), show_colour(SHOW_PLAIN));
        else if (strcmp(gpu, "none") == 0)
                (void) printf("%s! no driver here (libnvidia-ml.so.1 cannot be opened): nothing can be granted%s\n",
                              show_colour(SHOW_YELLOW), show_colour(SHOW_PLAIN));
        else if (strcmp(gpu, "mismatch") == 0)
                (void) printf(
                        "%s! the driver and its library have different versions: reboot; leases go on, nothing is "
                        "granted%s\n",
                        show_colour(SHOW_RED), show_colour(SHOW_PLAIN));

        const json_t *degraded = json_object_get(status, "degraded");
        if (json_is_string(degraded))
                (void) printf("%s! degraded: %s%s\n", show_colour(SHOW_RED),
                              show_field(status, "degraded", "", text, sizeof(text)), show_colour(SHOW_PLAIN));
        else if (json_is_true(degraded))
                (void) printf("%s! degraded: the journal cannot be written, nothing new is granted%s\n",
                              show_colour(SHOW_RED), show_colour(SHOW_PLAIN));
        if (json_is_string(json_object_get(status, "read_only_reason")))
                (void) printf("%s! read only: %s%s\n", show_colour(SHOW_YELLOW),
                              show_field(status, "read_only_reason", "", text, sizeof(text)), show_colour(SHOW_PLAIN));
}

static void heading(const char *what, const json_t *list)
{
        (void) printf("\n%s%s%s (%zu)\n", show_colour(SHOW_BOLD), what, show_colour(SHOW_PLAIN), json_array_size(list));
}

/* `leases` lists those in the queue, too; they are shown once, where their place and reason stand. */
static json_t *not_queued(const json_t *leases)
{
        json_t *rest = json_array(), *lease;
        size_t i;
        json_array_foreach(leases, i, lease) if (strcmp(json_text(lease, "state", ""), "queued") != 0)(void)
                json_array_append(rest, lease);
        return rest;
}

int verb_status_main(const struct verb *verb, int argc, char **argv)
{
        bool json = false;
        json_t *status = NULL;
        int code = look_options(verb, argc, argv, &json);
        if (code != LOOK_ON)
                return code;
        code = show_get(verb->name, "/api/status", &status);
        if (code != LESSOR_EXIT_OK)
                return code;
        if (json) {
                show_json(status);
                json_decref(status);
                return LESSOR_EXIT_OK;
        }

        print_banners(status);
        look_devices(json_object_get(status, "devices"), false);
        json_t *leases = not_queued(json_object_get(status, "leases"));
        const json_t *queue = json_object_get(status, "queue"), *strangers = json_object_get(status, "strangers");
        heading("leases", leases);
        look_leases(leases);
        heading("queue", queue);
        if (json_array_size(queue) > 0)
                look_queue(queue);
        if (json_array_size(strangers) > 0) {
                heading("strangers: memory that nobody asked for", strangers);
                look_strangers(strangers);
        }
        json_decref(leases);
        json_decref(status);
        return LESSOR_EXIT_OK;
}
