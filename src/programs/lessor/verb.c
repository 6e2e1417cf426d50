/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/verb.h"
#include "programs/lessor/ask.h"

const char verb_program[] = "lessor";

const struct option no_options[] = { { 0 } };
const struct option json_options[] = { { "json", NULL, "print JSON, as the API gives it" }, { 0 } };

#define LOOK_CODES "\n\nExit status: 0 done, 2 wrong use, 69 lessord is away."
#define LEASE_CODES "\n\nExit status: 0 done, 1 there is no such lease any more, 2 wrong use, 69 lessord is away."

static const char devices_more[] = "  lessor devices\n"
                                   "  lessor devices --json | jq '.[0].free_bytes'\n"
                                   "\n"
                                   "--json prints a list with one object a device; null means unknown, which is never "
                                   "0." LOOK_CODES;
static const char queue_more[] = "  lessor queue\n"
                                 "\n"
                                 "In its order: place, lease, priority, how much, how long it waited, whose, why it "
                                 "waits, and when it may start." LOOK_CODES;
static const char events_more[] = "  lessor events --follow\n"
                                  "  lessor events --lease L17\n"
                                  "\n"
                                  "--json prints one object a line. --follow goes on until Ctrl-C, also over a restart "
                                  "of lessord." LOOK_CODES;
static const char lease_show_more[] = "  lessor lease show L17\n"
                                      "  lessor lease show --json L17 | jq .used_bytes" LEASE_CODES;
static const char lease_renew_more[] = "  id=$(lessor lease acquire --vram 12G --ttl 60s)\n"
                                       "  lessor lease renew \"$id\"     at least every minute" LEASE_CODES;
static const char lease_release_more[] =
        "  lessor lease release L17\n"
        "\n"
        "A second release of the same lease says how it ended, and exits with 1." LEASE_CODES;

static const struct verb lease_verbs[] = {
        { "lease acquire", "--vram SIZE|--exclusive [OPTION]…", "ask for memory, wait, print the lease's id",
          acquire_options, acquire_more, false, verb_acquire_main, .shared = ask_options },
        { "lease show", "[--json] ID", "one lease as it is now", json_options, lease_show_more, false, verb_show_main,
          .operands = "@leases" },
        { "lease renew", "[--json] ID", "heartbeat: keep a lease with --ttl alive", json_options, lease_renew_more,
          false, verb_renew_main, .operands = "@leases" },
        { "lease release", "[--json] ID", "give the memory back", json_options, lease_release_more, false,
          verb_release_main, .operands = "@leases" },
        { 0 },
};

static const struct verb config_verbs[] = {
        { "config check", "[FILE]", "is this file good?", no_options, config_check_more, false, verb_config_check_main,
          .operands = "@files" },
        { "config show", "[--json]", "every key: what it is, and its default", json_options, config_show_more, false,
          verb_config_show_main },
        { 0 },
};

static const struct verb tenants_verbs[] = {
        { "tenants list", "[--files DIR] [--json]", "which applications are known", tenants_options, tenants_list_more,
          false, verb_tenants_list_main },
        { "tenants show", "[--files DIR] [--json] NAME", "all that is known of one", tenants_options, tenants_show_more,
          false, verb_tenants_show_main },
        { "tenants match", "[--all] [--files DIR] [--json] PID [NAME]", "whose process is it, and why",
          tenants_match_options, tenants_match_more, false, verb_tenants_match_main, .operands = "@strangers" },
        { "tenants check", "[--json] FILE…", "are these files of tenants good?", json_options, tenants_check_more,
          false, verb_tenants_check_main, .operands = "@files" },
        { 0 },
};

static const struct verb journal_verbs[] = {
        { "journal verify", "[--json] [FILE|DIR]", "is every row of it as it was written?", json_options,
          journal_verify_more, false, verb_journal_verify_main, .operands = "@files" },
        { 0 },
};

static const struct verb book_verbs[] = {
        { "book list", "[--json]", "what is booked, by whom, the next one first", json_options, book_list_more, false,
          verb_book_list_main },
        { "book cancel", "[--json] ID", "give a booking up", json_options, book_cancel_more, false,
          verb_book_cancel_main, .operands = "@leases" },
        { 0 },
};

