/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A scene that is written down: a journal as lessord writes it, by the real core and the real store, for whoever reads it
 * afterwards. Begin it when nothing of the world is put in by hand any more.
 */
#include "scene.h"
#include "store/journal.h"

#define SCENE_WALL_MS UINT64_C(1700000000000) /* of second 0 of the scene */

void scene_record(struct scene *s);  /* from here on, in a folder of its own */
void scene_segment(struct scene *s); /* a snapshot: the next segment begins */
const char *scene_journal_path(const struct scene *s);
struct journal *scene_read_journal(struct scene *s); /* committed up to here; a connection to read it by */
void scene_record_end(struct scene *s);              /* and the folder is gone; before scene_end() */
