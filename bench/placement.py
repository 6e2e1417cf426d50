# SPDX-License-Identifier: Apache-2.0
"""Tasks and gangs placed on a cluster a second, beside a fixed loop (design 9).

Held to bounds are 10,000 nodes of 8 GPUs, nearly full, while tasks come and end: single tasks a second, the slowest hundredth,
gangs of 512; and the memory for 100,000 nodes. Two other rules stand beside ours.
"""

import json
import statistics
import subprocess

import common

PLACEMENTS_BOUND, GANGS_BOUND, P99_BOUND_US, BYTES_BOUND = 50_000, 1_000, 1_000, 64_000_000


def run(nodes, placements, gangs, policy):
    words = [common.program("bench_placement"), str(nodes), str(placements), str(gangs), policy]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)


def measure(samples, quick):
    nodes, placements, gangs = (1000, 3000, 10) if quick else (10_000, 300_000, 500)
    runs = [run(nodes, placements, gangs, "ours") for _ in range(1 if quick else 3)]
    others = {policy: run(nodes, placements, gangs, policy) for policy in ("fgd", "best-fit")}
    large = run(2 * nodes if quick else 10 * nodes, placements, max(1, gangs // 10), "ours")
    figures = dict(runs[-1])
    for name in ("placements_per_s", "gangs_per_s", "p50_us", "p99_us", "gang_p99_us"):
        figures[name] = statistics.median(one[name] for one in runs)
    every = runs + list(others.values()) + [large]
    figures["hashes_per_placement"] = round(statistics.median(one["reference_per_s"] / one["placements_per_s"] for one in runs), 1)
    reference = {"what": "FNV-1a over a buffer of 64 bytes", "hashes_per_s": round(statistics.median(one["reference_per_s"] for one in every))}
    for one in (figures, *others.values(), large):
        del one["reference_per_s"]
    ratio = min(figures["placements_per_s"] / PLACEMENTS_BOUND, figures["gangs_per_s"] / GANGS_BOUND,
                P99_BOUND_US / figures["p99_us"], BYTES_BOUND / large["bytes"])
    bound = (f">= {PLACEMENTS_BOUND:,} tasks and {GANGS_BOUND:,} gangs of 512 a second, p99 < 1 ms, 100,000 nodes < 64 MB: "
             "the least of the four ratios >= 1")
    return common.result("placement", ratio, bound, ratio >= 1, {**figures, "others": others, "large": large}, reference,
                         runs if samples else None)
