# SPDX-License-Identifier: Apache-2.0
"""A new stranger: from the moment in which the driver's list first shows it to its event (design 9).

That moment is simgpu's own (`listed` in its trace); the event's is when it has arrived at somebody who follows /api/events,
by the same clock, so that the journal's commit is part of it. Some leases hold memory meanwhile, as on a card in use.
How long a stranger has memory before anybody asks the driver is the interval of looking (poll) and stands beside it.
"""

import json
import queue
import subprocess
import threading
import time

import common

BOUND_MS = 50
ROUNDS = 300
HOLDERS = 10
POLL_MS = 100


def follow(response, arrived):
    """Each event of a stranger that was seen, with the moment at which its last line was here."""
    for line in response:
        if not line.startswith(b"data: "):
            continue
        now_ns = time.monotonic_ns()
        event = json.loads(line[6:])
        if event.get("rule") == "stranger-seen":
            arrived.put((event["pid"], now_ns))


def trace(p, since):
    from lessor_fixtures import SIMGPU
    said = subprocess.run([SIMGPU, "trace", "--json", "--file", p.card, "--since", str(since)], stdout=subprocess.PIPE,
                          text=True, check=True, env=p.env).stdout
    entries = [json.loads(line) for line in said.splitlines()]
    if any("wrapped" in e for e in entries):
        raise SystemExit("bench: the card's trace has lost entries")
    return entries, max([since, *(e["seq"] for e in entries)])


def one(p, arrived, since):
    """One stranger comes, is told of, and goes. Its row, and where the trace stands then."""
    hog = p.hog("1M")
    try:
        pid, event_ns = arrived.get(timeout=30)
    except queue.Empty:
        raise SystemExit("bench: a stranger came, and no event told so") from None
    if pid != hog.pid:
        raise SystemExit(f"bench: the event is of {pid}, the stranger is {hog.pid}")
    entries, since = trace(p, since)
    at = {kind: next((e["at_ns"] for e in entries if e["pid"] == pid and e["kind"] == kind), None) for kind in ("alloc", "listed")}
    if at["listed"] is None or not at["listed"] <= event_ns:
        raise SystemExit(f"bench: the trace does not show when the driver listed {pid} before its event")
    p.started.remove(hog)
    hog.kill()
    hog.wait()
    row = {"pid": pid, "listed_ns": at["listed"], "event_ns": event_ns, "told_ms": (event_ns - at["listed"]) / 1e6}
    if at["alloc"] is not None and at["alloc"] <= event_ns:  # else its context alone was seen first
        row["unasked_ms"] = (at["listed"] - at["alloc"]) / 1e6
    return row, since


def plain_ms(p, connection):
    start = time.monotonic_ns()
    p.get("/healthz", connection=connection)
    return (time.monotonic_ns() - start) / 1e6


def measure(samples, quick):
    rounds, holders = (3, 2) if quick else (ROUNDS, HOLDERS)
    rows, reference, since, arrived = [], [], 0, queue.Queue()
    with common.place(conf=f"poll = {POLL_MS}ms\n") as p:
        common.add_holders(p, holders)
        common.settle()
        stream, plain = p.connection(), p.connection()
        stream.request("GET", f"/api/events?after={max(e['id'] for e in p.events(limit=1000))}",
                       headers={"Accept": "text/event-stream"})
        threading.Thread(target=follow, args=(stream.getresponse(), arrived), daemon=True).start()
        for _ in range(rounds):
            row, since = one(p, arrived, since)
            rows.append(row)
            reference.append(plain_ms(p, plain))
        plain.close()
        here = common.machine(p.dir)
    told = common.spread([row["told_ms"] for row in rows], 3)
    raw = {"strangers": rounds, "holders": holders, "listed_to_event_ms": told,
           "taken_to_listed_ms": common.spread([row["unasked_ms"] for row in rows if "unasked_ms" in row] or [0], 1), "poll_ms": POLL_MS}
    out = common.result("stranger", told["p99"] / BOUND_MS, f"<= 1: p99 from the driver's first listing to the event / {BOUND_MS} ms",
                        told["p99"] <= BOUND_MS, raw, {"what": "GET /healthz in the same moments", "ms": common.spread(reference, 3)},
                        rows if samples else None)
    out["machine"] = here
    return out
