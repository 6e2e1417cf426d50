# SPDX-License-Identifier: Apache-2.0
"""`lessor doctor`: with and without lessord, a card and rights, on this machine and on made-up ones."""

import json
import os
import re
import shutil
import subprocess

import pytest

from cli_helpers import BUILD, LESSOR, SIMGPU, Place, Terminal, until

ABILITIES = ["lease", "release", "park", "enforce"]
PLACES = ["own session", "system", "WSL", "container"]


@pytest.fixture(name="own")
def fixture_own():
    place = Place()
    yield place
    place.close()


class Machine:
    """A made-up one: the files of /proc, /sys and /run that doctor reads."""

    def __init__(self, folder):
        self.dir = str(folder)
        self.write("proc/sys/kernel/osrelease", "6.1.0-18-amd64")
        self.write("proc/self/cgroup", "0::/user.slice/user-1000.slice/session-2.scope")
        self.write("proc/meminfo", "MemTotal:       65536000 kB\nMemFree: 100 kB\nMemAvailable:   32768000 kB\n")
        self.write("sys/fs/cgroup/cgroup.controllers", "cpu memory")
        self.write("proc/sys/kernel/yama/ptrace_scope", "0")
        self.write("proc/pressure/memory", "some avg10=0.00")
        os.makedirs(f"{self.dir}/proc/self/ns")
        os.symlink("pid:[4026531836]", f"{self.dir}/proc/self/ns/pid")

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")

    def process(self, pid, comm, caps="0000000000000000"):
        self.write(f"proc/{pid}/comm", comm)
        self.write(f"proc/{pid}/status", f"Name:\t{comm}\nCapInh:\t0000000000000000\nCapPrm:\t{caps}\nCapEff:\t{caps}\n")


@pytest.fixture(name="machine")
def fixture_machine(tmp_path):
    return Machine(tmp_path)


def doctor(*words, env=None, **changes):
    """The JSON of it, and its exit code; without lessord and card unless told otherwise."""
    whole = {**os.environ, "LESSOR_SOCKET": "/nowhere/lessor.sock", **(env or {}), **changes}
    done = subprocess.run([LESSOR, "doctor", "--json", *words], env=whole, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, text=True, timeout=60)
    assert done.stderr == "" and done.returncode in (0, 1), done
    return json.loads(done.stdout), done.returncode


def check(report, name):
    found = [c for c in report["checks"] if c["name"] == name]
    assert found, (name, [c["name"] for c in report["checks"]])
    return found[0]


def cell(report, place, ability):
    return next(row for row in report["table"] if row["place"] == place)[ability]


def under_card(place, *words, **env):
    """doctor as a program that sees the simulated card and its lessord."""
    done = subprocess.run([SIMGPU, "run", "--", LESSOR, "doctor", *words], env={**place.env, **env}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True, timeout=60)
    return done


def has_no_driver():
    return not any(os.path.exists(f"/dev/{name}") for name in ("nvidiactl", "dxg"))


# ---- nothing there ----

def test_without_lessord_and_card_it_says_so_with_cures(machine):
    report, code = doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir})
    assert code == 1
    lessord = check(report, "lessord")
    assert lessord["finding"] == "bad" and "/nowhere/lessor.sock" in lessord["text"] and "systemctl start lessord" in lessord["cure"]
    if has_no_driver():
        driver = check(report, "driver")
        assert driver["finding"] == "bad" and "libnvidia-ml.so.1 cannot be opened" in driver["text"] and "install" in driver["cure"]
    assert [row["place"] for row in report["table"]] == PLACES
    assert [row["place"] for row in report["table"] if row["current"]] == [report["place"]]
    for row in report["table"]:
        for ability in ABILITIES:
            verdict = row[ability]
            assert verdict["works"] != bool(verdict["why"]) and verdict["works"] != bool(verdict["cure"]), (row["place"], ability)


def test_each_no_of_the_table_has_its_reason_and_cure_below(machine):
    done = subprocess.run([LESSOR, "doctor"], env={**os.environ, "LESSOR_SOCKET": "/nowhere/s", "LESSOR_DOCTOR_ROOT": machine.dir},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and done.stderr == "" and "\x1b" not in done.stdout
    head, _, tail = done.stdout.partition("what works")
    rows = re.findall(r"^(?:→| ) (own session|system|WSL|container) +(yes|no) +(yes|no) +(yes|no) +(yes|no)$", tail, re.M)
    assert [row[0] for row in rows] == PLACES and len(re.findall("^→ ", tail, re.M)) == 1
    for number, ability in enumerate(ABILITIES, 1):
        without = [row[0] for row in rows if row[number] == "no"]
        named = [name for group in re.findall(rf"^no {ability} \((.*?)\): .+\n(?:.+\n)*?  Cure: .+$", tail, re.M) for name in group.split(", ")]
        assert sorted(named) == sorted(without), ability
    assert "Cure: " in head and not re.search(r" +$", done.stdout, re.M)


def test_rights_are_listed_per_feature_S23(machine):
    report, _ = doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir})
    needs = {right["who"]: [r["needs"] for r in report["rights"] if r["who"] == right["who"]] for right in report["rights"]}
    assert needs["lessord"] == ["none"] and needs["lessor-eyes"] == ["none"]
    assert {"CAP_KILL", "CAP_SYS_PTRACE", "CAP_SYS_RESOURCE", "CAP_SYS_PACCT", "CAP_NET_ADMIN"} == set(needs["lessor-warden"])


