/* SPDX-License-Identifier: Apache-2.0 */
/* S09: who runs what is in a cgroup, by its name alone; and how a container stands, by what its engine says. */
#include <string.h>
#include "api/engine_state.h"
#include "api/managed.h"
#include "cm.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define USER_1000 "/user.slice/user-1000.slice/user@1000.service"

static void S09_who_runs_it_is_known_by_a_cgroup_that_nobody_else_could_have_made(void **state)
{
        static const struct {
                const char *name, *path;
                enum manager_kind kind;
                const char *manager;
                bool of_user;
        } rows[] = {
                { "a unit of the machine", "/system.slice/ollama.service", MANAGER_SYSTEM_UNIT, "ollama.service",
                  false },
                { "without a slice", "/ollama.service", MANAGER_SYSTEM_UNIT, "ollama.service", false },
                { "an instance", "/system.slice/system-chat.slice/chat@a\\x2db.service", MANAGER_SYSTEM_UNIT,
                  "chat@a\\x2db.service", false },
                { "a unit of a person", USER_1000 "/app.slice/train.service", MANAGER_USER_UNIT, "train.service",
                  true },
                { "a container", "/system.slice/docker-" ID ".scope", MANAGER_CONTAINER, ID, false },
                { "a container of a person's engine, or a name that he made up",
                  USER_1000 "/app.slice/docker-" ID ".scope", MANAGER_CONTAINER, ID, true },
                { "a scope", "/system.slice/run-7.scope", MANAGER_NONE, NULL, false },
                { "a session", "/user.slice/user-1000.slice/session-2.scope", MANAGER_NONE, NULL, false },
                { "a person's manager itself", USER_1000, MANAGER_NONE, NULL, false },
                { "its own scope", USER_1000 "/init.scope", MANAGER_NONE, NULL, false },
                { "made in a part of the tree that a unit divides", "/system.slice/web.service/sshd.service",
                  MANAGER_NONE, NULL, false },
                { "the same with a slice in between", "/system.slice/web.service/a.slice/sshd.service", MANAGER_NONE,
                  NULL, false },
                { "made in a part that a person's unit divides", USER_1000 "/app.slice/web.service/other.service",
                  MANAGER_NONE, NULL, false },
                { "a manager in a manager", USER_1000 "/user@0.service/x.service", MANAGER_NONE, NULL, false },
                { "a manager of nobody", "/user.slice/user@x.service/x.service", MANAGER_NONE, NULL, false },
                { "a manager of too large a number", "/user.slice/user@4294967295.service/x.service", MANAGER_NONE,
                  NULL, false },
                { "a slice", "/system.slice", MANAGER_NONE, NULL, false },
                { "no name", "/.service", MANAGER_NONE, NULL, false },
                { "an empty folder", "//x.service", MANAGER_NONE, NULL, false },
                { "above our own root", "/../x.service", MANAGER_NONE, NULL, false },
                { "letters that no unit has", "/system.slice/a b.service", MANAGER_NONE, NULL, false },
                { "the root", "/", MANAGER_NONE, NULL, false },
                { "nothing", "", MANAGER_NONE, NULL, false },
        };
        int rows_failed = 0;
        (void) state;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct managed m;
                bool found = managed_of_cgroup(rows[i].path, &m);
                row_check(rows[i].name, found == (rows[i].kind != MANAGER_NONE));
                row_check(rows[i].name, m.manager.kind == rows[i].kind);
                row_check(rows[i].name, strcmp(m.manager.name, rows[i].manager ? rows[i].manager : "") == 0);
                row_check(rows[i].name, m.of_user == rows[i].of_user && m.user_uid == (rows[i].of_user ? 1000 : 0));
        }
        rows_end();
}

static void name_that_is_too_long_has_no_manager(void **state)
{
        char path[512] = "/system.slice/";
        struct managed m;
        (void) state;

        memset(path + 14, 'a', 300);
        memcpy(path + 314, ".service", 9);
        assert_false(managed_of_cgroup(path, &m));
        memcpy(path + 14 + MANAGER_NAME_MAX - 8, ".service", 9); /* one letter more than there is room for */
        assert_false(managed_of_cgroup(path, &m));
        memcpy(path + 14 + MANAGER_NAME_MAX - 9, ".service", 9);
        assert_true(managed_of_cgroup(path, &m));
}

static void container_stands_as_its_engine_says_or_nobody_knows(void **state)
{
        static const struct {
                const char *name, *text;
                bool fine, running, restarting, removed_at_end;
                uint32_t pid;
        } rows[] = {
                { "runs", "{\"State\":{\"Running\":true,\"Pid\":4711},\"HostConfig\":{\"AutoRemove\":false}}", true,
                  true, false, false, 4711 },
                { "is gone when it ends",
                  "{\"State\":{\"Running\":true,\"Pid\":1},\"HostConfig\":{\"AutoRemove\":true}}", true, true, false,
                  true, 1 },
                { "has ended", "{\"State\":{\"Running\":false,\"Pid\":0}}", true, false, false, false, 0 },
                { "its policy starts it again", "{\"State\":{\"Running\":false,\"Restarting\":true,\"Pid\":0}}", true,
                  false, true, false, 0 },
                { "a pid of one that does not run", "{\"State\":{\"Running\":false,\"Pid\":7}}", true, false, false,
                  false, 0 },
                { "the largest pid", "{\"State\":{\"Running\":true,\"Pid\":4194304}}", true, true, false, false,
                  4194304 },
                { "larger", "{\"State\":{\"Running\":true,\"Pid\":4194305}}", false, false, false, false, 0 },
                { "below nothing", "{\"State\":{\"Running\":true,\"Pid\":-1}}", false, false, false, false, 0 },
                { "a text for a number", "{\"State\":{\"Running\":true,\"Pid\":\"1\"}}", false, false, false, false,
                  0 },
                { "a number for a yes", "{\"State\":{\"Running\":1,\"Pid\":1}}", false, false, false, false, 0 },
                { "no pid", "{\"State\":{\"Running\":true}}", false, false, false, false, 0 },
                { "said twice", "{\"State\":{\"Running\":true,\"Running\":false,\"Pid\":1}}", false, false, false,
                  false, 0 },
                { "no state", "{}", false, false, false, false, 0 },
                { "a list", "[]", false, false, false, false, 0 },
                { "nothing", "", false, false, false, false, 0 },
                { "no JSON", "<html>", false, false, false, false, 0 },
        };
        int rows_failed = 0;
        (void) state;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct engine_state s;
                row_check(rows[i].name, engine_state_parse(rows[i].text, strlen(rows[i].text), &s) == rows[i].fine);
                row_check(rows[i].name, s.running == rows[i].running && s.restarting == rows[i].restarting);
                row_check(rows[i].name, s.removed_at_end == rows[i].removed_at_end && s.pid == rows[i].pid);
        }
        rows_end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(S09_who_runs_it_is_known_by_a_cgroup_that_nobody_else_could_have_made),
                cmocka_unit_test(name_that_is_too_long_has_no_manager),
                cmocka_unit_test(container_stands_as_its_engine_says_or_nobody_knows),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
