# SPDX-License-Identifier: Apache-2.0
"""lessor-warden-admin on the real kernel, with a double of lessord: who gets past the gate, and what happens when it is gone."""

import os
import socket
import struct

import pytest
from brain import until
from gated import ALLOW, FORGET, LOG, OFF, ON, PING, SET, USER, gated  # noqa: F401


def shut(place, mode=ON):
    place.start().connect()
    assert place.set(mode) == "none", place.log()
    return place


def test_an_unleased_process_does_not_open_the_card_and_a_leased_one_gets_past_the_gate(gated):
    place = shut(gated())
    lease = place.folder("lessor-L1.1")
    without, with_lease = place.opener(), place.opener(lease)
    for name in ("nvidia0", "nvidiactl"):
        assert without.ask("open", place.devices[name]) == "EPERM"
        assert with_lease.ask("open", place.devices[name]) == "EPERM"
    assert place.allow(1, lease, with_lease) == "none"
    for name in ("nvidia0", "nvidiactl"):
        assert without.ask("open", place.devices[name]) == "EPERM"
        assert with_lease.ask("open", place.devices[name]) == "ENXIO"
    state = place.state()
    assert (state["mode"], state["cgroups"], state["leases"], state["refused"]) == (ON, 1, 1, 6)
    place.forget(1)
    assert with_lease.ask("open", place.devices["nvidia0"]) == "EPERM"
    assert place.state()["leases"] == 0


def test_other_devices_other_cgroups_and_making_device_files_are_nobodys_business(gated):
    place = shut(gated())
    inside = place.opener()
    assert inside.ask("open", place.devices["zero"]) == "ok"
    assert inside.ask("mknod", f"{place.dir}/made") == "ok"
    assert inside.ask("open", f"{place.dir}/made") == "EPERM"
    inside.move(os.path.dirname(place.cgroup))
    assert inside.ask("open", place.devices["nvidia0"]) == "ENXIO"


def test_what_was_open_before_stays_open_and_works(gated):
    place = gated(devices="1")
    inside = place.opener()
    assert inside.ask("keep", place.devices["zero"]) == "ok"
    shut(place)
    assert inside.ask("open", place.devices["zero"]) == "EPERM"
    assert inside.ask("read", place.devices["zero"]) == "ok"
    assert place.allow(1, None, inside) == "none"
    assert inside.ask("open", place.devices["zero"]) == "ok"
    place.forget(1)
    assert inside.ask("open", place.devices["zero"]) == "EPERM"
    assert inside.ask("read", place.devices["zero"]) == "ok"


def test_what_is_started_below_the_cgroup_of_a_lease_passes_and_beside_it_does_not(gated):
    place = shut(gated())
    lease = place.folder("user/app/lessor-L1.1")
    below, beside, above = place.folder("user/app/lessor-L1.1/container/a"), place.folder("user/app/b"), place.folder("user/app")
    openers = [place.opener(folder) for folder in (lease, below, beside, above)]
    assert place.allow(1, lease, openers[0]) == "none"
    assert [o.ask("open", place.devices["nvidia0"]) for o in openers] == ["ENXIO", "ENXIO", "EPERM", "EPERM"]


def test_a_lease_of_a_process_without_a_cgroup_of_its_own_lets_its_neighbours_pass_but_nobody_below(gated):
    place = shut(gated())
    owner, neighbour, below = place.opener(), place.opener(), place.opener(place.folder("below"))
    assert place.allow(1, None, owner) == "none"
    assert [o.ask("open", place.devices["nvidia0"]) for o in (owner, neighbour, below)] == ["ENXIO", "ENXIO", "EPERM"]


def test_two_leases_in_one_cgroup_the_end_of_one_leaves_the_other_its_way(gated):
    place = shut(gated())
    owner = place.opener()
    assert place.allow(1, None, owner) == "none" and place.allow(2, None, owner) == "none"
    place.forget(1)
    assert owner.ask("open", place.devices["nvidia0"]) == "ENXIO"
    place.forget(2)
    assert owner.ask("open", place.devices["nvidia0"]) == "EPERM"


def test_a_lease_that_begins_again_in_another_cgroup_leaves_the_old_one(gated):
    place = shut(gated())
    first, second = place.opener(place.folder("lessor-L1.1")), place.opener(place.folder("lessor-L1.2"))
    assert place.allow(1, place.folder("lessor-L1.1"), first) == "none"
    assert place.allow(1, place.folder("lessor-L1.2"), second) == "none"
    assert [o.ask("open", place.devices["nvidia0"]) for o in (first, second)] == ["EPERM", "ENXIO"]


