# SPDX-License-Identifier: Apache-2.0
"""Whose process is it: workers that left their parents behind, on real processes (F54, S10). What launders nothing: a shell in a shell,
a double fork, setsid, nohup, a container. What proves nothing: a token, a name, a descriptor of the device."""

import array
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys

import pytest

from lessor_fixtures import BUILD, SIMGPU, needs_root, until

LESSOR = os.path.join(BUILD, "bin", "lessor")
TAKE = f'"{SIMGPU}" run -- "{SIMGPU}" hog --alloc 1G'

# What a command does with the worker that it starts: words of a shell, with TAKE in it. All but the first leave it to init, or to whoever
# takes orphans here.
WAYS = {
    "child": f"{TAKE} &",
    "disown": f"bash -c 'bash -c \"{TAKE.replace(chr(34), '')} & disown\"'",
    "nohup": f"(nohup {TAKE} >/dev/null 2>&1 &)",
    "setsid": f"(setsid {TAKE} &)",
    "setsid-fork": f"setsid -f {TAKE}",
    "double-fork": f"""{sys.executable} -c '
import os, sys
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.chdir("/")
os.execv(sys.argv[1], sys.argv[1:])' {TAKE}""",
    "deep": "sh -c 'sh -c \"sh -c \\\"setsid -f " + TAKE.replace('"', "") + "\\\"\"'",
}


