/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver, asked by a child of ours: a call that hangs, or crashes, takes only the child. Facts about drivers and
 * checkpoints: the GPU fact sheet.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/escape.h"
#include "base/number.h"
#include "programs/lessor/apart.h"
#include "programs/lessor/doctor.h"
#include "senses/nvml.h"
#include "senses/proc.h"

enum {
        CHECKPOINT_API_MAJOR = 570,  /* the driver API with a lock timeout, which lessor uses */
        CHECKPOINT_TOOL_MAJOR = 550, /* NVIDIA's tool, "toggle" only; 555 has its single steps */
        SHOWN_MAX = 128,
        VERSION_LINE_MAX = 512,
};

/* What the child found out (apart.h). */
struct asked {
        uint8_t state; /* enum eyes_driver_state */
        char version[EYES_DRIVER_SIZE];
        char words[EYES_ALARM_SIZE];
        uint32_t n_devices, n_mig, n_unusable;
        uint32_t n_listed, n_unknown; /* processes, and those whose memory is not told */
        bool has_cuda, has_checkpoint;
};

/* ---- in the child ---- */

static void look_at_device(struct nvml *nvml, const struct eyes_device *device, struct asked *a)
{
        static struct gpu_listed listed[GPU_LISTED_MAX];
        size_t n = 0;
        a->n_mig += device->mig;
        a->n_unusable += device->state != EYES_DEVICE_USABLE;
        if (nvml_ops.read_list(nvml, device->uuid, listed, GPU_LISTED_MAX, &n).error != EYES_ERROR_NONE)
                return;
        for (size_t i = 0; i < n; i++)
                a->n_unknown += !listed[i].used_known;
        a->n_listed += (uint32_t) n;
}

static void look_at_driver(void *answer)
{
        struct asked *a = answer;
        static struct nvml nvml;
        static struct eyes_device devices[EYES_DEVICES_MAX];
        struct gpu_driver driver = { 0 };
        uint32_t n = 0, n_hidden = 0;

        nvml_ops.start(&nvml, &driver);
        a->state = (uint8_t) driver.state;
        (void) snprintf(a->version, sizeof(a->version), "%s", driver.version);
        (void) snprintf(a->words, sizeof(a->words), "%s", driver.words);
        if (driver.state == EYES_DRIVER_OK &&
            nvml_ops.enumerate(&nvml, devices, &n, &n_hidden).error == EYES_ERROR_NONE)
                for (uint32_t i = 0; i < n; i++)
                        look_at_device(&nvml, &devices[i], a);
        a->n_devices = n;
        /* Loaded, never initialised: the calls it has are all that is asked. */
        void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        a->has_cuda = cuda != NULL;
        a->has_checkpoint = cuda && dlsym(cuda, "cuCheckpointProcessLock") != NULL;
}

/* ---- beside it ---- */

/* "570.86.10" of the module that is loaded; "" = none is, or it does not say. */
static void module_version(char *ret, size_t size)
{
        char text[VERSION_LINE_MAX];
        ret[0] = '\0';
        if (!doctor_read("/proc/driver/nvidia/version", text, sizeof(text)))
                return;
        for (char *word = strtok(text, " \t\n"); word; word = strtok(NULL, " \t\n")) {
                size_t digits = strspn(word, "0123456789");
                if (digits == 3 && word[digits] == '.' && word[strspn(word, "0123456789.")] == '\0') {
                        (void) snprintf(ret, size, "%s", word);
                        return;
                }
        }
}

static uint64_t major_of(const char *version)
{
        char digits[8];
        uint64_t major = 0;
        (void) snprintf(digits, sizeof(digits), "%.*s", (int) strspn(version, "0123456789"), version);
        return parse_u64("version", digits, 1, 99999, &major, NULL) == 0 ? major : 0;
}

static const char reboot[] = "reboot; until then leases go on and nothing is granted";

static void check_driver(struct doctor *d, const struct asked *a, const char *module)
{
        char words[EYES_ALARM_SIZE * 4];
        (void) text_escape(a->words, strlen(a->words), words, sizeof(words));
        switch ((enum eyes_driver_state) a->state) {
        case EYES_DRIVER_OK:
                if (module[0] != '\0' && strcmp(module, a->version) != 0) {
                        d->driver = DRIVER_MISMATCH;
                        doctor_addf(d, "driver", FINDING_BAD, reboot, "the library is %s and the loaded module %s",
                                    a->version, module);
                        return;
                }
                d->driver = DRIVER_OK;
                doctor_addf(d, "driver", a->n_devices > 0 ? FINDING_OK : FINDING_WARN,
                            a->n_devices > 0 ? "" : "`nvidia-smi -L` should list a device; look at dmesg",
                            "%s, %u device%s%s%s", a->version[0] != '\0' ? a->version : "(no version)", a->n_devices,
                            a->n_devices == 1 ? "" : "s", words[0] != '\0' ? "; " : "", words);
                return;
        case EYES_DRIVER_MISMATCH:
                d->driver = DRIVER_MISMATCH;
                doctor_addf(d, "driver", FINDING_BAD, reboot,
                            "the driver was upgraded under its loaded module%s%s: nothing can be read",
                            module[0] != '\0' ? " " : "", module);
                return;
        case EYES_DRIVER_NO_LIBRARY:
                d->driver = DRIVER_NONE;
                doctor_addf(d, "driver", FINDING_BAD,
                            "install NVIDIA's driver (Debian: `apt install nvidia-driver`); in a container: give it "
                            "the GPU",
                            "there is none here: libnvidia-ml.so.1 cannot be opened");
                return;
        case EYES_DRIVER_OLD_LIBRARY:
        case EYES_DRIVER_NOT_LOADED:
        case EYES_DRIVER_FAILED:
        case EYES_DRIVER_STATE_N:
                break;
        }
        d->driver = DRIVER_FAILED;
        doctor_addf(d, "driver", FINDING_BAD, "look at dmesg for NVRM and Xid; is the module loaded (`lsmod`)?",
                    "its library answers with an error: %s", words[0] != '\0' ? words : "no words");
}

