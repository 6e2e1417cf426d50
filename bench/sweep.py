# SPDX-License-Identifier: Apache-2.0
"""What one look costs, from the driver to the journal: it may grow with who holds memory, not with the processes there are.

One of the holders grows by a page between two looks, so that each shows something new and goes all the way. The
CPU time is that of the daemon and its eyes, less what the simulated driver takes by itself: that asks /proc about every
client of the card at each call, far more than lessor does. A bare program tells how much, in the same moments.
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
PATIENCE_S = 60
FEW, MANY = 10, 10000  # other processes on the machine
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


def cost_of_a_look(p, looker, seconds):
    """CPU time of one look, in microseconds: all of it, and the driver's; and over how many looks that was measured."""
    pids = list(common.family(p.daemon.pid).values())
    common.looks_begin(looker, max(1, int(seconds * 900 / POLL_MS)))
    n_before, before = looks(p), common.cpu_ns(pids)
    give_up = time.monotonic() + PATIENCE_S
    time.sleep(seconds)
    while (n := looks(p) - n_before) < 2 and time.monotonic() < give_up:  # a busy machine takes its time
        time.sleep(seconds)
    spent = common.cpu_ns(pids) - before
    driver_ns = common.looks_end(looker)
    if n < 2:
        raise SystemExit("bench: the looks did not reach the journal")
    return spent / n / 1000, driver_ns / 1000, n


def with_crowd(p, looker, n_others, seconds, rows):
    with common.helper("bench_crowd", n_others) as (_, said):
        common.settle(0.2)
        us, driver_us, n = cost_of_a_look(p, looker, seconds)
        rows.append({"other_processes": int(said[0]), "looks": n, "us_per_look": round(us, 1), "driver_us": round(driver_us, 1),
                     "own_us": round(us - driver_us, 1)})


def medians(rows):
    """The figures of several windows as one."""
    return {name: round(statistics.median(row[name] for row in rows), 1) if name != "looks" else sum(r["looks"] for r in rows)
            for name in rows[0]}


def measure(samples, quick):
    few, many = (5, 40) if quick else (FEW, MANY)
    holders = (2, 4) if quick else HOLDERS
    windows, seconds = (1, 0.3) if quick else (4, 3)
    rows_few, rows_many, rows_more = [], [], []
    with common.place(conf=f"poll = {POLL_MS}ms\npoll_busy = {POLL_MS}ms\n") as p, \
            common.helper("bench_looker", POLL_MS, on=p) as (looker, _):
        common.add_holders(p, holders[0])
        p.hog("4K", "--grow", "4K/15ms", "--max", "512M")
        common.settle()
        for _ in range(windows):  # in turns, so that what disturbs the machine disturbs both
            with_crowd(p, looker, few, seconds, rows_few)
            with_crowd(p, looker, many, seconds, rows_many)
        common.add_holders(p, holders[1] - holders[0], have=holders[0])
        for _ in range(windows):
            with_crowd(p, looker, few, seconds, rows_more)
        here = common.machine(p.dir)

    among_many, among_few, more = medians(rows_many), medians(rows_few), medians(rows_more)
    ratio = among_many["own_us"] / max(among_few["own_us"], 0.1)
    raw = {f"{holders[0]}_holders": among_many, f"{holders[1]}_holders": more,
           "own_us_per_more_holder": round((more["own_us"] - among_few["own_us"]) / (holders[1] - holders[0]), 2)}
    reference = {"what": "the same with few other processes", f"{holders[0]}_holders": among_few}
    out = common.result("sweep", ratio, f"<= {BOUND}: cost of a look among {many} other processes / among {few}",
                        ratio <= BOUND, raw, reference,
                        {"many": rows_many, "few": rows_few, "more_holders": rows_more} if samples else None)
    out["machine"] = here
    return out
