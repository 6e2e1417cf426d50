/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* cli - what the verbs of `simgpu` share: options, sizes, where the card and the libraries are */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "card/card.h"

#define printf_like(f, a) __attribute__((__format__(__printf__, f, a)))

enum exit_code { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NO_MEMORY = 3 };

struct cli_option {
        const char *name;     /* without the dashes */
        const char *argument; /* NULL = a switch */
        const char *help;
        const char **value; /* set when given */
        bool *flag;
};

struct cli_verb {
        const char *name, *usage, *help;   /* usage: what follows the name; help: paragraphs for --help */
        int (*run)(int argc, char **argv); /* argv[0] is the verb */
};
extern const struct cli_verb cli_verbs[]; /* ends with a NULL name */

/*
 * cli_parse - options out of argv; what is left moves to the front of argv[1..]
 * Stops at "--". Prints help and exits 0 on --help; exits 2 on an unknown option or a missing value.
 * @options  ends with a NULL name
 * Returns the number of words left.
 */
int cli_parse(const char *verb, const struct cli_option *options, int argc, char **argv);

/* cli_die - "simgpu: …" on stderr and exit */
_Noreturn void cli_die(int code, const char *fmt, ...) printf_like(2, 3);

/* 1500M, 3G, 4096, 12KiB: binary units. Exits 2 on anything else. */
uint64_t cli_size(const char *what, const char *text);
/* 250ms, 10s, 2m, 10 (seconds) -> milliseconds. Exits 2 on anything else. */
uint64_t cli_duration_ms(const char *what, const char *text);
int64_t cli_number(const char *what, const char *text, int64_t min, int64_t max);

/* cli_card - the path of --file or $SIMGPU; exits 2 when there is none. Never returns NULL. */
const char *cli_card_path(const char *file);
/* cli_open - the same, opened; exits 1 when it is no card */
void cli_open(struct card *card, const char *file);

/* cli_libdir - where the two libraries are for this card: beside the program, or the card's own copies with names hidden */
const char *cli_libdir(const char *card_path);
/* cli_side_dir - FILE.lib, made by create --hide and --abi */
void cli_side_dir(char *to, size_t size, const char *card_path);

/* json_text - a string with its quotes and escapes */
void json_text(const char *text);

int verb_create(int argc, char **argv);
int verb_run(int argc, char **argv);
int verb_env(int argc, char **argv);
int verb_hog(int argc, char **argv);
int verb_show(int argc, char **argv);
int verb_fault(int argc, char **argv);
int verb_trace(int argc, char **argv);
int verb_work(int argc, char **argv);
int verb_destroy(int argc, char **argv);
