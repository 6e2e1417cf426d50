/* SPDX-License-Identifier: Apache-2.0 */
/* What lessor-sim reads: good rows are what they say, bad ones name file, line, column and value. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "programs/lessor-sim/draw.h"
#include "programs/lessor-sim/synth.h"
#include "programs/lessor-sim/trace.h"
#include "cm.h"

#define NODES_HEAD "sn,cpu_milli,memory_mib,gpu,model\n"
#define TASKS_HEAD "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n"
#define JOBS_HEAD "submit_s,duration_s,gpus,vc\n"

static const struct models two_models = { .names = { "T4", "G2" }, .n = 2 };

/* All rows; 0 or what the first bad one gives. */
static int read_nodes(const char *text, struct error *err)
{
        struct models models = { 0 };
        struct trace_reader r;
        struct node_spec node;
        int k = nodes_open_bytes(&r, "n.csv", text, strlen(text), &models, err);

        while (k >= 0 && (k = nodes_next(&r, &node, err)) > 0)
                ;
        trace_reader_close(&r);
        return k;
}

static int read_tasks(const char *text, struct error *err)
{
        struct models models = two_models;
        struct trace_reader r;
        struct trace_task task;
        int k = tasks_open_bytes(&r, "t.csv", text, strlen(text), &models, err);

        while (k >= 0 && (k = tasks_next(&r, &task, err)) > 0)
                ;
        trace_reader_close(&r);
        return k;
}

static int read_jobs(const char *text, struct error *err)
{
        struct trace_reader r;
        struct trace_job job;
        int k = jobs_open_bytes(&r, "j.csv", text, strlen(text), err);

        while (k >= 0 && (k = jobs_next(&r, &job, err)) > 0)
                ;
        trace_reader_close(&r);
        return k;
}

static const struct {
        int (*read)(const char *text, struct error *err);
        const char *text, *says;
} bad[] = {
        /* files */
        { read_nodes, "", "n.csv is empty" },
        { read_nodes, "sn,cpu_milli,memory_mib\na,1,1\n", "n.csv, line 1: there is no column \"gpu\"" },
        { read_nodes, "sn,cpu_milli,memory_mib,gpu,gpu\n", "there are two columns \"gpu\"" },
        { read_nodes, NODES_HEAD "a,1,1,1\n", "n.csv, line 2: it has 4 fields, and the first row has 5" },
        { read_nodes, NODES_HEAD "a,1,1,1,T4,\n", "n.csv, line 2: it has 6 fields" },
        { read_nodes, NODES_HEAD "a,1,1,1,T4\n\nb,1,1,1,T4\n", "n.csv, line 3: it is empty" },
        { read_nodes, NODES_HEAD "\"a\",1,1,1,T4\n", "n.csv, line 2: it has a quote in it" },
        /* nodes */
        { read_nodes, NODES_HEAD "a,1,1,1,T4\nb,1,1,1,T4\na,1,1,1,T4\n",
          "n.csv, line 4, column sn: \"a\" was there before" },
        { read_nodes, NODES_HEAD ",1,1,1,T4\n", "line 2, column sn: \"\" is no name" },
        { read_nodes, NODES_HEAD "a,1.5,1,1,T4\n", "line 2, column cpu_milli: \"1.5\" is not a whole number" },
        { read_nodes, NODES_HEAD "a,1,-1,1,T4\n", "line 2, column memory_mib: \"-1\" is negative" },
        { read_nodes, NODES_HEAD "a,1,268435457,1,T4\n", "column memory_mib: \"268435457\" is too large" },
        { read_nodes, NODES_HEAD "a,1,1,17,T4\n", "column gpu: \"17\" is too large; allowed are 0 to 16" },
        { read_nodes, NODES_HEAD "a,1,1,1,T4|G2\n", "column model: \"T4|G2\" is no name of a model" },
        { read_nodes, NODES_HEAD "a,1,1,1,T\033[2J\n", "column model: \"T\\x1B[2J\" is no name of a model" },
        /* tasks */
        { read_tasks, TASKS_HEAD "a,1,1,2,500,,,\n",
          "t.csv, line 2, column gpu_milli: \"500\" is a part of each of several" },
        { read_tasks, TASKS_HEAD "a,1,1,0,500,,,\n", "column gpu_milli: \"500\" is a share of no GPU" },
        { read_tasks, TASKS_HEAD "a,1,1,1,0,,,\n", "column gpu_milli: \"0\" is no share of a GPU" },
        { read_tasks, TASKS_HEAD "a,1,1,1,-500,,,\n", "column gpu_milli: \"-500\" is negative" },
        { read_tasks, TASKS_HEAD "a,1,1,1,500,H100,,\n", "column gpu_spec: \"H100\" names a model that no node has" },
        { read_tasks, TASKS_HEAD "a,1,1,1,500,T4|H100,,\n", "names a model that no node has (\"H100\")" },
        { read_tasks, TASKS_HEAD "a,1,1,1,500,T4|,,\n", "column gpu_spec: \"T4|\" ends with a |" },
        { read_tasks, TASKS_HEAD "a,1,1,1,500,|T4,,\n", "names a model that no node has (\"\")" },
        { read_tasks, TASKS_HEAD "a,1,1,1,500,,-3,\n", "column creation_time: \"-3\" is negative" },
        { read_tasks, TASKS_HEAD "a,1,1,1,500,,7,6\n", "column deletion_time: \"6\" is before its creation_time (7)" },
        { read_tasks, TASKS_HEAD "a,1,1,1,500,,,\na,1,1,1,500,,,\n", "line 3, column name: \"a\" was there before" },
        /* jobs */
        { read_jobs, JOBS_HEAD "-1,1,1,0\n", "j.csv, line 2, column submit_s: \"-1\" is negative" },
        { read_jobs, JOBS_HEAD "1,0,1,0\n", "column duration_s: \"0\" is too small" },
        { read_jobs, JOBS_HEAD "1,1,0,0\n", "column gpus: \"0\" is too small" },
        { read_jobs, JOBS_HEAD "1,1,1,x\n", "column vc: \"x\" is not a number" },
        { read_jobs, JOBS_HEAD "5,1,1,0\n4,1,1,0\n", "line 3, column submit_s: \"4\" is before the row above it (5)" },
};

