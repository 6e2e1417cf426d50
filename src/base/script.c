/* SPDX-License-Identifier: Apache-2.0 */
#include "base/script.h"
#include <stdio.h>
#include <string.h>

/*
 * Of each the short options that change nothing of which script runs: @alone, and @valued, whose value is the rest of the word or the
 * next one. @code: what runs is in its value; @module: it is named there. All others, and long ones, are not known here: they may load
 * something else first (perl -M, node -r), or take the next word for their value. @verb: names first what it does or runs, and then
 * with what.
 */
static const struct interpreter {
        const char *name;
        const char *alone, *valued, *code;
        char module;
        bool verb;
} interpreters[] = {
        { "python", "bBdEIOPqRsSuvx", "WX", "c", 'm', false },
        { "pypy", "bBdEIOPqRsSuvx", "WX", "c", 'm', false },
        { "perl", "tTuUvwWX", "", "eE", 0, false },
        { "ruby", "vwW", "", "e", 0, false },
        { "node", "", "", "ep", 0, false },
        { "nodejs", "", "", "ep", 0, false },
        { "bash", "efnuvx", "oO", "c", 0, false },
        { "sh", "efnuvx", "o", "c", 0, false },
        { "dash", "efnuvx", "o", "c", 0, false },
        { "zsh", "efnuvx", "o", "c", 0, false },
        { "ksh", "efnuvx", "o", "c", 0, false },
        { "julia", "", "pt", "eE", 0, false },
        { "lua", "vW", "", "e", 0, false },
        { "luajit", "v", "", "e", 0, false },
        { "Rscript", "", "", "e", 0, false },
        { "R", "", "", "e", 0, false },
        { "php", "nq", "", "rBRE", 0, false },
        { "java", "", "", "", 0, false },
        { "deno", "", "", "", 0, true },
        { "bun", "", "", "", 0, true },
        { "tclsh", "", "", "", 0, false },
        { "guile", "", "", "c", 0, false },
        { "octave", "", "", "", 0, false },
        { "busybox", "", "", "", 0, true },
        { "ld", "", "", "", 0, true },
        { "dotnet", "", "", "", 0, true },
        { "mono", "", "", "", 0, true },
        { "wine", "", "", "", 0, true },
        { "wine64", "", "", "", 0, true },
        { "qemu", "", "", "", 0, true },
        { "box64", "", "", "", 0, true },
};

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash && slash[1] ? slash + 1 : path;
}

/* The kernel writes " (deleted)" behind the name of a file that is gone, and versions follow it: python3.12-dbg. */
static const struct interpreter *interpreter_of(const char *program)
{
        const char *name = base_name(program);

        for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++) {
                size_t n = strlen(interpreters[i].name);
                const char *rest = name + n;
                if (strncmp(interpreters[i].name, name, n) == 0 &&
                    (*rest == '\0' || *rest == '-' || *rest == ' ' || *rest == '.' || (*rest >= '0' && *rest <= '9')))
                        return &interpreters[i];
        }
        return NULL;
}

bool script_is_interpreter(const char *program)
{
        return interpreter_of(program) != NULL;
}

/* The words of a command line, one by one into @word. */
struct words {
        const char *bytes;
        size_t n, at;
        char *word;
        size_t size;
};

/* False: there is none, or it is empty, cut (no NUL behind it) or too long. */
static bool next_word(struct words *w)
{
        const char *from = w->bytes + w->at;
        const char *end = w->at < w->n ? memchr(from, '\0', w->n - w->at) : NULL;

        w->word[0] = '\0';
        if (!end || end == from || (size_t) (end - from) >= w->size)
                return false;
        memcpy(w->word, from, (size_t) (end - from) + 1);
        w->at += (size_t) (end - from) + 1;
        return true;
}

static enum script_kind unseen(struct words *w)
{
        w->word[0] = '\0';
        return SCRIPT_UNSEEN;
}

