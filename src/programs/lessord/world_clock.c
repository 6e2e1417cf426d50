/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "programs/lessord/world_clock.h"

/* A wall clock that jumped is no reason to age everything by decades. */
#define AWAY_MAX_MS (UINT64_C(366) * 86400 * 1000)

/* "BOOT-ID NUMBER\n". A pipe, a link or a folder in its place is no such file, and is not waited for (S12). */
static bool read_offset(const char *path, const char *boot_id, uint64_t *ret)
{
        char text[128];
        struct stat st;
        auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return false;
        ssize_t n = read(fd, text, sizeof(text) - 1);
        if (n <= 0)
                return false;
        text[n] = '\0';
        char *space = strchr(text, ' '), *end = strchr(text, '\n');
        if (!space || !end || end < space)
                return false;
        *space = *end = '\0';
        return boot_id[0] != '\0' && strcmp(text, boot_id) == 0 &&
               parse_u64("offset", space + 1, 0, INT64_MAX, ret, NULL) == 0;
}

static int write_offset(const char *path, const struct world_clock *c, struct error *err)
{
        char text[96], fresh[336];
        int n = snprintf(text, sizeof(text), "%s %" PRIu64 "\n", c->boot_id[0] ? c->boot_id : "-", c->offset_ms);

        (void) snprintf(fresh, sizeof(fresh), "%s.new", path);
        (void) unlink(fresh); /* of an attempt that did not end, or whatever lies there */
        auto_close int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return error_errno(err, errno, "writing %s", fresh);
        if (write(fd, text, (size_t) n) != n || fsync(fd) < 0 || rename(fresh, path) < 0)
                return error_errno(err, errno, "writing %s", path);
        return 0;
}

int world_clock_init(struct world_clock *c, const char *path, const char *boot_id, uint64_t world_ms,
                     uint64_t last_wall_ms, struct error *err)
{
        uint64_t monotonic = clock_now_ms(), wall = clock_now_wall_ms();

        *c = (struct world_clock){ 0 };
        (void) snprintf(c->boot_id, sizeof(c->boot_id), "%s", boot_id);
        if (read_offset(path, boot_id, &c->offset_ms) && monotonic + c->offset_ms >= world_ms)
                return 0;

        uint64_t away = last_wall_ms != 0 ? u64_sub0(wall, last_wall_ms) : 0;
        c->offset_ms = u64_sub0(world_ms + (away < AWAY_MAX_MS ? away : 0), monotonic);
        return write_offset(path, c, err);
}

uint64_t world_clock_now_ms(const struct world_clock *c)
{
        return clock_now_ms() + c->offset_ms;
}

uint64_t world_clock_of_monotonic(const struct world_clock *c, uint64_t monotonic_ms)
{
        return monotonic_ms + c->offset_ms;
}
