/* SPDX-License-Identifier: Apache-2.0 */
/* Units, sessions and containers, by the path of a cgroup. */
#include "api/place.h"
#include <string.h>
#include "cm.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void place_is_the_unit_session_or_container_of_the_path(void **state)
{
        (void) state;
        static const struct {
                const char *path;
                enum place_kind kind;
                bool of_user;
                const char *unit, *container;
        } rows[] = {
                { "/", PLACE_NONE, false, "", "" },
                { "", PLACE_NONE, false, "", "" },
                { "no path", PLACE_NONE, false, "", "" },
                { "/system.slice", PLACE_NONE, false, "", "" },
                { "/system.slice/ollama.service", PLACE_UNIT, false, "ollama.service", "" },
                { "/system.slice/ollama.service/worker", PLACE_UNIT, false, "ollama.service", "" },
                { "/system.slice/system-getty.slice/getty@tty1.service", PLACE_UNIT, false, "getty@tty1.service", "" },
                { "/user.slice/user-1000.slice/session-3.scope", PLACE_SESSION, true, "session-3.scope", "" },
                { "/user.slice/user-1000.slice/user@1000.service/app.slice/app-comfy.scope", PLACE_UNIT, true,
                  "app-comfy.scope", "" },
                { "/user.slice/user-1000.slice/user@1000.service/init.scope", PLACE_UNIT, true, "init.scope", "" },
                { "/system.slice/docker-" ID ".scope", PLACE_CONTAINER, false, "docker-" ID ".scope", ID },
                { "/docker/" ID, PLACE_CONTAINER, false, "", ID },
                { "/machine.slice/libpod-" ID ".scope/container", PLACE_CONTAINER, false, "libpod-" ID ".scope", ID },
                { "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-" ID ".scope",
                  PLACE_CONTAINER, false, "cri-containerd-" ID ".scope", ID },
                { "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", PLACE_CONTAINER, true,
                  "libpod-" ID ".scope", ID },
                /* who divides what he was given calls a folder as he likes: it is his unit's place */
                { "/system.slice/evil.service/docker-" ID ".scope", PLACE_UNIT, false, "evil.service", "" },
        };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct place place;
                place_of_cgroup(rows[i].path, &place);
                row_check(rows[i].path, place.kind == rows[i].kind);
                row_check(rows[i].path, place.of_user == rows[i].of_user);
                row_check(rows[i].path, strcmp(place.unit, rows[i].unit) == 0);
                row_check(rows[i].path, strcmp(place.container, rows[i].container) == 0);
                row_check(rows[i].path, (place.number != 0) == (place.kind != PLACE_NONE));
        }
        rows_end();
}

static uint64_t number(const char *path)
{
        struct place place;

        place_of_cgroup(path, &place);
        return place.number;
}

static void number_is_of_the_whole_path_down_to_the_place(void **state)
{
        (void) state;
        assert_true(number("/system.slice/a.service") == number("/system.slice/a.service/worker/1"));
        assert_true(number("/system.slice/a.service") != number("/user.slice/user-1000.slice/a.service"));
        assert_true(number("/system.slice/a.service") != number("/system.slice/b.service/a.service"));
        assert_true(number("/system.slice/b.service/a.service") == number("/system.slice/b.service"));
        assert_true(number("/docker/" ID) == number("/docker/" ID "/below"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(place_is_the_unit_session_or_container_of_the_path),
                cmocka_unit_test(number_is_of_the_whole_path_down_to_the_place),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