/* Behind something that is not known: what may be the script, for people. */
static enum script_kind guess(struct words *w)
{
        while (next_word(w))
                if (w->word[0] != '-')
                        return SCRIPT_OPTIONS;
        w->word[0] = '\0';
        return SCRIPT_CODE;
}

enum option {
        OPTION_KNOWN,
        OPTION_VALUED, /* and the next word is its value */
        OPTION_CODE,
        OPTION_MODULE,      /* the next word names it */
        OPTION_MODULE_HERE, /* the rest of the word does, at @ret_at */
        OPTION_OTHER,
};

/* A word of short options: "-u", "-Wignore", "-um". */
static enum option option_of(const struct interpreter *in, const char *word, size_t *ret_at)
{
        for (size_t i = 1; word[i] != '\0'; i++) {
                if (in->module != 0 && word[i] == in->module) {
                        *ret_at = i + 1;
                        return word[i + 1] != '\0' ? OPTION_MODULE_HERE : OPTION_MODULE;
                }
                if (strchr(in->code, word[i]))
                        return OPTION_CODE;
                if (strchr(in->valued, word[i]))
                        return word[i + 1] != '\0' ? OPTION_KNOWN : OPTION_VALUED;
                if (!strchr(in->alone, word[i]))
                        return OPTION_OTHER;
        }
        return OPTION_KNOWN;
}

static enum script_kind of_interpreter(const struct interpreter *in, struct words *w)
{
        size_t at = 0;

        if (in->verb)
                return next_word(w) ? guess(w) : unseen(w);
        while (next_word(w)) {
                if (strcmp(w->word, "-") == 0)
                        break; /* its input */
                if (w->word[0] != '-')
                        return SCRIPT_FILE;
                if (strcmp(w->word, "--") == 0)
                        return next_word(w) ? SCRIPT_FILE : unseen(w);
                switch (option_of(in, w->word, &at)) {
                case OPTION_KNOWN:
                        break;
                case OPTION_VALUED:
                        if (!next_word(w))
                                return unseen(w);
                        break;
                case OPTION_CODE:
                        w->word[0] = '\0';
                        return SCRIPT_CODE;
                case OPTION_MODULE:
                        return next_word(w) ? SCRIPT_MODULE : unseen(w);
                case OPTION_MODULE_HERE:
                        memmove(w->word, w->word + at, strlen(w->word + at) + 1);
                        return SCRIPT_MODULE;
                case OPTION_OTHER:
                        return guess(w);
                }
        }
        return unseen(w);
}

static bool is_called_like_a_script(const char *word)
{
        static const char *const ends[] = { ".py", ".pyc", ".pyz", ".pl",  ".rb", ".sh", ".js", ".mjs",
                                            ".ts", ".lua", ".jl",  ".php", ".R",  ".m",  ".tcl" };
        size_t n = strlen(word);

        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
                if (n > strlen(ends[i]) && strcmp(word + n - strlen(ends[i]), ends[i]) == 0)
                        return true;
        return false;
}

/* A copy of an interpreter under another name: its options are not known, its script may be. */
static enum script_kind of_other(struct words *w)
{
        bool first = true;

        for (; next_word(w); first = false)
                if (w->word[0] != '-') {
                        if (!is_called_like_a_script(w->word))
                                break;
                        return first ? SCRIPT_FILE : SCRIPT_OPTIONS;
                }
        w->word[0] = '\0';
        return SCRIPT_NONE;
}

enum script_kind script_of_command(const char *program, const char *cmdline, size_t n, char *ret, size_t ret_size)
{
        const struct interpreter *in = interpreter_of(program);
        struct words w = { .bytes = cmdline, .n = n, .word = ret, .size = ret_size };

        ret[0] = '\0';
        if (program[0] == '\0' || (in && !next_word(&w)))
                return unseen(&w); /* its own name comes first */
        if (in)
                return of_interpreter(in, &w);
        return next_word(&w) ? of_other(&w) : SCRIPT_NONE;
}
