/* SPDX-License-Identifier: Apache-2.0 */
/* `rescue`: what is parked is listed and brought back by the records alone, when no daemon is there to do it. */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/duration.h"
#include "base/escape.h"
#include "base/number.h"
#include "base/size.h"
#include "model/lease.h"
#include "programs/lessor/rescue_back.h"
#include "programs/lessor/rescue_find.h"
#include "programs/lessor/rescue_keeper.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum { SHOWN_MAX = 96, UUID_SHOWN = 12, COMMAND_COLUMNS = 36 };

const struct option rescue_options[] = {
        { "list", NULL, "only say what is parked, the default" },
        { "all", NULL, "bring everything back that can be" },
        { "thaw", "ID|PID", "bring back one lease (L17), or one process (4711)" },
        { "folder", "DIR", "lessord's folder: --dir of it, or /run/lessor", 0, "@files" },
        { "force", NULL, "also while a lessord or lessor-warden answers for the folder" },
        { "json", NULL, "print one object" },
        { 0 },
};

const char rescue_more[] =
        "  lessor rescue                      what is parked, and whose it is\n"
        "  lessor rescue --thaw L17\n"
        "  sudo lessor rescue --all           of the system's lessord\n"
        "\n"
        "For when lessord is gone, or does not start any more: what it parked is written down beside its socket, and "
        "is\n"
        "brought back from there. While lessord answers, `lessor thaw` is the way. man lessor-rescue also tells how to "
        "do\n"
        "it by hand, with nothing of lessor's.\n"
        "\n"
        "Exit status: 0 done, 1 something that was asked for did not come back, 2 wrong use, 125 the records cannot be "
        "read\nor lessor-checkpoint is missing.";

/* What was typed. */
struct typed {
        bool list, all, force, json;
        const char *dir;
        const char *word; /* of --thaw; NULL = none */
        uint64_t lease_id;
        uint32_t pid; /* one of both is 0 */
};

/* ---- words typed ---- */

static int read_whom(const struct verb *verb, struct typed *t)
{
        char shown[SHOWN_MAX];
        uint64_t pid;

        if (t->word[0] == 'L' && lease_id_parse(t->word, &t->lease_id))
                return LESSOR_EXIT_OK;
        if (parse_u64("--thaw", t->word, 1, INT32_MAX, &pid, NULL) < 0)
                return verb_usage_error(verb, "\"%s\" is neither a lease (L17) nor a process (4711)",
                                        text_escape(t->word, strlen(t->word), shown, sizeof(shown)));
        t->pid = (uint32_t) pid;
        return LESSOR_EXIT_OK;
}

/* -1: go on; else the exit code. */
static int read_words(const struct verb *verb, int argc, char **argv, struct typed *t)
{
        struct options o;

        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND)
                        return verb_usage_error(verb,
                                                "it takes no words: whom to bring back is said by --thaw or --all");
                const char *name = option_name(&o, what);
                t->list |= strcmp(name, "list") == 0;
                t->all |= strcmp(name, "all") == 0;
                t->force |= strcmp(name, "force") == 0;
                t->json |= strcmp(name, "json") == 0;
                if (strcmp(name, "thaw") == 0)
                        t->word = o.value;
                else if (strcmp(name, "folder") == 0)
                        t->dir = o.value;
        }
        if (t->list + t->all + (t->word != NULL) > 1)
                return verb_usage_error(verb, "one of --list, --all and --thaw");
        int code = t->word ? read_whom(verb, t) : LESSOR_EXIT_OK;
        return code == LESSOR_EXIT_OK ? -1 : code;
}

/* ---- for people ---- */

static const char *user_of(uint32_t uid, char *buf, size_t size)
{
        const struct passwd *user = getpwuid(uid);

        if (user)
                return text_escape(user->pw_name, strlen(user->pw_name), buf, size);
        (void) snprintf(buf, size, "uid %" PRIu32, uid);
        return buf;
}

static bool is_known(const struct rescue_item *it)
{
        return it->record.step != RECORD_NO_STEP;
}

