/* SPDX-License-Identifier: Apache-2.0 */
/* lessord and its parts: there, allowed, of one version, in order. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/duration.h"
#include "base/escape.h"
#include "base/size.h"
#include "client/client.h"
#include "model/enforce.h"
#include "programs/lessor/capture.h"
#include "programs/lessor/doctor.h"
#include "programs/lessor/lessord.h"
#include "programs/lessor/show.h"

enum { FIELD_MAX = 256, OTHERS_MAX = 8 };

/* ---- is it there, and may we ask ---- */

static void cannot_ask(struct doctor *d, const char *why, const char *cure)
{
        (void) snprintf(d->why_not, sizeof(d->why_not), "%.*s", (int) sizeof(d->why_not) - 1, why);
        (void) snprintf(d->why_not_cure, sizeof(d->why_not_cure), "%.*s", (int) sizeof(d->why_not_cure) - 1, cure);
        doctor_add(d, "lessord", FINDING_BAD, why, cure);
}

/* The words for people have the cure in their second line. */
static void away(struct doctor *d, const struct client *client, int r)
{
        static const char mark[] = "\nCure: ";
        char words[AWAY_TEXT_MAX];
        (void) socket_path_cure(client->socket_path, r, words, sizeof(words));
        char *cure = strstr(words, mark);
        if (cure)
                *cure = '\0';
        cannot_ask(d, words, cure ? cure + sizeof(mark) - 1 : "");
}

static bool get(const struct client *client, const char *path, struct client_answer *ret)
{
        if (client_call(client, "GET", path, NULL, DOCTOR_ASK_MS, ret, NULL) < 0)
                return false;
        if (ret->status == 200 && json_is_object(ret->body))
                return true;
        client_answer_fini(ret);
        return false;
}

/* ---- what it says of itself ---- */

static void check_gpu(struct doctor *d, const json_t *status)
{
        char gpu[32], age[DURATION_TEXT_MAX];
        uint64_t ms;
        size_t i, n_usable = 0;
        json_t *device;

        json_array_foreach(json_object_get(status, "devices"), i, device) n_usable +=
                json_is_true(json_object_get(device, "usable"));
        (void) show_field(status, "gpu", "?", gpu, sizeof(gpu));
        if (strcmp(gpu, "ok") == 0 && n_usable > 0) {
                d->grants = true;
                doctor_addf(d, "lessord's view", FINDING_OK, "", "%zu usable device%s, looked at %s ago", n_usable,
                            n_usable == 1 ? "" : "s",
                            json_amount(status, "gpu_age_ms", &ms) ? duration_text(ms, age) : "a while");
                return;
        }
        (void) snprintf(d->grants_not, sizeof(d->grants_not), "%s",
                        strcmp(gpu, "none") == 0       ? "lessord has no driver to look at devices with"
                        : strcmp(gpu, "stale") == 0    ? "the driver does not answer lessord"
                        : strcmp(gpu, "mismatch") == 0 ? "lessord sees a driver that was upgraded under its module"
                                                       : "lessord sees no usable device");
        doctor_add(d, "lessord's view", FINDING_BAD, d->grants_not,
                   strcmp(gpu, "mismatch") == 0 ? "reboot"
                                                : "see `driver` above; `lessor devices` tells each device's health");
}

static void check_books(struct doctor *d, const json_t *status)
{
        char text[FIELD_MAX];
        if (json_is_string(json_object_get(status, "degraded"))) {
                (void) show_field(status, "degraded", "", text, sizeof(text));
                doctor_add(d, "books", FINDING_BAD, text,
                           "make room on its disk, or see what the message says; it goes on by itself then");
                d->grants = false;
                (void) snprintf(d->grants_not, sizeof(d->grants_not), "its books cannot be written: %s", text);
        }
        if (json_is_string(json_object_get(status, "config_error"))) {
                (void) show_field(status, "config_error", "", text, sizeof(text));
                doctor_addf(d, "configuration", FINDING_WARN, "`lessor config check`, then `systemctl reload lessord`",
                            "not taken, the last good one counts: %s", text);
        }
        if (json_is_string(json_object_get(status, "read_only_reason"))) {
                (void) show_field(status, "read_only_reason", "", text, sizeof(text));
                doctor_addf(d, "coordinator", FINDING_BAD, "ask that one instead, or end it",
                            "another one has the card: %s", text);
                d->grants = false;
                (void) snprintf(d->grants_not, sizeof(d->grants_not), "another coordinator has the card: %s", text);
        }
}

