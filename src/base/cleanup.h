/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Scope-bound ownership: `auto_free char *p`, `auto_close int fd`, and take_fd to hand on and disarm. */
#include <stdlib.h>
#include <unistd.h>

#define auto_call(fn) __attribute__((__cleanup__(fn)))
#define DEFINE_CLEANUP(T, fn)                                                                                          \
        static inline void fn##p(T *p)                                                                                 \
        {                                                                                                              \
                if (*p)                                                                                                \
                        fn(*p);                                                                                        \
        }

static inline void freep(void *p)
{
        free(*(void **) p);
}

static inline void closep(int *fd)
{
        if (*fd >= 0)
                (void) close(*fd);
}

#define auto_free auto_call(freep)
#define auto_close auto_call(closep)
#define take_fd(fd)                                                                                                    \
        ({                                                                                                             \
                int *fdp_ = &(fd);                                                                                     \
                int v_ = *fdp_;                                                                                        \
                *fdp_ = -1;                                                                                            \
                v_;                                                                                                    \
        })
