# SPDX-License-Identifier: Apache-2.0
"""Processes with device memory and no lease, on the real programs: observed, warned of, ended, approved (F48 … F58, S10, S28)."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from lessor_fixtures import BUILD, SIMGPU, needs_root, until

LESSOR = os.path.join(BUILD, "bin", "lessor")
QUICK = "enforce_sweep = 1s\nenforce_stay = 0s\nenforce_notice = 1s\nenforce_grace = 10s\nenforce_grace_script = 10s\nenforce_grace_place = 10s\n"


def lessor(place, *words, **options):
    return subprocess.run([LESSOR, *words], env={**place.env, "LESSOR_SOCKET": place.socket}, text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def stranger(place, command, **options):
    """A program that takes memory without asking. Held by this test, seen by lessord; (Popen, pid of who has the memory)."""
    known = {s["pid"] for s in place.get("/api/status").json["strangers"]}
    process = subprocess.Popen([*plainly(), SIMGPU, "run", "--", *command], env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, **options)
    place.started.append(process)
    pids = until("it is seen", lambda: [s["pid"] for s in place.strangers() if s["pid"] not in known])
    return process, pids[0]


def plainly():
    """Before a command: without the capabilities of root, behind which a program cannot be seen by those who have none."""
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


def hog(size="1G", *options):
    return ["sh", "-c", 'exec "$0" "$@"', SIMGPU, "hog", "--alloc", size, *options]


def audit(place, pid):
    return next((a for a in place.get("/api/enforce").json["last_day"] if a["pid"] == pid), None)


def said(place, pid, kind=None):
    return [e["rule"] for e in place.events(limit=1000) if e.get("pid") == pid and (kind is None or e["kind"] == kind)]


def hands(place):
    return [e for e in place.events(limit=1000) if e["kind"] == "hand"]


def would_end(place, pid):
    return until("it is said what would be done", lambda: (a := audit(place, pid)) and a["would_end"] and a)


@pytest.fixture(name="place")
def fixture_place(bare):
    bare.conf(QUICK)
    bare.start()
    until("the hands are there", lambda: bare.get("/api/status").json["hands"] == "ok")
    return bare


# ---- observing ----

def test_S28_F58_new_installation_says_what_it_would_do_and_does_nothing(place):
    process, pid = stranger(place, hog())
    found = would_end(place, pid)
    assert (found["verdict"], found["why"], found["signals"], found["noticed"]) == ("would-end", "mode", 0, None), found
    shown = lessor(place, "enforce")
    assert shown.returncode == 0 and "mode       observe\n" in shown.stdout and f"  {pid} " in shown.stdout, shown
    assert process.poll() is None and not hands(place)
    body = json.loads(lessor(place, "enforce", "--json").stdout)
    assert body["mode"] == "observe" and body["since"] is None and body["would_end"] == 1


def test_on_shows_what_it_would_have_done_and_wants_a_word(place):
    _, pid = stranger(place, hog())
    would_end(place, pid)
    shown = lessor(place, "enforce", "on")
    assert shown.returncode == 2 and f"  {pid} " in shown.stdout and "--yes" in shown.stderr, shown
    assert place.get("/api/enforce").json["mode"] == "observe"


def test_mode_does_not_go_beyond_what_the_configuration_allows(bare):
    bare.conf(QUICK + "enforce_max = warn\n")
    bare.start()
    refused = lessor(bare, "enforce", "on", "--yes")
    assert refused.returncode == 1 and "warn" in refused.stderr and "enforce_max" in refused.stderr, refused
    assert lessor(bare, "enforce", "warn").stdout == "mode warn\n"
    assert bare.get("/api/enforce").json["mode"] == "warn"


def test_mode_outlives_a_restart(place):
    assert lessor(place, "enforce", "warn").returncode == 0
    place.kill()
    place.start()
    body = place.get("/api/enforce").json
    assert (body["mode"], body["since"] is not None) == ("warn", True)


# ---- ending ----

def test_stranger_that_honours_sigterm_is_ended_by_it_and_never_killed(place):
    process, pid = stranger(place, hog())
    assert lessor(place, "enforce", "on", "--yes").returncode == 0
    assert process.wait(timeout=60) == 0
    until("its end is in the books", lambda: "stranger-ended" in said(place, pid))
    rules = said(place, pid)
    assert [r for r in rules if r in ("stranger-noticed", "stranger-ending", "stranger-ended")] == \
        ["stranger-noticed", "stranger-ending", "stranger-ended"], rules
    found = audit(place, pid)
    assert found["verdict"] == "ended" and found["signals"] == 1 and found["sigkill"] is None, found


def test_stranger_that_ignores_sigterm_is_killed_once_when_its_grace_is_over(place):
    process, pid = stranger(place, hog("1G", "--ignore-term"))
    assert lessor(place, "enforce", "on", "--yes").returncode == 0
    assert process.wait(timeout=120) == -signal.SIGKILL
    until("its end is in the books", lambda: "stranger-ended" in said(place, pid))
    assert said(place, pid, "hand").count("stranger-ending") == 2, said(place, pid)
    assert audit(place, pid)["signals"] == 2


def test_F52_shell_and_siblings_of_a_stranger_are_left_alone(place):
    shell, pid = stranger(place, ["sh", "-c", 'sleep 1000 & echo $! >"$1"; "$0" hog --alloc 1G & wait $!; echo over >"$1.over"; wait', SIMGPU,
                                  os.path.join(place.dir, "sibling")])
    assert pid != shell.pid
    with open(os.path.join(place.dir, "sibling"), encoding="ascii") as file:
        sibling = int(file.read())
    try:
        assert lessor(place, "enforce", "on", "--yes").returncode == 0
        until("the one that had the memory is gone", lambda: os.path.exists(os.path.join(place.dir, "sibling.over")))
        until("its end is in the books", lambda: "stranger-ended" in said(place, pid))
        assert shell.poll() is None
        os.kill(sibling, 0)
        assert {e["pid"] for e in hands(place)} == {pid}
    finally:
        os.kill(sibling, signal.SIGKILL)


def test_stranger_that_is_adopted_in_its_notice_is_spared(bare):
    bare.conf(QUICK.replace("enforce_notice = 1s", "enforce_notice = 1h"))
    bare.start()
    process, pid = stranger(bare, hog())
    assert lessor(bare, "enforce", "on", "--yes").returncode == 0
    until("it is told", lambda: "stranger-noticed" in said(bare, pid))
    adopted = lessor(bare, "adopt", str(pid))
    assert adopted.returncode == 0, adopted
    until("it is a stranger no more", lambda: not bare.get("/api/status").json["strangers"])
    assert process.poll() is None and not hands(bare)


def test_mode_that_is_taken_back_in_the_notice_spares_it(bare):
    bare.conf(QUICK.replace("enforce_notice = 1s", "enforce_notice = 1h"))
    bare.start()
    process, pid = stranger(bare, hog())
    assert lessor(bare, "enforce", "on", "--yes").returncode == 0
    until("it is told", lambda: "stranger-noticed" in said(bare, pid))
    assert lessor(bare, "enforce", "off").returncode == 0
    until("it is spared", lambda: "stranger-spared" in said(bare, pid))
    assert process.poll() is None and not hands(bare)


# ---- who it is ----

@needs_root
def test_F50_who_cannot_be_seen_is_nobodys_end_and_that_is_said(place):
    known = place.hog("1G")  # with capabilities: what it runs is hidden from who has none
    until("it is seen", place.strangers)
    assert lessor(place, "enforce", "on", "--yes").returncode == 0
    until("it is told", lambda: "enforce-doubt" in [e["rule"] for e in place.events(limit=1000)])
    assert place.get("/api/enforce").json["doubt"] == "blind" and "blind" in lessor(place, "enforce").stdout
    assert known.poll() is None and not hands(place)


@pytest.mark.parametrize("name,argv0", [("Xorg", "Xorg"), ("sshd", "sshd: root@pts/0"), ("anything", "ollama serve")])
def test_S10_a_name_exempts_nobody(place, name, argv0):
    program = os.path.join(place.dir, name)
    shutil.copy(SIMGPU, program)
    _, pid = stranger(place, [sys.executable, "-c", "import os, sys; os.execv(sys.argv[1], [sys.argv[2], 'hog', '--alloc', '1G'])", program, argv0])
    assert would_end(place, pid)["why"] == "mode"


def test_S10_descriptor_of_the_device_alone_is_no_reason(place):
    """B was handed the open card by A, and has no memory on it."""
    _, pid = stranger(place, hog())
    with open(place.card, "rb") as card:
        idle = subprocess.Popen(["sleep", "1000"], stdin=card)
    place.started.append(idle)
    assert lessor(place, "enforce", "on", "--yes").returncode == 0
    until("who has the memory is ended", lambda: "stranger-ended" in said(place, pid))
    assert idle.poll() is None and audit(place, idle.pid) is None
    assert {e["pid"] for e in hands(place)} == {pid}


def test_little_memory_is_left_alone(place):
    small, pid = stranger(place, hog("200M"))
    _, other = stranger(place, hog("1G"))
    assert lessor(place, "enforce", "on", "--yes").returncode == 0
    until("the large one is ended", lambda: "stranger-ended" in said(place, other))
    assert small.poll() is None and audit(place, pid) is None


# ---- approvals ----

def test_approved_program_stays_until_that_is_taken_back(place):
    process, pid = stranger(place, hog())
    would_end(place, pid)
    approved = lessor(place, "approve", str(pid), "--json")
    assert approved.returncode == 0, approved
    approval = json.loads(approved.stdout)
    assert approval["id"] == "A1" and approval["until"] is None and not approval["here"]
    assert (audit(place, pid)["verdict"], audit(place, pid)["why"]) == ("spared", "approved")
    assert "A1" in lessor(place, "approvals").stdout
    assert lessor(place, "enforce", "on", "--yes").returncode == 0
    _, other = stranger(place, [sys.executable, "-c", "import os, sys; os.execv(sys.argv[1], ['x', 'hog', '--alloc', '1G'])",
                                shutil.copy(SIMGPU, os.path.join(place.dir, "copy"))])
    until("another file is another program", lambda: "stranger-ended" in said(place, other))
    assert process.poll() is None
    assert lessor(place, "unapprove", "A1").stdout == "A1 is taken back\n"
    assert process.wait(timeout=60) == 0
    assert lessor(place, "approvals").stdout == "nothing is approved\n"


def test_approvals_that_cannot_be_made_say_why(place):
    nobody = lessor(place, "approve", "4194303")
    assert nobody.returncode == 1 and "no memory on a device" in nobody.stderr, nobody
    none = lessor(place, "unapprove", "A77")
    assert none.returncode == 1 and "A77" in none.stderr, none
    for body in ({"pid": 0}, {"pid": 1, "for": "x"}, {"pid": 1, "for": "1h", "for_ms": 1}, {"pid": 1, "name": "ollama"}, {}):
        assert place.request("POST", "/api/approve", body).status == 400, body
    for body in ({"mode": "kill"}, {"mode": 2}, {}, {"mode": "warn", "yes": True}):
        assert place.request("POST", "/api/enforce", body).status == 400, body


# ---- where it runs ----

class Unit:
    """A folder of version 2 that is called like a unit of systemd's; who is started in it runs there."""

    def __init__(self, name):
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            mount = next((line.split()[4] for line in file if " - cgroup2 " in line), None)
        if not mount or os.geteuid() != 0:
            pytest.skip("no cgroup2 hierarchy to make a unit's folder in")
        self.path = os.path.join(mount, f"{name}-{os.getpid()}.service")
        try:
            os.mkdir(self.path)
        except OSError as e:
            pytest.skip(f"no cgroup can be made here: {e}")

    def before(self):
        return ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', self.path]

    def remove(self):
        def removed():
            try:
                os.rmdir(self.path)
            except OSError:
                return False
            return True
        until("nobody is in it", removed)


