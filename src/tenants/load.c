/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "tenants/tenants.h"

static int read_whole(int fd, char *text, size_t size, size_t *ret_n)
{
        for (*ret_n = 0; *ret_n < size;) {
                ssize_t n = read(fd, text + *ret_n, size - *ret_n);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
                *ret_n += (size_t) n;
        }
        return -EFBIG;
}

int tenants_add_file(struct tenants *set, const char *path, bool shipped, struct error *err)
{
        auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        auto_free char *text = malloc(TENANTS_FILE_BYTES_MAX + 1);
        struct stat st;
        size_t n = 0;

        if (fd < 0)
                return error_errno(err, errno, "%s cannot be read", path);
        if (!text)
                return error_set(err, ENOMEM, "no memory to read %s", path);
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return error_set(err, EINVAL, "%s is no regular file", path);
        int r = read_whole(fd, text, TENANTS_FILE_BYTES_MAX + 1, &n);
        if (r == -EFBIG)
                return error_set(err, EFBIG, "%s is longer than %d bytes", path, TENANTS_FILE_BYTES_MAX);
        if (r < 0)
                return error_errno(err, -r, "reading %s", path);
        return tenants_add_text(set, path, text, n, shipped, err);
}

static int is_wanted(const struct dirent *entry)
{
        size_t n = strlen(entry->d_name);

        return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0;
}

/* In the order of bytes, in whatever language. */
static int in_order(const struct dirent **a, const struct dirent **b)
{
        return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_folder(struct tenants *set, const char *path, bool shipped, struct error *err)
{
        struct dirent **names = NULL;
        int r = 0;

        int n = scandir(path, &names, is_wanted, in_order);
        if (n < 0)
                return errno == ENOENT ? 0 : error_errno(err, errno, "the folder %s cannot be read", path);
        for (int i = 0; i < n; i++) {
                char file[TENANTS_PATH_MAX];
                if (r == 0 && (size_t) snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name) >= sizeof(file))
                        r = error_set(err, ENAMETOOLONG, "%s/%s: the path is longer than %d bytes", path,
                                      names[i]->d_name, TENANTS_PATH_MAX - 1);
                if (r == 0)
                        r = tenants_add_file(set, file, shipped, err);
                free(names[i]);
        }
        free((void *) names);
        return r;
}

int tenants_load(const struct tenants_places *places, struct tenants *ret, struct error *err)
{
        int r = 0;

        *ret = (struct tenants){ 0 };
        if (places->shipped[0] != '\0')
                r = add_folder(ret, places->shipped, true, err);
        if (r == 0 && places->folder[0] != '\0')
                r = add_folder(ret, places->folder, false, err);
        if (r == 0 && places->file[0] != '\0') {
                r = tenants_add_file(ret, places->file, false, err);
                if (r == -ENOENT)
                        r = 0;
        }
        if (r == 0)
                r = tenants_settle(ret, err);
        if (r < 0)
                tenants_fini(ret);
        else if (err)
                *err = (struct error){ 0 };
        return r;
}

void tenants_find_shipped(char ret[TENANTS_PATH_MAX])
{
        char self[PATH_MAX];

        ret[0] = '\0';
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (n <= 0)
                return;
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        if (!slash)
                return;
        *slash = '\0';
        if ((size_t) snprintf(ret, TENANTS_PATH_MAX, "%s/../share/lessor/tenants.d", self) >= TENANTS_PATH_MAX ||
            access(ret, R_OK | X_OK) < 0)
                ret[0] = '\0';
}
