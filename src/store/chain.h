/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The hashes of the journal. Each covers the one before it, a header of fixed length with every figure of its row, and the
 * row's blobs, whose lengths stand in the header: no two different rows give the same bytes.
 *   segment: chain before it, header, snapshot          record: chain before it, header, input, actions
 *   event:   the event before it, header, action (a chain of its own, since events outlive records)
 *   audit:   the audit before it, header, facts (likewise)
 */
#include <stddef.h>
#include <stdint.h>

enum { CHAIN_HASH_SIZE = 32 };

struct chain_hash {
        uint8_t bytes[CHAIN_HASH_SIZE];
};

struct chain_blob {
        const void *data;
        size_t n;
};

struct chain_segment {
        uint64_t id;
        uint64_t first_seq;
        uint64_t wall_ms;
        const char *core_version;
        const char *boot_id;
        struct chain_blob snapshot;
};

struct chain_record {
        uint64_t seq;
        uint64_t segment;
        uint64_t now_ms;
        uint64_t wall_ms;
        uint32_t kind;
        struct chain_blob input;
        struct chain_blob actions;
};

struct chain_event {
        uint64_t id;
        uint64_t seq;
        uint64_t now_ms;
        uint64_t wall_ms;
        struct chain_blob action;
};

struct chain_audit {
        uint64_t id;
        uint64_t seq;
        uint64_t wall_ms;
        const char *boot_id;
        uint32_t pid;
        uint64_t start_ticks;
        uint32_t uid;
        struct chain_blob facts;
};

struct chain_hash chain_hash_segment(const struct chain_hash *before, const struct chain_segment *segment);
struct chain_hash chain_hash_record(const struct chain_hash *before, const struct chain_record *record);
struct chain_hash chain_hash_event(const struct chain_hash *before, const struct chain_event *event);
struct chain_hash chain_hash_audit(const struct chain_hash *before, const struct chain_audit *audit);