static void check_hands(struct doctor *d, const json_t *status)
{
        const char *hands = json_text(status, "hands", "");
        if (hands[0] == '\0')
                return;
        d->hands_known = true;
        d->hands_up = strcmp(hands, "ok") == 0;
        (void) show_field(status, "hands_words", "no reason given", d->hands_words, sizeof(d->hands_words));
        if (d->hands_up)
                doctor_add(d, "warden", FINDING_OK, "there: what was to be ended can be ended", "");
        else
                doctor_addf(d, "warden", FINDING_WARN,
                            "`systemctl status lessor-warden`; in a session of one's own: restart lessord",
                            "away, so nothing is ended: %s", d->hands_words);
}

/* Without them who left its parents behind is known by its session and its cgroup alone. */
static void check_process_events(struct doctor *d, const json_t *status)
{
        static const struct {
                const char *state;
                enum finding finding;
                const char *text, *cure;
        } rows[] = {
                { "told", FINDING_OK, "told: workers are known whose parents are gone", "" },
                { "refused", FINDING_WARN,
                  "refused: workers whose parents are gone are known by session and cgroup alone",
                  "Linux 6.6 tells everybody; before, give lessor-eyes CAP_NET_ADMIN when it starts (it gives it up "
                  "then)" },
                { "namespace", FINDING_FACT,
                  "not told here: workers whose parents are gone are known by session and cgroup alone",
                  "run lessord in the first pid and user namespace, not in a container" },
                { "missing", FINDING_WARN,
                  "missing: workers whose parents are gone are known by session and cgroup alone",
                  "a kernel with CONFIG_PROC_EVENTS, and no filter that forbids AF_NETLINK" },
        };
        const char *state = json_text(status, "process_events", "");
        uint64_t code = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                if (strcmp(rows[i].state, state) != 0)
                        continue;
                if (json_amount(status, "process_events_errno", &code) && code < INT_MAX)
                        doctor_addf(d, "process events", rows[i].finding, rows[i].cure, "%s (%s)", rows[i].text,
                                    strerror((int) code));
                else
                        doctor_add(d, "process events", rows[i].finding, rows[i].text, rows[i].cure);
        }
}

static void check_managers(struct doctor *d, const json_t *status)
{
        char text[FIELD_MAX];

        if (json_is_string(json_object_get(status, "units_words"))) {
                (void) show_field(status, "units_words", "", text, sizeof(text));
                doctor_addf(d, "units", FINDING_FACT, "lessord(8), UNITS AND CONTAINERS",
                            "adopted units cannot be stopped and started: %s", text);
        } else if (json_object_get(status, "units_words")) {
                doctor_add(d, "units", FINDING_OK, "adopted units can be stopped and started", "");
        }
        if (json_is_string(json_object_get(status, "sleep_words"))) {
                (void) show_field(status, "sleep_words", "", text, sizeof(text));
                doctor_addf(d, "sleep", FINDING_FACT, "lessord(8), SLEEP AND SHUTDOWN",
                            "sleep and shutdown do not wait for what is half way: %s", text);
        } else if (json_object_get(status, "sleep_words")) {
                doctor_add(d, "sleep", FINDING_OK, "sleep and shutdown wait for what is half way", "");
        }
}

static void check_gate(struct doctor *d, const json_t *status)
{
        const json_t *gate = json_object_get(status, "gate");
        const char *mode = json_text(gate, "mode", ""), *state = json_text(gate, "state", "");
        char text[FIELD_MAX];

        if (!json_is_object(gate))
                return;
        (void) show_field(gate, "words", "no reason given", text, sizeof(text));
        if (strcmp(mode, state) == 0)
                doctor_addf(d, "gate", FINDING_OK, "", "%s: processes without a lease %s the device", mode,
                            strcmp(mode, "log") == 0 ? "are counted when they open" : "do not open");
        else if (strcmp(state, "away") == 0)
                doctor_addf(d, "gate", FINDING_WARN,
                            "start lessor-warden-admin as root (`systemd-run --unit lessor-warden-admin "
                            "lessor-warden-admin`), or mode = off in [gate]",
                            "open, its keeper is away: %s", text);
        else
                doctor_addf(d, "gate", FINDING_WARN,
                            "put it right, then `systemctl reload lessord`; lessor-warden-admin(8), lessord.conf(5)",
                            "open, not %s: %s", mode, text);
}

static void check_parking(struct doctor *d, const json_t *status)
{
        const json_t *host = json_object_get(status, "host");
        const char *can = json_text(host, "checkpoint", "unknown");

        d->checkpoint_known = strcmp(can, "unknown") != 0;
        d->checkpoints = strcmp(can, "can") == 0;
        (void) show_field(host, "checkpoint_words", "no reason given", d->checkpoint_words,
                          sizeof(d->checkpoint_words));
        if (json_is_true(json_object_get(host, "pressure")))
                doctor_add(d, "host memory", FINDING_WARN, "under pressure: nothing more is parked",
                           "end what takes it, or add memory");
}

