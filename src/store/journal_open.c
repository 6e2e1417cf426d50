/* SPDX-License-Identifier: Apache-2.0 */
/* The file: found, made, refused or moved aside. */
#include "store/journal_private.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include "base/clock.h"
#include "store/aside.h"

static const char schema[] =
        "BEGIN IMMEDIATE;"
        "CREATE TABLE segment ("
        " id INTEGER PRIMARY KEY CHECK (id > 0),"
        " first_seq INTEGER NOT NULL CHECK (first_seq > 0),"
        " wall_ms INTEGER NOT NULL CHECK (wall_ms >= 0),"
        " core_version TEXT NOT NULL CHECK (length(core_version) < 32),"
        " boot_id TEXT NOT NULL CHECK (length(boot_id) < 37),"
        " snapshot BLOB NOT NULL,"
        " before BLOB NOT NULL CHECK (length(before) = 32),"
        " hash BLOB NOT NULL CHECK (length(hash) = 32)) STRICT;"
        "CREATE TABLE record ("
        " seq INTEGER PRIMARY KEY CHECK (seq > 0),"
        " segment INTEGER NOT NULL CHECK (segment > 0)," /* those from its first_seq on: an index would cost a page a commit */
        " now_ms INTEGER NOT NULL CHECK (now_ms >= 0),"
        " wall_ms INTEGER NOT NULL CHECK (wall_ms >= 0),"
        " kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 255),"
        " input BLOB NOT NULL,"
        " actions BLOB NOT NULL,"
        " hash BLOB NOT NULL CHECK (length(hash) = 32)) STRICT;"
        /* Made from the actions of records, for `why` and `events`, when nobody waits for it; outlives them, so it has a
         * chain of its own. */
        "CREATE TABLE event ("
        " id INTEGER PRIMARY KEY CHECK (id > 0),"
        " seq INTEGER NOT NULL CHECK (seq > 0),"
        " now_ms INTEGER NOT NULL CHECK (now_ms >= 0),"
        " wall_ms INTEGER NOT NULL CHECK (wall_ms >= 0),"
        " kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 255),"
        " lease_id INTEGER NOT NULL CHECK (lease_id >= 0),"
        " device INTEGER CHECK (device BETWEEN 0 AND 4294967294)," /* NULL = about none */
        " uid INTEGER NOT NULL CHECK (uid BETWEEN 0 AND 4294967295),"
        " action BLOB NOT NULL,"
        " hash BLOB NOT NULL CHECK (length(hash) = 32)) STRICT;"
        "CREATE INDEX event_lease ON event (lease_id) WHERE lease_id > 0;"
        /* What pruning must not forget: the hash before the oldest event that is still there. And the last record whose
         * events are in their table. */
        "CREATE TABLE keep (id INTEGER PRIMARY KEY CHECK (id = 1), event_hash BLOB CHECK (length(event_hash) = 32),"
        " event_seq INTEGER NOT NULL DEFAULT 0 CHECK (event_seq >= 0)) STRICT;"
        "INSERT INTO keep (id, event_hash) VALUES (1, zeroblob(32));";

void journal_degrade(struct journal *j, const char *fmt, ...)
{
        va_list args;

        if (j->degraded[0])
                return;
        va_start(args, fmt);
        (void) vsnprintf(j->degraded, sizeof(j->degraded), fmt, args);
        va_end(args);
}

const char *journal_degraded(const struct journal *j)
{
        return j->degraded[0] ? j->degraded : NULL;
}

void journal_set_busy_ms(struct journal *j, uint32_t busy_ms)
{
        j->options.busy_ms = busy_ms;
        if (j->db)
                (void) sqlite3_busy_timeout(j->db, (int) busy_ms);
}

/* ---- before SQLite touches it ---- */

enum header { HEADER_OURS, HEADER_EMPTY, HEADER_DAMAGED };

static int header_refuse_newer(const char *path, uint64_t format, struct error *err)
{
        return error_set(
                err, EPROTONOSUPPORT,
                "%s was written by a newer lessor (format %llu, this one knows %d): install that version again, "
                "or move the file away to start anew",
                path, (unsigned long long) format, JOURNAL_FORMAT);
}

