# SPDX-License-Identifier: Apache-2.0
"""Leases over several cards: all of them or none, from the wait to the end, off them and back."""

import json
import os
import subprocess

import pytest

from cli_helpers import MIB, SIMGPU, Place, until

TWO_RANKS = (f"trap 'kill $a $b' TERM; {SIMGPU} hog --device 0 --alloc 90M & a=$!; "
             f"{SIMGPU} hog --device 1 --alloc 80M & b=$!; wait; wait")

# One process with memory on both cards.
SPANS_BOTH = """
import ctypes, signal
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *args):
    assert getattr(cuda, name)(*args) == 0, name
call("cuInit", 0)
for ordinal, size in ((0, 70 << 20), (1, 40 << 20)):
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    call("cuDeviceGet", ctypes.byref(device), ordinal)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
signal.pause()
"""


@pytest.fixture(name="place")
def fixture_place():
    place = Place("--gpus", "2", "--memory", "3G")
    yield place
    place.close()


def used(place):
    return [sum(p["bytes"] for p in device["processes"]) // MIB for device in place.card()]


def can_checkpoint(place):
    until("lessord knows that this machine can checkpoint", lambda: place.status()["host"]["checkpoint"] == "can")


def known_to_use(place, name, n_bytes):
    until(f"{name} is known to use {n_bytes // MIB} MiB", lambda: (place.lease(name) or {}).get("used_bytes") == n_bytes)


def test_command_sees_all_its_cards_and_what_it_has_on_them_is_its_own(place):
    run = place.start("run", "--name", "ranks", "--gpus", "2", "--vram", "1G", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; " + TWO_RANKS)
    known_to_use(place, "ranks", 170 * MIB)
    lease = place.lease("ranks")
    uuids = [d["uuid"] for d in place.status()["devices"]]
    assert lease["devices"] == uuids and lease["device"] == uuids[0] and lease["gpus"] == 2
    assert run.stdout.readline().strip() == ",".join(uuids)
    assert lease["bytes"] == 1024 * MIB and lease["reserved_bytes"] == 2048 * MIB
    assert place.strangers() == []
    shown = place.lessor("status").stdout
    assert " +1" in shown, shown
    run.terminate()
    run.wait(timeout=60)
    place.gone("ranks")


def test_waits_for_both_cards_and_holds_neither(place):
    uuids = [d["uuid"] for d in place.status()["devices"]]
    one = place.start("lease", "acquire", "--vram", "2500M", "--device", uuids[0], "--ttl", "1h")
    assert one.wait(timeout=60) == 0
    gang = place.start("run", "--name", "ranks", "--gpus", "2", "--vram", "1G", "--", "sleep", "1000")
    waiting = place.in_state("ranks", "queued")
    assert waiting["devices"] == [] and waiting["gpus"] == 2
    assert place.lessor("run", "--vram", "2500M", "--device", uuids[1], "--wait", "0", "--", "true").returncode == 0
    assert place.lessor("lease", "release", "L1").returncode == 0
    assert place.in_state("ranks", "active")["devices"] == uuids
    gang.terminate()
    gang.wait(timeout=60)


@pytest.mark.parametrize("words, said", [(["--gpus", "3"], "there are not so many devices"), (["--gpus", "9"], "--gpus"),
                                         (["--gpus", "2", "--vram", "4G"], "can never fit")])
def test_gang_that_can_never_be_is_refused(place, words, said):
    refused = place.lessor("run", "--vram", "1G", *words, "--", "true")
    assert refused.returncode == 125 and said in refused.stderr, refused.stderr


# Python is not built with a sanitizer, which wants to be the first library of a process.
needs_plain = pytest.mark.skipif(os.environ.get("LESSOR_SANITIZED") == "1",
                                 reason="built with sanitizers, which are to be the first library")


@pytest.mark.parametrize("command, on_each", [
    pytest.param(["sh", "-c", TWO_RANKS], [90, 80], id="a process on each"),
    pytest.param([SIMGPU, "run", "--", "/usr/bin/python3", "-c", SPANS_BOTH], [70, 40], id="one on both", marks=needs_plain)])
def test_gang_parks_as_one_and_comes_back_as_one(place, command, on_each):
    can_checkpoint(place)
    run = place.start("run", "--name", "ranks", "--gpus", "2", "--vram", "1G", "--yield-by", "checkpoint", "--priority", "5", "--", *command)
    known_to_use(place, "ranks", sum(on_each) * MIB)
    assert used(place) == on_each
    urgent = place.hog("now", "2500M", "--priority", "2", alloc="100M")
    place.in_state("ranks", "parked")
    place.holds(100 * MIB)
    until("nothing of it is left on either card", lambda: sorted(used(place)) == [0, 100])
    charged = json.loads(place.lessor("status", "--json").stdout)["ledger"]["charged_bytes"]
    assert charged >= sum(on_each) * MIB * 9 // 10
    urgent.terminate()
    urgent.wait(timeout=60)
    place.in_state("ranks", "active")
    until("it has again what it had", lambda: used(place) == on_each)
    assert place.status()["ledger"]["charged_bytes"] == 0
    assert run.poll() is None
    subprocess.run(["kill", str(run.pid)], check=True)
    run.wait(timeout=60)
    place.gone("ranks")


def test_gang_takes_both_cards_back_from_two_fillers(place):
    can_checkpoint(place)
    uuids = [d["uuid"] for d in place.status()["devices"]]
    for n, uuid in enumerate(uuids):
        place.hog(f"fill{n}", "2500M", "--yield-by", "checkpoint", "--priority", "5", "--device", uuid, alloc="200M")
        known_to_use(place, f"fill{n}", 200 * MIB)
    gang = place.start("run", "--name", "ranks", "--gpus", "2", "--vram", "1G", "--priority", "2", "--", "sh", "-c", TWO_RANKS)
    place.in_state("ranks", "active")
    assert [place.lease(f"fill{n}")["state"] for n in range(2)] == ["parked", "parked"]
    until("the ranks have their memory", lambda: used(place) == [90, 80])
    gang.terminate()
    gang.wait(timeout=60)
    for n in range(2):
        place.in_state(f"fill{n}", "active")
    until("both have theirs again", lambda: used(place) == [200, 200])
