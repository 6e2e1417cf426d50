# SPDX-License-Identifier: Apache-2.0
"""Who holds and does nothing: seen by the eyes, told to the command, shown, counted; and nobody is ended for it."""

import json
import os
import re
import subprocess

import pytest
from cli_helpers import LESSOR, MIB, SIMGPU, Place, is_alive, until
from lessor_fixtures import UnixConnection

pytestmark = pytest.mark.skipif(os.stat("/proc/self/ns/pid").st_ino != 0xEFFFFFFC,
                                reason="what processes do is not known outside the initial pid namespace")

CONF = "linger = 1s\npoll = 50ms\npoll_activity = 200ms\nidle_notice = 1s\nidle_reclaimable = 4s\nidle_listed = 7s\n"


@pytest.fixture
def quick():
    place = Place()
    try:
        place.kill_daemon()
        with open(os.path.join(place.dir, "lessord.conf"), "w", encoding="utf-8") as conf:
            conf.write(CONF)
        place.start_daemon()
        yield place
    finally:
        place.close()


def work(place, pid, percent):
    subprocess.run([SIMGPU, "work", str(pid), str(percent)], env=place.env, check=True, stdout=subprocess.DEVNULL)


def rests(place, pid, name):
    """It has worked, so that the driver has shown a sample of it, and works no more."""
    work(place, pid, 60)
    until("its work is seen", lambda: place.lease(name)["activity"] == "worked")
    work(place, pid, 0)
    until("it is seen to rest", lambda: place.lease(name)["idle_by"] == "seen")


def events(place, rule):
    shown = place.lessor("events", "--json")
    return [e for e in map(json.loads, shown.stdout.splitlines()) if e["rule"] == rule]


def metrics(place):
    c = UnixConnection(place.env["LESSOR_SOCKET"])
    c.request("GET", "/metrics")
    text = c.getresponse().read().decode()
    c.close()
    return text


def test_idle_holder_is_told_shown_and_counted_and_stays(quick):
    run = quick.hog("sleepy", "300M")
    pid = quick.holds(300 * MIB)
    rests(quick, pid, "sleepy")
    assert re.search(r"^lessor run: L1: holds 300 MiB and has done nothing for \d s; whoever needs the memory may have it in",
                     run.stderr.readline())
    assert "may have it from now on, by the ways out that it has" in run.stderr.readline()
    assert "it is listed for the administrator" in run.stderr.readline()
    lease = quick.lease("sleepy")
    assert lease["idle_listed"] and lease["idle_counts_in_ms"] == 0 and lease["activity"] == "rested"
    status = quick.lessor("status").stdout
    assert re.search(r"idle for long: memory that does nothing \(1\)\n  L1 +holds 300 MiB +idle for \d+ s", status), status
    text = metrics(quick)
    seconds = re.search(r'^lessor_held_idle_seconds\{uid="\d+",user="[^"]*",uuid="GPU-[^"]+"\} ([0-9.]+)$', text, re.M)
    assert float(seconds[1]) >= 4
    assert f" {300 * MIB}\n" in text[text.index("lessor_held_idle_bytes{"):]
    assert 'lessor_warnings_total{rule="idle-notice"} 1\n' in text and "lessor_idle_listed_leases 1\n" in text
    assert len(events(quick, "idle-began")) == 1 and not events(quick, "idle-over")

    work(quick, pid, 30)
    until("it is at work again", lambda: quick.lease("sleepy")["idle_ms"] is None)
    over = until("that is an event", lambda: events(quick, "idle-over"))
    assert over[0]["kind"] == "idle" and is_alive(pid)
    assert "held_idle_seconds{" not in metrics(quick)
    run.terminate()
    assert run.wait() == 0


def test_whoever_needs_the_memory_of_an_idle_one_gets_it_by_its_way_out(quick):
    first = quick.hog("idle", "2500M", "--yield-by", "restart", alloc="2000M")
    pid = quick.holds(2000 * MIB)
    work(quick, pid, 60)
    until("its work is seen", lambda: quick.lease("idle")["activity"] == "worked")
    second = quick.hog("wants", "2500M", alloc="2000M")
    quick.in_state("wants", "queued")
    assert quick.lease("idle")["state"] == "active"  # at work, and not less important
    work(quick, pid, 0)
    quick.in_state("wants", "active")
    quick.in_state("idle", "parked")
    until("its command has ended", lambda: not is_alive(pid))
    assert first.poll() is None  # the wrapper waits for its return
    quick.holds(2000 * MIB)  # the other one's: it listens to SIGTERM by now
    second.terminate()
    assert second.wait() == 0
    quick.in_state("idle", "active")
    first.terminate()
    first.wait()


def faults(place):
    shown = subprocess.run([SIMGPU, "show", "--json"], env=place.env, stdout=subprocess.PIPE, check=True)
    return json.loads(shown.stdout)["faults"]


def test_driver_without_samples_makes_nobody_idle(quick):
    run = quick.hog("who-knows", "300M")
    pid = quick.holds(300 * MIB)
    rests(quick, pid, "who-knows")
    subprocess.run([SIMGPU, "fault", "nvml-error", "3", "--symbol", "nvmlDeviceGetProcess*Utilization*", "--times", "40"],
                   env=quick.env, check=True, stdout=subprocess.DEVNULL)
    until("nobody knows any more", lambda: quick.lease("who-knows")["activity"] == "unknown")
    while faults(quick):  # twenty looks at what processes do, in each of which the driver says that it cannot tell
        lease = quick.lease("who-knows")
        assert lease["idle_ms"] is None or not faults(quick), lease
    until("the driver tells, and it rests", lambda: quick.lease("who-knows")["idle_by"] == "seen")
    run.terminate()
    assert run.wait() == 0


def test_class_of_a_priority_has_its_own_ladder(quick):
    quick.kill_daemon()
    with open(os.path.join(quick.dir, "lessord.conf"), "w", encoding="utf-8") as conf:
        conf.write(CONF + "[class batch]\nidle_notice = 0\nidle_reclaimable = 0\nidle_listed = 1s\n")
    quick.start_daemon()
    run = quick.hog("batch", "300M", "--priority", "batch")
    pid = quick.holds(300 * MIB)
    rests(quick, pid, "batch")
    assert "it is listed for the administrator" in run.stderr.readline()
    assert quick.lease("batch")["idle_counts_in_ms"] is None
    run.terminate()
    assert run.wait() == 0


@pytest.mark.parametrize("text, words", [
    ("[class noisy]\nidle_notice = 1h\n", "there is no such class; allowed: urgent, interactive"),
    ("[class batch]\nidle_notice = 1h\nidle_notice = 2h\n", "stands in [class batch] a second time"),
    ("[class batch]\nlinger = 1h\n", "is no key of [class batch]; allowed: idle_notice"),
    ("idle_notice = soon\n", "idle_notice"),
    ("[class batch]\nidle_notice = 1h\n[class 4]\nidle_notice = 1h\n", "stands here a second time"),
])
def test_wrong_ladder_is_named_with_its_line(tmp_path, text, words):
    conf = tmp_path / "lessord.conf"
    conf.write_text(text)
    said = subprocess.run([LESSOR, "config", "check", str(conf)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert said.returncode != 0 and words in said.stdout and "lessord.conf:" in said.stdout, said.stdout