static void check_memory(struct doctor *d, const struct client *client)
{
        struct client_answer answer;
        size_t i;
        json_t *key;
        if (!get(client, "/api/config", &answer))
                return;
        json_array_foreach(json_object_get(answer.body, "keys"), i,
                           key) if (strcmp(json_text(key, "key", ""), "ledger_cap") == 0)
        {
                char value[FIELD_MAX];
                doctor_addf(d, "ledger", FINDING_FACT, "", "parked work may take up to %s of host memory (ledger_cap)",
                            show_field(key, "value", "?", value, sizeof(value)));
        }
        client_answer_fini(&answer);
}

/* ---- the enforcer ---- */

/* What ends the doubt; of one that these words do not know nothing is said. */
static const char *cure_of_doubt(const char *doubt, const char **ret_words)
{
        static const char *const cures[DOUBT_N] = {
                [DOUBT_BOOKS] = "see `books`; `lessor journal verify` tells what is damaged",
                [DOUBT_EYES] = "see `driver` and `lessord's view`",
                [DOUBT_SWEEP] = "it ends by itself when every device was seen once",
                [DOUBT_BLIND] = "`lessor status` shows who; give it a lease, or end it as its owner",
                [DOUBT_FULL] = "`lessor enforce` shows them; end some, or approve them",
        };

        for (size_t i = DOUBT_NONE + 1; i < DOUBT_N; i++)
                if (strcmp(enforce_doubt_name((enum enforce_doubt) i), doubt) == 0) {
                        *ret_words = enforce_doubt_text((enum enforce_doubt) i);
                        return cures[i];
                }
        *ret_words = doubt;
        return "";
}

/* What becomes of processes without a lease, and why just now of nobody. */
static void check_enforcer(struct doctor *d, const struct client *client)
{
        static const char *const does[] = { "they are shown, and nobody is ended",
                                            "their owners are told, and nobody is ended",
                                            "they are ended: notice, SIGTERM, a grace, SIGKILL" };
        struct client_answer answer;
        enum enforce_mode mode;
        char safe[FIELD_MAX], doubt[FIELD_MAX];
        const char *words = "";

        if (!get(client, "/api/enforce", &answer))
                return;
        (void) show_field(answer.body, "asked_mode", "?", safe, sizeof(safe));
        (void) show_field(answer.body, "doubt", "none", doubt, sizeof(doubt));
        if (enforce_mode_parse(json_text(answer.body, "mode", ""), &mode)) {
                bool lowered = strcmp(safe, enforce_mode_name(mode)) != 0, doubted = strcmp(doubt, "none") != 0;
                const char *name = enforce_mode_name(mode);
                const char *cure = doubted ? cure_of_doubt(doubt, &words) : "";
                if (doubted && mode == ENFORCE_ENFORCE)
                        doctor_addf(d, "enforcer", FINDING_WARN, cure, "%s, and in doubt, so %s: %s", name,
                                    strcmp(doubt, enforce_doubt_name(DOUBT_BLIND)) == 0 ||
                                                    strcmp(doubt, enforce_doubt_name(DOUBT_FULL)) == 0
                                            ? "those are left alone"
                                            : "nobody is ended",
                                    words);
                else if (lowered)
                        doctor_addf(
                                d, "enforcer", FINDING_WARN, "raise it and reload, or ask for less (`lessor enforce`)",
                                "%s, though %s was asked for: enforce_max in lessord.conf allows no more", name, safe);
                else
                        doctor_addf(d, "enforcer", FINDING_FACT,
                                    doubted ? cure : "`lessor enforce` tells whom it judged; lessor-enforce(1)",
                                    "%s: of processes without a lease, %s%s%s", name, does[mode],
                                    doubted ? "; in doubt: " : "", words);
        }
        client_answer_fini(&answer);
}

/* ---- versions ---- */

static void put_version(char *text, size_t size, bool *same, const char *name, const char *version)
{
        size_t n = strlen(text);
        if (n < size)
                (void) snprintf(text + n, size - n, "; %s %s", name, version);
        if (strcmp(version, LESSOR_VERSION) != 0)
                *same = false;
}

