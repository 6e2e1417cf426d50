/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/tenants_kept.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "programs/lessord/paths.h"

int tenants_kept_read(const struct tenants_kept *kept, struct tenants *ret, struct error *err)
{
        return tenants_load(&kept->places, ret, err);
}

void tenants_kept_take(struct tenants_kept *kept, struct tenants *fresh)
{
        tenants_fini(&kept->set);
        kept->set = *fresh;
        *fresh = (struct tenants){ 0 };
        kept->is_accepted = false;
        kept->error[0] = '\0';
}

void tenants_kept_first(struct tenants_kept *kept, const struct paths *paths)
{
        struct tenants_places accepted = { 0 };
        struct error err = { 0 };

        *kept = (struct tenants_kept){ .is_accepted = false };
        tenants_find_shipped(kept->places.shipped);
        (void) snprintf(kept->places.folder, sizeof(kept->places.folder), "%s", paths->tenants_folder);
        (void) snprintf(kept->places.file, sizeof(kept->places.file), "%s", paths->tenants);
        if (tenants_load(&kept->places, &kept->set, &err) == 0)
                return;
        log_error("event=tenants-refused words=\"%s\"", err.msg);
        (void) snprintf(kept->error, sizeof(kept->error), "%s", err.msg);
        kept->is_accepted = true;
        (void) snprintf(accepted.file, sizeof(accepted.file), "%s", paths->tenants_accepted);
        if (access(accepted.file, F_OK) == 0 && tenants_load(&accepted, &kept->set, &err) == 0) {
                log_warning("event=tenants-last-accepted path=\"%s\"", accepted.file);
                return;
        }
        accepted = (struct tenants_places){ 0 };
        (void) snprintf(accepted.shipped, sizeof(accepted.shipped), "%s", kept->places.shipped);
        if (tenants_load(&accepted, &kept->set, &err) < 0)
                log_error("event=tenants-none words=\"%s\"", err.msg);
}

/* ---- what is remembered ---- */

static char *as_one_file(const struct tenants *set)
{
        json_t *tenants = json_object();
        char *text = NULL;

        for (uint32_t i = 0; tenants && i < set->n; i++)
                if (json_object_set_new(tenants, set->list[i].name, tenants_definition(set, &set->list[i])) < 0) {
                        json_decref(tenants);
                        return NULL;
                }
        json_t *file = json_pack("{s:o}", "tenants", tenants);
        text = json_dumps(file, JSON_INDENT(1));
        json_decref(file);
        return text;
}

static int write_file(const char *path, const char *text)
{
        char temp[sizeof(((struct paths *) 0)->tenants_accepted) + 8];
        size_t n = strlen(text), done = 0;
        int r = n > TENANTS_FILE_BYTES_MAX ? -EFBIG : 0;

        (void) snprintf(temp, sizeof(temp), "%s.new", path);
        (void) unlink(temp);
        auto_close int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        while (r == 0 && done < n) {
                ssize_t wrote = write(fd, text + done, n - done);
                if (wrote >= 0)
                        done += (size_t) wrote;
                else if (errno != EINTR)
                        r = -errno;
        }
        if (r == 0 && fsync(fd) < 0)
                r = -errno;
        if (r == 0 && rename(temp, path) < 0)
                r = -errno;
        if (r < 0)
                (void) unlink(temp);
        return r;
}

void tenants_kept_accept(const struct tenants_kept *kept, const struct paths *paths)
{
        if (kept->is_accepted)
                return;
        auto_free char *text = as_one_file(&kept->set);
        int r = text ? write_file(paths->tenants_accepted, text) : -ENOMEM;
        if (r < 0)
                log_warning("event=tenants-not-kept words=\"%s\"", strerror(-r));
}
