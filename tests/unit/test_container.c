/* SPDX-License-Identifier: Apache-2.0 */
/* S03: which container a cgroup is of, which rule fits it, and what its engine says. */
#include <string.h>
#include "api/container.h"
#include "api/engine_json.h"
#include "cm.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "ffff456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void S03_container_is_known_by_a_cgroup_that_only_root_can_make(void **state)
{
        static const struct {
                const char *name, *path, *id;
                bool of_user;
                uint32_t uid;
        } rows[] = {
                { "Docker by systemd", "/system.slice/docker-" ID ".scope", ID, false, 0 },
                { "Docker by folders", "/docker/" ID, ID, false, 0 },
                { "Docker, a folder inside", "/docker/" ID "/init", ID, false, 0 },
                { "Podman of root", "/machine.slice/libpod-" ID ".scope", ID, false, 0 },
                { "Podman of root, the payload", "/machine.slice/libpod-" ID ".scope/container", ID, false, 0 },
                { "Kubernetes, containerd",
                  "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1_2.slice/cri-containerd-" ID
                  ".scope",
                  ID, false, 0 },
                { "Kubernetes, folders", "/kubepods/burstable/pod1-2/" ID, ID, false, 0 },
                { "CRI-O", "/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope", ID, false, 0 },
                { "Podman of a user", "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope",
                  ID, true, 1000 },
                { "a container in a container is the outer one", "/docker/" ID "/docker/" OTHER, ID, false, 0 },
                { "made up in a user's session",
                  "/user.slice/user-1000.slice/user@1000.service/app.slice/docker-" ID ".scope", ID, true, 1000 },
                { "made up in a service that divides its own", "/system.slice/web.service/docker-" ID ".scope", NULL,
                  false, 0 },
                { "the same with a slice in between", "/system.slice/web.service/a.slice/docker-" ID ".scope", NULL,
                  false, 0 },
                { "made up in a scope", "/system.slice/run-7.scope/" ID, NULL, false, 0 },
                { "made up in a pod-like service", "/podman.service/" ID, NULL, false, 0 },
                { "an id that is too short", "/docker/0123456789ab", NULL, false, 0 },
                { "an id with more behind it", "/docker/" ID "0", NULL, false, 0 },
                { "an id in capitals", "/docker/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", NULL,
                  false, 0 },
                { "above our own root", "/../docker/" ID, NULL, false, 0 },
                { "the root", "/", NULL, false, 0 },
                { "nothing", "", NULL, false, 0 },
                { "no user", "/user.slice/user-.slice/docker-" ID ".scope", ID, false, 0 },
        };
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct container_place place = { 0 };
                bool found = container_of_cgroup(rows[i].path, &place);
                row_check(rows[i].name, found == (rows[i].id != NULL));
                row_check(rows[i].name, !found || strcmp(place.id, rows[i].id) == 0);
                row_check(rows[i].name, place.of_user == rows[i].of_user && place.user_uid == rows[i].uid);
        }
        rows_end();
}

static void S03_rule_fits_by_everything_it_gives(void **state)
{
        static const char *const labels[] = { "team=ml", "tier=web" };
        const struct container_facts facts = {
                .name = "webui", .image = "ghcr.io/x/webui:v2", .labels = labels, .n_labels = 2
        };
        const struct container_place place = { .id = ID };
        static const struct {
                const char *name;
                struct container_rule rule;
                bool fits, fits_alone;
        } rows[] = {
                { "the whole id", { .id = ID }, true, true },
                { "the beginning of the id", { .id = "0123456789ab" }, true, true },
                { "another id", { .id = OTHER }, false, false },
                { "its name", { .name = "webui" }, true, false },
                { "a name that begins so", { .name = "web" }, false, false },
                { "its image with the tag", { .image = "ghcr.io/x/webui:v2" }, true, false },
                { "its image without one", { .image = "ghcr.io/x/webui" }, true, false },
                { "its image with another tag", { .image = "ghcr.io/x/webui:v3" }, false, false },
                { "the beginning of its image", { .image = "ghcr.io/x/web" }, false, false },
                { "its host alone", { .image = "ghcr.io" }, false, false },
                { "a label", { .n_labels = 1, .labels = { "team=ml" } }, true, false },
                { "both labels", { .n_labels = 2, .labels = { "tier=web", "team=ml" } }, true, false },
                { "a label too many", { .n_labels = 2, .labels = { "team=ml", "a=b" } }, false, false },
                { "a label's beginning", { .n_labels = 1, .labels = { "team=m" } }, false, false },
                { "id and name", { .id = ID, .name = "webui" }, true, false },
                { "id and another name", { .id = ID, .name = "other" }, false, false },
                { "nothing at all would be everybody", { .uid = 5 }, false, false },
        };
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const struct container_rule *rule = &rows[i].rule;
                row_check(rows[i].name, (container_match(rule, 1, &place, &facts) == rule) == rows[i].fits);
                row_check(rows[i].name, (container_match(rule, 1, &place, NULL) == rule) == rows[i].fits_alone);
                row_check(rows[i].name, !rows[i].fits || rows[i].fits_alone || container_needs_engine(rule, 1, &place));
        }
        rows_end();
}