const struct verb verbs[] = {
        { "run", "[OPTION]… [--] COMMAND [ARG]…", "wait for GPU memory, then run a command under the lease",
          run_options, run_more, true, verb_run_main, .shared = ask_options, .operands = "@command" },
        { "status", "[--watch [SECONDS]] [--json]", "devices, leases, queue and strangers at a glance", status_options,
          status_more, false, verb_status_main },
        { "devices", "[--json]", "what each device has, promised, used and free", json_options, devices_more, false,
          verb_devices_main },
        { "processes", "[--json]", "who has device memory, under which lease, and how that is known", json_options,
          processes_more, false, verb_processes_main },
        { "queue", "[--json]", "who waits, in which order, and for what", json_options, queue_more, false,
          verb_queue_main },
        { "events", "[--follow] [--lease ID] [--json]", "what happened, oldest first", events_options, events_more,
          false, verb_events_main },
        { "why", "[--journal FILE] [--json] LEASE|PID|EVENT", "what led to what: of a lease, a process or one event",
          why_options, why_more, false, verb_why_main, .operands = "@leases" },
        { "lease", "acquire|show|renew|release …", "leases for scripts: ask, look, keep alive, give back", no_options,
          lease_more, false, verb_group_main, .sub = lease_verbs },
        { "renice", "[--json] PRIORITY ID", "make a lease more or less important", change_options, renice_more, false,
          verb_renice_main, .operands = "urgent|interactive|normal|batch|filler @leases" },
        { "extend", "[--json] ID SPAN", "let a lease's time end later", change_options, extend_more, false,
          verb_extend_main, .operands = "@leases 10m|30m|1h|2h" },
        { "pin", "[--for SPAN] [--json] ID", "never take its memory back", pin_options, pin_more, false, verb_pin_main,
          .operands = "@leases" },
        { "unpin", "[--json] ID", "its memory may be taken back again", change_options, pin_more, false, verb_pin_main,
          .operands = "@leases" },
        { "adopt", "PID|--container NAME|--unit NAME [OPTION]…", "give a running program a lease", adopt_options,
          adopt_more, false, verb_adopt_main, .operands = "@strangers" },
        { "unadopt", "[--json] ID", "let an adopted program go", change_options, unadopt_more, false, verb_unadopt_main,
          .operands = "@leases" },
        { "plan", "[OPTION]… [[--] COMMAND [ARG]…]", "what `run` would get now, and why; asks for nothing",
          plan_options, plan_more, false, verb_plan_main, .shared = ask_options, .operands = "@command" },
        { "park", "[--for SPAN|--rehearse|--forgive] [--no-wait] [--json] ID",
          "take a lease off its device; thaw brings it back", park_options, park_more, false, verb_park_main,
          .operands = "@leases" },
        { "thaw", "[--no-wait] [--json] ID", "bring a parked lease back", thaw_options, thaw_more, false,
          verb_thaw_main, .operands = "@leases" },
        { "idle", "[--keep-alive SPAN] [--json] ID", "say that a lease has nothing to do", idle_options, idle_more,
          false, verb_idle_main, .operands = "@leases" },
        { "busy", "[--json] ID", "say that a lease is at work", change_options, idle_more, false, verb_idle_main,
          .operands = "@leases" },
        { "clear", "[--vram SIZE] [--for TIME] [OPTION]…", "make room for a program that lessor does not start",
          clear_options, clear_more, false, verb_clear_main },
        { "resume", "[ID]", "give back what clear keeps free", no_options, resume_more, false, verb_resume_main,
          .operands = "@leases" },
        { "book", "--at TIME --for SPAN --vram SIZE [OPTION]…", "have memory promised for a time to come; list, cancel",
          book_options, book_more, false, verb_book_main, .sub = book_verbs },
        { "enforce", "[on|off|warn|observe|status] [--yes] [--json]", "what becomes of processes without a lease",
          enforce_options, enforce_more, false, verb_enforce_main, .operands = "on|off|warn|observe|status" },
        { "approve", "[--for SPAN] [--here] [--json] PID…", "a program may have device memory without a lease",
          approve_options, approve_more, false, verb_approve_main, .operands = "@strangers" },
        { "approvals", "[--json]", "whose programs may", json_options, approvals_more, false, verb_approvals_main },
        { "unapprove", "[--json] ID…", "take an approval back", json_options, unapprove_more, false,
          verb_unapprove_main, .operands = "@approvals" },
        { "audit", "[--all] [--journal FILE] [--json] [PID]",
          "who has device memory without a lease, and who started it", audit_options, audit_more, false,
          verb_audit_main, .operands = "@strangers" },
        { "costs", "[--json]", "what it took to take memory back, measured", json_options, costs_more, false,
          verb_costs_main },
        { "limits", "[--user NAME] [--json]", "what you may have at once, and have", limits_options, limits_more, false,
          verb_limits_main },
        { "config", "check|show …", "lessord.conf as lessord reads it", no_options, config_more, false, verb_group_main,
          .sub = config_verbs },
        { "tenants", "list|show|match|check …",
          "applications as data: how they are recognised, asked and made to give memory back", no_options, tenants_more,
          false, verb_group_main, .sub = tenants_verbs },
        { "doctor", "[--prove] [--json]", "what works here, what does not, and the cure", doctor_options, doctor_more,
          false, verb_doctor_main },
        { "rescue", "[--list|--all|--thaw ID|PID] [OPTION]…", "bring back what is parked, without lessord",
          rescue_options, rescue_more, false, verb_rescue_main },
        { "replay", "[FILE|DIR] [--since TIME] [--with FILE]",
          "decide again what was decided, as it was or with another lessord.conf", replay_options, replay_more, false,
          verb_replay_main, .operands = "@files" },
        { "usage", "[--by user|consumer] [--since TIME] [--csv|--json]", "who had how much for how long", usage_options,
          usage_more, false, verb_usage_main },
        { "journal", "verify …", "the record of all that was decided: is it whole?", no_options, journal_more, false,
          verb_group_main, .sub = journal_verbs },
        { "completion", "bash|zsh", "a script that completes these words in a shell", no_options, completion_more,
          false, verb_completion_main, .operands = "bash|zsh" },
        { "help", "[VERB]", "this, or the help of a verb", no_options, NULL, false, verb_help_main,
          .operands = "@verbs" },
        { "version", "", "print the version", no_options, NULL, false, verb_version_main },
        { 0 },
};
