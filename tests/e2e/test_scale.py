# SPDX-License-Identifier: Apache-2.0
"""Many at once: no grant is lost or given twice, the books are equal at the end, and memory does not grow with work done."""

import os
import random
import threading

from lessor_fixtures import MIB, until

CLIENTS = 100
# Under sanitizers the same story is told with fewer leases: the daemon is several times slower, and its memory says nothing.
SANITIZED = os.environ.get("LESSOR_SANITIZED") == "1"
LEASES = 20 if SANITIZED else 200


def rss_anon_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    raise AssertionError("no RssAnon")


class Client(threading.Thread):
    def __init__(self, place, number, barrier):
        super().__init__(daemon=True)
        self.place, self.barrier = place, barrier
        self.rng = random.Random(number)
        self.ids, self.error = [], None

    def run(self):
        try:
            connection = self.place.connection()
            for i in range(LEASES):
                if i == LEASES // 10:
                    self.barrier.wait()
                    self.barrier.wait()
                answer = self.place.ask(self.rng.randrange(8, 96) * MIB, mode="wait", connection=connection)
                assert answer.status == 201, answer
                lease = answer.json
                assert lease["state"] == "active", lease
                self.ids.append(lease["id"])
                gone = self.place.request("DELETE", f"/api/leases/{lease['id']}", connection=connection)
                assert gone.status == 200, gone
            connection.close()
        except Exception as e:  # noqa: BLE001 - told by the test
            self.error = e
            self.barrier.abort()


def test_100_clients_take_200_leases_each_and_the_books_are_equal_at_the_end(place):
    barrier = threading.Barrier(CLIENTS + 1)
    clients = [Client(place, n, barrier) for n in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        barrier.wait()
        after_10_percent = rss_anon_kib(place.daemon.pid)
        barrier.wait()
    except threading.BrokenBarrierError:
        pass
    for client in clients:
        client.join()
    errors = [c.error for c in clients if c.error and not isinstance(c.error, threading.BrokenBarrierError)]
    assert not errors, errors[:3]

    ids = [i for c in clients for i in c.ids]
    assert len(ids) == CLIENTS * LEASES
    assert len(set(ids)) == len(ids), "a lease was given twice"

    until("nothing is held", lambda: place.get("/api/leases").json["leases"] == [])
    device = place.get("/api/devices").json["devices"][0]
    assert device["reserved_bytes"] == 0
    assert device["free_bytes"] == device["total_bytes"]
    assert place.get("/api/queue").json["queue"] == []
    if not SANITIZED:
        until(f"memory is within 5 % of the {after_10_percent} KiB of a tenth of the work",
              lambda: rss_anon_kib(place.daemon.pid) <= after_10_percent * 1.05)