def test_the_keeper_checks_itself_whom_it_lets_through(gated):
    place = shut(gated())
    theirs, stranger = place.opener(uid=USER), place.opener()
    lessors, others, owned = place.folder("lessor-L1.1"), place.folder("service"), place.folder("delegated", USER)
    assert place.allow(1, None, theirs, uid=USER + 1) == "owner"
    assert place.allow(1, None, theirs, uid=USER, ticks=1) == "gone"
    assert place.allow(1, place.cgroup, theirs, uid=USER) == "whole_gate"
    assert place.allow(1, os.path.dirname(place.cgroup), theirs, uid=USER) == "whole_gate"
    assert place.allow(1, others, theirs, uid=USER) == "not_ours"
    assert place.allow(1, lessors, theirs, uid=USER) == "not_ours"  # its name is no proof: it is root's
    assert place.allow(1, owned, uid=USER) == "none"
    assert place.state()["leases"] == 1
    theirs.move(others)
    assert place.allow(2, others, theirs, uid=USER) == "none"  # it lives there: a unit, a container
    stranger.end()
    place.say(ALLOW, struct.pack("<QQIQI", 3, 0, stranger.pid, 1, 0))
    assert place.answer()[1] == "gone"
    place.say(ALLOW, struct.pack("<QQIQI", 3, 1 << 40, 0, 0, 0))
    assert place.answer()[1] == "gone"


def test_a_lease_outside_of_what_is_gated_is_let_be(gated):
    place = shut(gated())
    outside = place.opener(os.path.dirname(place.cgroup))
    assert place.allow(1, None, outside) == "outside"


def test_log_counts_whom_it_would_refuse_and_refuses_nobody(gated):
    place = shut(gated(mode="log"), LOG)
    theirs = place.opener(uid=USER)
    assert theirs.ask("open", place.devices["nvidia0"]) == "ENXIO"
    state = place.state()
    assert (state["mode"], state["refused"], state["uid"]) == (LOG, 1, USER)


def test_users_below_users_from_always_pass(gated):
    place = shut(gated(users_from="1000"))
    assert place.opener().ask("open", place.devices["nvidia0"]) == "ENXIO"
    assert place.opener(uid=USER).ask("open", place.devices["nvidia0"]) == "EPERM"


def test_named_cgroups_always_pass_also_those_that_are_made_later(gated):
    place = gated()
    place.conf(always=f"{place.name}/u-*/session.slice {place.name}/now")
    now = place.folder("now")
    shut(place)
    later = place.folder("u-7/session.slice/shell.service")
    other = place.folder("u-7/app.slice")
    assert place.opener(now).ask("open", place.devices["nvidia0"]) == "ENXIO"
    shell = place.opener(later)
    until("it was seen", lambda: shell.ask("open", place.devices["nvidia0"]) == "ENXIO")
    assert place.opener(other).ask("open", place.devices["nvidia0"]) == "EPERM"


@pytest.mark.parametrize("said, passes", [("ACTIVE=1\nSEAT=seat0\nTYPE=tty\n", True), ("ACTIVE=1\nREMOTE=1\nTYPE=tty\n", False)])
def test_a_login_at_the_machines_own_screen_passes_also_before_logind_has_said_so(gated, said, passes):
    place = gated()
    ours = f"user.slice/user-{os.getpid()}7.slice"  # beside those of this machine's own users
    users = os.path.join(os.path.dirname(place.cgroup), ours)
    session = f"{users}/session-c7.scope"
    place.conf(cgroups=ours)
    try:
        os.makedirs(users)
        shut(place)
        os.mkdir(session)
        screen = place.opener(session)
        until("it passes", lambda: screen.ask("open", place.devices["nvidia0"]) == "ENXIO")
        with open(f"{place.sessions}/c7", "w") as f:
            f.write(said)
        if not passes:
            until("it does not any more", lambda: screen.ask("open", place.devices["nvidia0"]) == "EPERM")
        assert place.set(ON) == "none"
        assert screen.ask("open", place.devices["nvidia0"]) == ("ENXIO" if passes else "EPERM")
        screen.end()
    finally:
        until("the folders are empty", lambda: removed(session) and removed(users))
        removed(os.path.dirname(users))


def test_off_takes_the_gate_away_at_once(gated):
    place = shut(gated())
    inside = place.opener()
    assert inside.ask("open", place.devices["nvidia0"]) == "EPERM"
    assert place.set(OFF) == "none"
    assert inside.ask("open", place.devices["nvidia0"]) == "ENXIO"
    assert place.state()["mode"] == OFF
    assert place.set(ON) == "none"
    assert inside.ask("open", place.devices["nvidia0"]) == "EPERM"