def process_events_told():
    """Does the kernel tell of forks here (proc connector)? It does in the first namespaces of a machine, not within a container."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 11) as s:
            s.bind((0, 1))
            body = struct.pack("=IIIIHHI", 1, 1, 0, 0, 4, 0, 1)
            s.send(struct.pack("=IHHII", 16 + len(body), 3, 0, 0, os.getpid()) + body)
            s.settimeout(0.5)
            return len(s.recv(8192)) > 0
    except OSError:
        return False


EVENTS = process_events_told()
needs_events = pytest.mark.skipif(not EVENTS, reason="the kernel tells of no forks here (process events): not in a container")


def ppid_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def plainly():
    """Before a command: without the capabilities of root, behind which a program cannot be seen by those who have none."""
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


def with_memory(place, other_than=()):
    """The one process with device memory, as the API tells of it."""
    def fact():
        found = [p for p in place.get("/api/processes").json["processes"] if p["devices"] and p["pid"] not in other_than]
        return found if any(d["used_bytes"] for p in found for d in p["devices"]) else None
    [process] = until("somebody has memory", fact)
    return process


def shown(place, pid):
    return next((p for p in place.get("/api/processes").json["processes"] if p["pid"] == pid), None)


@pytest.fixture(name="ended")
def fixture_ended(place):
    """pids that are killed at the end, whoever their parent is by then."""
    pids = []
    yield pids
    for pid in filter(lambda n: n > 1, pids):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


class Origin:
    """A shell with a lease bound to it that does what it is told then, and lives on. A session of its own, and no cgroup."""

    def __init__(self, place, words, before=(), **options):
        self.shell = subprocess.Popen([*before, "bash", "-c", f"read -r line; {words}\nwhile read -r line; do :; done; wait"], env=place.env,
                                      stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                                      text=True, **options)
        place.started.append(self.shell)
        answer = place.ask("1G", mode="now", bind={"to": "process", "pid": self.shell.pid})
        assert answer.status == 201, answer
        self.lease = answer.json["id"]
        answer = place.request("POST", f"/api/leases/{self.lease}/activate", {"pid": self.shell.pid})
        assert answer.status == 200, answer

    def go(self):
        self.shell.stdin.write("go\n")
        self.shell.stdin.flush()


# ---- nothing launders ----

@pytest.mark.parametrize("way", WAYS)
def test_F54_worker_belongs_to_whom_it_descends_from_and_each_step_has_its_evidence(place, ended, way):
    if not EVENTS and way in ("setsid", "setsid-fork", "double-fork", "deep"):
        pytest.skip("the kernel tells of no forks here (process events), and it left its session")
    origin = Origin(place, WAYS[way])
    origin.go()
    worker = with_memory(place)
    ended.append(worker["pid"])
    steps = [(s["pid"], s["known_by"]) for s in worker["ancestors"]]
    assert (worker["lease"], worker["by"]) == (origin.lease, "ancestor"), worker
    assert origin.shell.pid in [pid for pid, _ in steps], worker
    to_origin = [known_by for _, known_by in steps[:[pid for pid, _ in steps].index(origin.shell.pid) + 1]]
    if way == "child":
        assert ppid_of(worker["pid"]) == origin.shell.pid and len(to_origin) == 1 and to_origin[0] in ("parent", "event"), worker
    else:
        assert ppid_of(worker["pid"]) != origin.shell.pid, "its parent should be gone"
        assert set(to_origin) <= {"parent", "event", "session"} and set(to_origin) & {"event", "session"}, worker
    assert not place.get("/api/status").json["strangers"]
    assert place.lease(origin.lease).json["used_bytes"] > 0
    table = subprocess.run([LESSOR, "processes"], env={**place.env, "LESSOR_SOCKET": place.socket}, stdout=subprocess.PIPE, text=True, check=True)
    assert f"← {origin.shell.pid} ({to_origin[-1]})" in table.stdout and f" {origin.lease} " in table.stdout, table.stdout


def test_F54_worker_that_outlives_its_command_stays_under_the_lease(place, ended):
    """Under `lessor run`: the cgroup that it makes, else the tree or the wrapper, knows it. The command is over, the lease is not."""
    run = subprocess.run([LESSOR, "run", "--vram", "1G", "--", "bash", "-c", WAYS["disown"]], check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, timeout=60, env={**place.env, "LESSOR_SOCKET": place.socket})
    assert run.returncode == 0, run
    worker = with_memory(place)
    ended.append(worker["pid"])
    # named itself, where it had no memory yet when the wrapper left
    assert worker["lease"] == "L1" and worker["by"] in ("cgroup", "ancestor", "root"), worker
    assert until("the lease says so", lambda: (a := place.lease("L1")).status == 200 and a.json["state"] == "orphaned")
    assert not place.get("/api/status").json["strangers"]


@needs_events
def test_worker_whose_parent_is_gone_keeps_its_lease_over_a_restart_of_the_eyes(place, ended):
    """The eyes that saw the fork are gone; what was once known stays known."""
    origin = Origin(place, WAYS["double-fork"])
    origin.go()
    worker = with_memory(place)
    ended.append(worker["pid"])
    assert worker["lease"] == origin.lease
    [eyes] = place.eyes()
    os.kill(eyes, signal.SIGKILL)
    until("there are others", lambda: (now := place.eyes()) and eyes not in now and place.get("/api/status").json["gpu"] == "ok")
    until("they have looked", lambda: (p := shown(place, worker["pid"])) and p["state"] == "live" and p)
    assert shown(place, worker["pid"])["lease"] == origin.lease


# ---- containers ----

def make_bundle(place, called, words, cgroup):
    """What crun takes: the host's own /usr, a mount namespace, a cgroup."""
    bundle = os.path.join(place.dir, called)
    mounts = [{"destination": "/proc", "type": "proc", "source": "proc"}, {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}]
    for folder in ("/usr", "/bin", "/lib", "/lib64", "/tmp", *({"/" + BUILD.split("/")[1]} - {"/usr", "/bin", "/lib", "/lib64", "/tmp", "/dev"})):
        if os.path.isdir(folder):
            mounts.append({"destination": folder, "type": "bind", "source": folder, "options": ["rbind", "rw"]})
    for mount in mounts:
        os.makedirs(os.path.join(bundle, "rootfs") + mount["destination"])
    config = {"ociVersion": "1.0.2", "root": {"path": "rootfs"}, "mounts": mounts,
              "process": {"user": {"uid": 0, "gid": 0}, "args": words, "cwd": "/", "env": [f"{k}={v}" for k, v in place.env.items()]},
              "linux": {"namespaces": [{"type": "mount"}, {"type": "ipc"}], "cgroupsPath": cgroup}}
    with open(os.path.join(bundle, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    return bundle


@needs_root
@needs_events
@pytest.mark.skipif(not shutil.which("crun"), reason="crun is not installed")
@pytest.mark.parametrize("detached", [False, True], ids=["attached", "detached"])
def test_container_belongs_to_whoever_started_it(place, ended, detached):
    """crun makes it, and with --detach is gone afterwards; the worker lives in namespaces and a cgroup of its own. It shares the numbers of
    processes, since the simulated card knows a process by the number that it has for itself."""
    name = f"lessor-{os.getpid()}-{secrets.token_hex(4)}"
    cgroup = f"/lessor-test.slice/docker-{secrets.token_hex(32)}.scope"
    bundle = make_bundle(place, "bundle", [SIMGPU, "run", "--", SIMGPU, "hog", "--alloc", "1G"], cgroup)
    # crun wants version 2 of cgroups at its usual place: where both are mounted, in a mount namespace of its own.
    crun = "unshare -m sh -c '[ -e /sys/fs/cgroup/cgroup.controllers ] || mount -t cgroup2 none /sys/fs/cgroup; exec crun --cgroup-manager=cgroupfs \"$@\"' sh"
    probe = make_bundle(place, "probe", ["/bin/true"], cgroup.replace("docker-", "probe-"))
    tried = subprocess.run(["sh", "-c", f"{crun} run --bundle {probe} {name}-probe"], check=False, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    if tried.returncode != 0:
        pytest.skip(f"crun makes no container here: {tried.stdout.strip()[-120:]}")
    origin = Origin(place, f"{crun} run {'--detach' if detached else ''} --bundle {bundle} {name} &")
    try:
        origin.go()
        worker = with_memory(place)
        ended.append(worker["pid"])
        assert (worker["lease"], worker["by"]) == (origin.lease, "ancestor"), worker
        steps = [(s["pid"], s["known_by"]) for s in worker["ancestors"]]
        assert origin.shell.pid in [pid for pid, _ in steps], worker
        with open(f"/proc/{worker['pid']}/cgroup", encoding="ascii") as file:
            assert cgroup in file.read()
        assert worker["place"]["kind"] == "container" and worker["place"]["container"] in cgroup, worker
        table = subprocess.run([LESSOR, "processes"], env={**place.env, "LESSOR_SOCKET": place.socket}, stdout=subprocess.PIPE, text=True, check=True)
        assert f", in container {worker['place']['container'][:12]}" in table.stdout, table.stdout
        if detached:
            assert {known_by for _, known_by in steps} & {"event"}, worker
    finally:
        subprocess.run(["sh", "-c", f"{crun} delete --force {name}"], check=False, stderr=subprocess.DEVNULL)


# ---- what proves nothing ----

def take_memory(place, **env):
    """A program that asked nobody; whom it claims to belong to stands in its environment."""
    hog = subprocess.Popen([*plainly(), SIMGPU, "run", "--", SIMGPU, "hog", "--alloc", "1G"], env={**place.env, **env}, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    place.started.append(hog)
    return hog


def test_stolen_token_stays_a_stranger(place):
    origin = Origin(place, "sleep 1000")
    thief = take_memory(place, LESSOR_TOKEN=f"{origin.lease}-0123456789abcdef0123456789abcdef")
    process = with_memory(place)
    assert (process["pid"], process["lease"], process["by"], process["token"]) == (thief.pid, None, "none", origin.lease), process
    assert [s["pid"] for s in place.get("/api/status").json["strangers"]] == [thief.pid]
    assert place.lease(origin.lease).json["used_bytes"] in (0, None)


def test_token_that_lessor_run_gave_is_none_for_others(place):
    """The real one, read from the environment of a command that has a lease."""
    run = subprocess.Popen([*plainly(), LESSOR, "run", "--vram", "100M", "--", "sleep", "1000"], env={**place.env, "LESSOR_SOCKET": place.socket},
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    place.started.append(run)
    root = until("it runs", lambda: next((lease["binding"].get("pid") for lease in place.leases() if lease["state"] == "active"), None))
    token = until("its command has a token", lambda: token_of(run.pid))
    thief = take_memory(place, LESSOR_TOKEN=token)
    process = with_memory(place)
    assert root and (process["pid"], process["lease"], process["token"]) == (thief.pid, None, "L1"), process


def token_of(parent):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, IndexError):
            if ppid_of(pid) != parent:
                continue
            with open(f"/proc/{pid}/environ", "rb") as file:
                # before it is the command it has the environment of who starts it
                return next((v.split(b"=", 1)[1].decode() for v in file.read().split(b"\0") if v.startswith(b"LESSOR_TOKEN=")), None)
    return None


# ---- a descriptor of the device ----

RECEIVE = """
import array, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
data, ancillary, _, _ = s.recvmsg(1, socket.CMSG_SPACE(4))
fds = array.array("i", ancillary[0][2])
s.send(b"k")
time.sleep(1000)
"""


def test_S10_descriptor_that_was_handed_over_makes_nobody_a_target(place):
    """A, which has memory, passes the open device to B over a socket. A is ended; B had nothing on it and gets nothing."""
    place.stop()
    place.conf("enforce_sweep = 1s\nenforce_stay = 0s\nenforce_notice = 1s\nenforce_grace = 10s\n"
               "enforce_grace_script = 10s\nenforce_grace_place = 10s\n")
    place.start()
    until("the hands are there", lambda: place.get("/api/status").json["hands"] == "ok")
    path = os.path.join(place.dir, "pass")
    with socket.socket(socket.AF_UNIX) as listener, open(place.card, "rb") as card:
        listener.bind(path)
        listener.listen(1)
        receiver = subprocess.Popen([sys.executable, "-c", RECEIVE, path], stdin=subprocess.DEVNULL)
        place.started.append(receiver)
        connection, _ = listener.accept()
        with connection:
            connection.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [card.fileno()]))])
            assert connection.recv(1) == b"k"
    hog = take_memory(place)
    assert with_memory(place)["pid"] == hog.pid
    assert place.request("POST", "/api/enforce", {"mode": "enforce"}).status == 200
    assert hog.wait(timeout=120) in (0, -signal.SIGTERM)
    until("its end is in the books", lambda: any(e["rule"] == "stranger-ended" for e in place.events(limit=1000)))
    assert receiver.poll() is None and shown(place, receiver.pid) is None
    assert {e["pid"] for e in place.events(limit=1000) if e["kind"] == "hand"} == {hog.pid}


