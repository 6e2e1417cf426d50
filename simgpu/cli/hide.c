/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/hide.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "card/abi.h"
#include "cli/cli.h"

/* The dynamic symbols of a mapped library, found through its section headers; every offset is checked against the size. */
static size_t spoil(const struct card_file *file, uint8_t *map, size_t size)
{
        Elf64_Ehdr eh;
        memcpy(&eh, map, sizeof eh);
        size_t n = 0;
        for (unsigned s = 0; s < eh.e_shnum && eh.e_shoff + (s + 1) * sizeof(Elf64_Shdr) <= size; s++) {
                Elf64_Shdr symbols, names;
                memcpy(&symbols, map + eh.e_shoff + s * sizeof symbols, sizeof symbols);
                if (symbols.sh_type != SHT_DYNSYM || symbols.sh_link >= eh.e_shnum)
                        continue;
                memcpy(&names, map + eh.e_shoff + symbols.sh_link * sizeof names, sizeof names);
                if (symbols.sh_offset + symbols.sh_size > size || names.sh_offset + names.sh_size > size)
                        continue;
                for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
                        Elf64_Sym symbol;
                        memcpy(&symbol, map + symbols.sh_offset + at, sizeof symbol);
                        if (symbol.st_shndx == SHN_UNDEF || symbol.st_name == 0 || symbol.st_name >= names.sh_size)
                                continue;
                        char *name = (char *) map + names.sh_offset + symbol.st_name;
                        if (!abi_hides(file, name))
                                continue;
                        *name = '~';
                        n++;
                }
        }
        return n;
}

static void copy_and_spoil(const struct card_file *file, const char *from, const char *to)
{
        struct stat st;
        int in = open(from, O_RDONLY | O_CLOEXEC);
        int out = open(to, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
        if (in < 0 || out < 0 || fstat(in, &st) < 0 || ftruncate(out, st.st_size) < 0)
                cli_die(EXIT_FAILED, "copying %s to %s: %s", from, to, strerror(errno));
        size_t size = (size_t) st.st_size;
        uint8_t *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0);
        if (map == MAP_FAILED || size < sizeof(Elf64_Ehdr))
                cli_die(EXIT_FAILED, "mapping %s: %s", to, strerror(errno));
        for (size_t at = 0; at < size;) {
                ssize_t n = read(in, map + at, size - at);
                if (n <= 0)
                        cli_die(EXIT_FAILED, "reading %s: %s", from, strerror(errno));
                at += (size_t) n;
        }
        (void) spoil(file, map, size);
        (void) munmap(map, size);
        (void) close(in);
        (void) close(out);
}

void hide_build(const struct card_file *file, const char *card_path)
{
        static const char *const libs[] = { "libcuda.so.1", "libnvidia-ml.so.1" };
        const char *libdir = cli_libdir(NULL);
        char side[PATH_MAX], from[PATH_MAX * 2], to[PATH_MAX * 2];
        cli_side_dir(side, sizeof side, card_path);
        if (mkdir(side, 0755) < 0 && errno != EEXIST)
                cli_die(EXIT_FAILED, "%s: %s", side, strerror(errno));
        for (size_t i = 0; i < 2; i++) {
                snprintf(from, sizeof from, "%s/%s", libdir, libs[i]);
                snprintf(to, sizeof to, "%s/%s", side, libs[i]);
                copy_and_spoil(file, from, to);
        }
}
