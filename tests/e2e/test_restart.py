# SPDX-License-Identifier: Apache-2.0
"""The daemon ends, however it ends, and comes back: same ids, same holders (I6); a second one is refused."""

import contextlib
import http.client
import os
import signal
import sqlite3
import subprocess
import time

import pytest

from lessor_fixtures import GIB, LESSORD, MIB, Background, until


def books(place):
    return [{k: x[k] for k in ("id", "uid", "state", "bytes", "device", "reserved_bytes", "arrived", "granted", "rev",
                               "binding", "name", "consumer")} for x in place.leases()]


def fill(place):
    """A holder with a process, one with a heartbeat, one that waits."""
    owner = place.sleeper()
    place.ask("1500M", mode="now", name="held", bind={"to": "process", "pid": owner.pid})
    place.ask("1000M", mode="now", **{"for": "1h"})
    place.ask("1400M", mode="queue", name="waits", bind={"to": "process", "pid": owner.pid})
    return owner


def test_daemon_killed_and_started_again_has_the_same_books(place):
    owner = fill(place)
    before, queue = books(place), [e["lease"] for e in place.queue()]
    events = place.events()
    place.kill()
    place.start()
    after = books(place)
    assert [x["id"] for x in after] == ["L1", "L2", "L3"]
    for was, now in zip(before, after):
        # wall times of the past are told from the world's clock: a millisecond of rounding is no change
        assert {k: v for k, v in was.items() if k not in ("arrived", "granted", "rev")} == \
               {k: v for k, v in now.items() if k not in ("arrived", "granted", "rev")}
        assert now["rev"] >= was["rev"]
    assert [e["lease"] for e in place.queue()] == queue
    assert place.events()[:len(events)] == events
    assert sum(x["reserved_bytes"] for x in after) == 2500 * MIB
    # and they are watched as before
    owner.kill()
    assert place.ended("L1") == "owner-exited" and place.ended("L3") == "owner-exited"
    assert place.ask("1G", mode="now").json["id"] == "L4"


def test_daemon_ended_by_sigterm_leaves_no_socket_and_the_same_books(place):
    fill(place)
    before = [x["id"] for x in place.leases()]
    assert place.stop() == 0
    assert not os.path.exists(place.socket)
    assert place.eyes() == []
    place.start()
    assert [x["id"] for x in place.leases()] == before


def test_owner_that_ended_meanwhile_has_no_lease_any_more(place):
    owner = fill(place)
    place.kill()
    owner.kill()
    owner.wait()
    place.start()
    assert place.ended("L1") == "owner-gone-while-away" and place.ended("L3") == "owner-gone-while-away"
    assert place.lease("L2").json["state"] == "active"


def test_F48_pid_that_was_given_to_somebody_else_is_not_the_owner(place):
    """The number alone is nobody: the start time decides."""
    owner = place.sleeper()
    place.ask("1G", mode="now", bind={"to": "process", "pid": owner.pid})
    place.kill()
    owner.kill()
    owner.wait()
    ticks = os.sysconf("SC_CLK_TCK")
    died = time.clock_gettime(time.CLOCK_BOOTTIME)
    # /proc tells start times in ticks of 10 ms: within one tick nobody could tell the two apart
    until("the tick is over", lambda: int(time.clock_gettime(time.CLOCK_BOOTTIME) * ticks) > int(died * ticks))
    taken = None
    for _ in range(3):  # pids are given out in order: ask for exactly this one next
        try:
            with open("/proc/sys/kernel/ns_last_pid", "w", encoding="utf-8") as f:
                f.write(str(owner.pid - 1))
        except OSError:
            break
        taken = place.sleeper()
        if taken.pid == owner.pid:
            break
    place.start()
    assert place.ended("L1") == "owner-gone-while-away"


def test_lease_bound_to_a_connection_ends_with_the_daemon(place):
    c = place.connection()
    place.ask("1G", mode="now", bind={"to": "connection"}, connection=c)
    place.kill()
    place.start()
    assert place.ended("L1") == "connection-closed"
    c.close()


def test_request_whose_client_waited_on_its_connection_is_cancelled(place):
    """Nobody would take its grant; one that was queued to be collected stays."""
    place.ask("3G", mode="now")
    waiting = place.connection()
    waiting.request("POST", "/api/leases", '{"bytes":"1G"}', {"Content-Type": "application/json"})
    until("it waits", lambda: len(place.queue()) == 1)
    place.ask("1G", mode="queue")
    place.kill()
    place.start()
    assert place.ended("L2") == "cancelled"
    assert [e["lease"] for e in place.queue()] == ["L3"]
    waiting.close()


def test_restarts_in_a_row_keep_ids_growing(place):
    for n in range(1, 6):
        assert place.ask("1G", mode="now").json["id"] == f"L{n}"
        place.release(f"L{n}")
        place.kill()
        place.start()
    assert place.leases() == [] and place.device()["free_bytes"] == 3 * GIB


