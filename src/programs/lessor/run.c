/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/duration.h"
#include "base/escape.h"
#include "client/consumer.h"
#include "client/visible.h"
#include "programs/lessor/ask.h"
#include "programs/lessor/child.h"
#include "programs/lessor/obtain.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum {
        LEAVING_MS = 200, /* workers that go when the command went are no news */
        LEAVING_LOOK_MS = 5,
};

const struct option run_options[] = {
        { "wait", "TIME", "wait at most so long, then exit 124 (default: for ever)", 0, "1m|10m|1h" },
        { "no-wait", NULL, "run now or exit 124" },
        { "visible", "HOW", "CUDA_VISIBLE_DEVICES for the command: auto, uuid, index, none", 0,
          "auto|uuid|index|none" },
        { "if-down", "HOW", "lessord is away: wait (60 s), run without a lease, or fail", 0, "wait|run|fail" },
        { "quiet", NULL, "only errors on stderr: nothing while it waits, nothing about the lease later", 'q' },
        { 0 },
};

const char run_more[] =
        "  lessor run --vram 12G --for 2h -- python3 train.py\n"
        "  lessor run --exclusive -- ./benchmark\n"
        "\n"
        "Without --vram and --exclusive it asks for what the program's earlier runs came to, or where none are known "
        "for all\n"
        "a device can give, and says which.\n"
        "The command has stdin, stdout, stderr, the terminal and its exit status to itself; lessor speaks on stderr, "
        "and only\n"
        "while it waits, when something is wrong, and when something becomes of the lease: its time (--for) runs out, "
        "it\n"
        "uses more than it asked for or another device, its device is lost, somebody ended it. Signals sent to lessor "
        "are\n"
        "passed on. The lease ends with the command; workers it leaves behind keep it until they end.\n"
        "\n"
        "Exit status: the command's own; if a signal ended it, lessor ends by the same one (the shell shows 128+N).\n"
        "  124  the wait is over (--wait, --no-wait)\n"
        "  125  lessor itself: refused, or used wrongly\n"
        "  126  the command cannot be run      127  there is no such command\n"
        "   69  lessord does not answer (after 60 s; see --if-down and LESSOR_IF_DOWN)";

/* ---- options ---- */

