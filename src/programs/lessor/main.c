/* SPDX-License-Identifier: Apache-2.0 */
/* lessor: the verbs are in verb.c, one file each; here only the choice between them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/escape.h"
#include "programs/lessor/child.h"
#include "programs/lessor/complete.h"
#include "programs/lessor/verb.h"

enum { SHOWN_MAX = 64, VERBS_MAX = 64 };

static const char by_task[] =
        "lessor - lease GPU memory, so that programs share a card without running into each other\n"
        "\n"
        "I want to …                                  → \n"
        "  run a program that needs 12 GiB            → lessor run --vram 12G -- COMMAND\n"
        "  … but not wait longer than 10 minutes      → lessor run --vram 12G --wait 10m -- COMMAND\n"
        "  … and let others plan around it            → lessor run --vram 12G --for 2h -- COMMAND\n"
        "  … and let it give way to others            → lessor run --vram 12G --filler -- COMMAND\n"
        "  hold memory for the rest of a script       → id=$(lessor lease acquire --vram 12G --pid $$)\n"
        "  give it back                               → lessor lease release \"$id\"\n"
        "  see who has the card, and who waits        → lessor status\n"
        "  know who took memory without asking        → lessor audit\n"
        "  know why my lease waits, or why it ended   → lessor why L17\n"
        "  give it more time, another rank            → lessor extend L17 30m, lessor renice batch L17\n"
        "  put a running program under a lease        → lessor adopt 4711\n"
        "  know beforehand whether it would start     → lessor plan --vram 12G\n"
        "  give its memory to others for a while      → lessor park L17, lessor thaw L17\n"
        "  make room for something of another kind    → lessor clear --vram 16G, lessor resume\n"
        "  have memory tonight, for certain           → lessor book --at 22:00 --for 3h --vram 24G\n"
        "  watch what happens                         → lessor status --watch, lessor events --follow\n"
        "  know why nothing works here                → lessor doctor\n"
        "  bring back what is parked, without lessord → lessor rescue\n"
        "  try another lessord.conf on what happened  → lessor replay --with ./lessord.conf\n"
        "  read figures in a program                  → lessor devices --json\n"
        "\n";

static void print_verbs(FILE *to)
{
        (void) fprintf(to, "Verbs (each has --help):\n");
        for (const struct verb *verb = verbs; verb->name; verb++)
                (void) fprintf(to, "  %-10s %s\n", verb->name, verb->brief);
        (void) fprintf(
                to,
                "\nExit status: 0 done · 1 refused · 2 wrong use · 69 lessord is away · of `run`: the command's own.\n"
                "LESSOR_SOCKET names the socket of a lessord other than this machine's.\n");
}

int verb_version_main(const struct verb *verb, int argc, char **argv)
{
        struct options o;
        options_init(&o, verb, argc, argv);
        int what = options_next(&o);
        if (what == OPTIONS_HELP)
                return verb_print_help(verb);
        if (what != OPTIONS_END)
                return what == OPTIONS_WRONG ? LESSOR_EXIT_USAGE : verb_usage_error(verb, "it takes no words");
        (void) printf("lessor %s\n", LESSOR_VERSION);
        return LESSOR_EXIT_OK;
}

static int unknown_verb(const char *word, const char *where, const struct verb *table)
{
        const char *names[VERBS_MAX + 1] = { 0 };
        char shown[SHOWN_MAX];
        size_t n = 0, skip = strlen(where);

        for (const struct verb *verb = table; verb->name && n < VERBS_MAX; verb++)
                names[n++] = verb->name + skip;
        const char *near = nearest_word(word, names);
        (void) text_escape(word, strlen(word), shown, sizeof(shown));
        (void) fprintf(stderr, "lessor: there is no verb \"%s%s\".", where, shown);
        if (near)
                (void) fprintf(stderr, " Did you mean `lessor %s%s`?", where, near);
        (void) fprintf(stderr, "\n`lessor help` lists the verbs.\n");
        return LESSOR_EXIT_USAGE;
}

/* "show" of `lease`, whose rows are called "lease show". */
static const struct verb *find_part(const struct verb *group, const char *word)
{
        char name[SHOWN_MAX];
        (void) snprintf(name, sizeof(name), "%s %s", group->name, word);
        return verb_find(group->sub, name);
}

static int unknown_part(const struct verb *group, const char *word)
{
        char where[SHOWN_MAX];
        (void) snprintf(where, sizeof(where), "%s ", group->name);
        return unknown_verb(word, where, group->sub);
}

int verb_help_main(const struct verb *verb, int argc, char **argv)
{
        struct options o;
        options_init(&o, verb, argc, argv);
        int what = options_next(&o);
        if (what == OPTIONS_HELP)
                return verb_print_help(verb);
        if (what == OPTIONS_WRONG)
                return LESSOR_EXIT_USAGE;
        if (what == OPTIONS_END) {
                (void) fputs(by_task, stdout);
                print_verbs(stdout);
                return LESSOR_EXIT_OK;
        }
        const struct verb *about = verb_find(verbs, o.value);
        if (!about)
                return unknown_verb(o.value, "", verbs);
        if (about->sub && options_next(&o) == OPTIONS_OPERAND) {
                const struct verb *part = find_part(about, o.value);
                return part ? verb_print_help(part) : unknown_part(about, o.value);
        }
        return verb_print_help(about);
}

int verb_group_main(const struct verb *verb, int argc, char **argv)
{
        if (argc < 2)
                return verb_usage_error(verb, "which one? lessor %s %s", verb->name, verb->synopsis);
        if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
                return verb_print_help(verb);
        const struct verb *part = find_part(verb, argv[1]);
        return part ? part->main(part, argc - 1, argv + 1) : unknown_part(verb, argv[1]);
}

/* A caller that closed 0, 1 or 2 gets them closed again in the command: what we put there is CLOEXEC. */
static void occupy_standard_descriptors(void)
{
        int fd;
        do
                fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        while (fd >= 0 && fd <= STDERR_FILENO);
        if (fd >= 0)
                (void) close(fd);
}

int main(int argc, char **argv)
{
        occupy_standard_descriptors();
        if (argc < 2) {
                (void) fputs(by_task, stdout);
                print_verbs(stdout);
                return LESSOR_EXIT_OK;
        }
        const char *word = argv[1];
        if (strcmp(word, CHILD_IN_SCOPE_WORD) == 0)
                return child_in_scope_main(argc - 1, argv + 1);
        if (strcmp(word, COMPLETE_WORD) == 0)
                return complete_main(argc - 1, argv + 1);
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
                word = "help";
        if (strcmp(word, "--version") == 0)
                word = "version";
        const struct verb *verb = verb_find(verbs, word);
        if (!verb)
                return unknown_verb(word, "", verbs);
        int code = verb->main(verb, argc - 1, argv + 1);
        if (fflush(stdout) != 0 || ferror(stdout)) {
                (void) fprintf(stderr, "lessor: writing to standard output failed\n");
                return code == 0 ? LESSOR_EXIT_REFUSED : code;
        }
        return code;
}