def test_kill_in_the_middle_of_requests_loses_no_answered_lease(place):
    """What a client was told is in the books afterwards; what is in the books was asked for."""
    def hammer():
        told = []
        c = place.connection()
        try:
            for _ in range(100000):
                a = place.ask(MIB, mode="now", connection=c)
                assert a.status == 201, a
                told.append(a.json["id"])
        except (OSError, EOFError, __import__("http").client.HTTPException):
            return told
        return told
    clients = [Background(hammer) for _ in range(3)]
    until("they are at it", lambda: len(place.leases()) > 30)
    place.kill()
    told = [x for c in clients for x in c.answer()]
    place.start()
    books_now = {x["id"] for x in place.leases()}
    assert len(told) == len(set(told)) and set(told) <= books_now
    assert place.device()["reserved_bytes"] == len(books_now) * MIB


def test_second_daemon_on_the_same_folder_names_the_first(place):
    second = place.spawn_daemon()
    assert second.wait(60) == 78
    assert f"(pid {place.daemon.pid})" in place.log()
    assert place.get("/healthz").status == 200


def test_stale_socket_of_a_killed_daemon_is_replaced(place):
    place.kill()
    assert os.path.exists(place.socket)
    place.start()
    assert place.get("/healthz").status == 200


def test_socket_path_that_is_too_long_is_refused_with_words(bare):
    long = os.path.join(bare.dir, "x" * 100)
    r = subprocess.run([LESSORD, "--dir", long], env=bare.env, capture_output=True, text=True, timeout=60, check=False)
    assert r.returncode == 78 and "107" in r.stderr and "shorter" in r.stderr, r
    assert not os.path.exists(long)


def test_folder_that_others_can_write_to_is_refused(bare):
    os.makedirs(bare.home)
    os.chmod(bare.home, 0o777)
    r = subprocess.run([LESSORD, "--dir", bare.home], env=bare.env, capture_output=True, text=True, timeout=60, check=False)
    assert r.returncode == 78 and "chmod 700" in r.stderr, r


def test_bad_configuration_names_file_and_line(bare):
    rows = {
        "aging = 600s\nnonsense = 1\n": ("2:", "nonsense"), "aging = soon\n": ("1:", "aging"),
        "[x]\naging = 1s\n": ("2:", "no section"), "display = 12 G\n": ("1:", "display"),
        "margin = 1\nmargin = 1\n": ("2:", "second time"), "leases_max = 4097\n": ("1:", "leases_max"),
        "margin = -1\n": ("1:", "margin"), "aging\n": ("1:", "key = value"),
    }
    for text, (line, word) in rows.items():
        bare.conf(text)
        r = subprocess.run([LESSORD, "--dir", bare.home], env=bare.env, capture_output=True, text=True, timeout=60, check=False)
        assert r.returncode == 78 and f"lessord.conf:{line}" in r.stderr and word in r.stderr, (text, r.stderr)


def test_configuration_is_what_the_core_goes_by_also_after_a_change(bare):
    bare.conf("# a comment\nwaiting_per_user_max = 1 ; another\n")
    bare.start()
    bare.ask("3G", mode="now")
    assert [bare.ask("1G", mode="queue").status for _ in range(2)] == [202, 429]
    bare.daemon.send_signal(signal.SIGTERM)
    bare.daemon.wait()
    bare.conf("waiting_per_user_max = 2\n")
    bare.start()
    assert [bare.ask("1G", mode="queue").status for _ in range(2)] == [202, 429]


def test_help_and_version_are_said_without_a_folder():
    r = subprocess.run([LESSORD, "--help"], capture_output=True, text=True, timeout=60, check=False)
    assert r.returncode == 0 and "--dir DIR" in r.stdout and "waiting_per_user_max" in r.stdout
    assert subprocess.run([LESSORD, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout.startswith("lessord ")
    for bad in (["--nonsense"], ["x"], ["--dir", ""], ["--dir", "/tmp/x", "--system"], ["--log-level", "loud"]):
        assert subprocess.run([LESSORD, *bad], capture_output=True, timeout=60, check=False).returncode == 2


def test_F75_damage_that_is_found_in_use_shows_nobody_an_empty_world(place):
    """A batch cannot be written, and what the world would be read from again is damaged: the daemon ends. Who waited with
    the batch must not be told that there are no leases and no devices."""
    place.ask("1G", mode="now")
    journal = os.path.join(place.home, "journal.db")
    with contextlib.closing(sqlite3.connect(journal, isolation_level=None)) as other:
        other.execute("CREATE TABLE other (x)")  # so that it reads from the file, not from what it remembers of it
        other.execute("BEGIN IMMEDIATE")
        asked = [place.connection() for _ in range(4)]
        asked[0].request("POST", "/api/leases", '{"bytes": "512M", "mode": "now"}', {"Content-Type": "application/json"})
        for _ in range(3):  # turns of the loop: it is read, decided and waits for the disk
            place.get("/healthz")
        for c, path in zip(asked[1:], ("/api/leases", "/api/devices", "/api/status")):
            c.request("GET", path)
        for suffix, head in (("", 4096), ("-wal", 32)):
            with open(journal + suffix, "r+b") as file:
                size = os.path.getsize(journal + suffix)
                file.seek(head)
                file.write(b"\xa5" * (size - head))
        for c in asked:
            with pytest.raises((http.client.HTTPException, OSError)):
                print(c.getresponse().read())
            c.close()
        assert place.daemon.wait(60) == 1
    assert "event=giving-up" in place.log()
    place.start()
    assert ".aside-" in place.get("/healthz").json["degraded"]
