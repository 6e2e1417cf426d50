/* SPDX-License-Identifier: Apache-2.0 */
#include <sha256.h>
#include <string.h>
#include "api/idempotency.h"
#include "base/number.h"

bool idempotency_key_is_wellformed(const char *key)
{
        size_t n = strlen(key);

        if (n == 0 || n > IDEMPOTENCY_KEY_MAX)
                return false;
        for (size_t i = 0; i < n; i++)
                if (key[i] < ' ' || key[i] > '~')
                        return false;
        return true;
}

/* With its end, so that no two texts beside each other read like two others. */
static void add_text(SHA2_CTX *sha, const char *text)
{
        SHA256Update(sha, (const uint8_t *) text, strlen(text) + 1);
}

void idempotency_hash(uint32_t uid, const char *method, const char *path, uint64_t lease_id, const char *key,
                      const void *body, size_t n_body, struct idempotency *ret)
{
        uint8_t digest[SHA256_DIGEST_LENGTH];
        SHA2_CTX sha;

        SHA256Init(&sha);
        SHA256Update(&sha, (const uint8_t *) &uid, sizeof(uid));
        SHA256Update(&sha, (const uint8_t *) &lease_id, sizeof(lease_id));
        add_text(&sha, method);
        add_text(&sha, path);
        add_text(&sha, key);
        SHA256Final(digest, &sha);
        memcpy(ret->key, digest, sizeof(ret->key));
        ret->key[0] |= 1;

        SHA256Init(&sha);
        if (n_body > 0)
                SHA256Update(&sha, body, n_body);
        SHA256Final(digest, &sha);
        memcpy(&ret->body, digest, sizeof(ret->body));
}

bool idempotency_is_none(const struct idempotency *key)
{
        return key->key[0] == 0 && key->key[1] == 0;
}

/* The row for a new key: a free one, else the oldest that has its answer, of this user if he has his share. NULL: none. */
static struct idempotency_row *make_room(struct idempotency_table *t, uint32_t uid)
{
        struct idempotency_row *free_row = NULL, *oldest = NULL, *own_oldest = NULL;
        uint32_t n_own = 0;

        for (uint32_t i = 0; i < t->n; i++) {
                struct idempotency_row *row = &t->rows[i];
                if (row->state == IDEMPOTENCY_FREE) {
                        free_row = free_row ? free_row : row;
                        continue;
                }
                n_own += row->uid == uid;
                if (row->state != IDEMPOTENCY_DONE)
                        continue;
                if (!oldest || row->at_ms < oldest->at_ms)
                        oldest = row;
                if (row->uid == uid && (!own_oldest || row->at_ms < own_oldest->at_ms))
                        own_oldest = row;
        }
        if (n_own >= IDEMPOTENCY_PER_UID_MAX)
                return own_oldest;
        if (free_row)
                return free_row;
        return t->n < IDEMPOTENCY_ROWS ? &t->rows[t->n++] : oldest;
}

static struct idempotency_row *find(struct idempotency_table *t, const struct idempotency *key, uint64_t now_ms)
{
        for (uint32_t i = 0; i < t->n; i++) {
                struct idempotency_row *row = &t->rows[i];
                if (row->state == IDEMPOTENCY_FREE || memcmp(row->key.key, key->key, sizeof(key->key)) != 0)
                        continue;
                if (row->state == IDEMPOTENCY_DONE && u64_sub0(now_ms, row->at_ms) > IDEMPOTENCY_KEPT_MS)
                        row->state = IDEMPOTENCY_FREE;
                else
                        return row;
        }
        return NULL;
}

enum idempotency_verdict idempotency_begin(struct idempotency_table *t, const struct idempotency *key, uint32_t uid,
                                           uint64_t now_ms, uint32_t *ret_row)
{
        struct idempotency_row *row = find(t, key, now_ms);

        if (row) {
                *ret_row = (uint32_t) (row - t->rows);
                if (row->key.body != key->body)
                        return IDEMPOTENCY_OTHER_ASK;
                return row->state == IDEMPOTENCY_DONE ? IDEMPOTENCY_REPEATED : IDEMPOTENCY_BUSY;
        }
        row = make_room(t, uid);
        if (!row)
                return IDEMPOTENCY_NO_ROOM;
        *row = (struct idempotency_row){ .key = *key, .uid = uid, .state = IDEMPOTENCY_UNDER_WAY, .at_ms = now_ms };
        *ret_row = (uint32_t) (row - t->rows);
        return IDEMPOTENCY_NEW;
}

void idempotency_done(struct idempotency_table *t, uint32_t i, uint64_t lease_id, unsigned status, uint64_t now_ms)
{
        struct idempotency_row *row = &t->rows[i];

        row->state = IDEMPOTENCY_DONE;
        row->lease_id = lease_id;
        row->status = (uint16_t) status;
        row->at_ms = now_ms;
}

void idempotency_forget(struct idempotency_table *t, uint32_t i)
{
        t->rows[i].state = IDEMPOTENCY_FREE;
}

void idempotency_forget_key(struct idempotency_table *t, const struct idempotency *key)
{
        struct idempotency_row *row = find(t, key, 0);

        if (row)
                row->state = IDEMPOTENCY_FREE;
}

void idempotency_restore(struct idempotency_table *t, const struct idempotency *key, uint32_t uid, uint64_t lease_id,
                         uint64_t at_ms)
{
        uint32_t row;

        if (!idempotency_is_none(key) && idempotency_begin(t, key, uid, at_ms, &row) == IDEMPOTENCY_NEW)
                idempotency_done(t, row, lease_id, 201, at_ms);
}