@pytest.mark.parametrize("comm, caps, finding, said", [
    ("lessord", "0000000000000000", "ok", "has none"),
    ("lessord", "0000000000000020", "warn", "has CAP_KILL"),
    ("lessor-eyes", "0000000000080000", "warn", "has CAP_SYS_PTRACE"),
    ("lessor-warden", "0000000000080020", "ok", "has CAP_KILL CAP_SYS_PTRACE"),
    ("lessor-warden", "000001ffffffffff", "warn", "and others"),
])
def test_part_with_more_rights_than_it_needs_is_told_S23(machine, comm, caps, finding, said):
    machine.process(77, comm, caps)
    report, _ = doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir})
    rights = check(report, "rights")
    assert (rights["finding"], f"{comm} (pid 77)" in rights["text"], said in rights["text"]) == (finding, True, True), rights


# ---- what a machine can be like ----

@pytest.mark.parametrize("scope, finding", [("0", "ok"), ("1", "fact"), ("2", "fact"), ("3", "warn"), ("9", "fact"), (None, "ok")])
def test_ptrace_scope_is_told(machine, scope, finding):
    if scope is None:
        shutil.rmtree(f"{machine.dir}/proc/sys/kernel/yama")
    else:
        machine.write("proc/sys/kernel/yama/ptrace_scope", scope)
    report, _ = doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir})
    assert check(report, "ptrace scope")["finding"] == finding


def test_wsl_is_a_place_of_its_own_where_memory_per_process_is_not_told_F17_F33(machine):
    machine.write("proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2")
    report, _ = doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir})
    assert report["place"] == "WSL" and "wsl_margin" in check(report, "WSL")["text"]
    assert not cell(report, "WSL", "enforce")["works"]


@pytest.mark.parametrize("name, text, what", [
    (".dockerenv", "", "docker"), ("run/.containerenv", "", "podman"), ("run/systemd/container", "lxc", "lxc"),
    ("proc/self/cgroup", "0::/kubepods.slice/kubepods-burstable.slice", "kubernetes")])
def test_container_is_recognised(machine, name, text, what):
    machine.write(name, text)
    report, _ = doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir})
    assert report["place"] == "container" and f"({what})" in check(report, "container")["text"]


def test_pid_namespace_of_its_own_ends_enforcement_in_a_container_F19(machine):
    machine.write(".dockerenv", "")
    os.unlink(f"{machine.dir}/proc/self/ns/pid")
    os.symlink("pid:[4026532281]", f"{machine.dir}/proc/self/ns/pid")
    report, _ = doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir})
    namespace = check(report, "pid namespace")
    assert namespace["finding"] == "warn" and "--pid=host" in namespace["cure"]
    verdict = cell(report, "container", "enforce")
    assert not verdict["works"] and "--pid=host" in verdict["cure"]


def test_cgroup_version_and_delegation_are_told(machine):
    report, _ = doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir})
    assert "version 2" in check(report, "cgroups")["text"]
    os.unlink(f"{machine.dir}/sys/fs/cgroup/cgroup.controllers")
    machine.write("sys/fs/cgroup/unified/cgroup.procs", "1")
    report, _ = doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir})
    cgroups = check(report, "cgroups")
    assert cgroups["finding"] == "warn" and "version 1" in cgroups["text"] and "unified_cgroup_hierarchy" in cgroups["cure"]


def test_oom_killers_and_other_coordinators_are_named_F58(machine):
    report, _ = doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir})
    assert check(report, "OOM killers")["finding"] == "ok"
    machine.process(41, "earlyoom")
    machine.process(42, "systemd-oomd")
    machine.process(43, "lessord")
    machine.process(44, "lessord")
    machine.process(45, "kubelet")
    report, _ = doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir})
    killers = check(report, "OOM killers")
    assert "earlyoom (pid 41)" in killers["text"] and "systemd-oomd (pid 42)" in killers["text"]
    assert "2 run here" in check(report, "other lessord")["text"]
    assert "pid 45 (kubelet)" in check(report, "coordinator")["text"]


