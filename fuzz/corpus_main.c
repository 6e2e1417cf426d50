/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over its corpus, as an ordinary test: each seed as it is and, where it is short, each of its
 * beginnings (a message cut off in the middle is the commonest hostile input). Folders that do not exist are passed over;
 * no seed at all is a failure.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CUT_MAX = 512, SEED_MAX = 16 << 20 };

static const char *running = ""; /* the seed in hand, for the last words */

static void last_words(void)
{
        if (running[0] != '\0')
                fprintf(stderr, "while running %s\n", running);
}

/* In memory of exactly that size, so that a sanitizer sees the first byte too far. */
static void run_bytes(const uint8_t *data, size_t size)
{
        uint8_t *copy = malloc(size > 0 ? size : 1);
        if (!copy)
                abort();
        if (size > 0)
                memcpy(copy, data, size);
        (void) LLVMFuzzerTestOneInput(copy, size);
        free(copy);
}

static int run_file(const char *path)
{
        FILE *file = fopen(path, "rbe");
        if (!file) {
                fprintf(stderr, "cannot read %s: %s\n", path, strerror(errno));
                return -1;
        }
        uint8_t *data = malloc(SEED_MAX);
        if (!data)
                abort();
        size_t size = fread(data, 1, SEED_MAX, file);
        (void) fclose(file);

        running = path;
        run_bytes(data, size);
        for (size_t cut = 0; size <= CUT_MAX && cut < size; cut++)
                run_bytes(data, cut);
        running = "";
        free(data);
        return 0;
}

/* The number of seeds in the folder; -1 = one could not be read. */
static int run_folder(const char *folder)
{
        struct dirent **names;
        int n_seeds = 0, n = scandir(folder, &names, NULL, alphasort);
        if (n < 0)
                return errno == ENOENT ? 0 : -1;
        for (int i = 0; i < n; i++) {
                char path[4096];
                if (names[i]->d_name[0] != '.' && n_seeds >= 0) {
                        (void) snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
                        n_seeds = run_file(path) < 0 ? -1 : n_seeds + 1;
                }
                free(names[i]);
        }
        free(names);
        return n_seeds;
}

int main(int argc, char **argv)
{
        int n_seeds = 0;
        (void) atexit(last_words);
        run_bytes(NULL, 0);
        for (int i = 1; i < argc; i++) {
                int n = run_folder(argv[i]);
                if (n < 0)
                        return 1;
                n_seeds += n;
        }
        printf("%d seeds\n", n_seeds);
        return n_seeds > 0 ? 0 : 1;
}
