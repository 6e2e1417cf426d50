# SPDX-License-Identifier: Apache-2.0
"""What lessor costs while nothing happens: share of a core, and memory that is its own (design 9)."""

import time

import common

BOUND_SHARE = 0.001
BOUND_BYTES = 8 * 1024 * 1024
HOLDERS = 10


def watch(p, metronome, seconds):
    """Shares of a core over @seconds, of lessor and of the reference, and memory at the end."""
    family = common.family(p.daemon.pid)
    start = time.monotonic_ns()
    before, reference_before = {name: common.cpu_ns([pid]) for name, pid in family.items()}, common.cpu_ns([metronome.pid])
    time.sleep(seconds)
    wall_ns = time.monotonic_ns() - start
    spent = {name: common.cpu_ns([pid]) - before[name] for name, pid in family.items()}
    memory = {name: common.rss_anon_bytes(pid) for name, pid in family.items()}
    return {"seconds": round(wall_ns / 1e9, 2), "cpu_share": round(sum(spent.values()) / wall_ns, 7),
            "cpu_us": {name: round(ns / 1000) for name, ns in spent.items()},
            "rss_anon_bytes": sum(memory.values()), "rss_anon": memory,
            "reference_cpu_share": round((common.cpu_ns([metronome.pid]) - reference_before) / wall_ns, 7)}


def measure(samples, quick):
    seconds = 0.5 if quick else 20
    with common.place() as p, common.helper("bench_metronome") as (metronome, _):
        common.settle(0.2 if quick else 6)  # the first looks, and one round of the slowest timer
        none = watch(p, metronome, seconds)
        common.add_holders(p, 2 if quick else HOLDERS)
        common.settle(0.2 if quick else 2)
        some = watch(p, metronome, seconds)
        here = common.machine(p.dir)
    worst = max(none["cpu_share"], some["cpu_share"])
    most = max(none["rss_anon_bytes"], some["rss_anon_bytes"])
    bound = f"<= {BOUND_SHARE} of a core, and RssAnon of all its processes <= {BOUND_BYTES} bytes, in both states"
    reference = {"what": "a process that sleeps in epoll_wait with a timer of 1 s",
                 "cpu_share": max(none.pop("reference_cpu_share"), some.pop("reference_cpu_share"))}
    raw = {"no_lease": none, f"{HOLDERS}_idle_leases": some}
    out = common.result("idle", worst, bound, worst <= BOUND_SHARE and most <= BOUND_BYTES, raw, reference,
                        raw if samples else None)
    out["machine"] = here
    return out
