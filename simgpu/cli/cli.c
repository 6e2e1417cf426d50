/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SIMGPU_LIB_FROM_BIN
#define SIMGPU_LIB_FROM_BIN "../lib/simgpu"
#endif

_Noreturn void cli_die(int code, const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        fputs("simgpu: ", stderr);
        vfprintf(stderr, fmt, ap);
        fputc('\n', stderr);
        va_end(ap);
        exit(code);
}

static void verb_help(const char *verb, const struct cli_option *options)
{
        for (const struct cli_verb *v = cli_verbs; v->name; v++)
                if (strcmp(v->name, verb) == 0)
                        printf("usage: simgpu %s %s\n\n%s\n\n", v->name, v->usage, v->help);
        for (const struct cli_option *o = options; o->name; o++) {
                char left[64];
                snprintf(left, sizeof left, "--%s%s%s", o->name, o->argument ? " " : "",
                         o->argument ? o->argument : "");
                printf("  %-24s %s\n", left, o->help);
        }
        printf("  %-24s %s\n", "--help", "this text");
}

static const struct cli_option *option_find(const struct cli_option *options, const char *word, size_t len)
{
        for (const struct cli_option *o = options; o->name; o++)
                if (strlen(o->name) == len && strncmp(o->name, word, len) == 0)
                        return o;
        return NULL;
}

int cli_parse(const char *verb, const struct cli_option *options, int argc, char **argv)
{
        int left = 0, i;
        for (i = 1; i < argc; i++) {
                const char *word = argv[i];
                if (strcmp(word, "--") == 0) {
                        i++;
                        break;
                }
                if (strncmp(word, "--", 2) != 0) {
                        argv[1 + left++] = argv[i];
                        continue;
                }
                if (strcmp(word, "--help") == 0) {
                        verb_help(verb, options);
                        exit(EXIT_OK);
                }
                const char *equals = strchr(word, '=');
                const struct cli_option *o =
                        option_find(options, word + 2, equals ? (size_t) (equals - word) - 2 : strlen(word) - 2);
                if (!o)
                        cli_die(EXIT_USAGE, "%s: unknown option %s; simgpu %s --help lists them", verb, word, verb);
                if (!o->argument) {
                        if (equals)
                                cli_die(EXIT_USAGE, "%s: --%s takes no value", verb, o->name);
                        *o->flag = true;
                        continue;
                }
                if (!equals && i + 1 >= argc)
                        cli_die(EXIT_USAGE, "%s: --%s wants %s", verb, o->name, o->argument);
                *o->value = equals ? equals + 1 : argv[++i];
        }
        while (i < argc)
                argv[1 + left++] = argv[i++];
        argv[1 + left] = NULL;
        return left;
}

uint64_t cli_size(const char *what, const char *text)
{
        char *end;
        errno = 0;
        unsigned long long n = strtoull(text, &end, 10);
        static const char units[] = "KMGT";
        const char *unit = *end ? strchr(units, *end) : NULL;
        unsigned shift = unit ? (unsigned) (unit - units + 1) * 10 : 0;
        if (unit)
                end++;
        if (unit && strcmp(end, "iB") == 0)
                end += 2;
        if (end == text || *text == '-' || *end || errno || n > (UINT64_MAX / 8) >> shift)
                cli_die(EXIT_USAGE, "%s: \"%s\" is no size (1500M, 3G, bytes; binary units)", what, text);
        return (uint64_t) n << shift;
}

uint64_t cli_duration_ms(const char *what, const char *text)
{
        char *end;
        errno = 0;
        unsigned long long n = strtoull(text, &end, 10);
        uint64_t unit = strcmp(end, "ms") == 0               ? 1
                        : strcmp(end, "s") == 0 || *end == 0 ? 1000
                        : strcmp(end, "m") == 0              ? 60000
                                                             : 0;
        if (end == text || *text == '-' || unit == 0 || errno || n > UINT32_MAX)
                cli_die(EXIT_USAGE, "%s: \"%s\" is no duration (250ms, 10s, 2m)", what, text);
        return (uint64_t) n * unit;
}

int64_t cli_number(const char *what, const char *text, int64_t min, int64_t max)
{
        char *end;
        errno = 0;
        long long n = strtoll(text, &end, 0);
        if (end == text || *end || errno || n < min || n > max)
                cli_die(EXIT_USAGE, "%s: \"%s\" is no number from %lld to %lld", what, text, (long long) min,
                        (long long) max);
        return n;
}

const char *cli_card_path(const char *file)
{
        static char path[PATH_MAX];
        if (!file)
                file = getenv("SIMGPU");
        if (!file || !*file)
                cli_die(EXIT_USAGE, "which card? Give --file F or set SIMGPU");
        /* Absolute, because the path goes into the environment of programs that run elsewhere. */
        if (!realpath(file, path))
                snprintf(path, sizeof path, "%s", file);
        return path;
}

void cli_open(struct card *card, const char *file)
{
        char err[256];
        if (card_open(card, cli_card_path(file), err, sizeof err) < 0)
                cli_die(EXIT_FAILED, "%s", err);
}

void cli_side_dir(char *to, size_t size, const char *card_path)
{
        if ((size_t) snprintf(to, size, "%s.lib", card_path) >= size)
                cli_die(EXIT_FAILED, "the path is too long");
}

/*
 * Beside the program (build tree), or where the installation put them. $SIMGPU_LIBDIR is for layouts nobody thought of.
 */
static const char *installed_libdir(void)
{
        static char dir[PATH_MAX * 2];
        const char *given = getenv("SIMGPU_LIBDIR");
        if (given && *given)
                return given;
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        if (n <= 0)
                cli_die(EXIT_FAILED, "cannot find my own program file");
        self[n] = 0;
        *strrchr(self, '/') = 0;
        static const char *const places[] = { ".", SIMGPU_LIB_FROM_BIN, "../lib/simgpu", "../simgpu" };
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
                char lib[PATH_MAX * 2 + 32];
                snprintf(dir, sizeof dir, "%s/%s", self, places[i]);
                snprintf(lib, sizeof lib, "%s/libcuda.so.1", dir);
                if (access(lib, R_OK) == 0) {
                        static char clean[PATH_MAX];
                        return realpath(dir, clean) ? clean : dir;
                }
        }
        cli_die(EXIT_FAILED, "libcuda.so.1 is neither beside %s/simgpu nor in %s/%s; SIMGPU_LIBDIR names its folder",
                self, self, SIMGPU_LIB_FROM_BIN);
}

const char *cli_libdir(const char *card_path)
{
        static char side[PATH_MAX];
        if (card_path) {
                char lib[PATH_MAX + 32];
                cli_side_dir(side, sizeof side, card_path);
                snprintf(lib, sizeof lib, "%s/libcuda.so.1", side);
                if (access(lib, R_OK) == 0)
                        return side;
        }
        return installed_libdir();
}

void json_text(const char *text)
{
        putchar('"');
        for (const unsigned char *p = (const unsigned char *) text; *p; p++) {
                if (*p == '"' || *p == '\\')
                        printf("\\%c", *p);
                else if (*p < 0x20 || *p >= 0x7f)
                        printf("\\u%04x", *p);
                else
                        putchar(*p);
        }
        putchar('"');
}
