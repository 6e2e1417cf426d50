/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/gate_rule.h"
#include "cm.h"

static int rows_failed;

static void lease_may_open_the_device_in_each_state_but_before_it_began_and_after_its_end(void **state)
{
        static const bool may[LEASE_STATE_N] = {
                [LEASE_ACTIVE] = true,  [LEASE_ASKING] = true,   [LEASE_HELD] = true,  [LEASE_PARKED] = true,
                [LEASE_THAWING] = true, [LEASE_ORPHANED] = true, [LEASE_STUCK] = true, [LEASE_LOST] = true,
        };

        (void) state;
        rows_failed = 0;
        for (int s = 0; s < LEASE_STATE_N; s++) {
                const struct lease lease = {
                        .id = 17, .uid = 1000, .state = (uint8_t) s, .binding.owner = { .pid = 7, .start_ticks = 70 }
                };
                struct gate_allow allow;
                row_check(lease_state_name((enum lease_state) s), gate_wants(&lease, &allow) == may[s]);
                row_check(lease_state_name((enum lease_state) s), (allow.lease_id == 17) == may[s]);
        }
        rows_end();
}

static void lease_is_its_commands_where_there_is_one_and_else_its_owners(void **state)
{
        const struct identity owner = { .pid = 7, .start_ticks = 70 }, root = { .pid = 8, .start_ticks = 80 };
        const struct {
                const char *name;
                struct binding binding;
                uint32_t pid;
                uint64_t cgroup_id;
                bool may;
        } rows[] = {
                { "a library in its own process", { .owner = owner }, 7, 0, true },
                { "a command", { .owner = owner, .root = root }, 8, 0, true },
                { "a command in a cgroup", { .owner = owner, .root = root, .cgroup_id = 99 }, 8, 99, true },
                { "a cgroup alone", { .cgroup_id = 99 }, 0, 99, true },
                { "nobody of this machine", { .kind = BINDING_HEARTBEAT }, 0, 0, false },
        };

        (void) state;
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const struct lease lease = { .id = 1, .uid = 0, .state = LEASE_ACTIVE, .binding = rows[i].binding };
                struct gate_allow allow;
                row_check(rows[i].name, gate_wants(&lease, &allow) == rows[i].may);
                row_check(rows[i].name, allow.pid == rows[i].pid && allow.cgroup_id == rows[i].cgroup_id);
                row_check(rows[i].name, allow.start_ticks == rows[i].pid * 10);
                const struct gate_message msg = { .kind = GATE_ALLOW, .allow = allow };
                uint8_t buf[GATE_MESSAGE_MAX];
                size_t n;
                row_check(rows[i].name, !rows[i].may || gate_encode(&msg, buf, sizeof(buf), &n, NULL) == 0);
        }
        rows_end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lease_may_open_the_device_in_each_state_but_before_it_began_and_after_its_end),
                cmocka_unit_test(lease_is_its_commands_where_there_is_one_and_else_its_owners),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
