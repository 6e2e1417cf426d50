# SPDX-License-Identifier: Apache-2.0
"""What the driver says wrongly, or not at all (failures F17 to F29), on the real daemon: nothing is granted that nobody can
stand for, nothing ends because of a lie, one card's trouble is its own, and all of it recovers by itself."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess

import pytest
from lessor_fixtures import BUILD, GIB, LESSORD, MIB, PATIENCE_S, SIMGPU, Place, until


@pytest.fixture
def house():
    """Makes a place with cards of the test's own; no daemon yet."""
    made = []

    def make(*create):
        made.append(Place(*create))
        return made[-1]
    yield make
    for place in made:
        assert place.close() in (0, None, -signal.SIGKILL)


def devices(place):
    return place.get("/api/devices").json["devices"]


def gpu(place):
    return place.get("/healthz").json["gpu"]


def strangers(place):
    return place.get("/api/status").json["strangers"]


def holder(place, lease, nth=0):
    (found,) = [h for h in devices(place)[nth]["holders"] if h["lease"] == lease]
    return found


def leased_hog(place, size, *options, managed=False, n_bytes=None, device=None):
    """A program on the card and the lease it runs under."""
    hog = place.hog(size, *options)
    a = place.ask(size if n_bytes is None else n_bytes, mode="now", bind={"to": "process", "pid": hog.pid},
                  managed=managed, device=device)
    assert a.status == 201, a
    return hog, a.json["id"]


def looked_anew(place):
    """Another look at everything has been taken and heard of: a grant needs a look younger than the last release."""
    a = place.ask("1M", mode="queue")
    until("it is granted", lambda: place.lease(a.json["id"]).json["state"] == "granted")
    assert place.release(a.json["id"]).status == 200


def living(place, *processes):
    assert place.daemon.poll() is None, "lessord ended"
    return all(p.poll() is None for p in processes)


# ---- looks that nobody waits for ----

def test_look_after_a_release_is_in_the_books_though_nobody_waits_for_it(bare):
    bare.conf("poll_idle = 60s\n")
    bare.start()

    def records():
        with contextlib.closing(sqlite3.connect(f"file:{bare.home}/journal.db?mode=ro", uri=True)) as db:
            return [kind for kind, in db.execute("SELECT kind FROM record ORDER BY seq")]
    reading = 4  # INPUT_READING of model/input.h: what the journal keeps
    assert reading in records()
    a = bare.ask("1M", mode="now")
    assert a.status == 201, a
    n = records().count(reading)
    bare.release(a.json["id"])
    until("it is there", lambda: records().count(reading) > n)


# ---- figures that are missing ----

def test_F17_memory_unknown_per_process_is_null_and_the_devices_figure_admits(place):
    hog, lease = leased_hog(place, "1G")
    stranger = place.hog("512M")
    until("both are seen", lambda: place.device()["used_bytes"] == GIB + 512 * MIB and strangers(place))
    until("the lease's is known", lambda: holder(place, lease)["used_bytes"] == GIB)
    place.fault("unknown-memory")
    until("it is unknown", lambda: holder(place, lease)["used_bytes"] is None)
    card = place.device()
    assert card["used_bytes"] == card["unattributed_bytes"] == GIB + 512 * MIB  # nobody's share is known
    assert [s["used_bytes"] for s in strangers(place)] == [None]
    assert place.lease(lease).json["used_bytes"] is None
    assert card["free_bytes"] == GIB + 512 * MIB  # what cannot be attributed covers the reservation (design 4.1)
    assert place.ask(GIB + 512 * MIB + 1, mode="now").problem == "would-wait"
    a = place.ask(GIB + 512 * MIB, mode="now")
    assert a.status == 201, a
    assert living(place, hog, stranger)
    place.release(a.json["id"])
    place.fault("clear")
    until("it is known again", lambda: holder(place, lease)["used_bytes"] == GIB)
    assert place.device()["unattributed_bytes"] == 0


