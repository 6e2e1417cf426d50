# SPDX-License-Identifier: Apache-2.0
"""Decisions of the core a second on a made-up day with 100 leases, beside a fixed loop (design 9)."""

import json
import statistics
import subprocess

import common

BOUND = 1_000_000


def measure(samples, quick):
    rounds, steps = (1, 2000) if quick else (3, 100000)
    days = [json.loads(subprocess.run([common.program("bench_core"), str(steps)], check=True, stdout=subprocess.PIPE,
                                      text=True).stdout) for _ in range(rounds)]
    per_s = statistics.median(day["steps_per_s"] for day in days)
    reference_per_s = statistics.median(day["reference_per_s"] for day in days)
    raw = dict(days[-1], steps_per_s=per_s)
    raw.pop("reference_per_s")
    reference = {"what": "FNV-1a over a buffer of 64 bytes", "hashes_per_s": round(reference_per_s),
                 "hashes_per_step": round(reference_per_s / per_s, 2)}
    return common.result("core", per_s / BOUND, f">= {BOUND:,} steps a second: ratio >= 1", per_s >= BOUND, raw, reference,
                         days if samples else None)