def test_a_killed_keeper_leaves_nobody_locked_out_and_its_next_one_knows_only_what_it_is_told(gated):
    place = shut(gated())
    lease = place.folder("lessor-L1.1")
    without, with_lease = place.opener(), place.opener(lease)
    assert place.allow(1, lease, with_lease) == "none"
    place.kill()
    until("everybody passes", lambda: without.ask("open", place.devices["nvidia0"]) == "ENXIO")
    place.start().connect()
    assert without.ask("open", place.devices["nvidia0"]) == "ENXIO"
    assert place.allow(1, lease, with_lease) == "none"
    assert place.set(ON) == "none"
    assert without.ask("open", place.devices["nvidia0"]) == "EPERM"
    assert with_lease.ask("open", place.devices["nvidia0"]) == "ENXIO"


def test_another_brain_tells_all_leases_and_who_is_not_among_them_is_forgotten(gated):
    place = shut(gated())
    stays, goes = place.opener(place.folder("lessor-L1.1")), place.opener(place.folder("lessor-L2.1"))
    assert place.allow(1, place.folder("lessor-L1.1"), stays) == "none"
    assert place.allow(2, place.folder("lessor-L2.1"), goes) == "none"
    place.connection.close()
    place.connect()
    assert goes.ask("open", place.devices["nvidia0"]) == "ENXIO"  # while the new one still tells
    assert place.allow(1, place.folder("lessor-L1.1"), stays) == "none"
    assert place.set(ON) == "none"
    assert [o.ask("open", place.devices["nvidia0"]) for o in (stays, goes)] == ["ENXIO", "EPERM"]


def test_a_brain_that_is_gone_leaves_nobody_locked_out(gated):
    place = shut(gated())
    inside = place.opener()
    place.connection.close()
    assert inside.ask("open", place.devices["nvidia0"]) == "EPERM"  # it may be back in a moment
    until("everybody passes", lambda: inside.ask("open", place.devices["nvidia0"]) == "ENXIO")
    assert "lessord is not heard any more" in place.log()


def test_the_configuration_is_roots_and_the_brain_asks_for_no_more_than_it_says(gated):
    place = gated(mode="log").start().connect()
    inside = place.opener()
    assert place.set(ON) == "mode"
    assert inside.ask("open", place.devices["nvidia0"]) == "ENXIO" and place.state()["mode"] == OFF
    place.conf()
    os.chmod(f"{place.dir}/lessord.conf", 0o666)
    assert place.set(ON) == "config"
    assert "can be changed by others than root" in place.log()
    os.chmod(f"{place.dir}/lessord.conf", 0o644)
    assert place.set(ON) == "none"
    place.conf(mode="sometimes")
    assert place.set(ON) == "config"
    assert inside.ask("open", place.devices["nvidia0"]) == "ENXIO" and place.state()["mode"] == OFF  # nobody is locked out by it
    os.unlink(f"{place.dir}/lessord.conf")
    assert place.set(ON) == "mode"
    assert inside.ask("open", place.devices["nvidia0"]) == "ENXIO"


def test_a_gated_cgroup_that_comes_later_or_again_is_gated_at_the_next_look(gated):
    place = gated()
    place.conf(cgroups=f"{place.name}/later")
    place.start().connect()
    assert place.set(ON) == "no_cgroup"
    for _ in range(2):
        inside = place.opener(place.folder("later"))
        until("it is gated", lambda: place.state()["cgroups"] == 1)
        assert inside.ask("open", place.devices["nvidia0"]) == "EPERM"
        inside.end()
        until("it is removed", lambda: removed(f"{place.cgroup}/later"))
        assert place.state()["cgroups"] == 0


def removed(path):
    try:
        os.rmdir(path)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("kind, body, version", [
    (PING, struct.pack("<Q", 0), 1), (SET, struct.pack("<I", 3), 1), (FORGET, b"", 1), (99, b"", 1), (PING, struct.pack("<Q", 1), 2),
    (1, struct.pack("32s", b"0.1.0"), 1), (ALLOW, bytes(32), 1), (ALLOW, bytes(200), 1),
])  # fmt: skip
def test_malformed_or_out_of_place_ends_the_connection_and_nothing_else(gated, kind, body, version):
    place = shut(gated())
    inside = place.opener()
    place.say(kind, body, version)
    assert place.receive()[0] is None
    assert inside.ask("open", place.devices["nvidia0"]) == "EPERM"
    place.connect()
    assert place.set(ON) == "none"


def test_nobody_but_the_brains_user_is_listened_to(gated):
    place = gated().start("--brain-uid", str(USER))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        one.settimeout(60)
        one.connect(place.socket)
        assert one.recv(256) == b""
    assert "event=refused-peer uid=0" in place.log()


def test_the_keeper_keeps_three_capabilities_and_a_filter(gated):
    place = gated().start()
    with open(f"/proc/{place.keeper.pid}/status") as f:
        status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
    kept = 1 << 39 | 1 << 12 | 1 << 2  # BPF, NET_ADMIN, DAC_READ_SEARCH
    assert int(status["CapPrm"], 16) & ~kept == 0 and int(status["CapEff"], 16) & ~kept == 0
    assert status["NoNewPrivs"] == "1"