def test_host_memory_and_what_is_left_alone_are_told(machine):
    report, _ = doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir})
    assert check(report, "host memory")["text"] == "31.25 GiB of 62.5 GiB available; 6.25 GiB of it is left alone"
    machine.write("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 1048576 kB")
    report, _ = doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir})
    assert check(report, "host memory")["finding"] == "warn"


def test_files_that_make_no_sense_are_survived(machine):
    for name in ("proc/meminfo", "proc/self/cgroup", "proc/sys/kernel/yama/ptrace_scope", "proc/driver/nvidia/version",
                 "run/systemd/container", "proc/9/comm"):
        path = os.path.join(machine.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"\x1b[31m\xff%n%s " * 2000)
    report, _ = doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir})
    assert "\x1b" not in json.dumps(report, ensure_ascii=False)
    os.unlink(f"{machine.dir}/proc/meminfo")
    os.mkfifo(f"{machine.dir}/proc/meminfo")
    doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir})


# ---- the driver ----

def test_with_lessord_card_and_hands_parking_works(own, machine):
    until("lessord knows what the machine can", lambda: own.status()["host"]["checkpoint"] == "can")
    report = json.loads(under_card(own, "--json", LESSOR_DOCTOR_ROOT=machine.dir).stdout)
    assert cell(report, report["place"], "park")["works"]
    assert not cell(report, "WSL", "park")["works"]


def test_with_lessord_and_card_leases_work(own, machine):
    done = under_card(own, "--json", LESSOR_DOCTOR_ROOT=machine.dir)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert cell(report, report["place"], "lease")["works"] and cell(report, report["place"], "release")["works"]
    assert re.fullmatch(r"\d+\.\d+.*, 1 device", check(report, "driver")["text"])
    assert check(report, "lessord")["text"] == f"answers on {own.env['LESSOR_SOCKET']}"
    events = own.status()["process_events"]
    assert events in ("told", "refused", "namespace", "missing"), events
    told = check(report, "process events")
    assert (told["finding"] == "ok") == (events == "told") and told["text"].startswith(events if events != "namespace" else "not told"), told
    assert (told["cure"] is None) == (events == "told"), told
    assert check(report, "versions")["finding"] == "ok" and "lessord that runs" in check(report, "versions")["text"]
    assert check(report, "memory per process")["finding"] == "fact"
    own.hog("holder", "300M")
    own.in_state("holder", "active")
    own.holds(300 * 1024 * 1024)
    report = json.loads(under_card(own, "--json", LESSOR_DOCTOR_ROOT=machine.dir).stdout)
    assert check(report, "memory per process")["finding"] == "ok"


@pytest.mark.parametrize("create, finding, said", [
    (["--abi", "new"], "ok", "found out by trying"), (["--abi", "r535"], "warn", "driver 535"), (["--abi", "old"], "warn", "driver 4"),
    (["--abi", "new", "--hide", "cuCheckpoint*"], "warn", "has no cuCheckpointProcessLock")], ids=lambda v: " ".join(v) if isinstance(v, list) else None)
def test_checkpoint_ability_follows_the_driver(machine, tmp_path, create, finding, said):
    card = str(tmp_path / "card")
    subprocess.run([SIMGPU, "create", "--file", card, "--gpus", "1", "--memory", "1G", *create], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([SIMGPU, "run", "--file", card, "--", LESSOR, "doctor", "--json"], stdout=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "LESSOR_SOCKET": "/nowhere/s", "LESSOR_DOCTOR_ROOT": machine.dir})
    checkpoint = check(json.loads(done.stdout), "checkpoint")
    assert checkpoint["finding"] == finding and said in checkpoint["text"], checkpoint
    assert finding == "ok" or checkpoint["cure"] == "install driver 570 or newer"


def test_module_of_another_version_than_the_library_means_reboot_F24(own, machine):
    machine.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.07  Sat Feb 17 22:55:48 UTC 2024")
    done = under_card(own, "--json", LESSOR_DOCTOR_ROOT=machine.dir)
    report = json.loads(done.stdout)
    driver = check(report, "driver")
    assert done.returncode == 1 and driver["finding"] == "bad" and "535.161.07" in driver["text"] and driver["cure"].startswith("reboot")
    assert cell(report, report["place"], "lease")["cure"] == "reboot"


def test_driver_that_hangs_is_waited_for_a_few_seconds_only_F22(own, machine):
    subprocess.run([SIMGPU, "fault", "nvml-hang"], env=own.env, check=True)
    try:
        done = under_card(own, "--json", LESSOR_DOCTOR_ROOT=machine.dir)
    finally:
        subprocess.run([SIMGPU, "fault", "clear"], env=own.env, check=True)
    report = json.loads(done.stdout)
    assert done.returncode == 1 and "does not answer" in check(report, "driver")["text"]


