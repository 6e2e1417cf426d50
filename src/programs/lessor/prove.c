/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/prove.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/number.h"
#include "base/size.h"
#include "client/client.h"
#include "programs/lessor/prove_child.h"
#include "programs/lessor/rescue_hands.h"
#include "programs/lessor/rescue_room.h"
#include "programs/lessor/rescue_words.h"
#include "programs/lessor/show.h"
#include "wire/parked.h"

enum {
        START_MS = 60000, /* the first context on a machine without persistence mode takes its time */
        STEP_MS = 20000,  /* for 64 MiB; a call that takes longer is left alone, not interrupted */
        LOCK_MS = 10000,
        SETTLE_MS = 10000,
        SETTLE_EVERY_MS = 20,
        END_MS = 10000,
        LEASE_BYTES = 1 << 30, /* 64 MiB and what a context costs on today's devices */
};

struct prove {
        struct doctor *d;
        char dir[PATH_MAX / 2], path[PATH_MAX]; /* ours alone; and the folder of records in it */
        int parked;                             /* that, open; -1 = not */
        char lease[64], device[128];            /* "" = none; any */
        struct prove_child child;
        char uuid[RECORD_UUID_TEXT_SIZE];
        uint64_t bytes;
        struct rescue_hands hands;
        bool hands_open, left_alone; /* a call has not come back: whoever it works on is not touched */
};

/* ---- what is said ---- */

static const char other_ways[] = "none is known here; other ways out work without it (--yield-by cooperate,restart)";

static void good(struct prove *p, const char *step, const char *text)
{
        doctor_add(p->d, step, FINDING_OK, text, "");
}

/* The trial ends with this. @tried: it was begun and went wrong, which is not the same as what could not be tried. */
static void ended(struct prove *p, const char *step, bool tried, const char *text, const char *cure)
{
        doctor_add(p->d, step, tried ? FINDING_BAD : FINDING_WARN, text, cure);
        p->d->proof = tried ? PROOF_BAD : PROOF_BLOCKED;
        (void) snprintf(p->d->proof_words, sizeof(p->d->proof_words), "a trial did not come back (%s): %.300s", step,
                        text);
}

static const char *cure_of(const struct warden_answer *a)
{
        if (a->why == WARDEN_WHY_CANNOT_INIT || (a->why == WARDEN_WHY_DRIVER && a->driver_code == 3))
                return "switch persistence mode on: `sudo nvidia-smi -pm 1`";
        if (a->why == WARDEN_WHY_CANNOT_PERMITTED)
                return "`sudo nvidia-smi -pm 1` and `sudo sysctl kernel.yama.ptrace_scope=0`, or lessord for the whole "
                       "machine";
        if (a->why == WARDEN_WHY_CANNOT_DRIVER || a->why == WARDEN_WHY_CANNOT_LIBRARY)
                return "install driver 570 or newer";
        if (a->why == WARDEN_WHY_HEADROOM)
                return "try again when less of the device is used";
        return other_ways;
}

/* ---- a place and a lease of its own ---- */

static bool make_folder(struct prove *p)
{
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        const char *base = runtime && runtime[0] == '/' && access(runtime, W_OK) == 0 ? runtime : P_tmpdir;
        struct error err = { 0 };

        (void) snprintf(p->dir, sizeof(p->dir), "%s/lessor-prove-XXXXXX", base);
        int r = mkdtemp(p->dir) ? 0 : error_errno(&err, errno, "making a folder in %s", base);
        if (r < 0)
                p->dir[0] = '\0';
        (void) snprintf(p->path, sizeof(p->path), "%s/parked", p->dir);
        if (r == 0)
                r = parked_open(p->path, (gid_t) -1, &p->parked, &err);
        if (r < 0)
                ended(p, "prove: start", false, err.msg, "make room there, or name another folder in XDG_RUNTIME_DIR");
        return r == 0;
}

static void remove_folder(const struct prove *p)
{
        char name[RECORD_NAME_SIZE];

        if (p->dir[0] == '\0')
                return;
        if (p->parked >= 0) {
                record_name((uint32_t) p->child.pid, p->child.start_ticks, name);
                (void) unlinkat(p->parked, name, 0);
                (void) unlinkat(p->parked, "lock", 0);
        }
        (void) rmdir(p->path);
        (void) rmdir(p->dir);
}

