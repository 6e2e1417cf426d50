/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Completion for shells, made from the verb table. What a value can be stands there as `a|b|c`, or as one of these kinds, which
 * the scripts look up when they need them:
 *
 *      @leases @devices @strangers   `lessor __complete leases`: asks lessord, for a second at most
 *      @files @users @verbs          what the shell, or this table, knows
 *      @command                      another command, and its own words
 *
 * For a verb's words it is one for each place, with blanks between them.
 */
#define COMPLETE_WORD "__complete"

/* `lessor __complete KIND`: one word a line, in front of a tab and what it means. Silent when there is nothing to say. */
int complete_main(int argc, char **argv);