@pytest.fixture(name="unit")
def fixture_unit():
    units = []

    def make(name):
        units.append(Unit(name))
        return units[-1]
    yield make
    for unit in units:
        unit.remove()


def test_approval_for_here_covers_the_unit_and_nothing_else(bare, unit):
    here, there = unit("lessor-here"), unit("lessor-there")
    bare.conf(QUICK)
    bare.start()
    until("the hands are there", lambda: bare.get("/api/status").json["hands"] == "ok")
    try:
        stays, pid = stranger(bare, [*here.before(), *hog()])
        would_end(bare, pid)
        name = os.path.basename(here.path)
        [told] = bare.get("/api/status").json["strangers"]
        assert (told["place"]["kind"], told["place"]["unit"]) == ("unit", name), told
        assert f"  in {name}\n" in lessor(bare, "status").stdout
        approved = lessor(bare, "approve", str(pid), "--here", "--json")
        assert approved.returncode == 0 and json.loads(approved.stdout)["here"], approved
        goes, other = stranger(bare, [*there.before(), *hog()])
        assert lessor(bare, "enforce", "on", "--yes").returncode == 0
        until("the one elsewhere is ended", lambda: "stranger-ended" in said(bare, other))
        assert goes.wait(timeout=60) == 0 and stays.poll() is None
        assert (audit(bare, pid)["verdict"], audit(bare, pid)["why"]) == ("spared", "approved")
        assert {e["pid"] for e in hands(bare)} == {other}
    finally:
        for process in bare.started:
            process.kill()
            process.wait()