static void S03_container_of_a_user_can_act_as_that_user_only(void **state)
{
        const struct container_place place = { .id = ID, .of_user = true, .user_uid = 1000 };
        const struct container_rule own = { .id = ID, .uid = 1000 }, others = { .id = ID, .uid = 1001 };
        (void) state;
        assert_ptr_equal(container_match(&own, 1, &place, NULL), &own);
        assert_null(container_match(&others, 1, &place, NULL));
        const struct container_rule named = { .name = "webui", .uid = 1001 };
        assert_false(container_needs_engine(&named, 1, &place));
}

static void engine_is_read_as_strictly_as_a_stranger(void **state)
{
        static const struct {
                const char *name, *text;
                bool good;
                const char *container, *image;
                size_t n_labels;
        } rows[] = {
                { "Docker",
                  "{\"Id\":\"x\",\"Name\":\"/"
                  "webui\",\"Config\":{\"Image\":\"i:1\",\"Labels\":{\"a\":\"b\",\"c\":\"\"}}}",
                  true, "webui", "i:1", 2 },
                { "no labels", "{\"Name\":\"webui\",\"Config\":{\"Image\":\"i\",\"Labels\":null}}", true, "webui", "i",
                  0 },
                { "labels that are no texts", "{\"Config\":{\"Labels\":{\"a\":1,\"b\":\"c\"}}}", true, "", "", 1 },
                { "a name with a control character", "{\"Name\":\"/a\\nb\",\"Config\":{}}", true, "", "", 0 },
                { "a name of another type", "{\"Name\":[],\"Config\":{\"Image\":{}}}", true, "", "", 0 },
                { "a list", "[]", false, NULL, NULL, 0 },
                { "no Config", "{\"Name\":\"/a\"}", false, NULL, NULL, 0 },
                { "cut", "{\"Name\":\"/a\",\"Config\":{", false, NULL, NULL, 0 },
                { "the same key twice", "{\"Config\":{},\"Config\":{}}", false, NULL, NULL, 0 },
                { "nothing", "", false, NULL, NULL, 0 },
        };
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct container_facts facts = { 0 };
                bool good = engine_parse(rows[i].text, strlen(rows[i].text), &facts);
                row_check(rows[i].name, good == rows[i].good);
                if (!good)
                        continue;
                row_check(rows[i].name, strcmp(facts.name, rows[i].container) == 0);
                row_check(rows[i].name, strcmp(facts.image, rows[i].image) == 0);
                row_check(rows[i].name, facts.n_labels == rows[i].n_labels);
                engine_facts_free(&facts);
        }
        rows_end();
}

static void F87_engine_that_nests_a_thousandfold_is_refused(void **state)
{
        static char text[2001];
        struct container_facts facts = { 0 };
        (void) state;
        memset(text, '[', 2000);
        assert_false(engine_parse(text, 2000, &facts));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(S03_container_is_known_by_a_cgroup_that_only_root_can_make),
                cmocka_unit_test(S03_rule_fits_by_everything_it_gives),
                cmocka_unit_test(S03_container_of_a_user_can_act_as_that_user_only),
                cmocka_unit_test(engine_is_read_as_strictly_as_a_stranger),
                cmocka_unit_test(F87_engine_that_nests_a_thousandfold_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
