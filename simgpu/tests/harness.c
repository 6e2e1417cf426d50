/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "card/memory.h"
#include "card/proc.h"

#define ARGV_MAX 32

extern char **environ;
struct card card;
char card_path[PATH_MAX];
static char folder[64];
static pid_t owner;
static int n_tests, n_failed;
static pid_t hogs[256]; /* those still there when a test gives up are ended with it */

bool ok(bool good, const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        printf("%sok %d - ", good ? "" : "not ", ++n_tests);
        vprintf(fmt, ap);
        va_end(ap);
        putchar('\n');
        (void) fflush(stdout);
        n_failed += !good;
        return good;
}

bool is(uint64_t got, uint64_t want, const char *what)
{
        if (ok(got == want, "%s", what))
                return true;
        printf("# got %llu, want %llu\n", (unsigned long long) got, (unsigned long long) want);
        return false;
}

int done(void)
{
        printf("1..%d\n", n_tests);
        return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void give_up(const char *why)
{
        printf("Bail out! %s: %s\n", why, strerror(errno));
        exit(EXIT_FAILURE);
}

const char *simgpu_program(void)
{
        const char *path = getenv("SIMGPU_TEST_PROGRAM");
        if (!path)
                give_up("SIMGPU_TEST_PROGRAM is not set");
        return path;
}

int run(char *out, size_t size, const char *const *argv)
{
        int fds[2], status = -1;
        pid_t pid;
        posix_spawn_file_actions_t actions;
        char *words[ARGV_MAX] = { NULL };
        for (int i = 0; argv[i] && i < ARGV_MAX - 1; i++)
                words[i] = strdup(argv[i]);
        if (pipe(fds) < 0)
                give_up("pipe");
        (void) posix_spawn_file_actions_init(&actions);
        (void) posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
        (void) posix_spawn_file_actions_addclose(&actions, fds[0]);
        (void) posix_spawn_file_actions_addclose(&actions, fds[1]);
        if (posix_spawnp(&pid, words[0], &actions, NULL, words, environ) != 0)
                give_up(words[0]);
        (void) posix_spawn_file_actions_destroy(&actions);
        (void) close(fds[1]);
        size_t have = 0;
        char spill[4096];
        for (;;) {
                size_t room = out && have + 1 < size ? size - 1 - have : 0;
                ssize_t n = read(fds[0], room ? out + have : spill, room ? room : sizeof spill);
                if (n <= 0)
                        break;
                if (room)
                        have += (size_t) n;
        }
        if (out && size)
                out[have] = 0;
        (void) close(fds[0]);
        (void) waitpid(pid, &status, 0);
        for (int i = 0; words[i]; i++)
                free(words[i]);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void clean(void)
{
        if (getpid() != owner || !folder[0])
                return;
        for (size_t i = 0; i < sizeof hogs / sizeof *hogs; i++)
                if (hogs[i])
                        (void) kill(hogs[i], SIGKILL);
        const char *argv[] = { "rm", "-rf", folder, NULL };
        (void) run(NULL, 0, argv);
}

void card_begin(const char *option, ...)
{
        if (!folder[0]) {
                const char *tmp = getenv("TMPDIR");
                (void) snprintf(folder, sizeof folder, "%s/simgpu-test-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
                if (!mkdtemp(folder))
                        give_up("mkdtemp");
                owner = getpid();
                (void) atexit(clean);
        }
        static int n;
        card_close(&card);
        (void) snprintf(card_path, PATH_MAX, "%s/card%d", folder, n++);
        (void) setenv("SIMGPU", card_path, 1);
        const char *argv[ARGV_MAX] = { simgpu_program(), "create", "--file", card_path };
        int i = 4;
        va_list ap;
        va_start(ap, option);
        for (const char *word = option; word && i < ARGV_MAX - 1; word = va_arg(ap, const char *))
                argv[i++] = word;
        va_end(ap);
        char out[4096], err[256];
        if (run(out, sizeof out, argv) != 0 || card_open(&card, card_path, err, sizeof err) < 0)
                give_up("creating a card");
}

struct hog hog_start(const char *option, ...)
{
        char *argv[ARGV_MAX] = { strdup(simgpu_program()), strdup("hog") };
        int i = 2, fds[2];
        va_list ap;
        va_start(ap, option);
        for (const char *word = option; word && i < ARGV_MAX - 1; word = va_arg(ap, const char *))
                argv[i++] = strdup(word);
        va_end(ap);
        struct hog hog;
        posix_spawn_file_actions_t actions;
        if (pipe(fds) < 0)
                give_up("pipe");
        (void) posix_spawn_file_actions_init(&actions);
        (void) posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
        (void) posix_spawn_file_actions_addclose(&actions, fds[0]);
        (void) posix_spawn_file_actions_addclose(&actions, fds[1]);
        if (posix_spawn(&hog.pid, argv[0], &actions, NULL, argv, environ) != 0)
                give_up("starting a hog");
        for (size_t n = 0; n < sizeof hogs / sizeof *hogs; n++)
                if (hogs[n] == 0) {
                        hogs[n] = hog.pid;
                        break;
                }
        (void) posix_spawn_file_actions_destroy(&actions);
        (void) close(fds[1]);
        while (i > 0)
                free(argv[--i]);
        hog.out = fdopen(fds[0], "r");
        char line[256];
        if (!hog.out || !fgets(line, sizeof line, hog.out) || strncmp(line, "holding ", 8) != 0)
                give_up("the hog holds nothing");
        return hog;
}

void hog_kill(struct hog *hog)
{
        (void) kill(hog->pid, SIGKILL);
        (void) waitpid(hog->pid, NULL, 0);
        for (size_t n = 0; n < sizeof hogs / sizeof *hogs; n++)
                if (hogs[n] == hog->pid)
                        hogs[n] = 0;
        (void) fclose(hog->out);
}

bool next_count(struct hog *hog, unsigned long *ret)
{
        char line[256];
        while (fgets(line, sizeof line, hog->out))
                if (sscanf(line, "count %lu", ret) == 1)
                        return true;
        return false;
}

long status_kib(pid_t pid, const char *field)
{
        char path[64], line[256];
        long kib = -1;
        (void) snprintf(path, sizeof path, "/proc/%d/status", (int) pid);
        FILE *f = fopen(path, "re");
        size_t len = strlen(field);
        while (f && kib < 0 && fgets(line, sizeof line, f))
                if (strncmp(line, field, len) == 0 && line[len] == ':')
                        kib = strtol(line + len + 1, NULL, 10);
        if (f)
                (void) fclose(f);
        return kib;
}

uint64_t used_bytes(uint32_t device)
{
        proc_reap(&card);
        if (card_lock(&card) < 0)
                give_up("the card's lock");
        uint64_t used = memory_used_locked(&card, device);
        card_unlock(&card);
        return used;
}

uint64_t bytes_of(pid_t pid, uint32_t device)
{
        const struct card_proc *p = proc_find(&card, (uint32_t) pid);
        return p ? memory_listed(&card, p, device) : 0;
}

/* The folder is the card's own when names are hidden; each card may have another, so libraries are never unloaded. */
static void *library(const char *name)
{
        char path[PATH_MAX * 2];
        (void) snprintf(path, sizeof path, "%s.lib/%s", card_path, name);
        if (access(path, R_OK) < 0)
                (void) snprintf(path, sizeof path, "%s/%s", getenv("SIMGPU_TEST_LIBDIR"), name);
        void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!lib) {
                printf("# %s\n", dlerror());
                give_up("dlopen");
        }
        return lib;
}

void *nvml_symbol(const char *name)
{
        return dlsym(library("libnvidia-ml.so.1"), name);
}

void *cuda_symbol(const char *name)
{
        return dlsym(library("libcuda.so.1"), name);
}

void *cuda_entry(const char *base, int version)
{
        CUresult (*get)(const char *, void **, int, uint64_t, int *);
        void *function = NULL;
        int status = -1;
        LOAD(cuda_symbol, get, "cuGetProcAddress_v2");
        if (!get || get(base, &function, version, 0, &status) != CUDA_OK)
                return NULL;
        return function;
}