static bool call(const char *method, const char *path, const json_t *body, struct client_answer *ret)
{
        struct client client;

        client_init(&client);
        return client_call(&client, method, path, body, CLIENT_CALL_MS, ret, NULL) == 0;
}

/* False: lessord has no room for it now, and that is said. Without a lessord there is nobody to ask. */
static bool take_lease(struct prove *p)
{
        struct client_answer answer = { 0 };
        char detail[DOCTOR_TEXT_MAX / 2];

        if (!p->d->may_ask || !p->d->grants)
                return true;
        json_t *body = json_pack("{s:I, s:s, s:s, s:{s:s, s:i}}", "bytes", (json_int_t) LEASE_BYTES, "mode", "now",
                                 "name", "doctor --prove", "bind", "to", "process", "pid", (int) getpid());
        bool said = body && call("POST", "/api/leases", body, &answer);
        json_decref(body);
        bool granted = said && answer.status == 201;
        if (granted) {
                (void) snprintf(p->lease, sizeof(p->lease), "%s", json_text(answer.body, "id", ""));
                (void) snprintf(p->device, sizeof(p->device), "%s", json_text(answer.body, "device", ""));
        } else {
                (void) show_field(answer.body, "detail", "lessord does not answer", detail, sizeof(detail));
                ended(p, "prove: start", false, detail, "try again when there is 1 GiB that is promised to nobody");
        }
        if (said)
                client_answer_fini(&answer);
        return granted;
}

static void give_lease_back(const struct prove *p)
{
        struct client_answer answer = { 0 };
        char path[sizeof(p->lease) + 16];

        (void) snprintf(path, sizeof(path), "/api/leases/%s", p->lease);
        if (p->lease[0] != '\0' && call("DELETE", path, NULL, &answer))
                client_answer_fini(&answer);
}

/* ---- the throw-away process ---- */

/* "cannot cuMemAlloc 2", "failed …": in words. */
static void explain(char *line, char text[DOCTOR_TEXT_MAX])
{
        char *save = NULL;
        const char *what = strtok_r(line, " ", &save), *name = strtok_r(NULL, " ", &save),
                   *number = strtok_r(NULL, " ", &save);
        uint64_t code = 0;

        if (!what || !name || !number || parse_u64("code", number, 0, UINT32_MAX, &code, NULL) < 0)
                (void) snprintf(text, DOCTOR_TEXT_MAX, "lessor-prove ended without a word that makes sense");
        else if (code == 0)
                (void) snprintf(text, DOCTOR_TEXT_MAX, "%s cannot be had", name);
        else
                (void) snprintf(text, DOCTOR_TEXT_MAX, "%s: %s (CUDA %" PRIu64 ")", name,
                                rescue_code_words((uint32_t) code), code);
}

/* "ready GPU-… BYTES" */
static bool take_ready(struct prove *p, char *line)
{
        static const char ready[] = "ready ";
        char *blank = strrchr(line, ' ');
        uint8_t uuid[WARDEN_UUID_SIZE];

        if (strncmp(line, ready, sizeof(ready) - 1) != 0 || !blank ||
            (size_t) (blank - line) != sizeof(ready) - 1 + sizeof(p->uuid) - 1)
                return false;
        *blank = '\0';
        (void) snprintf(p->uuid, sizeof(p->uuid), "%.*s", (int) sizeof(p->uuid) - 1, line + sizeof(ready) - 1);
        return record_uuid_parse(p->uuid, uuid) &&
               parse_u64("bytes", blank + 1, 1, SIZE_BYTES_MAX, &p->bytes, NULL) == 0;
}

static bool start(struct prove *p)
{
        char line[PROVE_LINE_MAX], text[DOCTOR_TEXT_MAX], bytes[SIZE_TEXT_MAX];
        struct error err = { 0 };

        p->hands_open = true;
        if (rescue_hands_open(&p->hands, p->parked, &err) < 0 || prove_child_start(&p->child, p->device, &err) < 0) {
                ended(p, "prove: start", false, err.msg, "install all of lessor, of one version");
                return false;
        }
        int r = prove_child_hear(&p->child, START_MS, line);
        if (r == 0 && take_ready(p, line)) {
                (void) snprintf(text, sizeof(text),
                                "a process of our own (pid %d) has %s on %s, with a pattern in them%s%s",
                                (int) p->child.pid, size_text_short(p->bytes, bytes), p->uuid,
                                p->lease[0] != '\0' ? ", under lease " : "", p->lease);
                good(p, "prove: start", text);
                return true;
        }
        if (r == 0)
                explain(line, text);
        else
                (void) snprintf(text, sizeof(text), "%s",
                                r == -ETIMEDOUT ? "the driver gave it no memory within a minute" : "lessor-prove died");
        ended(p, "prove: start", false, text,
              "look at the checks of the driver above; try again when the device has room");
        return false;
}

