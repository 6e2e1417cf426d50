# SPDX-License-Identifier: Apache-2.0
"""lessord whose k-th allocation fails, for each k that a request reaches (security A5).

Each time it answers, with an error or without, or hangs up on this caller; or it ends with words and status 1, as it may when
there is no memory, and the next one has the same books. It never crashes, never hangs, and forgets nothing it promised.
"""

import contextlib
import http.client
import mmap
import os
import struct

import pytest

from lessor_fixtures import BUILD, Place, until

SHIM = os.path.join(BUILD, "tests", "e2e", "libfailing_alloc.so")
ANSWER_S = 20
ALLOCATIONS_MAX = 3000  # more than any request needs; then it is a loop

pytestmark = pytest.mark.skipif(not os.path.exists(SHIM), reason="built with sanitizers, which are to be the first library")


def shape(value, depth):
    """What an answer has, without its figures: an answer with success has the whole of it."""
    if isinstance(value, dict) and depth:
        return {key: shape(part, depth - 1) for key, part in value.items()}
    if isinstance(value, list) and depth:
        return [shape(value[0], depth - 1)] if value else []
    return None


class Forgetful(Place):
    """A daemon that can be made to run out of memory once."""

    def __init__(self):
        super().__init__()
        path = os.path.join(self.dir, "order")
        with open(path, "w+b") as file:
            file.write(bytes(16))
            file.flush()
            self.order = mmap.mmap(file.fileno(), 16)
        self.env |= {"FAILING_ALLOC": path, "LD_PRELOAD": SHIM}
        self.conf("poll = 60s\npoll_idle = 60s\n")  # what allocates is the request

    def fail_in(self, k):
        self.order[:8] = struct.pack("=Q", k)

    def failed(self):
        return struct.unpack("=Q", self.order[8:16])[0]

    def try_once(self, k, request, depth):
        """What became of the request whose k-th allocation fails, the answer's shape, and whether one did."""
        before, seen = self.failed(), None
        with contextlib.closing(self.connection()) as c:
            c.timeout = ANSWER_S
            c.connect()
            self.fail_in(k)
            try:
                answer = request(c)
                outcome = answer.status
                seen = shape(answer.json, depth) if answer.raw.startswith(b"{") else None
                assert outcome < 400 or answer.json["title"], answer
            except (http.client.RemoteDisconnected, ConnectionError, http.client.IncompleteRead):
                outcome = "hung up"
            finally:
                self.fail_in(0)
        return outcome, seen, self.failed() > before

    def what_became(self):
        """One that is about to end may not answer any more."""
        if self.daemon.poll() is not None:
            return "ended"
        with contextlib.suppress(OSError, http.client.HTTPException):
            return "goes on" if self.get("/healthz").json["degraded"] is None else None
        return None

    def revive(self):
        """Ended, it has said why, and another goes on. Returns whether it had to be. A journal that had no memory is back."""
        if until("it has ended, or its journal is back", self.what_became) == "goes on":
            return False
        assert self.daemon.returncode == 1, f"lessord ended with {self.daemon.returncode}: {self.log()[-2000:]}"
        assert "level=error" in self.log().splitlines()[-1], self.log()[-2000:]
        self.start()
        return True


@pytest.fixture(scope="module")
def forgetful():
    place = Forgetful()
    place.start()
    yield place
    assert place.close() == 0


HEARTBEAT = {"to": "heartbeat", "ttl_ms": 600000}


def simple(method, path, body=None):
    return lambda place, c: place.request(method, path, body, connection=c)


def on_lease(method, suffix="", body=None):
    """A request about a lease that is made for it, with memory."""
    def begin(place):
        return place.ask("64M", mode="now", bind=HEARTBEAT).json["id"]

    def request(place, c, lease):
        return place.request(method, f"/api/leases/{lease}{suffix}", body, connection=c)
    return begin, request


REQUESTS = {
    "healthz": simple("GET", "/healthz"),
    "metrics": simple("GET", "/metrics"),
    "status": simple("GET", "/api/status"),
    "devices": simple("GET", "/api/devices"),
    "leases": simple("GET", "/api/leases"),
    "queue": simple("GET", "/api/queue"),
    "events": simple("GET", "/api/events?limit=20"),
    "nothing": simple("GET", "/api/nothing"),
    "plan": simple("POST", "/api/plan", {"bytes": "64M"}),
    "acquire": simple("POST", "/api/leases", {"bytes": "64M", "mode": "now", "bind": HEARTBEAT}),
    "acquire too much": simple("POST", "/api/leases", {"bytes": "4G", "mode": "now", "bind": HEARTBEAT}),
    "queue up": simple("POST", "/api/leases", {"bytes": "2500M", "mode": "queue", "bind": HEARTBEAT}),
    "acquire wrongly": simple("POST", "/api/leases", {"bytes": "64M", "surprise": 1}),
    "show": on_lease("GET"),
    "activate": on_lease("POST", "/activate", {}),
    "renew": on_lease("POST", "/renew", {}),
    "change": on_lease("PATCH", "", {"priority": 4}),
    "release": on_lease("DELETE"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_A5_request_without_memory_is_answered_or_refused_and_nothing_is_forgotten(forgetful, name):
    place, made = forgetful, REQUESTS[name]
    begin, request = made if isinstance(made, tuple) else (None, made)
    outcomes, shapes, n_ended, k = {}, [], 0, 1
    while True:
        kept = {x["id"] for x in place.leases()}
        own = begin(place) if begin else None
        args = (own,) if begin else ()
        # the reason of a lease has parts by what happened to it
        outcome, seen, fired = place.try_once(k, lambda c, args=args: request(place, c, *args), depth=1 if begin else 3)
        if outcome == 200:
            shapes.append((k, seen))
        n_ended += place.revive()
        there = {x["id"] for x in place.leases()}
        assert kept <= there, f"allocation {k}: a lease is gone"
        for lease in there - kept:
            place.release(lease)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if not fired:
            break
        k += 1
        assert k < ALLOCATIONS_MAX, outcomes
    print(f"{name}: {k - 1} allocations, {outcomes}, ended {n_ended} times")
    assert k > 1, "not one allocation failed"
    assert isinstance(outcome, int) and outcome < 500, f"with memory it is answered {outcome}"
    if name != "events":  # each of which has parts of its own
        assert [x for x in shapes if x[1] != shapes[-1][1]] == [], "an answer with success lacks parts"


def test_A5_books_after_all_that_are_what_a_restart_reads(forgetful):
    place = forgetful
    keeps = place.ask("128M", mode="now", bind=HEARTBEAT).json["id"]
    before = sorted((x["id"], x["state"], x["bytes"]) for x in place.leases())
    assert place.stop() == 0
    place.start()
    assert sorted((x["id"], x["state"], x["bytes"]) for x in place.leases()) == before
    assert place.release(keeps).status in (200, 204)
    assert [name for name in os.listdir(place.home) if "bad" in name or "damaged" in name] == []
