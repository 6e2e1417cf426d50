# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around the daemon: the driver hangs or crashes (F22), the disk is full (F76), the journal is locked (F73),
holders die (F45). It goes on answering, grants nothing it cannot stand for, and recovers by itself."""

import os
import resource
import signal
import sqlite3

from lessor_fixtures import GIB, until


# ---- the driver ----

def gpu(place):
    return place.get("/healthz").json["gpu"]


def test_F22_driver_that_hangs_is_stale_grants_nothing_and_recovers(place):
    first_eyes = place.eyes()
    assert len(first_eyes) == 1
    place.fault("nvml-hang")
    place.ask("1G", mode="queue")  # keeps it looking
    seen = {1}
    until("it is said to be stale", lambda: (seen.add(len(place.eyes())), gpu(place) == "stale")[1])
    waits = place.ask("1G", mode="queue")
    assert waits.status == 202 and waits.json["state"] == "queued", waits
    # new readers come and hang as well: never a pile of them
    until("another was tried", lambda: (seen.add(len(e := place.eyes())), e and e != first_eyes)[1])
    told = [e["rule"] for e in place.events() if e["kind"] == "eyes"]
    assert told[-1] == "eyes-stale" and told.count("eyes-stale") == 1
    assert place.get("/healthz").json["gpu_age_ms"] is not None
    place.fault("clear", "nvml-hang")
    until("it is back", lambda: (seen.add(len(place.eyes())), gpu(place) == "ok")[1])
    until("what waited is granted", lambda: place.lease(waits.json["id"]).json["state"] == "granted")
    assert max(seen) <= 2
    until("one reader is left", lambda: len(place.eyes()) == 1)
    assert [e["rule"] for e in place.events() if e["kind"] == "eyes"][-1] == "eyes-back"


def test_F22_driver_that_hangs_from_the_start_does_not_keep_the_door_shut(bare):
    bare.fault("nvml-hang")
    bare.start()
    health = bare.get("/healthz")
    assert health.status == 200 and health.json["gpu"] == "stale" and health.json["gpu_age_ms"] is None
    bare.fault("clear", "nvml-hang")
    until("it is seen", lambda: gpu(bare) == "ok" and bare.get("/api/devices").json["devices"])
    assert bare.ask("1G", mode="now").status == 201


def test_reader_that_is_killed_is_replaced_and_holders_stay(place):
    place.ask("1G", mode="now")
    (eyes,) = place.eyes()
    os.kill(eyes, signal.SIGKILL)
    until("another looks", lambda: (e := place.eyes()) and e != [eyes] and gpu(place) == "ok")
    assert place.lease("L1").json["state"] == "active" and place.device()["reserved_bytes"] == GIB


def test_holder_that_dies_while_nobody_looks_is_noticed_afterwards(place):
    hog = place.hog("1G")
    until("it is seen", place.strangers)
    place.ask("1G", mode="queue")
    place.fault("nvml-hang")
    until("stale", lambda: gpu(place) == "stale")
    hog.kill()
    hog.wait()
    place.fault("clear", "nvml-hang")
    until("its memory is back", lambda: place.get("/api/status").json["strangers"] == [])
    until("and free", lambda: place.device()["free_bytes"] == 2 * GIB)


def test_machine_without_a_driver_is_served_and_says_so(bare):
    import subprocess
    from lessor_fixtures import LESSORD
    with open(os.path.join(bare.dir, "lessord.err"), "ab") as err:
        bare.daemon = subprocess.Popen([LESSORD, "--dir", bare.home], env=bare.env, stdin=subprocess.DEVNULL, stdout=err,
                                       stderr=err)
    until("it is ready", lambda: "ready socket=" in bare.log())
    if bare.get("/healthz").json["gpu"] == "ok":
        return  # there is a driver on this machine
    assert bare.get("/healthz").json["gpu"] == "none" and bare.get("/api/devices").json == {"devices": []}
    a = bare.ask("1G")
    assert a.status == 422 and a.problem == "no-devices", a


# ---- holders ----

def test_F45_memory_of_a_killed_holder_is_free_again_by_its_end(place):
    holder = place.hog("1G")
    a = place.ask("1G", mode="now", bind={"to": "process", "pid": holder.pid})
    assert a.status == 201, a
    until("its memory is its own", lambda: place.lease("L1").json["used_bytes"] == GIB)
    assert place.device()["free_bytes"] == 2 * GIB and place.get("/api/status").json["strangers"] == []
    holder.send_signal(signal.SIGKILL)
    assert place.ended("L1") in ("owner-exited", "workers-gone")
    until("it is free", lambda: place.device()["free_bytes"] == 3 * GIB)
    assert len([e for e in place.events(lease="L1") if e["kind"] == "ended"]) == 1


# ---- the disk ----

def test_F76_full_disk_refuses_changes_and_recovers_when_there_is_room(place):
    place.ask("1G", mode="now")
    owner = place.sleeper()
    place.ask("512M", mode="now", bind={"to": "process", "pid": owner.pid})
    before = [x["id"] for x in place.leases()]
    pid = place.daemon.pid
    limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, limits[1]))
    a = place.ask("256M", mode="now")
    assert a.status == 507 and a.problem == "store-full", a
    assert place.release("L1").status == 507
    assert [x["id"] for x in place.leases()] == before and place.device()["reserved_bytes"] == GIB + GIB // 2
    assert place.get("/healthz").json["degraded"]
    owner.kill()  # a fact: it waits, and is not forgotten
    owner.wait()
    assert place.get("/healthz").status == 200
    resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
    assert place.ended("L2") == "owner-exited"
    until("it takes requests again", lambda: place.ask("256M", mode="now").status == 201)
    assert place.get("/healthz").json["degraded"] is None
    ids = [e["id"] for e in place.events()]
    assert ids == sorted(set(ids))
    place.kill()
    place.start()
    assert {x["id"] for x in place.leases()} >= {"L1"} and place.lease("L2").status == 410
    for name in os.listdir(place.home):
        if name in ("journal.db", "clock"):
            assert os.path.getsize(os.path.join(place.home, name)) > 0


def test_F73_journal_locked_by_somebody_refuses_changes_and_recovers(place):
    place.ask("1G", mode="now")
    other = sqlite3.connect(os.path.join(place.home, "journal.db"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    a = place.ask("1G", mode="now")
    assert a.status == 503 and a.problem == "store-unavailable", a
    assert [x["id"] for x in place.leases()] == ["L1"]
    assert place.release("L1").status == 503
    assert place.lease("L1").json["state"] == "active"
    other.execute("ROLLBACK")
    other.close()
    until("it can be written again", lambda: place.release("L1").status == 200)
    assert place.ask("1G", mode="now").status == 201