static void row_that_is_bad_names_file_line_column_and_value(void **state)
{
        int rows_failed = 0;
        (void) state;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct error err = { 0 };
                row_check(bad[i].says, bad[i].read(bad[i].text, &err) < 0);
                row_check(bad[i].says, strstr(err.msg, bad[i].says));
                if (!strstr(err.msg, bad[i].says))
                        print_message("# it says: %s\n", err.msg);
        }
        rows_end();
}

static void line_without_an_end_is_refused_in_bounded_memory(void **state)
{
        static char text[3 * CSV_LINE_MAX];
        struct error err = { 0 };
        (void) state;

        memset(text, 'a', sizeof(text) - 1);
        assert_true(read_nodes(text, &err) < 0);
        assert_non_null(strstr(err.msg, "n.csv, line 1: it is longer than 4096 bytes"));
}

static void nul_in_a_line_is_refused(void **state)
{
        static const char text[] = NODES_HEAD "a\0,1,1,1,T4\n";
        struct models models = { 0 };
        struct trace_reader r;
        struct node_spec node;
        struct error err = { 0 };
        (void) state;

        assert_int_equal(nodes_open_bytes(&r, "n.csv", text, sizeof(text) - 1, &models, &err), 0);
        assert_true(nodes_next(&r, &node, &err) < 0);
        assert_non_null(strstr(err.msg, "line 2: it has a NUL in it"));
        trace_reader_close(&r);
}

