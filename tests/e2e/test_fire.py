# SPDX-License-Identifier: Apache-2.0
"""Persistence under fire, with the real daemon: killed at any moment among random clients (A4, F77), the journal locked for
seconds (F73), deleted, emptied or replaced while it is in use (F75). What was answered is in the books, what is in the books
was asked for, nothing is there by half. LESSOR_FIRE_ROUNDS makes the first one longer.

That no write in particular is special is tests/unit/test_journal_fire.c: there every single one is the last."""

import contextlib
import http.client
import os
import random
import shutil
import sqlite3

import pytest

from lessor_fixtures import GIB, MIB, Background, until

ROUNDS = int(os.environ.get("LESSOR_FIRE_ROUNDS") or (3 if os.environ.get("LESSOR_SANITIZED") == "1" else 8))
CLIENTS = 4


# ---- kill -9 among random clients ----

class Client:
    """Asks and gives back at random until the daemon is gone; remembers what it was told."""

    def __init__(self, place, seed):
        self.place, self.random = place, random.Random(seed)
        self.held, self.gone, self.open = set(), set(), set()

    def work(self):
        with contextlib.suppress(OSError, EOFError, http.client.HTTPException):
            c = self.place.connection()
            while True:
                if self.held and self.random.random() < 0.45:
                    self.give_back(c, self.random.choice(sorted(self.held)))
                else:
                    self.take(c)

    def take(self, connection):
        a = self.place.ask(self.random.randint(1, 40) * MIB, mode="queue", connection=connection)
        assert a.status in (201, 202), a
        self.held.add(a.json["id"])

    def give_back(self, connection, lease):
        self.open.add(lease)  # until the answer is there it may be either way
        self.held.discard(lease)
        a = self.place.request("DELETE", f"/api/leases/{lease}", connection=connection)
        assert a.status in (200, 410), a
        self.open.discard(lease)
        self.gone.add(lease)


def assert_books_are_exact(place, clients):
    leases = {x["id"]: x for x in place.leases()}
    for client in clients:
        missing = client.held - set(leases)
        assert not missing, f"answered and lost: {missing}"
        assert not client.gone & set(leases), "given back and there again"
    known = set().union(*(c.held | c.open for c in clients))
    # One request a client may have been under way without an answer.
    assert len(set(leases) - known) <= len(clients) * ROUNDS
    device = place.device()
    assert device["reserved_bytes"] == sum(x["reserved_bytes"] for x in leases.values())
    assert {e["lease"] for e in place.queue()} == {i for i, x in leases.items() if x["state"] == "queued"}


def test_F77_daemon_killed_among_random_clients_keeps_exact_books(place):
    seed = int(os.environ.get("LESSOR_FIRE_SEED") or 1)
    chance = random.Random(seed)
    clients = [Client(place, seed * 100 + n) for n in range(CLIENTS)]
    for _ in range(ROUNDS):
        at_work = [Background(c.work) for c in clients]
        enough = sum(len(c.gone) for c in clients) + chance.randint(5, 150)
        until("they have worked", lambda: sum(len(c.gone) for c in clients) >= enough or
              any(not w.is_alive() for w in at_work))
        place.kill()
        for w in at_work:
            w.answer()
        place.start()
        assert place.get("/healthz").json["degraded"] is None
        assert_books_are_exact(place, clients)
    assert "event=journal-disagrees" not in place.log()
    ids = [e["id"] for e in place.events(limit=1000)]
    assert ids == sorted(set(ids))
    for lease in place.leases():
        place.release(lease["id"])
    until("nothing is held", lambda: place.leases() == [] and place.device()["free_bytes"] == 3 * GIB)
    with contextlib.closing(sqlite3.connect(os.path.join(place.home, "journal.db"))) as db:
        assert db.execute("PRAGMA quick_check").fetchone() == ("ok",)


# ---- locked by somebody else (F73) ----

