# SPDX-License-Identifier: Apache-2.0
"""How long the place of a waiting client stays taken after the client vanished, beside a plain request."""

import json
import time

import common


def timed_ms(work):
    start = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - start) / 1e6


def vanish(p, plain):
    """One client that waits and is gone; how long until nobody waits any more, seen by somebody who asks and asks."""
    waiting = p.connection()
    waiting.request("POST", "/api/leases", json.dumps({"bytes": "1G", "bind": {"to": "connection"}}),
                    {"Content-Type": "application/json"})
    while not p.get("/api/queue", connection=plain).json["queue"]:
        pass

    def leave_and_look():
        waiting.sock.close()
        waiting.close()
        while p.get("/api/queue", connection=plain).json["queue"]:
            pass
    return timed_ms(leave_and_look)


def measure(samples, quick):
    rounds = 10 if quick else 300
    measured, reference = [], []
    with common.place() as p:
        if p.ask("3G", mode="now").status != 201:
            raise SystemExit("bench: the card cannot be filled")
        plain = p.connection()
        for _ in range(rounds):
            reference.append(timed_ms(lambda: p.get("/api/queue", connection=plain)))
            measured.append(vanish(p, plain))
        plain.close()
        here = common.machine(p.dir)
    raw, plain_ms = common.spread(measured, 4), common.spread(reference, 4)
    out = common.result("vanish", raw["p50"] / plain_ms["p50"], "none set: at once means a few plain requests", None,
                        {"ms": raw}, {"what": "GET /api/queue on the same connection", "ms": plain_ms},
                        {"ms": measured, "reference_ms": reference} if samples else None)
    out["machine"] = here
    return out
