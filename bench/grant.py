# SPDX-License-Identifier: Apache-2.0
"""A durable grant over the socket, beside an echo of the same body through the same threads and one commit (design 9)."""

import contextlib
import json
import os
import sqlite3
import subprocess

import common

BOUND = 1.5


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


def compare(p, echo_socket, connections, rounds, blocks):
    done = subprocess.run([common.program("bench_grant"), p.socket, echo_socket, str(connections), str(rounds), str(blocks)],
                          stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def microseconds(side):
    """Figures of one side: taking a lease, giving it back, and how many requests a second went through."""
    requests = len(side["take_ns"]) + len(side["give_ns"])
    return {"post_us": common.spread([ns / 1000 for ns in side["take_ns"]]),
            "delete_us": common.spread([ns / 1000 for ns in side["give_ns"]]),
            "requests_per_s": round(requests / (side["busy_ns"] / 1e9))}


def measure(samples, quick):
    one, many = (20, 40) if quick else (500, 4000)
    with common.place() as p:
        p.ask("1M", mode="now", bind={"to": "heartbeat", "ttl_ms": 3600000})  # the card is in use, as it is on a busy machine
        n_bytes = bytes_of_a_grant(p)
        echo_socket = os.path.join(p.dir, "echo.sock")
        with common.helper("bench_echo", echo_socket, os.path.join(p.dir, "echo.db"), n_bytes):
            common.settle(0.2)
            alone = compare(p, echo_socket, 1, one, 2 if quick else 10)
            crowd = compare(p, echo_socket, 16, many, 2 if quick else 5)
        here = common.machine(p.dir)
    figures = {name: {"1_connection": microseconds(alone[name]), "16_connections": microseconds(crowd[name])}
               for name in ("lessord", "echo")}

    def p50(side, request):
        return figures[side]["1_connection"][request]["p50"]
    ratio = p50("lessord", "post_us") / p50("echo", "post_us")
    throughput = {side: figures[side]["16_connections"]["requests_per_s"] for side in figures}
    raw = dict(figures["lessord"], commit_bytes=n_bytes,
               delete_ratio=round(p50("lessord", "delete_us") / p50("echo", "delete_us"), 3),
               throughput_ratio=round(throughput["echo"] / throughput["lessord"], 3))
    reference = dict(figures["echo"], what=f"the same body echoed, once a second thread has committed {n_bytes} bytes")
    out = common.result("grant", ratio, f"<= {BOUND}: p50 of a POST that is granted / p50 of the echo, one connection",
                        ratio <= BOUND, raw, reference,
                        {"1_connection": alone, "16_connections": crowd} if samples else None)
    out["machine"] = here
    return out
