# SPDX-License-Identifier: Apache-2.0
"""Adopted units are stopped and started by their service manager, over a real bus, whatever that one answers.

Who is on the bus is scripted (scripted_bus.py); units are real processes on the simulated card, in cgroups of their own.
"""

import pytest

import scripted_bus as peer
from lessor_fixtures import MIB, NOBODY_LIKE_UIDS, needs_root, until
from managers_fixtures import Managed, managed  # noqa: F401 - a fixture
from test_limits import System

pytestmark = needs_root


def test_unit_gives_way_is_stopped_by_its_manager_and_started_again(managed):
    unit = managed.unit()
    managed.start()
    lease = managed.adopted(unit.process.pid)
    first = unit.process.pid
    who = managed.demand()
    managed.wait_state(who, "granted")
    parked = managed.wait_state(lease, "parked")
    assert parked["reserved_bytes"] == 0 and parked["park"]["way"] == "restart", parked
    assert unit.process is None and managed.used() < 100 * MIB
    managed.place.release(who)
    managed.is_back(lease, unit)
    assert unit.process.pid != first
    assert managed.systemd.asked("StopUnit") == [("StopUnit", unit.name, "replace")]
    assert managed.systemd.asked("StartUnit") == [("StartUnit", unit.name, "replace")]
    assert len(managed.systemd.asked("Subscribe")) == 1


def test_unit_whose_job_is_over_before_it_has_a_name_is_parked_all_the_same(managed):
    unit = managed.unit()
    unit.on_stop = peer.job_is_over_before_it_has_a_name
    managed.start()
    lease = managed.adopted(unit.process.pid)
    managed.wait_state(managed.demand(), "granted")
    managed.wait_state(lease, "parked")


# ---- blocked: nothing has changed ----

def blocked(managed, unit, why):
    """The demand waits, the unit runs on as it was, nobody is struck, and the reason is told."""
    pid = unit.process.pid
    managed.start()
    lease = managed.adopted(pid)
    who = managed.demand()
    until("it was tried", lambda: f"why={why}" in managed.place.log())
    until("it is told", lambda: managed.lease(lease)["state"] == "active")
    v = managed.lease(lease)
    assert all(way["strikes"] == 0 for way in v["ways"]), v["ways"]
    assert managed.lease(who)["state"] == "queued"
    assert unit.process.pid == pid and unit.process.poll() is None and managed.used() >= 200 * MIB
    assert not [e for e in managed.place.events() if e["kind"] == "alarm"]
    return lease, who


def test_stop_that_polkit_refuses_leaves_the_unit_as_it_was(managed):
    unit = managed.unit()
    unit.on_stop = peer.refuses
    lease, who = blocked(managed, unit, "forbidden")
    unit.on_stop = peer.stops  # somebody installed the rule
    managed.wait_state(who, "granted")
    managed.wait_state(lease, "parked")


def test_stop_that_the_manager_does_not_take_leaves_the_unit_as_it_was(managed):
    unit = managed.unit()
    unit.on_stop = peer.cannot
    blocked(managed, unit, "manager-failed")


@pytest.mark.parametrize("what", ["transient", "cannot be started", "cannot be stopped", "has no file any more"])
def test_unit_that_could_not_be_started_again_is_not_stopped(managed, what):
    unit = managed.unit()
    unit.transient = what == "transient"
    unit.can_start = what != "cannot be started"
    unit.can_stop = what != "cannot be stopped"
    unit.load = "not-found" if what == "has no file any more" else "loaded"
    blocked(managed, unit, "no-way-back")
    assert managed.systemd.asked("StopUnit") == []


def test_bus_that_is_away_when_memory_is_wanted_blocks_until_it_is_back(managed):
    unit = managed.unit()
    managed.start()
    lease = managed.adopted(unit.process.pid)
    managed.bus.stop()
    managed.logged("event=bus-away bus=user")
    who = managed.demand()
    until("it was tried", lambda: managed.lease(lease)["state"] == "active" and managed.place.log().count("event=manager"))
    assert managed.lease(who)["state"] == "queued" and unit.process.poll() is None
    assert managed.place.get("/api/status").json["units_words"].startswith("the user bus is not to be had")
    managed.bus_comes_back()
    managed.wait_state(who, "granted")
    managed.wait_state(lease, "parked")
    assert managed.place.get("/api/status").json["units_words"] is None


# ---- lost: nobody knows whether it was done ----

def test_bus_that_breaks_in_the_middle_of_a_stop_is_asked_again_and_nobody_is_taken_for_unharmed(managed):
    unit = managed.unit()
    held = unit.on_stop = peer.Held()
    managed.start()
    lease = managed.adopted(unit.process.pid)
    who = managed.demand()
    until("it is to be stopped", held.has_begun)
    managed.bus.stop()
    managed.logged("why=lost")
    assert managed.lease(lease)["state"] == "asking"
    unit.end()  # systemd goes on with its job, whoever listens
    managed.bus_comes_back()
    managed.wait_state(who, "granted")
    managed.wait_state(lease, "parked")
    managed.place.release(who)
    managed.is_back(lease, unit)


