# SPDX-License-Identifier: Apache-2.0
"""Hand-over: a filler gives way to somebody who asks through the socket, and comes back (design 9). Each row is joined with
simgpu's own trace: what lessor adds is the time from asking to the grant, less what the card itself took.

`thaw` is the way back of the same rounds. Beside both stands a bare program that makes the same calls of the driver itself.
"""

import contextlib
import datetime
import json
import os
import subprocess
import sys
import time

import common

BOUND_MS = 10
MIB = 1024 * 1024
FILLER = 96 * MIB  # more than may stay of a process that is parked
LEASE, CARD = 128 * MIB, "224M"  # two leases do not fit beside each other
ROUNDS_OF_A_FILLER = 8  # so often a lease may return within an hour; then another filler takes its place
CONF = f"returns_per_hour = {ROUNDS_OF_A_FILLER}\n"
REST_S = 0.02  # between rounds: the looks that the last one ordered are over
OUT, BACK = ("lock", "checkpoint"), ("restore", "unlock")


# ---- rounds ----

@contextlib.contextmanager
def hog(p):
    """A program that takes its memory when it is told to. Gives the process, and what tells it."""
    from lessor_fixtures import SIMGPU
    words = ["sh", "-c", 'read go; exec "$0" run -- "$0" hog --alloc "$1"', SIMGPU, str(FILLER)]
    process = subprocess.Popen(words, env=p.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def go():
        process.stdin.write("\n")
        process.stdin.flush()
        if not process.stdout.readline().startswith("holding"):
            raise SystemExit("bench: a program got no memory on the card")
    try:
        yield process, go
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@contextlib.contextmanager
def filler(p):
    """A hog under a lease before it takes any memory: nobody the card would have to quiet down for. Gives pid and lease."""
    from lessor_fixtures import until
    with hog(p) as (process, go):
        answer = p.ask(LEASE, mode="now", priority=5, yield_by=["checkpoint"], bind={"to": "process", "pid": process.pid})
        if answer.status != 201:
            raise SystemExit(f"bench: no lease for the filler: {answer!r}")
        lease = answer.json["id"]
        go()
        until("the filler is on the card", lambda: p.lease(lease).json["used_bytes"] == FILLER)
        yield process.pid, lease
    until("the filler's lease is over", lambda: p.lease(lease).status == 410)


def wait_active(p, lease, connection):
    rev = 0
    while True:
        view = p.get(f"/api/leases/{lease}?after={rev}&wait_ms=30000", connection=connection).json
        if view["state"] == "active":
            return
        rev = view["rev"]


def out_and_back(p, lease, connection):
    """Asked and granted, released and at work again."""
    row = {"lease": lease, "request_ns": time.monotonic_ns()}
    answer = p.ask(LEASE, priority=2, connection=connection)
    row["granted_ns"] = time.monotonic_ns()
    if answer.status != 201:
        raise SystemExit(f"bench: no hand-over: {answer!r}")
    time.sleep(REST_S)
    row["release_ns"] = time.monotonic_ns()
    p.request("DELETE", f"/api/leases/{answer.json['id']}", connection=connection)
    wait_active(p, lease, connection)
    row["active_ns"] = time.monotonic_ns()
    time.sleep(REST_S)
    return row


# ---- joined with the card's trace and the journal's events ----

def trace(p, pid, since):
    """What the card did with @pid after entry @since, and the last entry's number."""
    from lessor_fixtures import SIMGPU
    said = subprocess.run([SIMGPU, "trace", "--json", "--file", p.card, "--since", str(since)], stdout=subprocess.PIPE,
                          text=True, check=True, env=p.env).stdout
    entries = [json.loads(line) for line in said.splitlines()]
    if any("wrapped" in e for e in entries):
        raise SystemExit("bench: the card's trace has lost entries")
    return [e for e in entries if e["pid"] == pid], max([since, *(e["seq"] for e in entries)])


def join(entries, calls, from_ns, to_ns):
    """How long the card took for these calls, what came on top, and where that was spent."""
    out, card_ns, at_ns = {}, 0, from_ns
    for call in calls:
        span = {}
        for edge in ("begin", "end"):
            found = [e for e in entries if e["kind"] == f"{call}-{edge}" and from_ns <= e["at_ns"] <= to_ns]
            if len(found) != 1 or found[0]["rc"] != 0:
                raise SystemExit(f"bench: where one {call}-{edge} belongs the card's trace has {found}")
            span[edge] = found[0]["at_ns"]
            out[f"{call}_{edge}_ns"] = span[edge]
        out[f"before_{call}_ms"] = (span["begin"] - at_ns) / 1e6
        card_ns += span["end"] - span["begin"]
        at_ns = span["end"]
    out[f"behind_{calls[-1]}_ms"] = (to_ns - at_ns) / 1e6
    return {"card_ms": card_ns / 1e6, "added_ms": (to_ns - from_ns - card_ns) / 1e6, **out}


def add_events(row, events, ahead_ns):
    """What lies behind the checkpoint, by the journal's times (whole ms): until the stop was ordered, until the card was seen
    to be free (stop and settle), until the grant had arrived (commit and answer)."""
    def last(kind, limit_ns):
        at = [int(datetime.datetime.fromisoformat(e["time"].replace("Z", "+00:00")).timestamp() * 1e9) - ahead_ns
              for e in events if e["kind"] == kind and e["lease"] == row["lease"]]
        return max((ns for ns in at if ns <= limit_ns), default=limit_ns)
    parked_ns = last("parked", row["granted_ns"])
    stop_ns = last("hand", parked_ns)
    row["out"].update(stop_ordered_ms=(stop_ns - row["out"]["checkpoint_end_ns"]) / 1e6, stop_and_settle_ms=(parked_ns - stop_ns) / 1e6,
                      commit_and_answer_ms=(row["granted_ns"] - parked_ns) / 1e6)


def rounds_of_a_filler(p, n, since):
    """Rows of @n rounds, and where the trace stands then."""
    connection = p.connection()
    with filler(p) as (pid, lease):
        rows = [out_and_back(p, lease, connection) for _ in range(n)]
        entries, since = trace(p, pid, since)
        events = p.events(lease=lease, limit=1000)
    ahead_ns = time.time_ns() - time.monotonic_ns()
    connection.close()
    for row in rows:
        row["out"] = join(entries, OUT, row["request_ns"], row["granted_ns"])
        row["back"] = join(entries, BACK, row["release_ns"], row["active_ns"])
        add_events(row, events, ahead_ns)
    return rows, since


def bare_rounds(p, n, since):
    """The same calls by a bare program, on a program that nobody else cares for."""
    from lessor_fixtures import SIMGPU
    with hog(p) as (process, go):
        go()
        words = [SIMGPU, "run", "--file", p.card, "--", sys.executable, os.path.join(common.HERE, "bare.py"), str(process.pid), str(n)]
        rows = json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, env=p.env).stdout)
        entries, _ = trace(p, process.pid, since)
    for row in rows:
        row["out"] = join(entries, OUT, row["request_ns"], row["granted_ns"])
        row["back"] = join(entries, BACK, row["release_ns"], row["active_ns"])
    return rows


