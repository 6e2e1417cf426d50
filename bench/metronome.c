/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an idle daemon is measured against: a process that sleeps in epoll_wait and is woken by a timer once a second.
 * Prints "ready", and ends when its input is closed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

int main(void)
{
        const struct itimerspec second = { .it_interval.tv_sec = 1, .it_value.tv_sec = 1 };
        int epoll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        struct epoll_event on_timer = { .events = EPOLLIN, .data.fd = timer },
                           on_input = { .events = EPOLLIN | EPOLLHUP, .data.fd = STDIN_FILENO }, event;
        uint64_t n;

        if (epoll < 0 || timer < 0 || timerfd_settime(timer, 0, &second, NULL) < 0 ||
            epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &on_timer) < 0 ||
            epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &on_input) < 0) {
                perror("bench_metronome");
                return EXIT_FAILURE;
        }
        (void) puts("ready");
        (void) fflush(stdout);
        while (epoll_wait(epoll, &event, 1, -1) == 1 && event.data.fd == timer)
                if (read(timer, &n, sizeof(n)) != sizeof(n))
                        break;
        return EXIT_SUCCESS;
}