def test_F17_list_that_the_driver_does_not_have_leaves_the_larger_of_used_and_reserved(bare):
    bare.fault("nvml-error", "3", "--symbol", "nvmlDeviceGet*RunningProcesses*")
    bare.start()
    hog = bare.hog("1G")
    until("it is used", lambda: bare.device()["used_bytes"] == GIB)
    card = bare.device()
    assert card["per_process_known"] is False and card["unattributed_bytes"] == GIB and card["usable"]
    assert bare.ask(2 * GIB + 1, mode="now").problem == "would-wait"
    assert bare.ask(2 * GIB, mode="now").status == 201
    assert bare.device()["free_bytes"] == GIB  # max(1, 2) of 3
    assert living(bare, hog)


def test_F18_device_without_a_memory_figure_is_granted_nothing_and_the_other_is_fine(house):
    place = house("--gpus", "2", "--memory", "3G")
    place.fault("no-memory-info", "--device", "1")
    place.start()
    fine, blind = devices(place)
    assert blind["health"] == "no-memory-reading" and not blind["usable"]
    assert blind["used_bytes"] is None and blind["total_bytes"] is None and blind["free_bytes"] == 0
    assert place.ask("1M", mode="now", device=blind["uuid"]).status in (409, 422)
    a = place.ask("3G", mode="now")
    assert a.status == 201 and a.json["device"] == fine["uuid"], a
    assert place.ask("1M", mode="now").problem == "would-wait"
    place.fault("clear")
    until("it has a figure", lambda: devices(place)[1]["usable"])
    assert place.ask("3G", mode="now", device=blind["uuid"]).status == 201


def test_F18_figure_that_is_lost_later_keeps_what_was_granted_and_grants_no_more(place):
    hog, lease = leased_hog(place, "1G")
    until("it is seen", lambda: holder(place, lease)["used_bytes"] == GIB)
    place.fault("no-memory-info")
    until("it is unusable", lambda: not place.device()["usable"])
    waits = place.ask("1G", mode="queue").json["id"]
    assert place.device()["free_bytes"] == 0 and place.device()["reserved_bytes"] == GIB
    assert place.lease(lease).json["state"] == "active" and place.lease(waits).json["state"] == "queued"
    place.fault("clear")
    until("what waited is granted", lambda: place.lease(waits).json["state"] == "granted")
    assert place.lease(lease).json["state"] == "active" and living(place, hog)


# ---- pids that are nobody's ----

SEES_HOST_PIDS = os.stat("/proc/self/ns/pid").st_ino == 0xEFFFFFFC


def test_F19_foreign_pids_are_counted_and_nobody_is_signalled(place):
    assert place.get("/healthz").json["host_pids"] is SEES_HOST_PIDS
    hog, lease = leased_hog(place, "1G")
    until("it is seen", lambda: holder(place, lease)["used_bytes"] == GIB)
    place.fault("foreign-pid")
    until("it is a stranger", lambda: [s["used_bytes"] for s in strangers(place)] == [GIB])
    (nobody,) = strangers(place)
    assert nobody["pid"] == hog.pid + 4194304 and nobody["ghost"] and nobody["user"] is None and nobody["comm"] is None
    # the lease is not seen on the card: its promise counts beside the stranger's use
    assert place.device()["free_bytes"] == GIB and place.lease(lease).json["state"] == "active"
    assert place.ask(GIB + 1, mode="now").problem == "would-wait"
    place.fault("clear")
    until("it is the lease's again", lambda: holder(place, lease)["used_bytes"] == GIB and not strangers(place))
    assert living(place, hog)