/* ---- the steps ---- */

static struct warden_order order_for(const struct prove *p, enum warden_verb verb)
{
        struct warden_order order = { .verb = verb,
                                      .pid = (uint32_t) p->child.pid,
                                      .start_ticks = p->child.start_ticks,
                                      .owner_uid = getuid(),
                                      .bytes = p->bytes,
                                      .deadline_ms = LOCK_MS };

        (void) record_uuid_parse(p->uuid, order.device_uuid);
        return order;
}

/* False: it did not come about; @ret says why unless nothing could be ordered, which is said. */
static bool order(struct prove *p, const char *step, const struct warden_order *what, struct warden_answer *ret)
{
        char text[DOCTOR_TEXT_MAX], words[RESCUE_WORDS_MAX], cure[DOCTOR_TEXT_MAX];
        struct error err = { 0 };
        size_t slot;

        if (rescue_hands_begin(&p->hands, what, &slot, &err) < 0) {
                ended(p, step, false, err.msg, "install all of lessor, of one version");
                return false;
        }
        if (rescue_hands_wait(&p->hands, slot, STEP_MS, ret) < 0) {
                p->left_alone = true;
                (void) snprintf(text, sizeof(text), "the driver has not come back within 20 s; pid %d is left alone",
                                (int) p->child.pid);
                (void) snprintf(cure, sizeof(cure),
                                "look at dmesg for NVRM and Xid. Its record: `lessor rescue --folder %.300s`", p->dir);
                ended(p, step, true, text, cure);
                return false;
        }
        if (ret->result == WARDEN_DONE)
                return true;
        (void) snprintf(text, sizeof(text), "%s: %s",
                        ret->result == WARDEN_FAILED ? "tried, and went wrong" : "could not be done",
                        rescue_answer_words(ret, words));
        ended(p, step, ret->result == WARDEN_FAILED, text, cure_of(ret));
        return false;
}

static bool step(struct prove *p, const char *name, enum warden_verb verb, uint64_t used_at_most_bytes)
{
        char text[DOCTOR_TEXT_MAX], grew[SIZE_TEXT_MAX], took[DURATION_TEXT_MAX];
        struct warden_order what = order_for(p, verb);
        struct warden_answer answer = { 0 };

        what.used_at_most_bytes = used_at_most_bytes;
        if (!order(p, name, &what, &answer))
                return false;
        (void) duration_text(answer.duration_ms, took);
        if (verb == WARDEN_CHECKPOINT)
                (void) snprintf(text, sizeof(text), "works, in %s; its host memory grew by %s", took,
                                size_text_short(answer.host_bytes, grew));
        else if (verb == WARDEN_STOP)
                (void) snprintf(text, sizeof(text), "works: it stands still");
        else
                (void) snprintf(text, sizeof(text), "works, in %s", took);
        good(p, name, text);
        return true;
}

/* What the driver says it did, seen on the device; a driver that lists nobody proves nothing either way. */
static bool settle(struct prove *p, bool was_listed)
{
        uint64_t since_ms = clock_now_ms();
        char text[DOCTOR_TEXT_MAX], took[DURATION_TEXT_MAX];
        struct room room;

        if (!was_listed) {
                doctor_add(p->d, "prove: settle", FINDING_FACT,
                           "the driver lists no process here, so it is not seen that it left", "");
                return true;
        }
        for (;;) {
                int r = room_look(p->uuid, (uint32_t) p->child.pid, &room, NULL);
                uint64_t ms = clock_now_ms() - since_ms;
                if (r == 0 && !room.listed) {
                        (void) snprintf(text, sizeof(text), "works: the device shows that its memory is free, after %s",
                                        duration_text(ms, took));
                        good(p, "prove: settle", text);
                        return true;
                }
                if (ms >= SETTLE_MS) {
                        ended(p, "prove: settle", true,
                              r < 0 ? "the device cannot be read any more"
                                    : "the driver says that it is done, and the device still has its memory",
                              other_ways);
                        return false;
                }
                (void) poll(NULL, 0, SETTLE_EVERY_MS);
        }
}