static void check_memory_known(struct doctor *d, const struct asked *a)
{
        if (d->driver != DRIVER_OK)
                return;
        if (a->n_listed == 0)
                doctor_add(d, "memory per process", FINDING_FACT,
                           "no process is listed now, so it is not seen whether it is told", "");
        else if (a->n_unknown == 0)
                doctor_add(d, "memory per process", FINDING_OK, "told for each process that is listed", "");
        else
                doctor_addf(d, "memory per process", FINDING_WARN,
                            "none: under WSL, and with some kinds of MIG and vGPU, the driver does not tell; the "
                            "device's own figure counts",
                            "not told for %u of %u processes that are listed", a->n_unknown, a->n_listed);
}

static void check_checkpoint(struct doctor *d, const struct asked *a)
{
        static const char newer[] = "install driver 570 or newer";
        uint64_t major = major_of(a->version);

        if (d->driver == DRIVER_NONE || d->driver == DRIVER_SILENT)
                return;
        if (major == 0)
                doctor_add(d, "checkpoint", FINDING_FACT, "not known: the driver tells no version", "");
        else if (major < CHECKPOINT_TOOL_MAJOR)
                doctor_addf(d, "checkpoint", FINDING_WARN, newer, "driver %s has none", a->version);
        else if (major < CHECKPOINT_API_MAJOR)
                doctor_addf(d, "checkpoint", FINDING_WARN, newer,
                            "driver %s has it in NVIDIA's tool only%s; lessor needs the driver's own calls, which have "
                            "a deadline",
                            a->version, major < 555 ? ", and there only to toggle" : "");
        else if (!a->has_cuda)
                doctor_add(d, "checkpoint", FINDING_WARN, "libcuda.so.1 cannot be opened",
                           "install it (Debian: `apt install libcuda1`)");
        else if (!a->has_checkpoint)
                doctor_addf(d, "checkpoint", FINDING_WARN, newer,
                            "the libcuda.so.1 here has no cuCheckpointProcessLock, although the driver is %s",
                            a->version);
        else if (a->n_mig > 0)
                doctor_add(d, "checkpoint", FINDING_WARN, "the driver has it, but not for MIG instances",
                           "none; other ways out still work there");
        else
                doctor_addf(d, "checkpoint", FINDING_OK, "",
                            "driver %s has it; whether it works for a program is found out by trying", a->version);
}

static void check_sharing(struct doctor *d, const struct asked *a)
{
        pid_t mps;
        if (a->n_mig > 0)
                doctor_addf(d, "MIG", FINDING_FACT, "", "%u MIG instance%s: each is a device of its own", a->n_mig,
                            a->n_mig == 1 ? "" : "s");
        if (doctor_find_processes("nvidia-cuda-mps*", &mps, 1) > 0)
                doctor_addf(d, "MPS", FINDING_FACT, "",
                            "an MPS daemon runs (pid %d): its clients share one context, and cannot be checkpointed",
                            (int) mps);
}

void doctor_driver(struct doctor *d)
{
        struct asked a = { 0 };
        char module[EYES_DRIVER_SIZE], root[SHOWN_MAX];

        module_version(module, sizeof(module));
        int r = apart(look_at_driver, &a, sizeof(a), DOCTOR_DRIVER_MS);
        if (r == 0) {
                a.version[sizeof(a.version) - 1] = a.words[sizeof(a.words) - 1] = '\0';
                check_driver(d, &a, module);
        } else if (r == -ETIMEDOUT) {
                d->driver = DRIVER_SILENT;
                doctor_addf(d, "driver", FINDING_BAD,
                            "look at dmesg for NVRM and Xid; a reset or a reboot may be needed",
                            "it does not answer within %d s", DOCTOR_DRIVER_MS / 1000);
        } else {
                d->driver = DRIVER_FAILED;
                doctor_add(d, "driver", FINDING_BAD, "the process that asked it died",
                           "look at dmesg for NVRM and Xid");
        }
        if (r == 0) {
                check_memory_known(d, &a);
                check_checkpoint(d, &a);
                check_sharing(d, &a);
        }
        if (proc_kernel_is_wsl(doctor_path("/proc", root, sizeof(root))))
                doctor_add(d, "WSL", FINDING_FACT,
                           "this is WSL: memory per process is not told, and less can be given than is shown free "
                           "(wsl_margin)",
                           "");
}
