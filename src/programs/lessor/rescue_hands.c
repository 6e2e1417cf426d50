/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/rescue_hands.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "hands/checkpointer.h"
#include "hands/target.h"
#include "programs/lessor/lessord.h"

/*
 * Its log is the warden's; here each answer is put into words. And a helper that outlives us must not hold our outputs open: whoever
 * reads them would wait for the driver.
 */
static int start_quietly(const char *program, int book, int parked, int *ret_sock, struct error *err)
{
        auto_close int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        auto_close int log = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        auto_close int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        if (out < 0 || log < 0 || null < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
                return error_errno(err, errno, "setting the outputs of lessor-checkpoint aside");
        int r = checkpointer_start(program, book, parked, geteuid() == 0, ret_sock, err);
        (void) dup2(out, STDOUT_FILENO);
        (void) dup2(log, STDERR_FILENO);
        return r;
}

int rescue_hands_open(struct rescue_hands *h, int parked, struct error *err)
{
        char program[PATH_MAX];

        memset(h, 0, sizeof(*h));
        h->sock = h->book.folder = h->book.grace_fd = h->book.lock_fd = -1;
        for (size_t i = 0; i < BOOK_HELPERS_MAX; i++)
                h->helpers[i] = -1;
        h->book.helpers_fd = memfd_create("lessor-rescue", MFD_CLOEXEC);
        if (h->book.helpers_fd < 0)
                return error_errno(err, errno, "making a book for the helpers");
        if (!lessord_find_helper("lessor-checkpoint", program, sizeof(program)))
                return error_set(err, ENOENT,
                                 "there is no lessor-checkpoint beside lessor, which makes the calls of the driver; "
                                 "install it, of the same version");
        return start_quietly(program, h->book.helpers_fd, parked, &h->sock, err);
}

void rescue_hands_close(struct rescue_hands *h)
{
        for (size_t i = 0; i < BOOK_HELPERS_MAX; i++)
                closep(&h->helpers[i]);
        closep(&h->sock);
        closep(&h->book.helpers_fd);
        h->sock = -1;
}

/* The helper waits until it is told to go on, so nobody else can have its number yet. */
static int hold_helper(struct rescue_hands *h, size_t i, uint32_t pid, struct error *err)
{
        struct book_slot *slot = &h->book.slots[i];
        struct target t;

        target_open(pid, &t, &h->helpers[i]);
        if (h->helpers[i] < 0 || !t.seen)
                return error_set(err, ESRCH, "the helper of lessor-checkpoint ended before it began");
        slot->state = BOOK_RUNNING;
        slot->helper_pid = pid;
        slot->helper_start_ticks = t.start_ticks;
        int r = book_store(&h->book, i);
        return r < 0 ? error_errno(err, -r, "writing the order down") : 0;
}

int rescue_hands_begin(struct rescue_hands *h, const struct warden_order *order, size_t *ret_slot, struct error *err)
{
        size_t i = 0;

        while (i < BOOK_HELPERS_MAX && h->book.slots[i].state != BOOK_FREE)
                i++;
        if (i == BOOK_HELPERS_MAX)
                return error_set(err, EBUSY, "%d calls of the driver have not come back yet", BOOK_HELPERS_MAX);
        h->book.slots[i] = (struct book_slot){ .order = *order };
        h->book.slots[i].order.order_id = ++h->last_id;
        int pid = checkpointer_prepare(h->sock, (uint32_t) i);
        int r = pid < 0 ? error_errno(err, -pid, "starting a helper of lessor-checkpoint")
                        : hold_helper(h, i, (uint32_t) pid, err);
        if (pid > 0 && checkpointer_say(h->sock, r < 0 ? CHECKPOINTER_CANCEL : CHECKPOINTER_GO, (uint32_t) i) < 0)
                r = r < 0 ? r : error_set(err, EPIPE, "lessor-checkpoint ended");
        if (r < 0) {
                closep(&h->helpers[i]);
                h->helpers[i] = -1;
                h->book.slots[i] = (struct book_slot){ 0 };
                return r;
        }
        *ret_slot = i;
        return 0;
}

int rescue_hands_wait(struct rescue_hands *h, size_t slot, int wait_ms, struct warden_answer *ret)
{
        struct pollfd end = { .fd = h->helpers[slot], .events = POLLIN };
        struct book_slot *s = &h->book.slots[slot];
        int n;

        do {
                n = poll(&end, 1, wait_ms);
        } while (n < 0 && errno == EINTR);
        if (n == 0)
                return -ETIMEDOUT;
        closep(&h->helpers[slot]);
        h->helpers[slot] = -1;
        uint64_t id = s->order.order_id;
        book_reread(&h->book, slot);
        *ret = s->state == BOOK_ENDED
                       ? s->answer
                       : (struct warden_answer){ .order_id = id, .result = WARDEN_FAILED, .why = WARDEN_WHY_LOST };
        *s = (struct book_slot){ 0 };
        return 0;
}