static void judge_memory(struct prove *p)
{
        char line[PROVE_LINE_MAX], text[DOCTOR_TEXT_MAX];

        int r = prove_child_ask(&p->child);
        if (r == 0)
                r = prove_child_hear(&p->child, STEP_MS, line);
        if (r == 0 && strcmp(line, "same") == 0) {
                good(p, "prove: memory", "it runs on, and every byte is as it was");
                p->d->proof = PROOF_GOOD;
                return;
        }
        if (r == 0 && strncmp(line, "different ", 10) == 0)
                (void) snprintf(text, sizeof(text), "what came back is not what was there, from byte %.40s on",
                                line + 10);
        else if (r == 0)
                explain(line, text);
        else
                (void) snprintf(text, sizeof(text), "%s",
                                r == -ETIMEDOUT ? "it does not get on, although it is unlocked" : "it died");
        ended(p, "prove: memory", true, text, other_ways);
}

static void try_it(struct prove *p)
{
        struct room before;
        struct error err = { 0 };

        if (room_look(p->uuid, (uint32_t) p->child.pid, &before, &err) < 0) {
                ended(p, "prove: start", false, err.msg, "look at the checks of the driver above");
                return;
        }
        /* Its own bytes are free again by then; somebody else may not have taken them. */
        uint64_t limit_bytes = u64_sub0(before.total_bytes, room_needed_bytes(&before, p->bytes));
        if (step(p, "prove: lock", WARDEN_LOCK, 0) && step(p, "prove: checkpoint", WARDEN_CHECKPOINT, 0) &&
            settle(p, before.listed) && step(p, "prove: stop", WARDEN_STOP, 0) &&
            step(p, "prove: restore", WARDEN_RESTORE, limit_bytes) && step(p, "prove: unlock", WARDEN_UNLOCK, 0))
                judge_memory(p);
}

/* ---- the end of it ---- */

static bool quietly(struct prove *p, enum warden_verb verb)
{
        struct warden_order what = order_for(p, verb);
        struct warden_answer answer = { 0 };
        size_t slot;

        if (rescue_hands_begin(&p->hands, &what, &slot, NULL) < 0)
                return false;
        p->left_alone = rescue_hands_wait(&p->hands, slot, STEP_MS, &answer) < 0;
        return !p->left_alone && answer.result == WARDEN_DONE;
}

/* From wherever it stands to its end, in the way that drivers were not seen to hang over. False: it has to stay. */
static bool end_child(struct prove *p)
{
        struct record record;

        if (p->child.pidfd < 0)
                return true;
        if (p->left_alone) {
                (void) prove_child_leave(&p->child, 0);
                return false;
        }
        if (parked_read(p->parked, (uint32_t) p->child.pid, p->child.start_ticks, &record, NULL) < 0 ||
            record.step == RECORD_RESTORED)
                return prove_child_leave(&p->child, END_MS);
        if (record.step == RECORD_LOCKED && !record.restored)
                return quietly(p, WARDEN_UNLOCK) && prove_child_leave(&p->child, END_MS);
        if (record.step == RECORD_LOCKED && !quietly(p, WARDEN_CHECKPOINT))
                return false;
        if (record_step_is_on_its_way(record.step) || (record.step == RECORD_FAILED && record.restored))
                return false;
        return prove_child_kill(&p->child, END_MS);
}

void doctor_prove(struct doctor *d)
{
        static struct prove p;

        p = (struct prove){ .d = d, .parked = -1, .child = { .pidfd = -1, .sock = -1 } };
        d->proof = PROOF_BLOCKED;
        if (make_folder(&p) && take_lease(&p) && start(&p))
                try_it(&p);
        if (end_child(&p))
                remove_folder(&p);
        else
                doctor_addf(d, "prove: end", FINDING_WARN,
                            "`lessor rescue --folder DIR` tells how it stands; it holds little",
                            "pid %d is left as it is, its record in %.300s", (int) p.child.pid, p.dir);
        if (p.hands_open)
                rescue_hands_close(&p.hands);
        closep(&p.parked);
        give_lease_back(&p);
}