def test_F19_daemon_in_a_pid_namespace_says_so_and_counts_whom_it_cannot_see(bare):
    unshare = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child=TERM"]
    if not shutil.which("unshare") or subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("no pid namespaces for this user here")
    hog = bare.hog("1G")
    until("it holds its memory", lambda: card_used(bare) == GIB)
    with open(os.path.join(bare.dir, "lessord.err"), "ab") as err:
        outer = subprocess.Popen([*unshare, SIMGPU, "run", "--", LESSORD, "--dir", bare.home], env=bare.env,
                                 stdin=subprocess.DEVNULL, stdout=err, stderr=err)
    bare.started.append(outer)
    until("it is ready", lambda: "lessord: ready socket=" in bare.log())
    with open(f"/proc/{outer.pid}/task/{outer.pid}/children", encoding="ascii") as file:
        (inner,) = file.read().split()

    def status():  # only who is in the namespace too may ask
        asked = subprocess.run(["nsenter", "--target", inner, "--pid", "--mount", os.path.join(BUILD, "bin", "lessor"),
                                "status", "--json"], env={**bare.env, "LESSOR_SOCKET": bare.socket},
                               capture_output=True, text=True)
        assert asked.returncode == 0, asked
        return json.loads(asked.stdout)
    until("it is counted", lambda: [s["used_bytes"] for s in status()["strangers"]] == [GIB])
    assert status()["host_pids"] is False and "host_pids=0" in bare.log()
    assert status()["strangers"][0]["pid"] == hog.pid and status()["strangers"][0]["comm"] is None
    assert status()["devices"][0]["free_bytes"] == 2 * GIB and hog.poll() is None
    assert bare.get("/healthz").problem == "forbidden-caller"
    os.kill(int(inner), signal.SIGTERM)
    assert outer.wait(PATIENCE_S) == 0


def card_used(place):
    shown = subprocess.run([SIMGPU, "show", "--json"], env=place.env, check=True, capture_output=True, text=True).stdout
    return json.loads(shown)["devices"][0]["used_bytes"]


def test_F20_ghost_is_counted_as_used_and_told_once(place):
    ghost = 4194304 + 17  # above every pid that this kernel gives
    place.fault("ghost", str(ghost), "1G")
    hog = place.hog("64M")
    until("both are seen", lambda: {s["pid"]: s["ghost"] for s in strangers(place)} == {ghost: True, hog.pid: False})
    hog.kill()
    until("the living one is gone", lambda: [s["pid"] for s in strangers(place)] == [ghost])
    card = place.device()
    assert card["used_bytes"] == GIB and card["free_bytes"] == 2 * GIB and card["unattributed_bytes"] == 0
    assert place.ask(2 * GIB + 1, mode="now").problem == "would-wait"
    for _ in range(30):
        looked_anew(place)
    told = [e for e in place.events(limit=1000) if e["kind"] == "stranger" and e["bytes"] == GIB]
    assert [e["rule"] for e in told] == ["stranger-seen"], told
    place.fault("clear")
    until("it is gone", lambda: strangers(place) == [])
    until("and its memory free", lambda: place.device()["free_bytes"] == 3 * GIB)


# ---- lists that are wrong ----

def test_F21_list_of_another_layout_is_refused_grants_nothing_and_recovers(place):
    hog, lease = leased_hog(place, "1G")
    other = place.hog("512M")
    until("both are seen", lambda: holder(place, lease)["used_bytes"] == GIB and
          [s["used_bytes"] for s in strangers(place)] == [512 * MIB])
    place.fault("stride32")
    until("the list is refused", lambda: not place.device()["per_process_known"])
    third = place.hog("256M")
    until("the device's figure goes on", lambda: place.device()["used_bytes"] == GIB + 768 * MIB)
    card = place.device()
    assert not card["settled"] and card["reading_age_ms"] is not None
    # those of the last good list are still the holders, with figures that nobody vouches for
    assert holder(place, lease)["used_bytes"] is None
    assert [(s["pid"], s["used_bytes"]) for s in strangers(place)] == [(other.pid, None)]
    # bound to somebody without children: what this test starts would be its own, once it is granted
    waits = place.ask("256M", mode="queue", bind={"to": "process", "pid": place.sleeper().pid}).json["id"]
    until("it was said why", lambda: place.log().count("event=eyes-alarm kind=list_rejected") >= 1)
    assert place.lease(waits).json["state"] == "queued" and place.lease(lease).json["state"] == "active"
    a = place.ask("1M", mode="now")  # who does not wait is told so
    assert a.status == 409, a
    assert place.log().count("event=eyes-alarm kind=list_rejected") == 1  # not at every look
    place.fault("clear")
    until("what waited is granted", lambda: place.lease(waits).json["state"] == "granted")
    until("all are seen", lambda: {s["used_bytes"] for s in strangers(place)} == {512 * MIB, 256 * MIB})
    assert holder(place, lease)["used_bytes"] == GIB and living(place, hog, other, third)