# ---- lessord ----

def test_lessord_that_never_answers_does_not_hold_it_up(machine, tmp_path):
    import socket
    path = str(tmp_path / "mute.sock")
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(path)
        mute.listen()
        report, code = doctor(env={"LESSOR_DOCTOR_ROOT": machine.dir, "LESSOR_SOCKET": path})  # bounded, wherever it hangs
    assert code == 1 and "does not answer" in check(report, "lessord")["text"]


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_permission_error_names_the_group_and_the_command(machine, tmp_path):
    """Of doctor, of what only looks, and of what waits: at once, with the cure."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    shutil.copy(LESSOR, bin_dir)
    path = tmp_path / "lessor.sock"
    subprocess.run(["/usr/bin/python3", "-c", "import socket,sys; s=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])", path], check=True)
    os.chown(path, 0, 44)  # Debian's group video
    os.chmod(path, 0o660)
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        os.chmod(folder, 0o755)
    env = {**os.environ, "LESSOR_SOCKET": str(path), "LESSOR_DOCTOR_ROOT": machine.dir}
    for words, code in ((["doctor"], 1), (["status"], 69), (["limits"], 69), (["renice", "4", "L1"], 69), (["adopt", "1"], 69),
                        (["plan", "--vram", "1G"], 69), (["run", "--vram", "1G", "--", "true"], 69),
                        (["lease", "acquire", "--vram", "1G"], 69)):
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(bin_dir / "lessor"), *words], env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
        said = done.stdout if words == ["doctor"] else done.stderr
        assert done.returncode == code, (words, done.returncode, said)
        assert "group video" in said and "sudo usermod -aG video nobody" in said, (words, said)


def test_versions_that_differ_are_told(machine, tmp_path):
    shutil.copy(LESSOR, tmp_path / "lessor")
    for name, version in (("lessord", "0.0.9"), ("lessor-warden", "hang"), ("lessor-eyes", "0")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{'exec sleep 100' if version == 'hang' else f'echo {name} {version}'}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run([str(tmp_path / "lessor"), "doctor", "--json"], stdout=subprocess.PIPE, text=True, check=False, timeout=60,
                          env={**os.environ, "LESSOR_SOCKET": "/nowhere/s", "LESSOR_DOCTOR_ROOT": machine.dir})
    versions = check(json.loads(done.stdout), "versions")
    assert versions["finding"] == "warn" and "lessord 0.0.9" in versions["text"] and "lessor-warden ?" in versions["text"]


def test_degraded_books_are_told_and_no_lease_is_promised(own, machine):
    """The journal's folder on a full disk would need root; a lessord that sees no card is as good a reason."""
    subprocess.run([SIMGPU, "fault", "nvml-hang"], env=own.env, check=True)
    until("lessord noticed", lambda: own.status()["gpu"] == "stale")
    report, code = doctor(env={**own.env, "LESSOR_DOCTOR_ROOT": machine.dir})
    assert code == 1 and "does not answer lessord" in check(report, "lessord's view")["text"]


def test_enforcer_is_told_with_why_nobody_is_ended_just_now(own, machine):
    def told(conf=None):
        if conf:
            own.kill_daemon()
            with open(os.path.join(own.dir, "lessord.conf"), "w", encoding="ascii") as file:
                file.write(conf)
            own.start_daemon()
        return check(json.loads(under_card(own, "--json", LESSOR_DOCTOR_ROOT=machine.dir).stdout), "enforcer")
    new = told()
    assert new["finding"] == "fact" and re.match(r"observe: .*nobody is ended", new["text"]) and new["cure"], new
    assert own.lessor("enforce", "on", "--yes").returncode == 0
    doubtful = told("enforce_sweep = 1h\n")  # nothing counts as seen for an hour
    assert doubtful["finding"] == "warn" and doubtful["cure"], doubtful
    assert doubtful["text"] == "enforce, and in doubt, so nobody is ended: not every device was seen yet since the start", doubtful
    lowered = told("enforce_max = warn\n")
    assert lowered["finding"] == "warn" and lowered["text"].startswith("warn, though enforce was asked for: enforce_max"), lowered


def test_colour_only_on_a_terminal(machine):
    terminal = Terminal([LESSOR, "doctor"], {**os.environ, "TERM": "xterm", "LESSOR_SOCKET": "/nowhere/s", "LESSOR_DOCTOR_ROOT": machine.dir,
                                             "PATH": f"{BUILD}/bin:{os.environ['PATH']}"})
    try:
        assert terminal.wait() == 1 and "\x1b[31m" in terminal.all
    finally:
        terminal.close()