def test_F54_worker_whose_command_is_over_is_under_its_lease_and_nobodys_target(place):
    """Its parents are gone, its lease is orphaned; enforcement is for who has none."""
    script = f'"{SIMGPU}" run -- "{SIMGPU}" hog --alloc 1G & echo $! >"$1"; disown'
    left = os.path.join(place.dir, "left")
    done = subprocess.run([*plainly(), LESSOR, "run", "--vram", "1G", "--", "bash", "-c", script, "x", left], check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, env={**place.env, "LESSOR_SOCKET": place.socket})
    assert done.returncode == 0
    with open(left, encoding="ascii") as file:
        worker = int(file.read())
    try:
        until("it has its memory", lambda: (a := place.lease("L1")).status == 200 and a.json["state"] == "orphaned" and a.json["used_bytes"])
        assert lessor(place, "enforce", "on", "--yes").returncode == 0
        other, pid = stranger(place, hog())
        until("who has no lease is ended", lambda: "stranger-ended" in said(place, pid))
        assert other.wait(timeout=60) == 0
        os.kill(worker, 0)
        assert place.lease("L1").json["state"] == "orphaned" and audit(place, worker) is None
        assert {e["pid"] for e in hands(place)} == {pid}
    finally:
        os.kill(worker, signal.SIGKILL)


