/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices CUDA shows, and in which order. Each case is a process of its own, since the driver reads its environment once. */

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness.h"

/* The UUIDs that CUDA shows, as letters a, b, c … of the devices in NVML's order; "!" = cuInit failed with 100 */
static void seen(const char *visible, const char *order, char *ret)
{
        int fds[2];
        ret[0] = 0;
        if (pipe(fds) < 0)
                return;
        (void) fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
                char text[CARD_DEVICES_MAX + 1] = "";
                CUresult (*init)(unsigned), (*count)(int *), (*bus)(char *, int, int);
                if (visible)
                        (void) setenv("CUDA_VISIBLE_DEVICES", visible, 1);
                else
                        (void) unsetenv("CUDA_VISIBLE_DEVICES");
                if (order)
                        (void) setenv("CUDA_DEVICE_ORDER", order, 1);
                LOAD(cuda_entry, init, "cuInit", 2000);
                LOAD(cuda_entry, count, "cuDeviceGetCount", 2000);
                LOAD(cuda_entry, bus, "cuDeviceGetPCIBusId", 4010);
                int n = 0;
                CUresult rc = init(0);
                if (rc == CUDA_NO_DEVICE)
                        strcpy(text, "!");
                else if (rc == CUDA_OK && count(&n) == CUDA_OK)
                        for (int i = 0; i < n; i++) {
                                char id[16];
                                if (bus(id, sizeof id, i) == CUDA_OK)
                                        text[i] = (char) ('a' + strtol(id + 5, NULL, 16) - 0x65);
                        }
                (void) !write(fds[1], text, sizeof text);
                _exit(0);
        }
        (void) close(fds[1]);
        if (read(fds[0], ret, CARD_DEVICES_MAX + 1) <= 0)
                strcpy(ret, "?");
        (void) close(fds[0]);
        (void) waitpid(pid, NULL, 0);
}

int main(void)
{
        card_begin("--gpus", "4", "--seed", "1", NULL);
        static char a[48], b[48], prefix[48], mixed[100], common[] = "GPU-";
        strcpy(a, card.file->device[0].uuid);
        strcpy(b, card.file->device[1].uuid);
        (void) snprintf(prefix, sizeof prefix, "%.12s", b);
        (void) snprintf(mixed, sizeof mixed, "%.40s,3", b);
        const struct {
                const char *visible, *order, *want, *name;
        } straight[] = {
                { NULL, NULL, "abcd", "unset: all" },
                { "", NULL, "!", "empty: none" },
                { "0,2", NULL, "ac", "indices" },
                { "3,1", NULL, "db", "in the order given" },
                { "1,9,2", NULL, "b", "ends at the first invalid entry" },
                { "-1", NULL, "!", "-1: none" },
                { "0,-1,1", NULL, "a", "-1 ends the list" },
                { "nonsense", NULL, "!", "a word: none" },
                { "0,0", NULL, "!", "one twice: none" },
                { b, NULL, "b", "a UUID" },
                { prefix, NULL, "b", "a UUID cut short" },
                { common, NULL, "!", "an ambiguous one: none" },
                { mixed, NULL, "bd", "UUID and index" },
                { "GPU-ffffffff", NULL, "!", "a UUID of nobody" },
                { " 1 , 2 ", NULL, "bc", "blanks do not matter" },
        };
        char got[CARD_DEVICES_MAX + 1];
        for (size_t i = 0; i < sizeof straight / sizeof *straight; i++) {
                seen(straight[i].visible, straight[i].order, got);
                if (!ok(strcmp(got, straight[i].want) == 0, "%s", straight[i].name))
                        printf("# got %s, want %s\n", got, straight[i].want);
        }
        card_begin("--gpus", "3", "--seed", "1", "--reverse-cuda", NULL);
        const struct {
                const char *visible, *order, *want, *name;
        } reversed[] = {
                { NULL, NULL, "cba", "reversed: the other way round" },
                { NULL, "PCI_BUS_ID", "abc", "reversed with PCI_BUS_ID: like NVML" },
                { "0", NULL, "c", "reversed: index 0 is the last" },
                { "0", "PCI_BUS_ID", "a", "reversed with PCI_BUS_ID: index 0 is the first" },
                { a, NULL, "a", "reversed: a UUID is a UUID" },
        };
        for (size_t i = 0; i < sizeof reversed / sizeof *reversed; i++) {
                seen(reversed[i].visible, reversed[i].order, got);
                if (!ok(strcmp(got, reversed[i].want) == 0, "%s", reversed[i].name))
                        printf("# got %s, want %s\n", got, reversed[i].want);
        }
        return done();
}