def rounds(quick):
    """Rows of lessor, rows of the bare program, and the machine meanwhile."""
    from lessor_fixtures import until
    fillers, n = (1, 2) if quick else (38, ROUNDS_OF_A_FILLER)
    rows, since = [], 0
    with common.session(CONF, ("--gpus", "1", "--memory", CARD)) as p:
        until("this machine can checkpoint", lambda: p.get("/api/status").json["host"]["checkpoint"] == "can")
        for _ in range(fillers):
            more, since = rounds_of_a_filler(p, n, since)
            rows += more
        here = common.machine(p.dir)
        p.stop()  # nothing of it beside the bare program
        bare = bare_rounds(p, 2 if quick else 50, since)
    return rows, bare, here


# ---- figures ----

def figures(rows, way):
    """Of everything in ms that the rows of one way have."""
    names = [name for name in rows[0][way] if name.endswith("_ms")]
    return {name: common.spread([row[way][name] for row in rows], 3) for name in names}


def report(name, way, samples, quick):
    rows, bare, here = rounds(quick)
    mine = figures(rows, way)
    added = mine["added_ms"]
    raw = {"rows": len(rows), "p50_added_ms": added["p50"], "p99_added_ms": added["p99"], "bytes": FILLER, **mine}
    reference = {"what": "a bare program that makes the same calls of the driver", **figures(bare, way)}
    out = common.result(name, added["p99"] / BOUND_MS, f"<= 1: p99 of what lessor adds to the card's own time / {BOUND_MS} ms, >= 300 rows",
                        added["p99"] <= BOUND_MS, raw, reference, rows if samples else None)
    out["machine"] = here
    return out


def measure(samples, quick):
    return report("handover", "out", samples, quick)