def test_list_older_than_the_figure_starts_and_ends_nothing(place):
    place.fault("list-skew", "3600000")  # the list is that of an empty card
    hog, lease = leased_hog(place, "1G")
    until("the figure shows it", lambda: place.device()["used_bytes"] == GIB)
    waits = place.ask("2G", mode="queue").json["id"]
    until("the list does not", lambda: holder(place, lease)["used_bytes"] == 0)
    # the promise counts beside what nobody is listed with: never more is free than there is
    assert place.device()["unattributed_bytes"] == GIB and place.device()["free_bytes"] == GIB
    assert place.lease(lease).json["state"] == "active" and place.lease(waits).json["state"] == "queued"
    place.fault("clear")
    until("what waited is granted", lambda: place.lease(waits).json["state"] == "granted")
    assert holder(place, lease)["used_bytes"] == GIB and place.device()["free_bytes"] == 0
    # who was listed and is no longer, beside memory that is still there, has not ended
    place.release(waits)
    place.fault("list-skew", "3600000")
    until("it is not listed", lambda: holder(place, lease)["used_bytes"] == 0)
    assert [e["kind"] for e in place.events(lease=lease)].count("ended") == 0 and living(place, hog)


def test_list_newer_than_the_figure_never_makes_figures_negative(place):
    place.fault("list-skew", "-3600000")  # the figure is that of an empty card: processes add up to more than is used
    hog, lease = leased_hog(place, "1G")
    until("the list shows it", lambda: holder(place, lease)["used_bytes"] == GIB)
    card = place.device()
    assert card["used_bytes"] == 0 and card["unattributed_bytes"] == 0
    assert card["free_bytes"] == 2 * GIB and place.ask(2 * GIB + 1, mode="now").problem == "would-wait"
    assert place.lease(lease).json["state"] == "active" and living(place, hog)


# ---- the driver and its devices ----

def n_fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))


def test_F23_thousands_of_looks_cost_no_descriptor_and_no_memory(bare):
    bare.conf("poll = 10ms\npoll_busy = 10ms\npoll_idle = 10ms\neyes_deadline = 60s\n")
    bare.start()
    (eyes,) = bare.eyes()
    hogs = [bare.hog("16M") for _ in range(3)]
    until("they are seen", lambda: len(strangers(bare)) == 3)
    c = bare.connection()

    def look(n):
        for _ in range(n):  # each grant after a release needs a look of its own
            a = bare.ask("1M", mode="wait", connection=c)
            assert a.status == 201, a
            assert bare.request("DELETE", f"/api/leases/{a.json['id']}", connection=c).status == 200
    look(200)
    before = n_fds(eyes), n_fds(bare.daemon.pid)
    before_kib = rss_kib(eyes)
    look(1500)
    assert bare.eyes() == [eyes]
    assert bare.log().count("event=eyes-hello") == 1  # one reader, whose driver never changed
    # both are at work, and may have a file open just now
    until("they have no more than before", lambda: n_fds(eyes) <= before[0] + 2 and n_fds(bare.daemon.pid) <= before[1] + 2)
    if os.environ.get("LESSOR_SANITIZED") != "1":  # a sanitizer keeps what was freed
        assert rss_kib(eyes) - before_kib < 1024
    assert living(bare, *hogs)