/*
 * SQLite would recover the write-ahead log before it can tell us a number. The header of the main file is right without:
 * format and application id are written before the file ever gets a log.
 */
static int header_look(const char *path, enum header *ret, struct error *err)
{
        static const char magic[16] = "SQLite format 3";
        struct {
                char magic[16];
                uint8_t skipped[44];
                uint32_t user_version;
                uint32_t skipped_too;
                uint32_t application_id;
                uint8_t rest[28];
        } h;
        _Static_assert(sizeof(h) == 100, "the header of a database is 100 bytes (sqlite.org/fileformat2.html)");

        auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
                return error_errno(err, errno, "opening %s", path);
        struct stat st;
        if (fstat(fd, &st) < 0)
                return error_errno(err, errno, "looking at %s", path);
        if (!S_ISREG(st.st_mode)) /* put there since file_is_other() looked */
                return error_set(err, EPROTOTYPE, "%s is not a regular file", path);
        ssize_t n = read(fd, &h, sizeof(h));
        if (n < 0)
                return error_errno(err, errno, "reading %s", path);
        *ret = HEADER_EMPTY;
        if (n > 0) {
                *ret = HEADER_DAMAGED;
                if ((size_t) n < sizeof(h) || memcmp(h.magic, magic, sizeof(magic)) != 0)
                        return 0;
                *ret = HEADER_OURS;
                /* Both 0: a creation that did not end, or a file of others; SQLite will tell by its tables. */
                if (h.application_id != 0 && be32toh(h.application_id) != JOURNAL_APPLICATION_ID)
                        return error_set(err, EPROTOTYPE, "%s is an SQLite database of another program", path);
                if (h.application_id != 0 && be32toh(h.user_version) > JOURNAL_FORMAT)
                        return header_refuse_newer(path, be32toh(h.user_version), err);
        }
        if ((st.st_mode & 077) != 0 && fchmod(fd, 0600) < 0)
                return error_errno(err, errno, "%s may be read by others, and closing it", path);
        return 0;
}

/* A folder, a link, a pipe in the journal's place. */
static bool file_is_other(const char *path)
{
        struct stat st;
        return lstat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

/* What can be seen before anything is opened; NULL = nothing is wrong. */
static const char *file_what_is_wrong(const char *path)
{
        if (file_is_other(path))
                return "what lies in the journal's place is not a file";
        if (aside_is_orphaned(path))
                return "the journal's main file is gone or empty beside its write-ahead log";
        if (journal_log_is_damaged(path))
                return "the journal's write-ahead log is damaged";
        return NULL;
}

static int file_make(const char *path, struct error *err)
{
        auto_close int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno != EEXIST)
                return error_errno(err, errno, "creating %s", path);
        return 0;
}

/* ---- with SQLite ---- */

void journal_file_close(struct journal *j, bool keep_wal)
{
        for (size_t i = 0; i < STMT_N; i++) {
                (void) sqlite3_finalize(j->stmts[i]);
                j->stmts[i] = NULL;
        }
        if (j->db)
                (void) sqlite3_db_config(j->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep_wal ? 1 : 0, NULL);
        (void) sqlite3_close(j->db); /* no statement is left, so it cannot refuse */
        j->db = NULL;
        journal_place_forget(j);
}

/*
 * SQLite writes what it maps of "-shm" whatever that is: a file of somebody else by a second name, too. It holds nothing that
 * cannot be made again from the log, and lessord's lock says that nobody else writes here (S12).
 */
static void shm_remove_other(const char *path)
{
        char name[PATH_MAX];
        struct stat st;

        if (snprintf(name, sizeof(name), "%s-shm", path) < (int) sizeof(name) && lstat(name, &st) == 0 &&
            (!S_ISREG(st.st_mode) || st.st_nlink != 1))
                (void) remove(name);
}

