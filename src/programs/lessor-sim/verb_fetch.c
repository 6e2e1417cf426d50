/* SPDX-License-Identifier: Apache-2.0 */
/* `fetch`: where the published traces are, and on request git brings them. Nothing else of lessor-sim touches a network. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "programs/lessor-sim/sim.h"

#define OPENB_ADDRESS "https://github.com/alibaba/clusterdata.git"
#define OPENB_COMMIT "7a6c496e4f4b"
#define OPENB_FOLDER "cluster-trace-gpu-v2023/csv"

enum { INTO };
const struct option fetch_options[] = {
        [INTO] = { "into", "DIR", "have git clone it there, a folder that is not there yet", .words = "@files" },
        { 0 },
};

const char fetch_more[] =
        "  lessor-sim fetch openb\n"
        "  lessor-sim fetch openb --into ~/clusterdata\n"
        "\n"
        "Without --into it only says where the trace is, at which commit it was judged, and by which SHA-256 the\n"
        "files are known. The published figures are in another repository; docs/policies.md says where.\n"
        "\n"
        "Exit status: 0 done, 1 git could not, 2 wrong use.";

static const struct {
        const char *name, *sha256;
} files[] = {
        { "openb_node_list_gpu_node.csv", "2beca64b4d3dfa342036a34b56a495c6cef9225db836c81f541282cb1df320b5" },
        { "openb_pod_list_default.csv", "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8" },
        { "openb_pod_list_cpu250.csv", "134c21ff96d57533df8a37b67632972884fec9396e77cd0898ddc370cc8e607d" },
        { "openb_pod_list_gpushare100.csv", "12dbc07d6a49bf8641e2275a2ff5bf7be74b5df7d148d531e135b140b95f9a3d" },
        { "openb_pod_list_gpuspec33.csv", "eca4f746db1e5b25864ad021b55ece3943e101a3ebd4574d09dcb95c46117652" },
        { "openb_pod_list_multigpu50.csv", "206f2f5959db30ecb7c44e7f13197c8ec50b7a35558ad3777cc3662ef0fe5373" },
};

static void print_source(void)
{
        (void) printf("openb: Alibaba's GPU cluster trace of 2023, in the folder " OPENB_FOLDER " of\n"
                      "  " OPENB_ADDRESS "\n"
                      "judged at commit " OPENB_COMMIT ". Its files, some of them by their SHA-256:\n");
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
                (void) printf("  %s  %s\n", files[i].sha256, files[i].name);
}

/* By words, not by a shell; 0 or what went wrong. */
static int run_git(const char *const argv[], struct error *err)
{
        pid_t pid;
        int status, r = posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *) (uintptr_t) argv, environ);

        if (r != 0)
                return error_errno(err, r, "starting git");
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return error_errno(err, errno, "waiting for git");
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return 0;
        return error_set(err, EIO, "git %s did not end well: what it said is above", argv[1]);
}

static int clone_it(const char *into, struct error *err)
{
        const char *const clone[] = { "git", "clone", "--", OPENB_ADDRESS, into, NULL };
        const char *const checkout[] = { "git", "-C", into, "checkout", "--quiet", "--detach", OPENB_COMMIT, NULL };

        (void) fflush(stdout);
        if (access(into, F_OK) == 0)
                return error_set(err, EEXIST, "%s is there already", into);
        int r = run_git(clone, err);
        if (r == 0)
                r = run_git(checkout, err);
        if (r == 0)
                (void) printf("the trace is in %s/" OPENB_FOLDER "\n", into);
        return r;
}

int sim_fetch_main(const struct verb *verb, int argc, char **argv)
{
        const char *what = NULL, *into = NULL;
        struct error err = { 0 };
        struct options o;
        int row;

        options_init(&o, verb, argc, argv);
        while ((row = options_next(&o)) != OPTIONS_END) {
                switch (row) {
                case INTO:
                        into = o.value;
                        break;
                case OPTIONS_HELP:
                        return verb_print_help(verb);
                case OPTIONS_OPERAND:
                        if (what)
                                return verb_usage_error(verb, "one at a time");
                        what = o.value;
                        break;
                default:
                        return SIM_EXIT_USAGE;
                }
        }
        if (!what || strcmp(what, "openb") != 0)
                return verb_usage_error(verb, "which? openb");
        if (into && (into[0] == '\0' || into[0] == '-'))
                return verb_usage_error(verb, "--into: a folder whose name does not begin with -; write ./-NAME");
        print_source();
        return into && clone_it(into, &err) < 0 ? sim_fail(verb, &err) : SIM_EXIT_OK;
}