def test_F24_driver_upgraded_under_live_leases_keeps_them_and_says_mismatch(place):
    hog, held = leased_hog(place, "1G")
    until("it is seen", lambda: holder(place, held)["used_bytes"] == GIB)
    others = [place.ask("512M", mode="now").json["id"] for _ in range(2)]
    (eyes,) = place.eyes()
    place.fault("nvml-error", "18", "--symbol", "nvmlInit*")
    os.kill(eyes, signal.SIGKILL)  # the next ones have to initialise
    until("it is said", lambda: gpu(place) == "mismatch")
    assert place.get("/api/status").json["gpu"] == "mismatch"
    waits = place.ask("512M", mode="queue").json["id"]
    assert [place.lease(x).json["state"] for x in (held, *others)] == ["active"] * 3
    assert place.device()["reserved_bytes"] == 2 * GIB and place.lease(waits).json["state"] == "queued"
    assert place.ask("1M", mode="now").problem == "would-wait"
    place.stop()
    place.start()  # monitors were seen to die of this at every start
    assert gpu(place) == "mismatch" and len(place.eyes()) == 1
    assert [place.lease(x).json["state"] for x in (held, *others)] == ["active"] * 3
    assert place.device()["reserved_bytes"] == 2 * GIB and place.lease(waits).json["state"] == "queued"
    assert "the driver was upgraded, reboot to load the new one" in place.log()
    place.fault("clear")
    until("it is back", lambda: gpu(place) == "ok")
    until("what waited is granted", lambda: place.lease(waits).json["state"] == "granted")
    assert [place.lease(x).json["state"] for x in (held, *others)] == ["active"] * 3 and living(place, hog)
    until("its memory is its own", lambda: holder(place, held)["used_bytes"] == GIB)


def test_F25_lost_card_takes_only_its_own_leases_along(house):
    place = house("--gpus", "4", "--memory", "1G")
    place.start()
    uuids = [d["uuid"] for d in devices(place)]
    leases = [place.ask("256M", mode="now", device=u).json["id"] for u in uuids]
    place.fault("lost", "--device", "3")
    until("it is lost", lambda: devices(place)[3]["health"] == "lost")
    card = devices(place)[3]
    assert card["free_bytes"] == 0 and card["used_bytes"] is None and not card["usable"]
    assert [place.lease(x).json["state"] for x in leases] == ["active", "active", "active", "lost"]
    assert [e["rule"] for e in place.events(lease=leases[3]) if e["kind"] == "warning"] == ["device-changed"]
    assert [e["kind"] for e in place.events(lease=leases[0])].count("warning") == 0
    for u in uuids[:3]:
        assert place.ask("512M", mode="now", device=u).status == 201
    assert place.ask("768M", mode="now").problem == "would-wait"  # the lost card is no empty card
    assert place.ask("64M", mode="now", device=uuids[3]).status in (409, 422)
    assert gpu(place) == "ok"
    place.fault("clear")
    until("it is back", lambda: devices(place)[3]["health"] == "ok")
    until("with its lease", lambda: place.lease(leases[3]).json["state"] == "active")
    assert place.ask("768M", mode="now").status == 201


def test_F25_lease_of_a_lost_card_can_be_released(house):
    place = house("--gpus", "2", "--memory", "1G")
    place.start()
    a = place.ask("256M", mode="now", device=devices(place)[1]["uuid"]).json["id"]
    place.fault("lost", "--device", "1")
    until("it is lost", lambda: place.lease(a).json["state"] == "lost")
    assert place.release(a).status == 200
    assert place.lease(a).status == 410 and devices(place)[1]["reserved_bytes"] == 0


@pytest.fixture
def bed(bare):
    """A daemon on a machine that can be put to sleep: sleep(8 * 3600)."""
    shim = os.path.join(BUILD, "tests", "e2e", "libsleepy_clock.so")
    if not os.path.exists(shim):
        pytest.skip("built with sanitizers, which are to be the first library")
    slept = os.path.join(bare.dir, "slept")

    def sleep(seconds):
        with open(slept + ".new", "w", encoding="ascii") as file:
            file.write(str(seconds))
        os.rename(slept + ".new", slept)
    sleep(0)
    bare.sleep = sleep
    bare.env |= {"SLEEPY_CLOCK": slept, "LD_PRELOAD": shim, "LESSOR_EYES_ENV": "SLEEPY_CLOCK"}
    # what is noticed is noticed by the daemon's own turn; eyes that a busy machine leaves no time do not hang
    bare.conf("poll = 60s\npoll_idle = 60s\neyes_deadline = 60s\n")
    bare.start()
    return bare


