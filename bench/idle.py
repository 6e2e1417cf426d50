# SPDX-License-Identifier: Apache-2.0
"""What lessor costs while nothing happens: share of a core, and memory that is its own (design 9).

With leases the eyes look once a second. The simulated driver works at each look more than lessor does (it asks /proc about
every client of the card); a bare program that makes the same calls at the same pace tells how much, and that is taken off.
"""

import time

import common

BOUND_SHARE = 0.001
BOUND_BYTES = 8 * 1024 * 1024
HOLDERS = 10
POLL_MS = 1000


def watch(p, metronome, looker, seconds):
    """Shares of a core over @seconds, of lessor and of the reference, and memory at the end."""
    family = common.family(p.daemon.pid)
    n_looks = max(1, int(seconds * 1000 / POLL_MS) - 1)
    common.looks_begin(looker, n_looks)
    start = time.monotonic_ns()
    before, reference_before = {name: common.cpu_ns([pid]) for name, pid in family.items()}, common.cpu_ns([metronome.pid])
    time.sleep(seconds)
    wall_ns = time.monotonic_ns() - start
    spent = {name: common.cpu_ns([pid]) - before[name] for name, pid in family.items()}
    memory = {name: common.rss_anon_bytes(pid) for name, pid in family.items()}
    return {"seconds": round(wall_ns / 1e9, 2), "cpu_share": round(sum(spent.values()) / wall_ns, 7),
            "cpu_us": {name: round(ns / 1000) for name, ns in spent.items()},
            "rss_anon_bytes": sum(memory.values()), "rss_anon": memory,
            "metronome_share": round((common.cpu_ns([metronome.pid]) - reference_before) / wall_ns, 7),
            "driver_us_per_look": round(common.looks_end(looker) / 1000, 1)}


def measure(samples, quick):
    seconds = 0.5 if quick else 20
    with common.place(conf=f"poll = {POLL_MS}ms\n") as p, common.helper("bench_metronome") as (metronome, _), \
            common.helper("bench_looker", POLL_MS, on=p) as (looker, _):
        common.settle(0.2 if quick else 6)  # the first looks, and one round of the slowest timer
        none = watch(p, metronome, looker, seconds)
        common.add_holders(p, 2 if quick else HOLDERS)
        common.settle(0.2 if quick else 2)
        some = watch(p, metronome, looker, seconds)
        here = common.machine(p.dir)
    some["driver_share"] = round(some["driver_us_per_look"] / 1000 / POLL_MS, 7)
    some["own_share"] = round(max(0, some["cpu_share"] - some["driver_share"]), 7)
    worst = max(none["cpu_share"], some["own_share"])
    most = max(none["rss_anon_bytes"], some["rss_anon_bytes"])
    bound = (f"<= {BOUND_SHARE} of a core without the driver's own, and RssAnon of all its processes <= {BOUND_BYTES} bytes, "
             "without leases and with ten")
    reference = {"what": "a process that sleeps in epoll_wait with a timer of 1 s",
                 "cpu_share": max(none.pop("metronome_share"), some.pop("metronome_share"))}
    raw = {"no_lease": none, f"{HOLDERS}_idle_leases": some}
    out = common.result("idle", worst, bound, worst <= BOUND_SHARE and most <= BOUND_BYTES, raw, reference,
                        raw if samples else None)
    out["machine"] = here
    return out
