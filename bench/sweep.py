# SPDX-License-Identifier: Apache-2.0
"""What one look costs, from the driver to the journal: it may grow with who holds memory, not with the processes there are.

One of the holders grows by a page every few milliseconds, so that every look shows something new and goes all the way. The
CPU time is that of the daemon and its eyes, the simulated driver inside the eyes included.
"""

import contextlib
import os
import re
import sqlite3
import statistics
import time

import common

BOUND = 1.2
POLL_MS = 20
FEW, MANY = 50, 2000  # other processes on the machine
HOLDERS = (10, 100)


def kind_of_reading():
    """The number under which the journal keeps readings, from the list of kinds itself."""
    with open(os.path.join(common.HERE, "..", "src", "model", "input.h"), encoding="utf-8") as file:
        return re.findall(r"^\s+(INPUT_\w+),", file.read(), re.M).index("INPUT_READING")


def looks(p):
    """How many changed readings the journal has."""
    with contextlib.closing(sqlite3.connect(f"file:{p.home}/journal.db?mode=ro", uri=True)) as db:
        kinds = dict(db.execute("SELECT kind, count(*) FROM record GROUP BY kind").fetchall())
    return kinds.get(kind_of_reading(), 0)


def cost_of_a_look(p, seconds):
    """CPU time of eyes and brain for one look, in microseconds, and over how many looks that was measured."""
    pids = list(common.family(p.daemon.pid).values())
    n_before, before = looks(p), common.cpu_ns(pids)
    time.sleep(seconds)
    spent, n = common.cpu_ns(pids) - before, looks(p) - n_before
    if n < 2:
        raise SystemExit("bench: the looks did not reach the journal")
    return spent / n / 1000, n


def with_crowd(p, n_others, seconds, rows):
    with common.helper("bench_crowd", n_others) as (_, said):
        common.settle(0.2)
        us, n = cost_of_a_look(p, seconds)
        rows.append({"other_processes": int(said[0]), "us_per_look": round(us, 1), "looks": n})


def measure(samples, quick):
    few, many = (5, 40) if quick else (FEW, MANY)
    holders = (2, 4) if quick else HOLDERS
    windows, seconds = (1, 0.3) if quick else (4, 3)
    rows_few, rows_many, rows_more = [], [], []
    with common.place(conf=f"poll = {POLL_MS}ms\npoll_busy = {POLL_MS}ms\n") as p:
        common.add_holders(p, holders[0])
        p.hog("4K", "--grow", "4K/5ms", "--max", "512M")
        common.settle()
        for _ in range(windows):  # in turns, so that what disturbs the machine disturbs both
            with_crowd(p, few, seconds, rows_few)
            with_crowd(p, many, seconds, rows_many)
        common.add_holders(p, holders[1] - holders[0], have=holders[0])
        for _ in range(windows):
            with_crowd(p, few, seconds, rows_more)
        here = common.machine(p.dir)

    def us(rows):
        return statistics.median(row["us_per_look"] for row in rows)
    ratio = us(rows_many) / us(rows_few)
    raw = {"holders": holders[0], "us_per_look": us(rows_many), "looks": sum(r["looks"] for r in rows_many),
           "other_processes": rows_many[0]["other_processes"], "asked_for": many,
           f"us_per_look_{holders[1]}_holders": us(rows_more),
           "us_per_more_holder": round((us(rows_more) - us(rows_few)) / (holders[1] - holders[0]), 2)}
    reference = {"what": "the same with few other processes", "us_per_look": us(rows_few),
                 "looks": sum(r["looks"] for r in rows_few), "other_processes": rows_few[0]["other_processes"]}
    out = common.result("sweep", ratio, f"<= {BOUND}: cost of a look among {many} other processes / among {few}",
                        ratio <= BOUND, raw, reference,
                        {"many": rows_many, "few": rows_few, "more_holders": rows_more} if samples else None)
    out["machine"] = here
    return out