@contextlib.contextmanager
def locked(place):
    other = sqlite3.connect(os.path.join(place.home, "journal.db"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield other
    finally:
        other.execute("ROLLBACK")
        other.close()


def rows(place):
    with contextlib.closing(sqlite3.connect(os.path.join(place.home, "journal.db"))) as db:
        return db.execute("SELECT count(*), max(seq) FROM record").fetchone()


def test_f73_lock_of_another_holds_up_who_asks_and_nobody_else(place):
    place.ask("1G", mode="now")
    with locked(place):
        before = rows(place)
        asked = place.ask_in_background("512M", mode="now")
        # The loop goes on: it answers what does not depend on the disk, while the request waits.
        n_alive = 0
        while asked.is_alive() and n_alive < 5:
            assert place.get("/healthz").status == 200
            n_alive += asked.is_alive()
        assert n_alive == 5, "nobody was answered while one waited for the disk"
        # Who looks at the world waits with it, and is never shown what the disk does not have.
        shown = Background(place.leases)
        a = asked.answer()
        assert a.status == 503 and a.problem == "store-unavailable" and "another program" in a.json["detail"], a
        assert [x["id"] for x in shown.answer()] == ["L1"]
        assert rows(place) == before
        assert place.release("L1").status == 503  # and now at once
    until("the disk is back", lambda: place.get("/healthz").json["degraded"] is None)
    assert place.ask("512M", mode="now").status == 201
    assert sum(x["reserved_bytes"] for x in place.leases()) == GIB + 512 * MIB


def test_f73_what_happened_while_the_journal_was_locked_is_not_forgotten(place):
    owner = place.sleeper()
    place.ask("1G", mode="now", bind={"to": "process", "pid": owner.pid})
    with locked(place):
        asked = place.ask_in_background("512M", mode="now")
        owner.kill()
        owner.wait()
        assert asked.answer().status == 503
    assert place.ended("L1") == "owner-exited"
    assert len([e for e in place.events(lease="L1") if e["kind"] == "ended"]) == 1


# ---- gone under the running daemon (F75) ----

def delete(path):
    os.unlink(path)


def empty(path):
    os.truncate(path, 0)


def replace(path):
    shutil.copy(path, path + ".other")
    os.rename(path + ".other", path)


@pytest.mark.parametrize("what, how", [("", delete), ("", empty), ("-wal", delete), ("-wal", empty), ("", replace)],
                         ids=["deleted", "emptied", "log-deleted", "log-emptied", "replaced"])
def test_f75_journal_that_goes_under_the_daemon_is_begun_anew_and_said(place, what, how):
    owner = place.sleeper()
    place.ask("1G", mode="now", name="held", bind={"to": "process", "pid": owner.pid})
    how(os.path.join(place.home, "journal.db" + what))
    if how is not empty:  # which is found by the next look, once a second, and loses nothing either
        first = place.ask("512M", mode="now")
        if first.status == 201:  # the look of the second came first
            assert place.release(first.json["id"]).status == 200
        else:
            assert first.status == 503 and "while it was in use" in first.json["detail"], first
    until("it was noticed", lambda: place.get("/healthz").json["degraded"])
    until("it goes on", lambda: place.ask("256M", mode="now").status == 201)
    degraded = place.get("/healthz").json["degraded"]
    assert "while it was in use" in degraded, degraded
    held = {x["id"]: x["bytes"] for x in place.leases()}
    assert sorted(held.values()) == [256 * MIB, GIB]
    place.kill()
    place.start()
    assert {x["id"]: x["bytes"] for x in place.leases()} == held
    owner.kill()
    assert place.ended("L1") == "owner-exited"


def test_f75_first_page_that_is_overwritten_is_moved_aside_and_said(place):
    place.ask("1G", mode="now")
    place.kill()
    journal = os.path.join(place.home, "journal.db")
    with open(journal, "r+b") as file:
        file.write(b"\xa5" * 4096)
    was = {suffix: open(journal + suffix, "rb").read() for suffix in ("", "-wal", "-shm")}
    place.start()
    degraded = place.get("/healthz").json["degraded"]
    assert "damaged" in degraded and ".aside-" in degraded, degraded
    aside = degraded.rsplit("kept as ", 1)[1]
    assert {suffix: open(aside + suffix, "rb").read() for suffix in was} == was
    assert place.get("/api/status").json["degraded"] == degraded
    assert place.ask("1G", mode="now").status == 201
    assert place.stop() == 0
    place.start()
    assert place.get("/healthz").json["degraded"] is None


@pytest.mark.parametrize("name", ["clock", "journal.db"])
def test_S12_pipe_in_the_folder_does_not_hold_up_the_start(bare, name):
    os.makedirs(bare.home, mode=0o700)
    os.mkfifo(os.path.join(bare.home, name), 0o600)
    bare.start()
    assert bare.ask("1G", mode="now").status == 201
