# SPDX-License-Identifier: Apache-2.0
"""Cases of the catalogues that no other file is about: units (F32), displays (F53), what nobody asked to end (F51, F58), wall
clocks that jump (F79), paths in requests (S13). docs/failures-covered.md says where the others are."""

import json
import os
import re

import pytest
from lessor_fixtures import BUILD, GIB, HERE, MIB, Place, until

SRC = os.path.join(HERE, "..", "..", "src")


def of_another(place):
    """Bound to a process that has no children, so that what the test starts is a stranger's."""
    return {"to": "process", "pid": place.sleeper().pid}


# ---- F32: two units ----

@pytest.mark.parametrize("text,n_bytes", [("24GB", 24 * 10**9), ("24GiB", 24 * GIB), ("24G", 24 * GIB), (24 * 10**9, 24 * 10**9),
                                          ("24000MB", 24 * 10**9), ("24576MiB", 24 * GIB)])
def test_F32_GB_and_GiB_are_two_sizes_in_the_stored_lease(roomy, text, n_bytes):
    lease = roomy.ask(text, mode="queue").json
    assert roomy.lease(lease["id"]).json["bytes"] == n_bytes
    assert roomy.release(lease["id"]).status == 200


@pytest.fixture(scope="module")
def roomy():
    p = Place("--gpus", "1", "--memory", "32G")
    p.start()
    yield p
    assert p.close() == 0


# ---- F53: the desktop ----

@pytest.mark.parametrize("used,grantable", [(900, 7168), (1400, 6792)])
def test_F53_display_keeps_its_reserve_and_growing_it_ends_nothing(used, grantable):
    place = Place("--gpus", "1", "--memory", "8192M")
    try:
        place.start()
        display = place.hog(f"{used}M", "--graphics")
        until("it is seen", lambda: place.device()["display_bytes"])
        until("all of it is", lambda: place.device()["used_bytes"] == used * MIB)
        assert place.device()["free_bytes"] == grantable * MIB
        assert place.ask(grantable * MIB + 1, mode="now").status in (409, 422)
        lease = place.ask(grantable * MIB, mode="now", bind=of_another(place))
        assert lease.status == 201, lease
        more = place.hog("500M", "--graphics")
        until("it grew", lambda: place.device()["used_bytes"] == (used + 500) * MIB)
        assert place.device()["free_bytes"] == 0
        assert place.ask("1M", mode="queue", bind=of_another(place)).json["state"] == "queued"
        assert display.poll() is None and more.poll() is None and place.lease(lease.json["id"]).json["state"] == "active"
        assert not [e for e in place.events(limit=1000) if e["kind"] == "hand"]
    finally:
        assert place.close() == 0


# ---- F51, F58: who is in the way is not ended ----

def test_F51_F58_strangers_that_fill_the_card_are_told_of_and_left_alone(place):
    """Nothing that is short of memory ends anybody in this release, whoever waits and whoever took more than was promised."""
    lease = place.ask("1G", mode="now", bind=of_another(place))
    strangers = [place.hog("1G"), place.hog("1G")]
    until("they are seen", lambda: len(place.strangers()) == 2)
    assert place.device()["free_bytes"] == 0
    other = of_another(place)
    waits = [place.ask("2G", mode="queue", priority=p, bind=other).json["id"] for p in (2, 3, 4, 5)]
    for _ in range(20):  # a turn of the daemon each: a change, a decision, a commit
        place.release(place.ask("3G", mode="queue", bind=other).json["id"])
    assert [p.poll() for p in strangers] == [None, None]
    assert [place.lease(w).json["state"] for w in waits] == ["queued"] * 4
    assert place.lease(lease.json["id"]).json["state"] == "active"
    events = place.events(limit=1000)
    assert [e["rule"] for e in events if e["kind"] == "stranger"] == ["stranger-seen"] * 2
    assert not [e for e in events if e["kind"] == "hand"] and "event=hands-outcome" not in place.log()


# ---- F79: the wall clock ----

@pytest.fixture
def wall(bare):
    """A daemon whose wall clock the test sets: wall(-13 * 3600)."""
    shim = os.path.join(BUILD, "tests", "e2e", "libsleepy_clock.so")
    if not os.path.exists(shim):
        pytest.skip("built with sanitizers, which are to be the first library")
    ahead = os.path.join(bare.dir, "ahead")

    def set_wall(seconds):
        with open(ahead + ".new", "w", encoding="ascii") as file:
            file.write(str(seconds))
        os.rename(ahead + ".new", ahead)
    set_wall(0)
    bare.set_wall = set_wall
    bare.env |= {"WALL_CLOCK": ahead, "LD_PRELOAD": shim}
    bare.start()
    return bare


