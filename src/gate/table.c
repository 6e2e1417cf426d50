/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/table.h"

static struct table_row *find(struct table *t, uint64_t lease_id, uint64_t cgroup_id)
{
        for (size_t i = 0; i < t->n; i++) {
                struct table_row *row = &t->rows[i];
                if (row->cgroup_id != 0 && row->lease_id == lease_id && (lease_id != 0 || row->cgroup_id == cgroup_id))
                        return row;
        }
        return NULL;
}

static struct table_row *find_empty(struct table *t)
{
        for (size_t i = 0; i < t->n; i++)
                if (t->rows[i].cgroup_id == 0)
                        return &t->rows[i];
        return t->n < TABLE_ROWS_MAX ? &t->rows[t->n++] : NULL;
}

bool table_put(struct table *t, uint64_t lease_id, uint64_t cgroup_id, uint64_t how, uint64_t *ret_old)
{
        struct table_row *row = find(t, lease_id, cgroup_id);

        *ret_old = row && row->cgroup_id != cgroup_id ? row->cgroup_id : 0;
        if (!row && (lease_id != 0 || t->n_always < TABLE_ALWAYS_MAX)) {
                row = find_empty(t);
                t->n_always += row && lease_id == 0;
        }
        if (!row)
                return false;
        *row = (struct table_row){ lease_id, cgroup_id, how, true };
        return true;
}

uint64_t table_drop_at(struct table *t, size_t i)
{
        uint64_t cgroup_id = t->rows[i].cgroup_id;

        t->n_always -= cgroup_id != 0 && t->rows[i].lease_id == 0;
        t->rows[i] = (struct table_row){ 0 };
        while (t->n > 0 && t->rows[t->n - 1].cgroup_id == 0)
                t->n--;
        return cgroup_id;
}

uint64_t table_drop(struct table *t, uint64_t lease_id)
{
        struct table_row *row = lease_id ? find(t, lease_id, 0) : NULL;
        return row ? table_drop_at(t, (size_t) (row - t->rows)) : 0;
}

uint64_t table_how(const struct table *t, uint64_t cgroup_id)
{
        uint64_t how = 0;

        for (size_t i = 0; cgroup_id != 0 && i < t->n; i++)
                if (t->rows[i].cgroup_id == cgroup_id)
                        how |= t->rows[i].how;
        return how;
}

size_t table_count_leases(const struct table *t)
{
        size_t n = 0;

        for (size_t i = 0; i < t->n; i++)
                n += t->rows[i].lease_id != 0;
        return n;
}

void table_doubt_leases(struct table *t)
{
        for (size_t i = 0; i < t->n; i++)
                t->rows[i].confirmed = false;
}
