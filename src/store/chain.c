/* SPDX-License-Identifier: Apache-2.0 */
#include "store/chain.h"

#include <sha2.h>
#include <string.h>
#include "wire/bytes.h"

_Static_assert(CHAIN_HASH_SIZE == SHA256_DIGEST_LENGTH, "the chain is SHA-256");

static struct chain_hash chain(const struct chain_hash *before, const struct bytes_writer *header, struct chain_blob a,
                               struct chain_blob b)
{
        struct chain_hash hash;
        SHA2_CTX sha;

        SHA256Init(&sha);
        SHA256Update(&sha, before->bytes, sizeof(before->bytes));
        SHA256Update(&sha, header->data, header->at);
        if (a.n > 0)
                SHA256Update(&sha, a.data, a.n);
        if (b.n > 0)
                SHA256Update(&sha, b.data, b.n);
        SHA256Final(hash.bytes, &sha);
        return hash;
}

struct chain_hash chain_hash_segment(const struct chain_hash *before, const struct chain_segment *segment)
{
        uint8_t buf[256];
        struct bytes_writer w;

        bytes_writer_init(&w, buf, sizeof(buf));
        bytes_put_u8(&w, 'S');
        bytes_put_u64(&w, segment->id);
        bytes_put_u64(&w, segment->first_seq);
        bytes_put_u64(&w, segment->wall_ms);
        bytes_put_blob(&w, segment->core_version, strnlen(segment->core_version, 64));
        bytes_put_blob(&w, segment->boot_id, strnlen(segment->boot_id, 64));
        bytes_put_u64(&w, segment->snapshot.n);
        return chain(before, &w, segment->snapshot, (struct chain_blob){ 0 });
}

struct chain_hash chain_hash_record(const struct chain_hash *before, const struct chain_record *record)
{
        uint8_t buf[64];
        struct bytes_writer w;

        bytes_writer_init(&w, buf, sizeof(buf));
        bytes_put_u8(&w, 'R');
        bytes_put_u64(&w, record->seq);
        bytes_put_u64(&w, record->segment);
        bytes_put_u64(&w, record->now_ms);
        bytes_put_u64(&w, record->wall_ms);
        bytes_put_u32(&w, record->kind);
        bytes_put_u64(&w, record->input.n);
        bytes_put_u64(&w, record->actions.n);
        return chain(before, &w, record->input, record->actions);
}

struct chain_hash chain_hash_event(const struct chain_hash *before, const struct chain_event *event)
{
        uint8_t buf[64];
        struct bytes_writer w;

        bytes_writer_init(&w, buf, sizeof(buf));
        bytes_put_u8(&w, 'E');
        bytes_put_u64(&w, event->id);
        bytes_put_u64(&w, event->seq);
        bytes_put_u64(&w, event->now_ms);
        bytes_put_u64(&w, event->wall_ms);
        bytes_put_u64(&w, event->action.n);
        return chain(before, &w, event->action, (struct chain_blob){ 0 });
}

struct chain_hash chain_hash_audit(const struct chain_hash *before, const struct chain_audit *audit)
{
        uint8_t buf[160];
        struct bytes_writer w;

        bytes_writer_init(&w, buf, sizeof(buf));
        bytes_put_u8(&w, 'A');
        bytes_put_u64(&w, audit->id);
        bytes_put_u64(&w, audit->seq);
        bytes_put_u64(&w, audit->wall_ms);
        bytes_put_blob(&w, audit->boot_id, strnlen(audit->boot_id, 64));
        bytes_put_u32(&w, audit->pid);
        bytes_put_u64(&w, audit->start_ticks);
        bytes_put_u32(&w, audit->uid);
        bytes_put_u64(&w, audit->facts.n);
        return chain(before, &w, audit->facts, (struct chain_blob){ 0 });
}