def test_F26_sleep_ends_no_lease_and_what_was_read_before_it_grants_nothing(bed):
    hog, lease = leased_hog(bed, "1G")
    short = bed.ask("256M", mode="now", bind={"to": "heartbeat", "ttl_ms": 60000}, **{"for": "1h"}).json["id"]
    looked_anew(bed)  # a look that is younger than a second
    bed.fault("nvml-error", "999", "--symbol", "nvmlInit*")
    bed.sleep(8 * 3600)
    waits = bed.ask("256M", mode="queue").json
    assert waits["state"] == "queued", waits
    until("the driver is said to be away", lambda: gpu(bed) == "stale")
    until("and why", lambda: "NVML does not start: UNKNOWN (999)" in bed.log())
    assert "event=slept for_ms=28800" in bed.log()
    assert bed.lease(waits["id"]).json["state"] == "queued"
    assert [bed.lease(x).json["state"] for x in (lease, short)] == ["active"] * 2
    bed.fault("clear")
    until("what waited is granted", lambda: bed.lease(waits["id"]).json["state"] == "granted")
    assert [bed.lease(x).json["state"] for x in (lease, short)] == ["active"] * 2 and living(bed, hog)
    said = [e["rule"] for e in bed.events(limit=1000) if e["kind"] == "eyes"]
    # once for the sleep; a machine that is busy may keep the reader from answering in time again
    assert said[:2] == ["eyes-stale", "eyes-back"] and said == said[:2] * (len(said) // 2), said
    assert len(bed.eyes()) == 1 and bed.log().count("event=eyes-started") == 1


def test_F26_each_sleep_is_noticed_once_and_got_over_by_the_same_reader(bed):
    for n in range(1, 4):
        bed.sleep(n * 3600)
        until("it is noticed", lambda n=n: (looked_anew(bed), bed.log().count("event=slept") == n)[1])
        until("and over", lambda: gpu(bed) == "ok")
        for _ in range(5):
            looked_anew(bed)
    assert bed.log().count("event=slept") == 3
    assert bed.log().count("event=eyes-started") == 1 and bed.log().count("event=eyes-failed") == 0


def test_F27_what_is_granted_by_uuid_is_used_there_whatever_the_programs_call_it(house):
    place = house("--gpus", "2", "--memory", "3G", "--reverse-cuda")
    place.start()
    first, second = (d["uuid"] for d in devices(place))
    place.env["CUDA_VISIBLE_DEVICES"] = second
    right, lease = leased_hog(place, "1G", device=second)
    until("it is used there", lambda: devices(place)[1]["used_bytes"] == GIB)
    until("by the lease", lambda: holder(place, lease, nth=1)["used_bytes"] == GIB)
    assert devices(place)[0]["used_bytes"] == 0 and strangers(place) == []
    # a program that takes "device 0" for the card it was granted is on the other one
    place.env.pop("CUDA_VISIBLE_DEVICES")
    wrong, lost_way = leased_hog(place, "512M", device=first)
    until("it is told", lambda: [e["rule"] for e in place.events(lease=lost_way) if e["kind"] == "warning"] ==
          ["other-device"])
    until("and counted there", lambda: devices(place)[1]["used_bytes"] == GIB + 512 * MIB)
    assert devices(place)[1]["free_bytes"] == GIB + 512 * MIB and holder(place, lost_way)["used_bytes"] == 0
    assert living(place, right, wrong)


def test_F28_device_that_may_not_be_asked_is_granted_nothing_and_nothing_on_it_ends(house):
    # The simulated card has no MIG: a parent shows itself by refusing its figures (the rest: test_arbiter_life.c).
    place = house("--gpus", "2", "--memory", "3G")
    place.start()
    uuids = [d["uuid"] for d in devices(place)]
    a = place.ask("1G", mode="now", device=uuids[1]).json["id"]
    place.fault("nvml-error", "4", "--device", "1", "--symbol", "nvmlDeviceGetMemoryInfo*")
    until("it is unusable", lambda: not devices(place)[1]["usable"])
    assert place.lease(a).json["state"] == "active" and devices(place)[1]["free_bytes"] == 0
    waits = place.ask("1G", mode="queue", device=uuids[1]).json["id"]
    assert place.ask("3G", mode="now").json["device"] == uuids[0]
    assert place.lease(waits).json["state"] == "queued"
    place.fault("clear")
    until("what waited is granted", lambda: place.lease(waits).json["state"] == "granted")
    assert place.lease(a).json["state"] == "active"


def test_F29_managed_memory_hides_from_the_process_and_is_covered_by_the_residue(place):
    hog, lease = leased_hog(place, "1G", "--managed", managed=True, n_bytes="2G")
    until("it is used", lambda: place.device()["used_bytes"] == GIB)
    card = place.device()
    assert card["unattributed_bytes"] == GIB and card["free_bytes"] == GIB  # 3 - max(2, 1 + (2 - 1))
    place.fault("residue", "512M")
    until("more is used", lambda: place.device()["used_bytes"] == GIB + 512 * MIB)
    card = place.device()
    assert card["unattributed_bytes"] == GIB + 512 * MIB and card["free_bytes"] == GIB
    assert place.ask(GIB + 1, mode="now").problem == "would-wait"
    assert place.ask(GIB, mode="now").status == 201
    assert living(place, hog) and place.lease(lease).json["state"] == "active"


def test_F29_managed_memory_that_nobody_declared_is_never_lent_twice(place):
    hog, lease = leased_hog(place, "1G", "--managed", n_bytes="2G")
    until("it is used", lambda: place.device()["used_bytes"] == GIB)
    assert place.device()["unattributed_bytes"] == GIB and place.device()["free_bytes"] == 0  # 3 - (1 + 2)
    assert place.ask("1M", mode="now").problem == "would-wait"
    assert living(place, hog) and place.lease(lease).json["state"] == "active"


# ---- the platform ----

def test_F33_under_wsl_a_margin_of_each_card_is_never_granted(bare):
    in_wsl = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /proc/sys/kernel/osrelease && exec "$@"',
              os.path.join(bare.dir, "osrelease")]
    with open(in_wsl[-1], "w", encoding="ascii") as file:
        file.write("5.15.153.1-microsoft-standard-WSL2\n")
    if not shutil.which("unshare") or subprocess.run([*in_wsl, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("no mounts for this user here")

    def start():
        n = bare.log().count("lessord: ready socket=")
        with open(os.path.join(bare.dir, "lessord.err"), "ab") as err:
            bare.daemon = subprocess.Popen([*in_wsl, SIMGPU, "run", "--", LESSORD, "--dir", bare.home], env=bare.env,
                                           stdin=subprocess.DEVNULL, stdout=err, stderr=err)
        until("it is ready", lambda: bare.log().count("lessord: ready socket=") > n)
    start()
    assert bare.device()["free_bytes"] == bare.device()["ceiling_bytes"] == GIB  # 3 GiB, 2 of them kept free
    never = bare.ask(GIB + 1)
    assert never.problem == "never-fits" and never.json["ceiling_bytes"] == GIB
    assert [(b["kind"], b["bytes"]) for b in never.json["blockers"]] == [("kept-free", 2 * GIB)]
    a = bare.ask("1G", mode="now")
    assert a.status == 201 and bare.device()["free_bytes"] == 0
    assert bare.stop() == 0
    bare.conf("wsl_margin = 512M\n")
    start()
    assert bare.device()["free_bytes"] == GIB + 512 * MIB and bare.lease(a.json["id"]).json["state"] == "active"
    assert bare.stop() == 0
    bare.start()  # the same folder elsewhere: the margin is of the platform
    assert bare.device()["free_bytes"] == 2 * GIB