# ---- numbers that are given out again ----

REUSE = os.path.join(BUILD, "tests", "e2e", "reuse")


@needs_root
@pytest.mark.parametrize("where", ["events", "accounting"])
def test_F48_number_that_is_given_out_again_leads_to_nobody_else(tmp_path, where):
    """clone3 with set_tid: a worker's ancestors end, and strangers get their numbers. By process events; and in a pid namespace, where there
    are none, by sessions and process accounting."""
    words = [REUSE, "400"] + ([str(tmp_path / "acct")] if where == "accounting" else [])
    # A leak cannot be looked for from within another pid namespace than /proc's.
    env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    run = subprocess.run(words, check=False, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240)
    if run.returncode == 77:
        pytest.skip(f"numbers cannot be given out again here: {run.stderr.strip()}")
    assert run.returncode == 0, run
    told = json.loads(run.stdout)
    assert told["wrong"] == 0 and told["steps"] > told["rounds"], told
    if where == "events":
        assert told["middle"] > told["rounds"] * 0.9 and told["parent"] > told["rounds"] * 0.9, told


# ---- a lease whose work is elsewhere ----

def test_lease_that_misses_its_work_says_so_on_the_wrappers_stderr(place, ended):
    """The command has somebody else start the work, a daemon that was there before: the lease stays unused, a stranger comes."""
    path = os.path.join(place.dir, "engine")
    os.mkfifo(path)
    engine = subprocess.Popen([*plainly(), "bash", "-c", f'read -r line <"{path}"; exec {TAKE}'], env=place.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    place.started.append(engine)
    said = os.path.join(place.dir, "said")
    with open(said, "wb") as err:
        run = subprocess.Popen([LESSOR, "run", "--vram", "1G", "--", "sh", "-c", f'echo go >"{path}"; exec sleep 1000'], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=err, env={**place.env, "LESSOR_SOCKET": place.socket})
    place.started.append(run)
    worker = with_memory(place)
    ended.append(worker["pid"])
    assert (worker["pid"], worker["lease"]) == (engine.pid, None), worker
    event = until("it is said", lambda: next((e for e in place.events(limit=1000) if e["rule"] == "lease-misses-its-work"), None))
    assert event["lease"] == "L1" and event["kind"] == "warning" and f"lessor adopt {engine.pid}" in event["text"], event
    line = f"lessor run: L1: {event['text']}\n"
    until("the wrapper says it", lambda: line in read_text(said))
    assert read_text(said).count("came later") == 1


def read_text(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