static void node_rows_are_read_in_any_order_of_columns(void **state)
{
        static const char text[] = "\xef\xbb\xbfmodel,gpu,more,sn,memory_mib,cpu_milli\r\nG2,8,x,a,10,20\r\n,0,,b,1,2";
        struct models models = { 0 };
        struct trace_reader r;
        struct node_spec node;
        (void) state;

        assert_int_equal(nodes_open_bytes(&r, "n.csv", text, sizeof(text) - 1, &models, NULL), 0);
        assert_int_equal(nodes_next(&r, &node, NULL), 1);
        assert_int_equal(node.gpus, 8);
        assert_int_equal(node.cpu_milli, 20);
        assert_int_equal(node.mem_mib, 10);
        assert_int_equal(node.model, 0);
        assert_string_equal(models.names[0], "G2");
        assert_int_equal(nodes_next(&r, &node, NULL), 1);
        assert_int_equal(node.gpus, 0);
        assert_int_equal(node.model, NODE_NO_MODEL);
        assert_int_equal(nodes_next(&r, &node, NULL), 0);
        trace_reader_close(&r);
}

static void task_rows_are_what_they_say(void **state)
{
        static const char text[] = TASKS_HEAD "a,1,2,0,0,,,\nb,3,4,1,460,T4|G2|G2,5,6\nc,1,1,8,1500,,7,\n";
        struct models models = two_models;
        struct trace_reader r;
        struct trace_task task;
        (void) state;

        assert_int_equal(tasks_open_bytes(&r, "t.csv", text, sizeof(text) - 1, &models, NULL), 0);
        assert_int_equal(tasks_next(&r, &task, NULL), 1);
        assert_true(task.task.gpus == 0 && task.task.gpu_milli == 0 && task.task.models == 0 && task.create_s == 0 &&
                    task.end_s == -1);
        assert_int_equal(tasks_next(&r, &task, NULL), 1);
        assert_true(task.task.cpu_milli == 3 && task.task.mem_mib == 4 && task.task.gpus == 1 &&
                    task.task.gpu_milli == 460);
        assert_true(task.task.models == 3 && task.create_s == 5 &&
                    task.end_s == 6); /* a model that is named twice is one */
        assert_int_equal(tasks_next(&r, &task, NULL), 1);
        assert_true(task.task.gpus == 8 && task.task.gpu_milli == 1000); /* above 1000 counts as 1000 */
        assert_int_equal(tasks_next(&r, &task, NULL), 0);
        trace_reader_close(&r);
}

static void task_file_without_models_and_times_is_good(void **state)
{
        (void) state;
        assert_int_equal(read_tasks("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,1000\n", NULL), 0);
}

static void names_by_the_hundred_thousand_are_told_apart(void **state)
{
        struct ids ids = { 0 };
        char name[32];
        (void) state;

        for (unsigned i = 0; i < 100000; i++) {
                (void) snprintf(name, sizeof(name), "pod-%u", i);
                if (ids_add(&ids, name) != 1)
                        fail_msg("%s was not new", name);
        }
        for (unsigned i = 0; i < 100000; i += 997) {
                (void) snprintf(name, sizeof(name), "pod-%u", i);
                assert_int_equal(ids_add(&ids, name), 0);
        }
        assert_int_equal(ids.n, 100000);
        ids_fini(&ids);
}

static void draws_below_a_number_are_each_as_likely(void **state)
{
        struct draw d = draw_of(1, 2), same = draw_of(1, 2), other = draw_of(1, 3);
        unsigned seen[7] = { 0 };
        (void) state;

        assert_int_equal(draw_next(&d), draw_next(&same));
        assert_true(draw_next(&d) != draw_next(&other));
        for (unsigned i = 0; i < 70000; i++)
                seen[draw_below(&d, 7)]++;
        for (unsigned i = 0; i < 7; i++)
                assert_in_range(seen[i], 9600, 10400);
}

/* ---- made-up traces ---- */

static char *made(void (*make)(FILE *, const struct synth_options *), uint64_t seed, size_t *ret_n)
{
        struct synth_options o = { .seed = seed, .count = 5000, .named_percent = 33, .gap_s = 114 };
        char *text = NULL;
        FILE *f = open_memstream(&text, ret_n);

        assert_non_null(f);
        make(f, &o);
        assert_int_equal(fclose(f), 0);
        return text;
}

