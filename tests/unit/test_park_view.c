/* SPDX-License-Identifier: Apache-2.0 */
/* A lease that is away, as the API shows it: for whom, by which way, since when, and when it may be back. */
#include <string.h>
#include <sys/mman.h>
#include "api/view.h"
#include "cm.h"
#include "model/world.h"

#define MI (UINT64_C(1024) * 1024)

static struct world *world;
static struct user_names names;

static uint64_t wall_of_ms(void *ctx, uint64_t world_ms)
{
        (void) ctx;
        return UINT64_C(1700000000000) + world_ms;
}

static bool told(void *ctx, uint64_t lease_id, struct api_told *ret)
{
        (void) ctx;
        (void) lease_id;
        *ret = (struct api_told){ .rev = 7 };
        return true;
}

static struct lease *lease_new(enum lease_state state, uint32_t uid, uint8_t priority)
{
        struct lease *l = world_lease_new(world);
        l->state = (uint8_t) state;
        l->uid = uid;
        l->priority = priority;
        return l;
}

static int set_up(void **state)
{
        struct config config;
        (void) state;
        config_defaults(&config);
        world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (world == MAP_FAILED)
                return -1;
        world_init(world, &config);
        return 0;
}

static int tear_down(void **state)
{
        (void) state;
        return munmap(world, sizeof(*world));
}

static json_t *shown(const struct lease *l, uint64_t now_ms)
{
        static const struct api_host host = { .wall_of_ms = wall_of_ms, .told = told };
        static struct view v;
        v = (struct view){ .host = &host, .world = world, .now_ms = now_ms, .names = &names, .viewer_uid = l->uid };
        return view_lease(&v, l);
}

static uint64_t amount(const json_t *object, const char *key)
{
        const json_t *value = json_object_get(object, key);
        assert_true(json_is_integer(value));
        return (uint64_t) json_integer_value(value);
}

static void lease_that_is_not_moving_has_no_park(void **state)
{
        (void) state;
        json_t *json = shown(lease_new(LEASE_ACTIVE, 1000, 3), 1000);
        assert_true(json_is_null(json_object_get(json, "park")));
        assert_int_equal(json_array_size(json_object_get(json, "ways")), 0);
        json_decref(json);
}

static void parked_lease_tells_for_whom_and_when_it_is_back(void **state)
{
        struct lease *owner = lease_new(LEASE_ACTIVE, 1001, 2), *l = lease_new(LEASE_PARKED, 1000, 5);
        (void) state;
        owner->slot_end_ms = 250000;
        l->ways = (struct ways_out){ .named = WAY_OUT_BIT(WAY_OUT_RESTART), .proven = WAY_OUT_BIT(WAY_OUT_CHECKPOINT) };
        (void) strcpy(l->consumer, "train.py");
        l->park = (struct park){ .step = PARK_OUT, .way = WAY_OUT_CHECKPOINT, .cause = PARK_FOR_PLAN };
        l->park.for_lease_id = owner->id;
        l->park.parked_ms = 5000;
        l->park.used_bytes = 2500 * MI;
        l->park.charged_bytes = 2600 * MI;
        l->park.strikes[WAY_OUT_RESTART] = 2;
        struct habit *habit = world_habit(world, 1000, "train.py");
        habit->costs[WAY_OUT_CHECKPOINT] = (struct way_cost){ .n = 3, .out_ms = 900, .back_ms = 1500 };

        json_t *json = shown(l, 10000);
        const json_t *park = json_object_get(json, "park");
        assert_string_equal(json_string_value(json_object_get(park, "step")), "out");
        assert_string_equal(json_string_value(json_object_get(park, "way")), "checkpoint");
        assert_string_equal(json_string_value(json_object_get(park, "for")), "L1");
        assert_string_equal(json_string_value(json_object_get(park, "for_priority")), "interactive");
        assert_int_equal(amount(park, "bytes"), 2500 * MI);
        assert_int_equal(amount(park, "host_bytes"), 2600 * MI);
        assert_int_equal(amount(park, "expected_back_ms"), 240000 + 1500);
        assert_true(json_is_null(json_object_get(park, "by_uid")));
        assert_true(json_is_null(json_object_get(park, "until")));
        const json_t *ways = json_object_get(json, "ways");
        assert_int_equal(json_array_size(ways), 2);
        assert_true(json_is_true(json_object_get(json_array_get(ways, 0), "proven")));
        assert_int_equal(amount(json_array_get(ways, 1), "strikes"), 2);

        owner->slot_end_ms = 0; /* gave no limit: nobody knows */
        json_decref(json);
        json = shown(l, 10000);
        assert_true(json_is_null(json_object_get(json_object_get(json, "park"), "expected_back_ms")));
        json_decref(json);
}

static void parked_by_a_person_tells_by_whom_and_until_when(void **state)
{
        struct lease *l = lease_new(LEASE_PARKED, 1000, 3);
        (void) state;
        l->park = (struct park){ .step = PARK_OUT, .way = WAY_OUT_CHECKPOINT, .cause = PARK_BY_PERSON, .by_uid = 0 };
        l->park.until_ms = 70000;
        json_t *json = shown(l, 10000);
        const json_t *park = json_object_get(json, "park");
        assert_int_equal(amount(park, "by_uid"), 0);
        assert_int_equal(amount(park, "expected_back_ms"), 60000);
        assert_true(json_is_string(json_object_get(park, "until")));
        assert_true(json_is_null(json_object_get(park, "for")));
        json_decref(json);
}

static void asking_lease_tells_how_long_it_has(void **state)
{
        struct lease *l = lease_new(LEASE_ASKING, 1000, 3);
        (void) state;
        l->park = (struct park){ .step = PARK_ASKING, .way = WAY_OUT_COOPERATE, .cause = PARK_FOR_PLAN };
        l->park.started_ms = 9000;
        l->park.deadline_ms = 39000;
        l->park.for_lease_id = 4711; /* gone meanwhile */
        json_t *json = shown(l, 10000);
        const json_t *park = json_object_get(json, "park");
        assert_int_equal(amount(park, "deadline_ms"), 29000);
        assert_string_equal(json_string_value(json_object_get(park, "for")), "L4711");
        assert_true(json_is_null(json_object_get(park, "for_priority")));
        json_decref(json);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(lease_that_is_not_moving_has_no_park, set_up, tear_down),
                cmocka_unit_test_setup_teardown(parked_lease_tells_for_whom_and_when_it_is_back, set_up, tear_down),
                cmocka_unit_test_setup_teardown(parked_by_a_person_tells_by_whom_and_until_when, set_up, tear_down),
                cmocka_unit_test_setup_teardown(asking_lease_tells_how_long_it_has, set_up, tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
