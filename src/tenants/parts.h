/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The larger values of a tenant, JSON → tenant.h. Private to src/tenants. */
#include "tenants/read.h"

read_fn part_match;  /* struct tenant: rules and n_rules */
read_fn part_need;   /* struct tenant_need */
read_fn part_busy;   /* struct tenant_busies */
read_fn part_ways;   /* struct tenant_ways */
read_fn part_demand; /* struct tenant_demand */
read_fn part_events; /* struct tenant_events */
read_fn part_proxy;  /* struct tenant_proxy */
