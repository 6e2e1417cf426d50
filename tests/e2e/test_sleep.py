# SPDX-License-Identifier: Apache-2.0
"""Sleep and shutdown wait for what is half way (logind's delay lock), over a real bus with a scripted logind on it."""

import json
import os
import subprocess

import pytest

import scripted_bus as peer
from lessor_fixtures import BUILD, PATIENCE_S, needs_root, until
from managers_fixtures import Managed, managed  # noqa: F401 - a fixture

LESSOR = os.path.join(BUILD, "bin", "lessor")


def held(managed, n=1):
    until(f"{n} lock(s) are held", lambda: managed.logind.n_held() == n)


def sleep_words(managed):
    return managed.place.get("/api/status").json["sleep_words"]


@pytest.fixture
def parking(managed):
    """A unit that is being stopped for somebody, when the lock is held."""
    unit = managed.unit()
    job = unit.on_stop = peer.Held()
    managed.start()
    held(managed)
    lease = managed.adopted(unit.process.pid)
    who = managed.demand()
    until("it is to be stopped", job.has_begun)
    return managed, unit, job, lease, who


def test_lock_is_held_and_let_go_at_once_where_nothing_is_half_way(managed):
    managed.start()
    held(managed)
    assert managed.logind.calls == [("sleep:shutdown", "lessor", "memory that is on its way off a GPU, or back, arrives first",
                                     "delay")]
    assert sleep_words(managed) is None
    managed.logind.tells("PrepareForSleep", True)
    held(managed, 0)
    managed.logged("event=may-sleep")
    managed.logind.tells("PrepareForSleep", False)
    held(managed)
    assert len(managed.logind.calls) == 2
    managed.place.stop()
    held(managed, 0)


@needs_root
@pytest.mark.parametrize("what", ["Sleep", "Shutdown"])
def test_sleep_waits_until_what_is_half_way_has_arrived(parking, what):
    managed, _, job, lease, who = parking
    managed.logind.tells(f"PrepareFor{what}", True)
    managed.logged(f"event=before-{what.lower()}")
    for _ in range(20):
        assert managed.place.get("/healthz").status == 200
    assert managed.logind.n_held() == 1
    job.let_go()
    managed.logged(f"event=may-{what.lower()}")
    held(managed, 0)
    managed.wait_state(lease, "parked")
    managed.logind.tells(f"PrepareFor{what}", False)  # or somebody called the shutdown off
    held(managed)
    managed.wait_state(who, "granted")


@needs_root
def test_nothing_begins_while_the_machine_is_about_to_sleep(managed):
    unit = managed.unit()
    managed.start()
    held(managed)
    lease = managed.adopted(unit.process.pid)
    managed.logind.tells("PrepareForSleep", True)
    held(managed, 0)
    who = managed.demand()
    until("it is told", lambda: "paused" in str(managed.lease(who)["reason"]))
    assert managed.lease(lease)["state"] == "active" and managed.systemd.asked("StopUnit") == []
    managed.logind.tells("PrepareForSleep", False)
    managed.wait_state(who, "granted")
    managed.wait_state(lease, "parked")


@needs_root
def test_logind_that_goes_away_before_it_says_that_the_machine_is_awake_leaves_nobody_paused(managed):
    unit = managed.unit()
    managed.start()
    held(managed)
    managed.adopted(unit.process.pid)
    managed.logind.tells("PrepareForSleep", True)
    held(managed, 0)
    who = managed.demand()
    managed.logind.leaves()
    managed.wait_state(who, "granted")
    assert "no logind" in sleep_words(managed)


def test_logind_that_is_started_anew_is_asked_for_a_new_lock(managed):
    managed.start()
    held(managed)
    managed.logind.leaves()
    held(managed, 0)
    managed.logind.close()
    managed.logind = peer.Logind(managed.connection())
    held(managed)
    assert sleep_words(managed) is None
    managed.logind.tells("PrepareForSleep", True)
    managed.logged("event=may-sleep")


def test_bus_that_is_started_anew_has_a_new_lock(managed):
    managed.start()
    held(managed)
    managed.bus.stop()
    until("it is told", lambda: "the system bus is not to be had" in (sleep_words(managed) or ""))
    managed.bus_comes_back()
    held(managed)


def test_signal_of_anybody_on_the_bus_pauses_nobody(managed):
    managed.start()
    held(managed)
    for member in ("PrepareForSleep", "PrepareForShutdown"):
        peer.lies(managed.connection(), peer.LOGIND_PATH, peer.LOGIND + ".Manager", member, "b", True)
    for _ in range(5):
        assert managed.place.get("/healthz").status == 200
    assert managed.logind.n_held() == 1 and "event=before" not in managed.place.log()


def test_lock_that_logind_refuses_is_told_and_stops_nothing(managed):
    managed.logind.refuses = "AccessDenied"
    managed.start()
    until("it is told", lambda: "does not let sleep wait" in (sleep_words(managed) or ""))
    assert "event=sleep-does-not-wait" in managed.place.log()
    assert managed.place.ask("100M", mode="now").status == 201


def test_machine_without_a_bus_has_leases_all_the_same(managed):
    managed.bus.stop()
    managed.start()
    until("it is told", lambda: "the system bus is not to be had" in (sleep_words(managed) or ""))
    assert managed.place.ask("100M", mode="now").status == 201


def test_sleep_that_is_not_to_wait_takes_no_lock(managed):
    managed.start("sleep_waits = off\nunits = off\n")
    assert sleep_words(managed) == "sleep_waits = off in lessord.conf"
    assert managed.place.ask("100M", mode="now").status == 201
    assert managed.logind.calls == [] and "event=bus-up" not in managed.place.log()


def test_doctor_says_whether_units_and_sleep_are_taken_care_of(managed):
    def findings():
        env = managed.place.env | {"LESSOR_SOCKET": managed.place.socket}
        done = subprocess.run([LESSOR, "doctor", "--json"], env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        return {c["name"]: c for c in json.loads(done.stdout)["checks"]}
    managed.start()
    held(managed)
    until("the lock is taken", lambda: sleep_words(managed) is None)
    found = findings()
    assert found["units"]["finding"] == found["sleep"]["finding"] == "ok", found
    managed.bus.stop()
    until("it is told", lambda: sleep_words(managed))
    found = findings()
    assert "user bus is not to be had" in found["units"]["text"] and "system bus is not to be had" in found["sleep"]["text"]


@needs_root
def test_daemon_that_is_to_end_in_the_middle_of_a_stop_finishes_it_and_leaves_it_parked(parking):
    managed, unit, job, lease, _ = parking
    managed.place.daemon.terminate()
    managed.logged("event=stopping signal=15 half_way=1")
    job.let_go()
    assert managed.place.daemon.wait(PATIENCE_S) == 0
    assert unit.process is None
    managed.place.start()
    managed.wait_state(lease, "parked")
