/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Hands for a scene, that carry out what they are ordered: a checkpoint takes a process's memory off its card at once, a
 * restore brings it back if the last look allows. And what people and programs say of parking.
 */
#include "scene.h"

/* From here on orders are carried out, and the host has memory: @available of @total, nothing pressing. */
void scene_hands(struct scene *s);
void scene_host(struct scene *s, uint64_t total_bytes, uint64_t available_bytes, bool pressure);
/* The next @n orders of @verb are answered so, and nothing is done. Outcome NONE: they are never answered. */
void scene_next(struct scene *s, enum hand_verb verb, unsigned n, enum outcome outcome, enum hand_why why);
/* After scene_next: the first @n of them are carried out before. */
void scene_skip(struct scene *s, enum hand_verb verb, unsigned n);
/* The last order of @verb that was never answered is answered now, as carried out. */
void scene_answers_late(struct scene *s, enum hand_verb verb);
/* From here on a checkpoint says that it was done, and the card shows the memory all the same. */
void scene_lies(struct scene *s, bool lies);
/* From here on a checkpoint takes so many thousandths more of the host than it took off the card. */
void scene_overhead(struct scene *s, uint64_t milli);
unsigned scene_n_orders(const struct scene *s, size_t since, enum hand_verb verb);
/* Verbs in the order they were given, as letters: Lock Checkpoint Stop Restore Unlock Hold, sIgnal. */
const char *scene_orders(const struct scene *s, size_t since, char *buf, size_t size);

void scene_says(struct scene *s, uint64_t lease_id, enum park_call_what what, uint64_t seconds);
void scene_says_as(struct scene *s, uint64_t lease_id, enum park_call_what what, uint64_t seconds, uint32_t uid);
/* Its program gave everything back, and says so. */
void scene_yields(struct scene *s, uint64_t lease_id);
/* What earlier runs came to. */
void scene_cost(struct scene *s, uint32_t uid, const char *consumer, enum way_out_kind way, uint64_t out_s,
                uint64_t back_s);