static const char *since_of(const struct rescue_item *it, char buf[DURATION_TEXT_MAX])
{
        uint64_t now_s = (uint64_t) time(NULL);

        if (it->record.time_s == 0 || it->record.time_s > now_s)
                return "?";
        return duration_text((now_s - it->record.time_s) * 1000, buf);
}

static void print_item(const struct rescue_item *it)
{
        char lease[LEASE_ID_TEXT_MAX] = "-", user[SHOWN_MAX] = "?", uuid[RECORD_UUID_TEXT_SIZE] = "?",
             since[DURATION_TEXT_MAX];
        char bytes[SIZE_TEXT_MAX], cut[SHOW_TEXT_MAX], cut_user[SHOW_TEXT_MAX];

        if (is_known(it)) {
                record_uuid_text(it->record.device_uuid, uuid);
                (void) user_of(it->record.uid, user, sizeof(user));
        }
        if (it->record.lease_id != 0)
                (void) lease_id_text(it->record.lease_id, lease);
        (void) printf("%-8" PRIu32 " %-6s %s %-*.*s %10s  %-13s %-10s %s\n", it->pid, lease,
                      show_cut(user, 10, true, cut_user, sizeof(cut_user)), UUID_SHOWN, UUID_SHOWN, uuid,
                      is_known(it) ? size_text_short(it->record.bytes, bytes) : "?",
                      is_known(it) ? record_step_name(it->record.step) : "?", since_of(it, since),
                      show_cut(it->command[0] != '\0' ? it->command : "-", COMMAND_COLUMNS, false, cut, sizeof(cut)));
}

static void print_folder(const struct rescue *r, const struct rescue_folder *f)
{
        char words[RESCUE_WHY_MAX], shown[SHOW_TEXT_MAX];
        size_t n = 0, n_back = 0;

        for (size_t i = 0; i < r->n_items; i++) {
                n += r->items[i].folder == f;
                n_back += r->items[i].folder == f && r->items[i].standing == RESCUE_PARKED;
        }
        (void) text_escape(f->path, strlen(f->path), shown, sizeof(shown));
        if (n == 0) {
                (void) printf("%s: nothing is parked\n", shown);
                return;
        }
        (void) printf("%s: %zu record%s, of which %zu can be brought back\n", shown, n, n == 1 ? "" : "s", n_back);
        (void) printf("%-8s %-6s %-10s %-*s %10s  %-13s %-10s %s\n", "PID", "LEASE", "WHOSE", UUID_SHOWN, "DEVICE",
                      "MEMORY", "STEP", "SINCE", "COMMAND");
        for (size_t i = 0; i < r->n_items; i++)
                if (r->items[i].folder == f)
                        print_item(&r->items[i]);
        for (size_t i = 0; i < r->n_items; i++)
                if (r->items[i].folder == f && r->items[i].why[0] != '\0')
                        (void) printf("%" PRIu32 ": %s\n", r->items[i].pid, r->items[i].why);
        if (rescue_keeper_words(f, words)[0] != '\0')
                (void) printf("%s\n", words);
        else if (n_back > 0)
                (void) printf("Bring back: `lessor rescue --all`, or one: --thaw L17, --thaw PID\n");
}

static void print_list(const struct rescue *r)
{
        for (size_t i = 0; i < r->n_folders; i++)
                print_folder(r, &r->folders[i]);
}

static void say(const struct rescue_item *it)
{
        char lease[LEASE_ID_TEXT_MAX + 4] = "", id[LEASE_ID_TEXT_MAX], bytes[SIZE_TEXT_MAX], took[DURATION_TEXT_MAX];

        if (it->record.lease_id != 0)
                (void) snprintf(lease, sizeof(lease), " (%s)", lease_id_text(it->record.lease_id, id));
        if (it->end == RESCUE_BACK)
                (void) printf("%" PRIu32 "%s: %s, with %s, after %s\n", it->pid, lease, it->end_words,
                              size_text_short(it->record.bytes, bytes), duration_text(it->took_ms, took));
        else
                (void) fprintf(stderr, "lessor rescue: %" PRIu32 "%s: %s\n", it->pid, lease, it->end_words);
        (void) fflush(stdout);
}