/* What "NAME --version" says behind its own name; "" = nothing. */
static void ask_version(const char *program, const char *name, char *ret, size_t size)
{
        const char *argv[] = { program, "--version", NULL };
        struct capture c;
        char line[FIELD_MAX];
        size_t n = strlen(name);

        ret[0] = '\0';
        if (capture_run(argv, DOCTOR_ASK_MS, &c, NULL) == 0 && c.exit_status == 0) {
                (void) capture_line(&c.out, line, sizeof(line));
                if (strncmp(line, name, n) == 0 && line[n] == ' ')
                        (void) snprintf(ret, size, "%s", line + n + 1);
        }
        capture_fini(&c);
}

static void check_versions(struct doctor *d, const char *running)
{
        char text[DOCTOR_TEXT_MAX] = "lessor " LESSOR_VERSION, program[PATH_MAX], version[64];
        bool same = true;

        if (running[0] != '\0')
                put_version(text, sizeof(text), &same, "lessord that runs", running);
        if (lessord_find(program, sizeof(program))) {
                ask_version(program, "lessord", version, sizeof(version));
                put_version(text, sizeof(text), &same, "lessord", version[0] != '\0' ? version : "?");
        }
        if (lessord_find_helper("lessor-warden", program, sizeof(program))) {
                ask_version(program, "lessor-warden", version, sizeof(version));
                put_version(text, sizeof(text), &same, "lessor-warden", version[0] != '\0' ? version : "?");
        }
        if (!lessord_find_helper("lessor-eyes", program, sizeof(program)))
                doctor_add(d, "lessor-eyes", FINDING_WARN, "not found beside lessor, nor in ../libexec/lessor",
                           "install it there, or name its folder in LESSOR_LIBEXEC");
        doctor_add(d, "versions", same ? FINDING_OK : FINDING_WARN, text,
                   same ? "" : "install one version of all, then `systemctl restart lessord`");
}

/* ---- others like it ---- */

static void check_others(struct doctor *d)
{
        static const char *const known[] = { "nvshare-sched*", "hami-*", "slurmd", "kubelet" };
        pid_t pids[OTHERS_MAX];
        size_t n = doctor_find_processes("lessord", pids, OTHERS_MAX);

        if (n > 1)
                doctor_addf(d, "other lessord", FINDING_FACT,
                            "one is enough: on one card the system's goes first, and the others only read",
                            "%zu run here, as pid %d, %d%s", n, (int) pids[0], (int) pids[1],
                            n > 2 ? " and others" : "");
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                if (doctor_find_processes(known[i], pids, 1) > 0)
                        doctor_addf(d, "coordinator", FINDING_FACT, "",
                                    "pid %d (%.*s) may give out the same card: lessord only sees what is used",
                                    (int) pids[0], (int) strcspn(known[i], "*"), known[i]);
}

static void check_accounting(struct doctor *d, const json_t *status)
{
        bool read = json_is_true(json_object_get(status, "accounting"));

        doctor_add(d, "accounting", read ? FINDING_OK : FINDING_FACT,
                   read ? "the kernel's process accounting is read: who ended before anybody looked is known too"
                        : "the kernel's process accounting is not read; nothing here needs it",
                   read ? "" : "where that is wanted: start lessor-accounting as root");
}

void doctor_lessord(struct doctor *d)
{
        struct client client;
        struct client_answer answer;
        char version[64] = "", socket[SOCKET_PATH_MAX], detail[DOCTOR_TEXT_MAX];

        client_init(&client);
        (void) text_escape(client.socket_path, strlen(client.socket_path), socket, sizeof(socket));
        int r = client_call(&client, "GET", "/api/status", NULL, DOCTOR_ASK_MS, &answer, NULL);
        d->answers = r == 0;
        if (r < 0) {
                away(d, &client, r);
        } else if (answer.status != 200) {
                (void) show_field(answer.body, "detail", "it gave no reason", detail, sizeof(detail));
                cannot_ask(d, detail, "see what it says; `lessor status` asks again");
                client_answer_fini(&answer);
        } else {
                d->may_ask = true;
                const json_t *host_pids = json_object_get(answer.body, "host_pids");
                d->host_pids = json_is_true(host_pids);
                (void) show_field(answer.body, "version", "?", version, sizeof(version));
                doctor_addf(d, "lessord", FINDING_OK, "", "answers on %s", socket);
                check_gpu(d, answer.body);
                check_books(d, answer.body);
                check_hands(d, answer.body);
                check_gate(d, answer.body);
                check_process_events(d, answer.body);
                check_managers(d, answer.body);
                check_parking(d, answer.body);
                check_accounting(d, answer.body);
                client_answer_fini(&answer);
                check_enforcer(d, &client);
                check_memory(d, &client);
        }
        check_versions(d, version);
        check_others(d);
}
