/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What an interpreter runs, by its command line: a process's own word, which it can change. Pure.
 */
#include <stdbool.h>
#include <stddef.h>

enum script_kind {
        SCRIPT_NONE,   /* no interpreter, or a program on the command line, or nothing */
        SCRIPT_FILE,   /* a path, as its working folder has it */
        SCRIPT_MODULE, /* the name of a module (-m) */
};

/* @program: the name of the file it runs; a path is fine. "python3.11" is python. */
bool script_is_interpreter(const char *program);
/* @cmdline: words with NULs between, as /proc has them. @ret: the path or name, cut to @ret_size; "" for SCRIPT_NONE. */
enum script_kind script_of_command(const char *program, const char *cmdline, size_t n, char *ret, size_t ret_size);
