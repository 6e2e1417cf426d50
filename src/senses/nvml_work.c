/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of what each process does on a device: two forms of one call, newest first. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "senses/nvml.h"

static_assert(sizeof(struct nvml_sample_v1) == 32 && offsetof(struct nvml_sample_v1, sm) == 16,
              "nvmlProcessUtilizationSample_t");
static_assert(sizeof(struct nvml_sample_v2) == 40 && offsetof(struct nvml_sample_v2, sm) == 12,
              "nvmlProcessUtilizationInfo_v1_t");
static_assert(sizeof(struct nvml_samples) == 24 && NVML_SAMPLES_VERSION == 0x01000018,
              "nvmlProcessesUtilizationInfo_t");

enum {
        SAMPLES_FIRST = 64,
        SAMPLES_MAX = 16384, /* several of each process, in a long interval */
        SIZE_TRIES = 8,      /* more come between two calls */
};

static bool have_room(struct nvml *nv, unsigned n)
{
        if (n <= nv->samples_cap)
                return true;
        void *more = realloc(nv->samples, (size_t) n * sizeof(struct nvml_sample_v2));
        if (!more)
                return false;
        nv->samples = more;
        nv->samples_cap = n;
        return true;
}

/* One call by one form; *ret_n as the driver says. */
static int call(struct nvml *nv, nvml_handle handle, bool v2, uint64_t since_us, unsigned cap, unsigned *ret_n)
{
        struct nvml_samples request = {
                .version = NVML_SAMPLES_VERSION, .n = cap, .since_us = since_us, .entries = nv->samples
        };
        int rc;

        *ret_n = cap;
        if (!v2)
                return nv->sym.samples_v1(handle, nv->samples, ret_n, since_us);
        rc = nv->sym.samples_v2(handle, &request);
        *ret_n = request.n;
        return rc;
}

static int call_until_it_fits(struct nvml *nv, nvml_handle handle, bool v2, uint64_t since_us, unsigned *ret_n)
{
        unsigned want = nv->samples_cap ? nv->samples_cap : SAMPLES_FIRST;

        for (int i = 0; i < SIZE_TRIES && want <= SAMPLES_MAX && have_room(nv, want); i++) {
                unsigned cap = nv->samples_cap;
                memset(nv->samples, 0, cap * sizeof(struct nvml_sample_v2));
                int rc = call(nv, handle, v2, since_us, cap, ret_n);
                if (rc != NVML_INSUFFICIENT_SIZE)
                        return rc == NVML_SUCCESS && *ret_n > cap ? NVML_INSUFFICIENT_SIZE : rc;
                want = 2 * (*ret_n > cap && *ret_n <= SAMPLES_MAX ? *ret_n : cap);
        }
        return NVML_INSUFFICIENT_SIZE;
}

static struct nvml_sample_v2 sample_at(const struct nvml *nv, bool v2, unsigned i)
{
        struct nvml_sample_v1 old;
        struct nvml_sample_v2 s;

        if (v2) {
                memcpy(&s, (const char *) nv->samples + i * sizeof(s), sizeof(s));
                return s;
        }
        memcpy(&old, (const char *) nv->samples + i * sizeof(old), sizeof(old));
        return (struct nvml_sample_v2){ .at_us = old.at_us,
                                        .pid = old.pid,
                                        .sm = old.sm,
                                        .memory = old.memory,
                                        .encoder = old.encoder,
                                        .decoder = old.decoder };
}

static bool is_in(const struct gpu_work *work, uint32_t pid)
{
        for (uint32_t i = work->n; i > 0; i--) /* those of one process stand together, mostly */
                if (work->pids[i - 1] == pid)
                        return true;
        return false;
}

/* Drivers pad their answer with zeros and with what was told before: neither is a sample. False: more than there is room for. */
static bool take(const struct nvml *nv, bool v2, unsigned n, struct gpu_work *work)
{
        uint64_t since_us = work->since_us;

        for (unsigned i = 0; i < n; i++) {
                struct nvml_sample_v2 s = sample_at(nv, v2, i);
                bool did = (s.sm | s.memory | s.encoder | s.decoder | s.jpeg | s.ofa) != 0;

                if (s.pid == 0 || s.at_us <= since_us)
                        continue;
                work->any = true;
                if (s.at_us > work->since_us)
                        work->since_us = s.at_us;
                if (!did || is_in(work, s.pid))
                        continue;
                if (work->n == EYES_ROWS_MAX)
                        return false;
                work->pids[work->n++] = s.pid;
        }
        return true;
}

struct gpu_status nvml_read_work(void *gpu, const char *uuid, struct gpu_work *work)
{
        struct nvml *nv = gpu;
        const struct nvml_device *dev = nvml_find(nv, uuid);
        int rc = dev ? NVML_FUNCTION_NOT_FOUND : NVML_INVALID_ARGUMENT;
        unsigned n = 0;

        for (int form = 0; dev && form < 2; form++) {
                bool v2 = form == 0;
                if (v2 ? !nv->sym.samples_v2 : !nv->sym.samples_v1)
                        continue;
                rc = call_until_it_fits(nv, dev->handle, v2, work->since_us, &n);
                if (rc == NVML_FUNCTION_NOT_FOUND || rc == NVML_ARGUMENT_VERSION_MISMATCH || rc == NVML_NOT_SUPPORTED)
                        continue;
                if (rc == NVML_SUCCESS && !take(nv, v2, n, work))
                        return (struct gpu_status){ .error = EYES_ERROR_REJECTED, .rc = rc };
                break;
        }
        if (rc == NVML_NOT_FOUND) /* nothing younger: no error */
                rc = NVML_SUCCESS;
        return (struct gpu_status){ .error = nvml_error_of(rc), .rc = rc };
}