def test_F79_wall_clock_that_jumps_ends_no_lease_and_turns_no_queue(wall):
    slot = wall.ask("1G", mode="now", **{"for": "1h"}).json["id"]
    beat = wall.ask("1G", mode="now", bind={"to": "heartbeat", "ttl_ms": 3600000}).json["id"]
    queue = [wall.ask("2G", mode="queue").json["id"]]
    for hours in (-13, 13, 24 * 365 * 20, 0, -1):
        wall.set_wall(hours * 3600)
        queue.append(wall.ask("2G", mode="queue", name=f"after{hours}").json["id"])
        shown = wall.lease(slot).json
        assert shown["state"] == "active" and 0 < shown["slot_left_ms"] <= 3600000, shown
        assert wall.lease(beat).json["state"] == "active"
    steps = [int(x) for x in re.findall(r"event=clock-step by_ms=(-?\d+)$", wall.log(), re.M)]
    assert [round(ms / 3600000) for ms in steps] == [-13, 26, 24 * 365 * 20 - 13, -24 * 365 * 20, -1], steps  # who reads the log is told
    assert [e["lease"] for e in wall.queue()] == queue  # by arrival, whatever the clock said then
    assert all(e["waited_ms"] < 3600000 for e in wall.queue())
    ids = [e["id"] for e in wall.events(limit=1000)]
    assert ids == sorted(set(ids))
    # a restart in another year ends nothing that a living process holds
    wall.set_wall(24 * 365 * 3600)
    wall.kill()
    wall.start()
    wall.set_wall(-24 * 365 * 3600)
    looked = [wall.lease(x).json["state"] for x in (slot, *queue)]
    assert looked == ["active"] + ["queued"] * len(queue), looked


# ---- S13: paths ----

def fields_of(schema, spec):
    """Names of everything a schema takes, however deep."""
    if "$ref" in schema:
        node = spec
        for step in schema["$ref"].removeprefix("#/").split("/"):
            node = node[step]
        yield from fields_of(node, spec)
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from fields_of(inner, spec)
    for key in ("allOf", "anyOf", "oneOf"):
        for inner in schema.get(key, []):
            yield from fields_of(inner, spec)
    if isinstance(schema.get("items"), dict):
        yield from fields_of(schema["items"], spec)


def test_S13_no_request_has_a_place_for_a_path(shared):
    spec = shared.get("/api/openapi.json").json
    taken = set()
    for methods in spec["paths"].values():
        for method in methods.values() if isinstance(methods, dict) else ():
            if not isinstance(method, dict):
                continue
            for parameter in method.get("parameters", []):
                taken.add(parameter.get("name", parameter.get("$ref", "")))
            for kind in method.get("requestBody", {}).get("content", {}).values():
                taken |= set(fields_of(kind["schema"], spec))
    assert {"bytes", "priority", "pid"} <= taken  # it was read as it is written
    assert not [name for name in taken if re.search(r"path|file|dir|folder|model|exe|cwd|cgroup$", name) and name != "cgroup"], taken


def test_S13_text_that_looks_like_a_path_is_a_text(shared, tmp_path):
    """A file that only root can read, one that is not there, and one of everybody's get the same answer to the letter."""
    (tmp_path / "open").write_text("x")
    paths = ["/etc/shadow", "/no/such/file", str(tmp_path / "open"), "../../etc/shadow"]
    for field in ("device", "yield_by", "mode", "bind"):
        answers = {json.dumps(shared.ask("1M", **{field: path}).json).replace(json.dumps(path)[1:-1], "PATH") for path in paths}
        assert len(answers) == 1, answers
    for path in paths:
        a = shared.ask("1M", mode="queue", path=path)
        assert a.status == 400 and a.json["field"] == "path", a
    assert shared.leases() == []


def test_S13_what_serves_requests_opens_only_what_the_administrator_named():
    """Token files by lessord.conf, names of users, the folder of records: nothing else that serves requests opens by a name."""
    opens = set()
    for folder in ("api", "arbiter", "model", "wire"):
        for root, _, names in os.walk(os.path.join(SRC, folder)):
            for name in names:
                with open(os.path.join(root, name), encoding="utf-8") as file:
                    if re.search(r"\b(?:open|openat|openat2|fopen|opendir|creat|mkdir|unlink|rename|stat|lstat|access)\(", file.read()):
                        opens.add(f"{folder}/{name}")
    assert opens == {"api/token.c", "api/user_names.c", "wire/parked.c"}, opens