# ---- warning ----

def test_owner_is_warned_on_his_terminal_and_by_the_hook_with_the_cure(bare):
    told = os.path.join(bare.dir, "told")
    hook = os.path.join(bare.dir, "hook")
    with open(hook, "w", encoding="ascii") as file:
        file.write(f'#!/bin/sh\nprintf "%s\\n" "$@" >"{told}.new" && mv "{told}.new" "{told}"\n')
    os.chmod(hook, 0o755)
    bare.conf(QUICK + f"warn_hook = {hook} --to $HOME\n")
    bare.start()
    master, slave = os.openpty()
    os.fchmod(slave, 0o620)  # mesg y
    shy, shy_slave = os.openpty()
    os.fchmod(shy_slave, 0o600)  # mesg n
    process, pid = stranger(bare, hog())
    assert lessor(bare, "enforce", "warn").returncode == 0
    words = until("the hook was told", lambda: os.path.exists(told) and open(told, encoding="utf-8").read().splitlines())
    uuid = bare.device()["uuid"]
    assert words[:2] == ["--to", "$HOME"]  # no shell
    assert words[2:5] == ["warned", str(pid), str(os.geteuid())] and words[6] == uuid and len(words) == 8, words
    assert words[7].endswith(f"Give it one: lessor adopt {pid}")
    os.set_blocking(master, False)
    line = os.read(master, 4096).decode()
    assert f"lessor adopt {pid}" in line and not set(line) - {"\r", "\n"} & {chr(c) for c in range(32)}, line
    os.set_blocking(shy, False)
    with pytest.raises(BlockingIOError):
        os.read(shy, 4096)
    for fd in (master, slave, shy, shy_slave):
        os.close(fd)
    assert said(bare, pid).count("stranger-warned") == 1 and process.poll() is None and not hands(bare)


@pytest.mark.parametrize("text", ["warn_hook = tell\n", "enforce_max = kill\n", "enforce_grace = 1s\n", "enforce_min = 0\n"])
def test_configuration_that_would_not_do_is_refused_by_name(bare, text):
    bare.conf(text)
    checked = lessor(bare, "config", "check", os.path.join(bare.home, "lessord.conf"))
    assert checked.returncode == 78 and text.split(" ", 1)[0] in checked.stderr + checked.stdout, checked