def test_stop_that_is_never_answered_is_ordered_again(managed):
    unit = managed.unit()
    unit.on_stop = peer.never_answers
    managed.start()
    lease = managed.adopted(unit.process.pid)
    who = managed.demand()
    managed.logged("result=failed why=lost")
    assert managed.place.get("/healthz").status == 200 and managed.lease(lease)["state"] == "asking"
    unit.on_stop = peer.stops
    managed.wait_state(who, "granted")
    managed.wait_state(lease, "parked")
    assert len(managed.systemd.asked("StopUnit")) >= 2


def test_F03_lessord_that_is_killed_between_order_and_outcome_finds_out_what_became_of_it(managed):
    unit = managed.unit()
    held = unit.on_stop = peer.Held()
    managed.start()
    lease = managed.adopted(unit.process.pid)
    who = managed.demand()
    until("it is to be stopped", held.has_begun)
    managed.place.kill()
    held.let_go()
    managed.place.start()
    managed.wait_state(who, "granted")
    managed.wait_state(lease, "parked")
    managed.place.release(who)
    managed.is_back(lease, unit)


def test_F03_lessord_that_is_killed_while_a_unit_starts_takes_it_up(managed):
    unit = managed.unit()
    held = unit.on_start = peer.Held()
    managed.start()
    lease = managed.adopted(unit.process.pid)
    who = managed.demand()
    managed.wait_state(lease, "parked")
    managed.place.release(who)
    until("it is to be started", held.has_begun)
    managed.place.kill()
    held.let_go()
    unit.on_start = peer.starts
    managed.place.start()
    managed.is_back(lease, unit)


# ---- failed ----

def test_unit_that_runs_again_at_once_goes_on_under_its_lease_and_is_struck(managed):
    unit = managed.unit()
    unit.on_stop = peer.is_stopped_and_runs_again
    first = unit.process.pid
    managed.start()
    lease = managed.adopted(first)
    who = managed.demand()
    managed.logged("why=runs-again")
    until("it is struck", lambda: any(way["strikes"] for way in managed.lease(lease)["ways"]))
    assert unit.process.pid != first
    unit.on_stop = peer.stops
    managed.wait_state(who, "granted")
    assert managed.wait_state(lease, "parked")["park"]["way"] == "restart"


def test_unit_that_does_not_stop_goes_on_under_its_lease_and_is_struck_out(managed):
    unit = managed.unit()
    unit.on_stop = peer.stop_fails
    managed.start("strikes = 2\n")
    lease = managed.adopted(unit.process.pid)
    who = managed.demand()
    until("it is struck out", lambda: [way["strikes"] for way in managed.lease(lease)["ways"]] == [2])
    assert managed.wait_state(lease, "active")["binding"]["pid"] == unit.process.pid and unit.process.poll() is None
    assert "struck-out" in managed.rules(lease) and managed.lease(who)["state"] == "queued"
    assert len(managed.systemd.asked("StopUnit")) == 2 and managed.systemd.asked("StartUnit") == []


def test_F60_stop_that_says_done_and_brings_no_memory_back_grants_nothing(managed):
    unit = managed.unit()
    unit.on_stop = peer.says_done_and_leaves_it
    managed.start()
    lease = managed.adopted(unit.process.pid)
    who = managed.demand()
    managed.logged("result=done")
    until("more looks", lambda: managed.lease(lease)["park"]["step"] == "settling")
    assert managed.lease(who)["state"] == "queued" and managed.lease(lease)["state"] == "asking"
    assert managed.used() >= 200 * MIB
    unit.end()
    managed.wait_state(lease, "parked")
    managed.wait_state(who, "granted")


def test_start_that_fails_is_tried_again(managed):
    unit = managed.unit()
    unit.on_start = peer.start_fails
    managed.start()
    lease = managed.adopted(unit.process.pid)
    who = managed.demand()
    managed.wait_state(lease, "parked")
    managed.place.release(who)
    managed.logged("event=unit-start")
    until("it failed", lambda: "result=failed why=manager-failed" in managed.place.log())
    managed.wait_state(lease, "parked")
    unit.on_start = peer.starts
    managed.is_back(lease, unit)


def test_started_unit_whose_process_is_somewhere_else_was_not_started(managed):
    """A manager, or who plays one, names a process that does not run in that unit: it comes under no lease."""
    unit = managed.unit()
    managed.start()
    lease = managed.adopted(unit.process.pid)
    other = managed.place.hog("50M")
    who = managed.demand()
    managed.wait_state(lease, "parked")
    unit.says_pid = other.pid
    managed.place.release(who)
    managed.logged("event=unit-start")
    until("it failed", lambda: "result=failed why=manager-failed" in managed.place.log())
    assert managed.wait_state(lease, "parked")["binding"]["pid"] != other.pid
    unit.says_pid = None
    managed.is_back(lease, unit)


# ---- somebody else moves it ----

