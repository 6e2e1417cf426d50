/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into lessord, it lets a test run it out of memory once: the file $FAILING_ALLOC holds two numbers of 64 bits that
 * both sides map, how many allocations until the one that fails (0 = none will), and how many have failed so far.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

static struct order {
        _Atomic uint64_t left, n_failed;
} * order;

__attribute__((constructor)) static void begin(void)
{
        const char *path = getenv("FAILING_ALLOC");
        int fd = path && strcmp(program_invocation_short_name, "lessord") == 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
        void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*order), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (at != MAP_FAILED)
                order = at;
        if (fd >= 0)
                (void) close(fd);
}

static int fails_now(void)
{
        uint64_t left = order ? atomic_load(&order->left) : 0;

        while (left > 0 && !atomic_compare_exchange_weak(&order->left, &left, left - 1))
                ;
        if (left != 1)
                return 0;
        atomic_fetch_add(&order->n_failed, 1);
        errno = ENOMEM;
        return 1;
}

EXPORTED void *malloc(size_t n)
{
        return fails_now() ? NULL : __libc_malloc(n);
}

EXPORTED void *calloc(size_t n, size_t size)
{
        return fails_now() ? NULL : __libc_calloc(n, size);
}

EXPORTED void *realloc(void *p, size_t n)
{
        return fails_now() ? NULL : __libc_realloc(p, n);
}