static void say_nothing(const struct rescue_item *it)
{
        (void) it;
}

/* ---- for programs ---- */

static json_t *text_or_null(const char *text)
{
        return text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *u64_if(bool known, uint64_t value)
{
        return known ? json_integer((json_int_t) value) : json_null();
}

static json_t *item_json(const struct rescue_item *it)
{
        const struct record *r = &it->record;
        char lease[LEASE_ID_TEXT_MAX] = "", uuid[RECORD_UUID_TEXT_SIZE] = "";
        bool known = is_known(it);

        if (r->lease_id != 0)
                (void) lease_id_text(r->lease_id, lease);
        if (known)
                record_uuid_text(r->device_uuid, uuid);
        json_t *o = json_pack("{s:i, s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "pid", (int) it->pid,
                              "start_ticks", (json_int_t) it->start_ticks, "folder", it->folder->path, "standing",
                              rescue_standing_name(it->standing), "why", text_or_null(it->why), "lease",
                              text_or_null(lease), "uid", u64_if(known, r->uid), "device", text_or_null(uuid), "bytes",
                              u64_if(known, r->bytes), "host_bytes", u64_if(known, r->host_bytes), "step",
                              known ? json_string(record_step_name(r->step)) : json_null(), "since_s",
                              u64_if(known, r->time_s), "command", text_or_null(it->command));
        if (o && it->wanted)
                (void) json_object_set_new(o, "rescue",
                                           json_pack("{s:s, s:o, s:I}", "result", rescue_end_name(it->end), "words",
                                                     text_or_null(it->end_words), "took_ms", (json_int_t) it->took_ms));
        return o;
}

static void print_json(const struct rescue *r)
{
        static const char *const keepers[] = {
                [RESCUE_KEEPER_NONE] = "", [RESCUE_KEEPER_LESSORD] = "lessord", [RESCUE_KEEPER_WARDEN] = "lessor-warden"
        };
        json_t *folders = json_array(), *processes = json_array();

        for (size_t i = 0; i < r->n_folders; i++)
                (void) json_array_append_new(folders, json_pack("{s:s, s:b, s:o}", "folder", r->folders[i].path,
                                                                "exists", (int) (r->folders[i].fd >= 0), "kept_by",
                                                                text_or_null(keepers[r->folders[i].keeper])));
        for (size_t i = 0; i < r->n_items; i++)
                (void) json_array_append_new(processes, item_json(&r->items[i]));
        json_t *whole = json_pack("{s:o, s:o}", "folders", folders, "processes", processes);
        if (whole)
                show_json(whole);
        json_decref(whole);
}

/* ---- whom to bring back ---- */

static bool is_meant(const struct typed *t, const struct rescue_item *it)
{
        return t->all || (t->pid != 0 && it->pid == t->pid) || (t->lease_id != 0 && it->record.lease_id == t->lease_id);
}

/* Whoever can be; the others that were meant by name are said. Returns the exit code as far as it is known. */
static int choose(const struct typed *t, struct rescue *r)
{
        const struct rescue_folder *folder = NULL;
        int code = LESSOR_EXIT_OK;
        size_t n = 0;

        for (size_t i = 0; i < r->n_items; i++) {
                struct rescue_item *it = &r->items[i];
                /* What is of the past is nobody's loss when everything is meant. */
                bool past = it->standing == RESCUE_BOOT || it->standing == RESCUE_GONE || it->standing == RESCUE_OTHER;
                if (!is_meant(t, it) || it->standing == RESCUE_RUNS || (t->all && past))
                        continue;
                n++;
                if (!t->all && folder && folder != it->folder) {
                        (void) fprintf(stderr,
                                       "lessor rescue: there are records of %s in %s and in %s: name one by --folder\n",
                                       t->word, folder->path, it->folder->path);
                        return LESSOR_EXIT_REFUSED;
                }
                folder = it->folder;
                it->wanted = it->standing == RESCUE_PARKED;
                if (it->wanted)
                        continue;
                (void) fprintf(stderr, "lessor rescue: %" PRIu32 ": %s\n", it->pid, it->why);
                code = LESSOR_EXIT_REFUSED;
        }
        if (n == 0 && !t->all) {
                (void) fprintf(stderr, "lessor rescue: nothing is parked that is %s (`lessor rescue` lists what is)\n",
                               t->word);
                return LESSOR_EXIT_REFUSED;
        }
        return code;
}

/* A daemon that answers does it better: it knows who else waits for that memory. */
static bool is_kept(const struct rescue *r)
{
        char words[RESCUE_WHY_MAX];
        bool kept = false;

        for (size_t i = 0; i < r->n_folders; i++) {
                const struct rescue_folder *f = &r->folders[i];
                bool any = false;
                for (size_t k = 0; k < r->n_items; k++)
                        any |= r->items[k].folder == f && r->items[k].wanted;
                if (!any || f->keeper == RESCUE_KEEPER_NONE)
                        continue;
                (void) fprintf(stderr, "lessor rescue: %s: %s\n", f->path, rescue_keeper_words(f, words));
                kept = true;
        }
        return kept;
}

/* One process of a program with several was named: it may wait for the others for ever. */
static void say_left(const struct typed *t, const struct rescue *r)
{
        char lease[LEASE_ID_TEXT_MAX];
        uint64_t lease_id = 0;
        size_t n = 0;

        for (size_t i = 0; i < r->n_items; i++)
                if (r->items[i].wanted && r->items[i].pid == t->pid)
                        lease_id = r->items[i].record.lease_id;
        for (size_t i = 0; i < r->n_items; i++)
                n += !r->items[i].wanted && r->items[i].standing == RESCUE_PARKED &&
                     r->items[i].record.lease_id == lease_id;
        if (lease_id != 0 && n > 0)
                (void) fprintf(stderr, "lessor rescue: %zu more of %s are still parked: `lessor rescue --thaw %s`\n", n,
                               lease_id_text(lease_id, lease), lease);
}

static int bring_back(const struct typed *t, struct rescue *r)
{
        struct error err = { 0 };
        int code = choose(t, r);
        bool any = false;

        for (size_t i = 0; i < r->n_items; i++)
                any |= r->items[i].wanted;
        if (!any && code == LESSOR_EXIT_OK && !t->json)
                (void) printf("nothing is parked\n");
        if (!any)
                return code;
        if (!t->force && is_kept(r))
                return LESSOR_EXIT_REFUSED;
        int e = rescue_bring_back(r, t->json ? say_nothing : say, &err);
        if (e < 0) {
                (void) fprintf(stderr, "lessor rescue: %s\n", err.msg);
                return LESSOR_EXIT_OWN;
        }
        if (t->pid != 0)
                say_left(t, r);
        for (size_t i = 0; i < r->n_items; i++)
                if (r->items[i].wanted && r->items[i].end != RESCUE_BACK)
                        code = LESSOR_EXIT_REFUSED;
        return code;
}

int verb_rescue_main(const struct verb *verb, int argc, char **argv)
{
        static struct rescue rescue;
        struct typed typed = { 0 };
        struct error err = { 0 };

        int code = read_words(verb, argc, argv, &typed);
        if (code >= 0)
                return code;
        if (rescue_find(&rescue, typed.dir, &err) < 0) {
                (void) fprintf(stderr, "lessor rescue: %s\n", err.msg);
                rescue_free(&rescue);
                return LESSOR_EXIT_OWN;
        }
        code = typed.all || typed.word ? bring_back(&typed, &rescue) : LESSOR_EXIT_OK;
        if (typed.json)
                print_json(&rescue);
        else if (!typed.all && !typed.word)
                print_list(&rescue);
        rescue_free(&rescue);
        return code;
}
