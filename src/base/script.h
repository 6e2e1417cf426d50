/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What an interpreter runs, by its command line. That is the process's own word, which it can change at any time: it may make what is
 * known of it narrower, never wider (an approval of an interpreter covers one script, not all). Pure.
 */
#include <stdbool.h>
#include <stddef.h>

enum script_kind {
        SCRIPT_UNSEEN, /* an interpreter, and its command line does not say what it runs: from its input, or rewritten */
        SCRIPT_NONE,   /* no interpreter */
        SCRIPT_FILE,   /* a path, as its working folder has it */
        SCRIPT_MODULE,  /* the name of a module (-m) */
        SCRIPT_CODE,    /* code on the command line (-c), which has no name */
        SCRIPT_OPTIONS, /* a path, behind options that may have other code run, or of which that is not known */
        SCRIPT_KIND_N,
};

/* Of the kinds that have one, the path or name is whole; the rest are known by their whole command line alone. */
static inline bool script_has_name(enum script_kind kind)
{
        return kind == SCRIPT_FILE || kind == SCRIPT_MODULE || kind == SCRIPT_OPTIONS;
}

/* @program: the name of the file it runs; a path is fine. "python3.11" is python, also "python3.11 (deleted)". */
bool script_is_interpreter(const char *program);
/*
 * @program: as above; "" = not known, which may be an interpreter
 * @cmdline: words with NULs between, as /proc has them; of one that is cut no more than its beginning
 * @ret: the path or name; "" where there is none. SCRIPT_UNSEEN when it does not fit.
 * A program of another name whose first word is called like a script is taken for an interpreter: a copy of one is.
 */
enum script_kind script_of_command(const char *program, const char *cmdline, size_t n, char *ret, size_t ret_size);
