/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "cm.h"
#include "client/visible.h"

/* As the driver lists them: not in PCI order (F27). */
static const struct visible_device as_listed[] = {
        { "GPU-bbbb0000-0000", "0000:65:00.0" },
        { "GPU-aaaa0000-0000", "0000:17:00.0" },
        { "GPU-aaab0000-0000", "0000:b3:00.0" },
};
enum { N = 3 };

static const struct row {
        const char *name, *value;
        bool pci_order;
        uint64_t mask; /* 0 = refused */
        const char *says;
} rows[] = {
        { "uuid", "GPU-bbbb0000-0000", false, 2, NULL },
        { "uuid in capitals", "gpu-BBBB0000-0000", false, 2, NULL },
        { "beginning", "GPU-bb", false, 2, NULL },
        { "beginning of several", "GPU-aaa", false, 0, "beginning of 2" },
        { "all by uuid", "GPU-bbbb,GPU-aaaa,GPU-aaab", false, 7, NULL },
        { "blanks", " GPU-bbbb , GPU-aaaa ", false, 3, NULL },
        { "unknown", "GPU-cccc", false, 0, "does not know" },
        { "index in CUDA's own order", "0", false, 0, "CUDA_DEVICE_ORDER=PCI_BUS_ID" },
        { "first by bus", "0", true, 1, NULL },
        { "last by bus", "2", true, 4, NULL },
        { "beyond the last", "3", true, 0, "0 to 2" },
        { "two by index", "0,2", true, 5, NULL },
        { "ends at -1", "GPU-bbbb,-1,GPU-aaaa", false, 2, NULL },
        { "ends at an empty one", "1,,2", true, 2, NULL },
        { "empty", "", true, 0, "no card at all" },
        { "-1", "-1", true, 0, "no card at all" },
        { "NoDevFiles", "NoDevFiles", true, 0, "no card at all" },
        { "control characters", "\033[31m", true, 0, "\\x1B" },
};

static void constraint_means_devices_or_is_told(void **state)
{
        (void) state;
        int rows_failed = 0;
        struct visible_device devices[N];
        memcpy(devices, as_listed, sizeof(devices));
        visible_sort(devices, N);
        assert_string_equal(devices[0].uuid, "GPU-aaaa0000-0000");
        assert_string_equal(devices[1].uuid, "GPU-bbbb0000-0000");

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct error err = { 0 };
                uint64_t mask = 0;
                int r = visible_parse(rows[i].value, rows[i].pci_order, devices, N, &mask, &err);
                row_check(rows[i].name, r == (rows[i].mask ? 0 : -EINVAL));
                row_check(rows[i].name, mask == rows[i].mask);
                row_check(rows[i].name, !rows[i].says || strstr(err.msg, rows[i].says));
                row_check(rows[i].name, r == 0 || strstr(err.msg, "CUDA_VISIBLE_DEVICES"));
        }
        rows_end();
}

static void index_of_the_only_device_needs_no_order(void **state)
{
        (void) state;
        uint64_t mask = 0;
        assert_int_equal(visible_parse("0", false, as_listed, 1, &mask, NULL), 0);
        assert_int_equal(mask, 1);
        assert_int_equal(visible_parse("1", false, as_listed, 1, &mask, NULL), -EINVAL);
        assert_int_equal(visible_parse("0", true, as_listed, 0, &mask, NULL), -EINVAL);
}

static void word_longer_than_any_uuid_is_refused(void **state)
{
        (void) state;
        char value[1024];
        uint64_t mask = 0;
        memset(value, 'G', sizeof(value) - 1);
        value[sizeof(value) - 1] = '\0';
        assert_int_equal(visible_parse(value, true, as_listed, N, &mask, NULL), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(constraint_means_devices_or_is_told),
                cmocka_unit_test(index_of_the_only_device_needs_no_order),
                cmocka_unit_test(word_longer_than_any_uuid_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