def test_unit_that_a_person_starts_while_it_is_parked_counts_as_what_it_is(managed):
    unit = managed.unit()
    managed.start()
    lease = managed.adopted(unit.process.pid)
    who = managed.demand()
    managed.wait_state(who, "granted")
    managed.wait_state(lease, "parked")
    managed.systemd.moved_by_somebody(unit, unit.run)
    until("it is known by its new process", lambda: managed.lease(lease)["binding"]["pid"] == unit.process.pid)
    until("its memory counts under it", lambda: (managed.lease(lease)["used_bytes"] or 0) >= 200 * MIB)
    assert managed.place.get("/api/status").json["strangers"] == []


def test_signal_of_anybody_on_the_bus_is_not_believed(managed):
    """Each program of the session may send a JobRemoved; only the manager's own counts."""
    unit = managed.unit()
    held = unit.on_stop = peer.Held()
    managed.start()
    lease = managed.adopted(unit.process.pid)
    managed.demand()
    until("it is to be stopped", held.has_begun)
    looks = len(managed.systemd.asked("GetAll"))
    peer.lies(managed.connection(), peer.SYSTEMD_PATH, peer.MANAGER, "JobRemoved", "uoss", 1, held.number, unit.name, "done")
    for _ in range(3):
        assert managed.place.get("/healthz").status == 200
    assert len(managed.systemd.asked("GetAll")) == looks, "it looked what became of the job"
    held.let_go()
    managed.wait_state(lease, "parked")


# ---- who may ----

def refused(answer, *words):
    assert answer.status == 422 and answer.problem == "way-out-unfit", answer
    for word in words:
        assert word in answer.json["detail"], answer.json["detail"]


def test_restart_is_refused_where_nobody_could_start_it_again(managed):
    managed.start()
    refused(managed.adopt(managed.place.hog("50M").pid, cgroup=False), "`lessor adopt --unit`", "`lessor run`")
    unit = managed.unit("loose.scope", size="10M")
    refused(managed.adopt(unit.process.pid), "neither in a unit", "a .service")
    unit = managed.unit("system.service", below="system.slice", size="10M")
    refused(managed.adopt(unit.process.pid), "the machine's service manager")
    unit = managed.unit("nested.service", below="lessor-test-outer.service", size="10M")
    refused(managed.adopt(unit.process.pid), "neither in a unit")
    theirs = managed.unit("theirs.service", below="user.slice/user-61001.slice/user@61001.service/app.slice", size="10M")
    refused(managed.adopt(theirs.process.pid), "somebody else's service manager")


def test_restart_is_refused_while_the_bus_is_away_or_units_are_off(managed):
    unit = managed.unit()
    managed.start()
    managed.bus.stop()
    managed.logged("event=bus-away bus=user")
    refused(managed.adopt(unit.process.pid), "the bus is away")
    managed.bus_comes_back()
    until("it is there", lambda: managed.place.get("/api/status").json["units_words"] is None)
    managed.place.stop()
    managed.start("units = off\n")
    refused(managed.adopt(unit.process.pid), "units = off in lessord.conf")
    assert managed.place.get("/api/status").json["units_words"] == "units = off in lessord.conf"


# ---- the machine's lessord, and the machine's units ----

ALICE, BOB = NOBODY_LIKE_UIDS


@pytest.fixture(name="machine")
def fixture_machine():
    m = Managed(System())
    yield m
    assert m.close() in (0, None, -9)


def as_alice(machine, pid):
    body = {"pid": pid, "cgroup": True, "bytes": "100M", "yield_by": ["restart"]}
    return machine.place.as_user(ALICE, "POST", "/api/adopt", body)


def test_unit_of_the_machine_gives_way_to_the_machines_lessord(machine):
    unit = machine.unit(below="system.slice")
    machine.start()
    lease = machine.adopted(unit.process.pid, bytes="2700M")
    who = machine.demand()
    machine.wait_state(who, "granted")
    machine.wait_state(lease, "parked")
    machine.place.release(who)
    machine.is_back(lease, unit)
    own = machine.unit("own.service", size="10M")
    refused(machine.adopt(own.process.pid), "a person's own service manager")


def test_S09_nobody_has_a_unit_stopped_in_which_others_have_processes(machine):
    unit = machine.unit("shared.service", below="system.slice", argv=["setpriv", f"--reuid={ALICE}", "--clear-groups", "sleep", "1000"])
    machine.start()
    until("it is hers", lambda: peer.uid_of(unit.process.pid) == ALICE)
    theirs = unit.beside(["sleep", "1000"])
    refused(as_alice(machine, unit.process.pid), "others have processes in it too", "administrator")
    theirs.kill()
    theirs.wait()
    made = as_alice(machine, unit.process.pid)
    assert made.status == 201 and made.json["uid"] == ALICE, made


def test_S09_nobody_has_a_unit_of_others_stopped(machine):
    unit = machine.unit("theirs.service", below="system.slice", argv=["setpriv", f"--reuid={BOB}", "--clear-groups", "sleep", "1000"])
    machine.start()
    until("it is his", lambda: peer.uid_of(unit.process.pid) == BOB)
    assert as_alice(machine, unit.process.pid).status == 403
