# SPDX-License-Identifier: Apache-2.0
"""Decisions of the core a second on a made-up day with 100 leases, beside a fixed loop (design 9).

Held to the bound is the day of design 9's mix: of its inputs at least a fifth are requests, and plans to take memory back begin
in at least one step of fifty. The day on which nobody gives way, by which the core was measured before it had plans, stands
beside it.
"""

import json
import statistics
import subprocess

import common

BOUND = 1_000_000
LEAST = {"requests": 0.20, "plans": 0.02}


def days(kind, steps, rounds):
    words = [common.program("bench_core"), str(steps), *kind]
    return [json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout) for _ in range(rounds)]


def figures(runs):
    """The middle of the runs, by the reference loop that stood beside each, and what the day consists of."""
    out = dict(runs[-1], steps_per_s=statistics.median(run["steps_per_s"] for run in runs),
               hashes_per_step=round(statistics.median(run["reference_per_s"] / run["steps_per_s"] for run in runs), 2))
    out.pop("reference_per_s")
    return out


def measure(samples, quick):
    rounds, steps = (1, 2000) if quick else (3, 100000)
    runs, queue = days([], steps, rounds), days(["queue"], steps, rounds)
    day = figures(runs)
    missing = [name for name, least in LEAST.items() if day[name] < least]
    if missing and not quick:
        raise SystemExit(f"bench: the day has fewer {' and '.join(missing)} than design 9 asks for")
    reference = {"what": "FNV-1a over a buffer of 64 bytes",
                 "hashes_per_s": round(statistics.median(run["reference_per_s"] for run in runs + queue))}
    return common.result("core", day["steps_per_s"] / BOUND, f">= {BOUND:,} steps a second: ratio >= 1", day["steps_per_s"] >= BOUND,
                         {**day, "without_plans": figures(queue)}, reference, {"runs": runs, "without_plans": queue} if samples else None)