static int read_options(const struct verb *verb, int argc, char **argv, struct ask *ask, char ***ret_command)
{
        struct options o;
        struct error err = { 0 };

        if (ask_init(ask, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        options_init(&o, verb, argc, argv);
        o.operands_end_it = true;
        for (;;) {
                int what = options_next(&o);
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_OWN;
                if (what == OPTIONS_END)
                        break;
                if (ask_option(ask, option_name(&o, what), o.value, &err) < 0)
                        return verb_usage_error(verb, "%s", err.msg);
        }
        if (o.at >= argc)
                return verb_usage_error(verb, "which command? lessor run --vram 12G -- COMMAND");
        *ret_command = argv + o.at;
        ask->pid = (uint64_t) getpid();
        ask->collects_itself = true;
        if (ask->consumer[0] == '\0')
                (void) consumer_of_command(*ret_command, ask->consumer);
        return OBTAINED;
}

/* ---- the command can be found: known before anybody waits for it ---- */

static int cannot_run(const char *name, int code)
{
        char shown[128];
        (void) fprintf(stderr, "lessor run: %s: %s\n", text_escape(name, strlen(name), shown, sizeof(shown)),
                       code == ENOENT ? "no such command" : strerrordesc_np(code));
        return code == ENOENT || code == ENOTDIR ? LESSOR_EXIT_NOT_FOUND : LESSOR_EXIT_CANNOT_RUN;
}

static int try_file(const char *path)
{
        struct stat st;
        if (stat(path, &st) < 0)
                return errno;
        if (S_ISDIR(st.st_mode))
                return EISDIR;
        return access(path, X_OK) < 0 ? errno : 0;
}

/* 0, or the errno execvp would end with. */
static int find_command(const char *name)
{
        const char *path = getenv("PATH");
        int found = ENOENT;
        if (name[0] == '\0')
                return ENOENT;
        if (strchr(name, '/'))
                return try_file(name);
        for (path = path ? path : "/bin:/usr/bin";; path++) {
                char file[4096];
                size_t n = strcspn(path, ":");
                int len = snprintf(file, sizeof(file), "%.*s/%s", n > 0 ? (int) n : 1, n > 0 ? path : ".", name);
                int code = len > 0 && (size_t) len < sizeof(file) ? try_file(file) : ENOENT;
                if (code == 0)
                        return 0;
                if (code == EACCES)
                        found = EACCES;
                path += n;
                if (*path == '\0')
                        return found;
        }
}

/* ---- visible devices ---- */

static size_t read_devices(const json_t *body, struct visible_device *devices)
{
        size_t i, n = 0;
        json_t *device;
        json_array_foreach(json_object_get(body, "devices"), i, device)
        {
                if (n == DEVICES_MAX)
                        break;
                (void) snprintf(devices[n].uuid, sizeof(devices[n].uuid), "%s", json_text(device, "uuid", ""));
                (void) snprintf(devices[n].pci_bus_id, sizeof(devices[n].pci_bus_id), "%s",
                                json_text(device, "pci_bus_id", ""));
                n++;
        }
        visible_sort(devices, n);
        return n;
}

static int load_devices(struct obtain *o, struct visible_device *devices, size_t *ret_n)
{
        json_t *body = NULL;
        int code = obtain_get(o, "/api/devices", &body);
        if (code != 0)
                return code;
        *ret_n = read_devices(body, devices);
        json_decref(body);
        return OBTAINED;
}

static bool order_is_pci(void)
{
        const char *order = getenv("CUDA_DEVICE_ORDER");
        return order && strcmp(order, "PCI_BUS_ID") == 0;
}

/* What the person allowed by CUDA_VISIBLE_DEVICES becomes the device that is asked for. */
static int apply_constraint(struct obtain *o, struct ask *ask)
{
        struct visible_device devices[DEVICES_MAX];
        struct error err = { 0 };
        size_t n = 0, last = 0, n_allowed = 0;
        uint64_t mask;
        const char *value = getenv("CUDA_VISIBLE_DEVICES");

        if (!value || ask->visible == VISIBLE_NONE)
                return OBTAINED;
        int code = load_devices(o, devices, &n);
        if (code != OBTAINED)
                return code;
        if (n == 0)
                return OBTAINED; /* the daemon says what is wrong there, better than we could */
        if (visible_parse(value, order_is_pci(), devices, n, &mask, &err) < 0) {
                (void) fprintf(stderr, "lessor run: %s\n", err.msg);
                return LESSOR_EXIT_OWN;
        }
        for (size_t i = 0; i < n; i++) {
                bool allowed = (mask >> i & 1) != 0;
                if (allowed && ask->device[0] != '\0' &&
                    strncasecmp(devices[i].uuid, ask->device, strlen(ask->device)) != 0)
                        allowed = false;
                if (allowed) {
                        n_allowed++;
                        last = i;
                }
        }
        if (n_allowed == 0) {
                (void) fprintf(
                        stderr,
                        "lessor run: --device names a device that CUDA_VISIBLE_DEVICES does not allow; unset one "
                        "of the two\n");
                return LESSOR_EXIT_OWN;
        }
        if (n_allowed == 1)
                (void) snprintf(ask->device, sizeof(ask->device), "%s", devices[last].uuid);
        else if (n_allowed < n) {
                (void) fprintf(
                        stderr,
                        "lessor run: CUDA_VISIBLE_DEVICES allows %zu of %zu devices, and asking for one of some is "
                        "not possible yet; name one with --device, or unset it\n",
                        n_allowed, n);
                return LESSOR_EXIT_OWN;
        }
        return OBTAINED;
}

/* Does the person's own setting already name exactly the granted device? Then it stays as it was written. */
static bool already_exact(const struct visible_device *devices, size_t n, size_t granted)
{
        uint64_t mask;
        const char *value = getenv("CUDA_VISIBLE_DEVICES");
        return value && visible_parse(value, order_is_pci(), devices, n, &mask, NULL) == 0 &&
               mask == UINT64_C(1) << granted;
}

static int set_visible(struct obtain *o)
{
        struct visible_device devices[DEVICES_MAX];
        size_t n = 0, granted = 0;
        uint8_t how = o->ask->visible;
        char index[24];

        if (how == VISIBLE_NONE)
                return OBTAINED;
        int code = load_devices(o, devices, &n);
        if (code != OBTAINED)
                return code;
        while (granted < n && strcmp(devices[granted].uuid, o->device) != 0)
                granted++;
        if (granted == n) {
                progress_fail(&o->progress, "%s is on %s, which lessord does not list", o->id, o->device);
                return LESSOR_EXIT_OWN;
        }
        if (how == VISIBLE_AUTO && (n == 1 || already_exact(devices, n, granted)))
                return OBTAINED;
        if (how == VISIBLE_INDEX && strncmp(o->device, "MIG-", 4) != 0) {
                (void) snprintf(index, sizeof(index), "%zu", granted);
                (void) setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
                (void) setenv("CUDA_VISIBLE_DEVICES", index, 1);
        } else { /* a MIG instance has no index */
                (void) setenv("CUDA_VISIBLE_DEVICES", o->device, 1);
        }
        return OBTAINED;
}

/* What workers carry with them, wherever they go. */
static void set_token(const struct obtain *o)
{
        uint64_t bits[2] = { 0 };
        char token[64];
        (void) !getrandom(bits, sizeof(bits), 0);
        (void) snprintf(token, sizeof(token), "%s-%016" PRIx64 "%016" PRIx64, o->id, bits[0], bits[1]);
        (void) setenv("LESSOR_LEASE", o->id, 1);
        (void) setenv("LESSOR_TOKEN", token, 1);
}

/* ---- one run ---- */

/* Asked, waited, started up to the barrier, activated. OBTAINED, OBTAIN_WITHOUT or an exit code. */
static int make_ready(struct obtain *o, struct child *child, char **command)
{
        for (;;) {
                struct error err = { 0 };
                int code = obtain_lease(o);
                if (code != OBTAINED)
                        return code;
                code = set_visible(o);
                if (code != OBTAINED) {
                        obtain_release(o);
                        return code == OBTAIN_WITHOUT ? LESSOR_EXIT_AWAY : code;
                }
                set_token(o);
                if (child_prepare(child, o->signals, command, o->id, &err) < 0) {
                        (void) fprintf(stderr, "lessor run: %s\n", err.msg);
                        obtain_release(o);
                        return LESSOR_EXIT_OWN;
                }
                code = obtain_activate(o, (uint64_t) child->pid, child->tree.cgroup_id);
                if (code == OBTAINED)
                        return code;
                child_abandon(child);
                if (code != OBTAIN_AGAIN) {
                        obtain_release(o);
                        return code;
                }
        }
}

static void say_granted(struct obtain *o)
{
        char size[SIZE_TEXT_MAX], waited[DURATION_TEXT_MAX], device[128];
        if (o->waited)
                progress_say(&o->progress, "%s has %s on %s after %s", o->id, size_text(o->bytes, size),
                             text_escape(o->device, strlen(o->device), device, sizeof(device)),
                             duration_text(clock_now_ms() - o->asked_ms, waited));
}

/* Workers that outlive the command keep the lease: it is theirs now, and ends with the last of them. */
static bool leaves_workers(struct obtain *o, const struct child *child)
{
        pid_t first;
        char who[80] = "";
        uint64_t until_ms = clock_now_ms() + LEAVING_MS;
        size_t n = tree_count(&child->tree, &first);
        while (n > 0 && clock_now_ms() < until_ms) { /* a Ctrl-C ends them all, but not all at once */
                (void) poll(NULL, 0, LEAVING_LOOK_MS);
                n = tree_count(&child->tree, &first);
        }
        if (n == 0)
                return false;
        if (first > 0)
                (void) snprintf(who, sizeof(who), " (%zu, pid %d%s)", n, (int) first, n > 1 ? " and others" : "");
        progress_say(
                &o->progress,
                "the command ended, but processes it started are still alive%s: %s goes on, as orphaned, until they "
                "end",
                who, o->id);
        return true;
}

/* Until the command ends. What becomes of its lease meanwhile is told, and never at its cost: a stderr that nobody reads any
 * more is no reason to end, and none to wait. */
static int stand_beside(struct obtain *o, struct child *child)
{
        struct watch watch;
        (void) signal(SIGPIPE, SIG_IGN);
        watch_init(&watch, o, child->pid);
        int status = child_wait(child, o->signals, &watch);
        watch_fini(&watch);
        return status;
}

static int run_under_lease(struct obtain *o, struct child *child, char **command)
{
        say_granted(o);
        signals_take_all(o->signals);
        int r = child_go(child);
        int status = stand_beside(o, child);
        bool leaves = r == 0 && leaves_workers(o, child);
        /* One that was killed gave nothing back: its lease ends with us, and `lessor why` tells it so. */
        if (!leaves && !WIFSIGNALED(status))
                obtain_release(o);
        child_fini(child);
        if (r < 0)
                return cannot_run(command[0], -r);
        if (WIFSIGNALED(status))
                signals_die_by(WTERMSIG(status));
        return WEXITSTATUS(status);
}

static int run_without_lease(const struct signals *signals, char **command)
{
        (void) fprintf(stderr, "lessor run: lessord does not answer: running without a lease\n");
        (void) unsetenv("LESSOR_LEASE");
        (void) unsetenv("LESSOR_TOKEN");
        signals_give_back(signals);
        (void) execvp(command[0], command);
        return cannot_run(command[0], errno);
}

int verb_run_main(const struct verb *verb, int argc, char **argv)
{
        struct ask ask;
        struct obtain o;
        struct signals signals;
        struct child child;
        char **command = NULL;

        int code = read_options(verb, argc, argv, &ask, &command);
        if (code != OBTAINED)
                return code;
        int cause = find_command(command[0]);
        if (cause != 0)
                return cannot_run(command[0], cause);
        if (signals_init(&signals) < 0)
                return verb_usage_error(verb, "cannot watch signals");
        code = obtain_init(&o, &ask, &signals, verb->name);
        if (code == OBTAINED)
                code = apply_constraint(&o, &ask);
        if (code == OBTAINED)
                code = make_ready(&o, &child, command);
        if (code == OBTAINED)
                code = run_under_lease(&o, &child, command);
        obtain_fini(&o);
        return code == OBTAIN_WITHOUT ? run_without_lease(&signals, command) : code;
}
