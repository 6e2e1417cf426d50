# SPDX-License-Identifier: Apache-2.0
"""A durable grant over the socket, beside an echo of the same body through the same threads and one commit (design 9).

Held to the bound is a grant for which the card need not be looked at first: a grant uses a reading that is younger than the
last release (design 4.2). So each connection takes several leases in a row and then gives them back in a row. What a grant
costs that comes right behind a release stands beside it: it waits for a look at the card.
"""

import contextlib
import json
import os
import sqlite3
import statistics
import subprocess

import common

BOUND = 1.5
HELD = 32  # leases at a time, of all clients together


def journal_bytes(p):
    """What the rows of the journal hold, whatever its tables are called."""
    with contextlib.closing(sqlite3.connect(f"file:{p.home}/journal.db?mode=ro", uri=True)) as db:
        total = 0
        for table, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = [row[1] for row in db.execute(f'SELECT * FROM pragma_table_info("{table}")')]
            lengths = " + ".join(f'coalesce(length("{c}"), 0)' for c in columns)
            total += db.execute(f'SELECT coalesce(sum({lengths}), 0) FROM "{table}"').fetchone()[0]
        return total


def bytes_of_a_grant(p, n=50):
    """How many bytes one POST that is granted adds to the journal: what the echo has to commit."""
    c = p.connection()
    before, ids = journal_bytes(p), []
    for _ in range(n):
        answer = p.ask("1M", mode="now", connection=c)
        if answer.status != 201:
            raise SystemExit(f"bench: no lease: {answer!r}")
        ids.append(answer.json["id"])
    grown = journal_bytes(p) - before
    for lease in ids:
        p.request("DELETE", f"/api/leases/{lease}", connection=c)
    c.close()
    return max(1, grown // n)


def compare(p, echo_socket, connections, held, rounds, blocks):
    words = [common.program("bench_grant"), p.socket, echo_socket, *map(str, (connections, held, rounds, blocks))]
    return json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout)


def microseconds(side):
    """Figures of one side: taking a lease, giving it back, and how many requests a second went through."""
    requests = len(side["take_ns"]) + len(side["give_ns"])
    return {"post_us": common.spread([ns / 1000 for ns in side["take_ns"]]),
            "delete_us": common.spread([ns / 1000 for ns in side["give_ns"]]),
            "requests_per_s": round(requests / (side["busy_ns"] / 1e9))}


def ratio_of(run, rounds, kind="take_ns"):
    """Of the p50 of a block, once the quickest quarter of the blocks is through: a block that others on the machine disturb
    takes twice as long, and which side it hits is chance."""
    def block_p50(ns):
        return common.quantile([statistics.median(ns[i:i + rounds]) for i in range(0, len(ns), rounds)], 0.25)
    return round(block_p50(run["lessord"][kind]) / block_p50(run["echo"][kind]), 3)


def measure(samples, quick):
    one, many, blocks = (20, 40, 2) if quick else (100, 4000, 96)
    with common.place() as p:
        p.ask("1M", mode="now", bind={"to": "heartbeat", "ttl_ms": 3600000})  # the card is in use, as it is on a busy machine
        n_bytes = bytes_of_a_grant(p)
        echo_socket = os.path.join(p.dir, "echo.sock")
        with common.helper("bench_echo", echo_socket, os.path.join(p.dir, "echo.db"), n_bytes):
            common.settle(0.2)
            runs = {"1_connection": compare(p, echo_socket, 1, HELD, one, blocks),
                    "1_connection_right_after_a_release": compare(p, echo_socket, 1, 1, one, blocks),
                    "16_connections": compare(p, echo_socket, 16, HELD // 16, many, max(2, blocks // 16))}
        here = common.machine(p.dir)
    figures = {side: {name: microseconds(run[side]) for name, run in runs.items()} for side in ("lessord", "echo")}
    throughput = {side: figures[side]["16_connections"]["requests_per_s"] for side in figures}
    raw = dict(figures["lessord"], commit_bytes=n_bytes, delete_ratio=ratio_of(runs["1_connection"], one, "give_ns"),
               right_after_a_release_ratio=ratio_of(runs["1_connection_right_after_a_release"], one),
               throughput_ratio=round(throughput["echo"] / throughput["lessord"], 3))
    reference = dict(figures["echo"], what=f"the same body echoed, once a second thread has committed {n_bytes} bytes")
    ratio = ratio_of(runs["1_connection"], one)
    out = common.result("grant", ratio, f"<= {BOUND}: p50 of a POST that is granted / p50 of the echo, one connection, undisturbed",
                        ratio <= BOUND, raw, reference, runs if samples else None)
    out["machine"] = here
    return out
