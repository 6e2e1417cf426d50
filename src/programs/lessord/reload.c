/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/reload.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "programs/lessord/daemon.h"
#include "senses/proc.h"

enum { CONF_BYTES_MAX = 1024 * 1024 };

const char *reload_source_name(enum conf_source source)
{
        static const char *const names[] = { "defaults", "file", "last-accepted" };
        return names[source];
}

const char *reload_path(const struct daemon *d)
{
        return d->conf_path;
}

static int load(const struct daemon *d, const char *path, bool required, struct conf *ret, struct error *err)
{
        conf_defaults(ret);
        if (d->paths.mode != PATHS_SYSTEM)
                ret->core.enforce_own_uid = (uint32_t) geteuid(); /* one person's: no one else's processes */
        int r = conf_load(path, required, ret, err);
        if (r == 0 && proc_kernel_is_wsl("/proc"))
                ret->core.kept_free_bytes = ret->wsl_margin_bytes;
        return r;
}

int reload_first(struct daemon *d, const char *path, struct error *err)
{
        struct error again = { 0 };

        (void) snprintf(d->conf_path, sizeof(d->conf_path), "%s", path ? path : d->paths.conf);
        tenants_kept_first(&d->tenants, &d->paths);
        int r = load(d, d->conf_path, path != NULL, &d->conf, err);
        if (r == 0) {
                d->conf_source = access(d->conf_path, F_OK) == 0 ? CONF_FROM_FILE : CONF_FROM_DEFAULTS;
                return 0;
        }
        if (load(d, d->paths.conf_accepted, true, &d->conf, &again) < 0)
                return r;
        d->conf_source = CONF_FROM_ACCEPTED;
        (void) snprintf(d->conf_error, sizeof(d->conf_error), "%s", err->msg);
        log_error("event=config-refused words=\"%s\"", err->msg);
        log_warning("event=config-last-accepted path=\"%s\"", d->paths.conf_accepted);
        *err = (struct error){ 0 };
        return 0;
}

/* ---- the copy ---- */

static int write_all(int fd, const char *data, size_t n)
{
        while (n > 0) {
                ssize_t done = write(fd, data, n);
                if (done < 0 && errno == EINTR)
                        continue;
                if (done <= 0)
                        return -errno;
                data += done;
                n -= (size_t) done;
        }
        return 0;
}

static int copy_file(const char *from, const char *to)
{
        char temp[sizeof(((struct paths *) 0)->conf_accepted) + 8];
        auto_close int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        auto_free char *data = malloc(CONF_BYTES_MAX);
        struct stat st;

        if (!data)
                return -ENOMEM;
        if (in < 0 || fstat(in, &st) < 0 || !S_ISREG(st.st_mode))
                return -EINVAL;
        ssize_t n = pread(in, data, CONF_BYTES_MAX, 0);
        if (n < 0 || n == CONF_BYTES_MAX)
                return n < 0 ? -errno : -EFBIG;

        (void) snprintf(temp, sizeof(temp), "%s.new", to);
        (void) unlink(temp);
        auto_close int out = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (out < 0)
                return -errno;
        int r = write_all(out, data, (size_t) n);
        if (r == 0 && fsync(out) < 0)
                r = -errno;
        if (r == 0 && rename(temp, to) < 0)
                r = -errno;
        if (r < 0)
                (void) unlink(temp);
        return r;
}

void reload_accept(struct daemon *d)
{
        tenants_kept_accept(&d->tenants, &d->paths);
        if (d->conf_source == CONF_FROM_ACCEPTED)
                return;
        if (d->conf_source == CONF_FROM_DEFAULTS) {
                (void) unlink(d->paths.conf_accepted);
                return;
        }
        int r = copy_file(d->conf_path, d->paths.conf_accepted);
        if (r < 0)
                log_warning("event=config-not-kept words=\"%s\"", strerror(-r));
}

/* ---- again ---- */

int reload_now(struct daemon *d, struct error *err)
{
        struct input input = { .kind = INPUT_CONFIG };
        struct tenants tenants = { 0 };
        struct conf fresh;
        bool is_there = access(d->conf_path, F_OK) == 0;

        int r = load(d, d->conf_path, d->conf_source == CONF_FROM_FILE, &fresh, err);
        const char *key = r == 0 ? conf_needs_restart(&d->conf, &fresh) : NULL;
        if (key) {
                conf_fini(&fresh);
                r = error_set(err, EBUSY, "%s: %s has changed, which takes a restart of lessord", d->conf_path, key);
        }
        if (r == 0) {
                r = tenants_kept_read(&d->tenants, &tenants, err);
                if (r < 0)
                        conf_fini(&fresh);
        }
        if (r < 0) {
                log_error("event=reload-refused words=\"%s\"", err->msg);
                (void) snprintf(d->conf_error, sizeof(d->conf_error), "%s", err->msg);
                return r;
        }

        struct conf old = d->conf;
        d->conf = fresh;
        d->conf_source = is_there ? CONF_FROM_FILE : CONF_FROM_DEFAULTS;
        d->conf_error[0] = '\0';
        tenants_kept_take(&d->tenants, &tenants);
        if (d->api)
                daemon_tell_limits(d);
        conf_fini(&old);
        input.config = d->conf.core;
        daemon_submit(d, &input);
        facts_look_soon(d);
        gate_reload(d);
        reload_accept(d);
        log_info("event=reloaded path=\"%s\"", d->conf_path);
        return 0;
}
