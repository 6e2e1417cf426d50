/* SPDX-License-Identifier: Apache-2.0 */
/* The shipped files tell applications from each other: processes as they look in the field, and whose they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"
#include "tenants/match.h"

static int rows_failed;

enum { WORDS_MAX = 6 };

struct seen {
        const char *program;         /* NULL = not ours to see */
        const char *argv[WORDS_MAX]; /* up to NULL */
};

static void program_of(const struct seen *seen, struct match_program *ret)
{
        *ret = (struct match_program){ .program_known = seen->program != NULL,
                                       .program = seen->program,
                                       .arguments_known = seen->argv[0] != NULL,
                                       .arguments = seen->argv };
        while (ret->n_arguments < WORDS_MAX && seen->argv[ret->n_arguments])
                ret->n_arguments++;
}

static void load(struct tenants *set)
{
        const char *source = getenv("LESSOR_SOURCE_DIR");
        struct tenants_places places = { 0 };
        struct error err = { 0 };

        (void) snprintf(places.shipped, sizeof(places.shipped), "%s/data/tenants.d", source ? source : ".");
        if (tenants_load(&places, set, &err) < 0)
                fail_msg("%s", err.msg);
        assert_true(set->n >= 30);
}

static void process_in_the_field_is_whose_it_is(void **state)
{
        static const struct {
                struct seen self, parent;
                const char *unit, *image, *service;
                const char *tenant, *role;
        } rows[] = {
                { { "/usr/local/bin/ollama", { "ollama", "serve" } }, .tenant = "ollama", .role = "main" },
                { { "/usr/local/bin/ollama", { "ollama", "run", "llama3" } }, .tenant = NULL },
                { { "/usr/local/lib/ollama/llama-server",
                    { "llama-server", "--model", "/b/sha256-1", "--port", "40001" } },
                  { "/usr/local/bin/ollama", { "ollama", "serve" } },
                  .tenant = "ollama",
                  .role = "runner" },
                { { "/usr/local/bin/ollama", { "ollama", "runner", "--model", "/b" } },
                  .tenant = "ollama",
                  .role = "runner" },
                { { "/opt/llama/llama-server", { "llama-server", "-m", "x.gguf" } },
                  { "/usr/bin/bash", { "bash" } },
                  .tenant = "llama-cpp-server",
                  .role = "main" },
                { { "/opt/llama/llama-server", { "llama-server", "--models-dir", "/m" } },
                  .tenant = "llama-cpp-router",
                  .role = "main" },
                { { "/opt/llama/llama-server", { "llama-server", "-m", "x.gguf" } },
                  { "/opt/llama/llama-server", { "llama-server" } },
                  .tenant = "llama-cpp-router",
                  .role = "model" },
                { { "/opt/llama/llama-server", { "llama-server", "-m", "x.gguf" } },
                  { "/usr/bin/llama-swap", { "llama-swap" } },
                  .tenant = "llama-swap",
                  .role = "model" },
                { { "/opt/llama/llama-server", { "llama-server", "-m", "x.gguf" } },
                  { "/usr/bin/python3.11", { "python3", "/home/a/text-generation-webui/server.py" } },
                  .tenant = "text-generation-webui",
                  .role = "runner" },
                { { "/usr/bin/python3.11", { "VLLM::EngineCore" } },
                  { "/usr/bin/python3.11", { "python3", "/venv/bin/vllm", "serve", "x" } },
                  .tenant = "vllm",
                  .role = "engine" },
                { { "/usr/bin/python3.11", { "/usr/bin/python3", "/venv/bin/vllm", "serve", "x" } },
                  .tenant = "vllm",
                  .role = "main" },
                { { "/usr/bin/python3.11", { "python", "/srv/ComfyUI/main.py", "--listen" } },
                  .tenant = "comfyui",
                  .role = "main" },
                { { "/usr/bin/python3.11", { "python", "main.py" } }, .tenant = NULL }, /* anybody's */
                { { "/usr/bin/python3.11", { "python", "main.py" } },
                  .service = "comfyui",
                  .tenant = "comfyui",
                  .role = "main" },
                { { "/usr/bin/python3.11", { "python", "main.py" } },
                  .image = "ghcr.io/ai-dock/comfyui:v2",
                  .tenant = "comfyui",
                  .role = "main" },
                { { "/usr/bin/python3.11", { "python", "main.py" } },
                  .unit = "comfyui.service",
                  .tenant = "comfyui",
                  .role = "main" },
                { { "/usr/bin/python3.11", { "python", "-m", "ipykernel_launcher", "-f", "k.json" } },
                  .tenant = "jupyter",
                  .role = "main" },
                { { "/usr/lib/jellyfin-ffmpeg/ffmpeg", { "ffmpeg", "-i", "x" } },
                  .tenant = "jellyfin",
                  .role = "main" },
                { { "/usr/bin/ffmpeg", { "ffmpeg", "-i", "x" } }, .tenant = NULL },
                { { "/usr/bin/ffmpeg", { "ffmpeg" } },
                  { "/usr/bin/python3.11", { "frigate.process:front" } },
                  .tenant = "frigate",
                  .role = "ffmpeg" },
                { { "/usr/bin/python3.11", { "frigate.detector:nvidia" } }, .tenant = "frigate", .role = "main" },
                { { "/usr/bin/kwin_wayland", { "kwin_wayland" } }, .tenant = "desktop", .role = "main" },
                { { "/home/a/g/game.x86_64", { "game" } },
                  { "/home/a/.steam/reaper", { "reaper", "SteamLaunch", "AppId=620" } },
                  .tenant = "games",
                  .role = "main" },
                { { "/usr/bin/blender", { "blender", "-b", "x.blend" } }, .tenant = "blender", .role = "main" },
                { { NULL, { "/usr/bin/python3", "/venv/bin/vllm", "serve" } }, .tenant = "vllm", .role = "main" },
        };
        struct tenants set;

        (void) state;
        load(&set);
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const char *name = rows[i].self.argv[rows[i].self.argv[1] ? 1 : 0];
                struct match_subject s = { .place_known = true,
                                           .unit = rows[i].unit,
                                           .in_container = rows[i].image || rows[i].service,
                                           .container_known = rows[i].image || rows[i].service,
                                           .image = rows[i].image,
                                           .compose_service = rows[i].service };
                struct match_program parent;
                struct match m;
                program_of(&rows[i].self, &s.self);
                program_of(&rows[i].parent, &parent);
                s.ancestors = &parent;
                s.n_ancestors = rows[i].parent.program ? 1 : 0;
                match_find(&set, &s, &m);
                row_check(name, (m.tenant != NULL) == (rows[i].tenant != NULL));
                if (!m.tenant || !rows[i].tenant)
                        continue;
                row_check(rows[i].tenant, strcmp(m.tenant->name, rows[i].tenant) == 0);
                row_check(rows[i].tenant, strcmp(match_role(m.tenant, m.rule), rows[i].role) == 0);
        }
        tenants_fini(&set);
        rows_end();
}

/* Whatever is lost by a way out, nobody loses it without having said so. */
static void nothing_is_lost_by_what_is_on_by_itself(void **state)
{
        struct tenants set;

        (void) state;
        load(&set);
        for (uint32_t i = 0; i < set.n; i++)
                for (uint32_t w = 0; w < set.list[i].ways.n; w++) {
                        const struct tenant_way *way = &set.list[i].ways.items[w];
                        assert_true(!tenant_way_is_on(way) ||
                                    (way->by == TENANT_WAY_HTTP && way->documented && !way->drops));
                        assert_false(tenant_way_is_on(way) && set.list[i].is_protected);
                }
        tenants_fini(&set);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(process_in_the_field_is_whose_it_is),
                cmocka_unit_test(nothing_is_lost_by_what_is_on_by_itself),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