static int file_connect(struct journal *j, struct error *err)
{
        if (!j->options.read_only)
                shm_remove_other(j->path);
        int flags = (j->options.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) | SQLITE_OPEN_NOMUTEX |
                    SQLITE_OPEN_EXRESCODE;
        int rc = sqlite3_open_v2(j->path, &j->db, flags, NULL);
        if (rc != SQLITE_OK)
                return sql_error(j->db, rc, err, j->path);

        /* Until the file is known to be ours and sound, nothing is checkpointed into it. */
        (void) sqlite3_db_config(j->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        (void) sqlite3_db_config(j->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        (void) sqlite3_db_config(j->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        (void) sqlite3_busy_timeout(j->db, (int) j->options.busy_ms);
        return 0;
}

/* @ret_format: 0 = an empty file. -EBADMSG: damaged, or in an older form that nothing here converts. */
static int file_check(struct journal *j, uint64_t *ret_format, struct error *err)
{
        uint64_t application_id = 0, format = 0, n_tables = 0;
        char answer[200] = "";

        int r = sql_query_u64(j->db, "PRAGMA application_id", &application_id, err);
        if (r < 0)
                return r;
        r = sql_query_u64(j->db, "PRAGMA user_version", &format, err);
        if (r < 0)
                return r;
        r = sql_query_u64(j->db, "SELECT count(*) FROM sqlite_schema", &n_tables, err);
        if (r < 0)
                return r;
        *ret_format = 0;
        if (n_tables == 0 && application_id == 0)
                return 0;
        if (application_id != JOURNAL_APPLICATION_ID)
                return error_set(err, EPROTOTYPE, "%s is an SQLite database of another program", j->path);
        if (format > JOURNAL_FORMAT)
                return header_refuse_newer(j->path, format, err);
        if (!journal_format_is_readable(format))
                return error_set(err, EBADMSG, "%s has the format %llu, which this lessor cannot read", j->path,
                                 (unsigned long long) format);
        r = sql_query_text(j->db, "PRAGMA quick_check(1)", answer, sizeof(answer), err);
        if (r < 0)
                return r;
        if (strcmp(answer, "ok") != 0)
                return error_set(err, EBADMSG, "%s is damaged: %.150s", j->path, answer);
        *ret_format = format;
        return 0;
}

static int file_create_tables(struct journal *j, struct error *err)
{
        char sql[160];

        int r = sql_exec(j->db, schema, err);
        if (r == 0)
                r = sql_exec(j->db, journal_audit_schema, err);
        if (r < 0)
                return r;
        (void) snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;",
                        JOURNAL_APPLICATION_ID, JOURNAL_FORMAT);
        return sql_exec(j->db, sql, err);
}

static int file_configure(struct journal *j, struct error *err)
{
        char mode[16] = "";
        char sql[96];

        int r = sql_exec(j->db,
                         "PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;"
                         "PRAGMA cache_size = -1024;", /* KiB: an idle daemon stays small */
                         err);
        if (r < 0 || j->options.read_only)
                return r;
        r = sql_query_text(j->db, "PRAGMA journal_mode = WAL", mode, sizeof(mode), err);
        if (r < 0)
                return r;
        if (strcmp(mode, "wal") != 0)
                return error_set(err, EIO,
                                 "%s: no write-ahead log here (journal mode \"%s\"): is it a network file system?",
                                 j->path, mode);
        journal_log_watch(j);
        r = sql_exec(j->db, "PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 8388608;", err);
        if (r < 0 || j->options.max_bytes == 0)
                return r;
        uint64_t page_bytes = 4096;
        r = sql_query_u64(j->db, "PRAGMA page_size", &page_bytes, err);
        if (r < 0)
                return r;
        (void) snprintf(sql, sizeof(sql), "PRAGMA max_page_count = %llu",
                        (unsigned long long) (j->options.max_bytes / page_bytes + 1));
        return sql_exec(j->db, sql, err);
}

static int file_open_once(struct journal *j, struct error *err)
{
        uint64_t format = 0;

        int r = file_connect(j, err);
        if (r < 0)
                return r;
        r = file_check(j, &format, err);
        if (r < 0)
                return r;
        if (format == 0 && j->options.read_only)
                return error_set(err, EPROTOTYPE, "%s is empty: no journal", j->path);
        if (format != 0 && format != JOURNAL_FORMAT && j->options.read_only)
                return error_set(err, EPROTONOSUPPORT,
                                 "%s has the older format %llu: start lessord once, which converts it", j->path,
                                 (unsigned long long) format);
        if (format == 0)
                r = file_create_tables(j, err);
        if (r < 0)
                return r;
        r = file_configure(j, err);
        if (r < 0)
                return r;
        if (format != 0 && format != JOURNAL_FORMAT)
                r = journal_upgrade(j, format, err);
        if (r < 0)
                return r;
        (void) sqlite3_db_config(j->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
        journal_place_note(j);
        return 0;
}

static int file_move_aside(struct journal *j, const char *why, struct error *err)
{
        char name[PATH_MAX];

        journal_file_close(j, true);
        int r = aside_move(j->path, clock_now_wall_ms(), name, sizeof(name), err);
        if (r < 0)
                return r;
        journal_degrade(j, "%.200s; the old journal is kept as %.160s", why, name);
        return 0;
}

static int file_open(struct journal *j, struct error *err)
{
        struct error why = { 0 };
        enum header header = HEADER_EMPTY;
        int r;

        if (!j->options.read_only) {
                const char *wrong = file_what_is_wrong(j->path);
                if (wrong) {
                        r = file_move_aside(j, wrong, err);
                        if (r < 0)
                                return r;
                }
                r = file_make(j->path, err);
                if (r < 0)
                        return r;
                r = header_look(j->path, &header, err);
                if (r < 0)
                        return r;
        }
        if (header == HEADER_DAMAGED && !aside_can_roll_back(j->path)) /* the latter: a creation that did not end */
                r = error_set(&why, EBADMSG, "%s is damaged: its first page is not a database's", j->path);
        else
                r = file_open_once(j, &why);
        if (r == -EBADMSG && !j->options.read_only) {
                r = file_move_aside(j, why.msg, err);
                if (r < 0)
                        return r;
                r = file_make(j->path, err);
                if (r < 0)
                        return r;
                r = file_open_once(j, &why);
        }
        return r < 0 ? error_set(err, -r, "%s", why.msg) : 0;
}

int journal_file_replace(struct journal *j, const char *why, struct error *err)
{
        int r = file_move_aside(j, why, err);
        if (r < 0)
                return r;
        r = file_make(j->path, err);
        if (r < 0)
                return r;
        return file_open_once(j, err);
}

int journal_open(struct journal **ret, const char *path, const struct journal_options *options, struct error *err)
{
        struct journal *j = calloc(1, sizeof(*j));
        if (!j)
                return error_set(err, ENOMEM, "no memory for the journal");

        j->folder_fd = -1;
        if (options)
                j->options = *options;
        if (j->options.busy_ms == 0)
                j->options.busy_ms = 250;
        if (j->options.segment_records == 0)
                j->options.segment_records = 10000;
        if (j->options.keep_segments == 0)
                j->options.keep_segments = 8;
        if (j->options.keep_segments < 2)
                j->options.keep_segments = 2;
        if (j->options.keep_events == 0)
                j->options.keep_events = 100000;
        if (j->options.keep_audits == 0)
                j->options.keep_audits = JOURNAL_AUDITS_KEPT;
        (void) snprintf(j->core_version, sizeof(j->core_version), "%s",
                        j->options.core_version ? j->options.core_version : LESSOR_CORE_VERSION);
        j->options.core_version = NULL; /* the caller's memory */

        j->path = strdup(path);
        int r = j->path ? file_open(j, err) : error_set(err, ENOMEM, "no memory for the journal");
        if (r < 0) {
                journal_file_close(j, true);
                free(j->path);
                free(j);
                return r;
        }
        *ret = j;
        return 0;
}

void journal_close(struct journal *j)
{
        if (!j)
                return;
        /* Closing removes the log by its name: only if it is ours. */
        journal_file_close(j, journal_look(j, NULL) < 0);
        journal_audits_forget(j);
        free(j->pending);
        free(j->prepared);
        free(j->arena);
        free(j->actions);
        free(j->path);
        free(j);
}