static void made_up_trace_is_the_same_for_a_seed_and_another_for_another(void **state)
{
        void (*const kinds[])(FILE *, const struct synth_options *) = { synth_nodes, synth_tasks, synth_jobs };
        (void) state;

        for (size_t i = 0; i < 3; i++) {
                size_t n = 0, n_again = 0, n_other = 0;
                char *text = made(kinds[i], 1, &n), *again = made(kinds[i], 1, &n_again);
                char *other = made(kinds[i], 2, &n_other);
                assert_true(n == n_again && memcmp(text, again, n) == 0);
                assert_true(n != n_other || memcmp(text, other, n) != 0);
                free(text);
                free(again);
                free(other);
        }
}

static void made_up_tasks_are_read_and_have_the_stated_proportions(void **state)
{
        size_t n = 0, n_tasks = 0;
        char *nodes = made(synth_nodes, 1, &n_tasks), *tasks = made(synth_tasks, 1, &n);
        struct models models = { 0 };
        struct trace_reader r;
        struct node_spec node;
        struct trace_task task;
        unsigned cpu_only = 0, sharing = 0, one = 0, more = 0, naming = 0;
        int64_t before_s = 0;
        int k;
        (void) state;

        assert_int_equal(nodes_open_bytes(&r, "n", nodes, n_tasks, &models, NULL), 0);
        while ((k = nodes_next(&r, &node, NULL)) > 0)
                ;
        assert_int_equal(k, 0);
        trace_reader_close(&r);
        assert_int_equal(tasks_open_bytes(&r, "t", tasks, n, &models, NULL), 0);
        while ((k = tasks_next(&r, &task, NULL)) > 0) {
                assert_true(task.create_s >= before_s && task.end_s > task.create_s);
                before_s = task.create_s;
                naming += task.task.models != 0;
                cpu_only += task.task.gpus == 0;
                sharing += task.task.gpu_milli > 0 && task.task.gpu_milli < 1000;
                one += task.task.gpus == 1 && task.task.gpu_milli == 1000;
                more += task.task.gpus > 1;
        }
        assert_int_equal(k, 0);
        assert_in_range(cpu_only, 580, 750);
        assert_in_range(sharing, 1750, 2030);
        assert_in_range(one, 2250, 2550);
        assert_in_range(more, 20, 75);
        assert_in_range(naming, 1250, 1600);
        trace_reader_close(&r);
        free(nodes);
        free(tasks);
}

static void made_up_jobs_are_read_and_come_at_the_stated_rate(void **state)
{
        size_t n = 0;
        char *text = made(synth_jobs, 1, &n);
        struct trace_reader r;
        struct trace_job job;
        unsigned single = 0, below_median = 0;
        int k;
        (void) state;

        assert_int_equal(jobs_open_bytes(&r, "j", text, n, NULL), 0);
        while ((k = jobs_next(&r, &job, NULL)) > 0) {
                single += job.gpus == 1;
                below_median += job.duration_s < 1144;
        }
        assert_int_equal(k, 0);
        assert_in_range(single, 4600, 4720);
        assert_in_range(below_median, 2350, 2650);
        assert_in_range(job.submit_s / 5000, 105, 123);
        trace_reader_close(&r);
        free(text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(row_that_is_bad_names_file_line_column_and_value),
                cmocka_unit_test(line_without_an_end_is_refused_in_bounded_memory),
                cmocka_unit_test(nul_in_a_line_is_refused),
                cmocka_unit_test(node_rows_are_read_in_any_order_of_columns),
                cmocka_unit_test(task_rows_are_what_they_say),
                cmocka_unit_test(task_file_without_models_and_times_is_good),
                cmocka_unit_test(names_by_the_hundred_thousand_are_told_apart),
                cmocka_unit_test(draws_below_a_number_are_each_as_likely),
                cmocka_unit_test(made_up_trace_is_the_same_for_a_seed_and_another_for_another),
                cmocka_unit_test(made_up_tasks_are_read_and_have_the_stated_proportions),
                cmocka_unit_test(made_up_jobs_are_read_and_come_at_the_stated_rate),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
