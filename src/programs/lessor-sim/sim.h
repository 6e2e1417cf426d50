/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The verbs of lessor-sim, which share the machinery of lessor's (programs/lessor/verb.h), and what they all need. */
#include <stdint.h>
#include "base/error.h"
#include "programs/lessor/verb.h"

enum { SIM_EXIT_OK = 0, SIM_EXIT_BAD = 1, SIM_EXIT_USAGE = 2 };

int sim_synth_main(const struct verb *verb, int argc, char **argv);
int sim_check_main(const struct verb *verb, int argc, char **argv);
int sim_completion_main(const struct verb *verb, int argc, char **argv);
int sim_help_main(const struct verb *verb, int argc, char **argv);
int sim_version_main(const struct verb *verb, int argc, char **argv);

extern const struct option synth_options[], check_options[];
extern const char synth_more[], check_more[], sim_completion_more[];

/* "lessor-sim VERB: words" on stderr; returns SIM_EXIT_BAD. */
int sim_fail(const struct verb *verb, const struct error *err);
/* The value of an option that is a whole number. False: said, and the verb returns SIM_EXIT_USAGE. */
bool sim_number(const struct options *o, int row, uint64_t min, uint64_t max, uint64_t *ret);
