# SPDX-License-Identifier: Apache-2.0
"""What brain and eyes have given up, as the kernel shows it from outside, and that a user's command has not."""

import contextlib
import os
import re
import signal
import subprocess

import pytest

from lessor_fixtures import BUILD, LESSORD, NOBODY_LIKE_UIDS, SIMGPU, Place, needs_root, programs_for_others, until

ENOSYS = os.path.join(BUILD, "tests", "e2e", "enosys")
LESSOR = os.path.join(BUILD, "bin", "lessor")
NONE = "0" * 16
SECRET = "hQ7vSecretOfSomebody"


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def both(place):
    """The brain and its eyes, by name."""
    (eyes,) = until("the eyes are there", place.eyes)
    return {"lessord": place.daemon.pid, "lessor-eyes": eyes}


def replace_eyes(place):
    """Ends the eyes; waits until others have looked at the card: a grant needs a reading newer than this."""
    old = both(place)["lessor-eyes"]
    os.kill(old, signal.SIGKILL)
    lease = until("others look", lambda: (a := place.ask("1M", mode="now")).status == 201 and place.eyes() not in ([], [old]) and a)
    place.release(lease.json["id"])


def check_is_confined(pid):
    status = status_of(pid)
    masks = {name: status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
    assert masks == dict.fromkeys(masks, NONE)
    if status["Uid"].split()[0] == "0":  # only who had CAP_SETPCAP could empty it
        assert status["CapBnd"].strip() == NONE
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Seccomp"].strip() == "2"
    with open(f"/proc/{pid}/limits", encoding="utf-8") as file:
        core = next(line for line in file if line.startswith("Max core file size"))
    assert core.split()[4:6] == ["0", "0"]


# ---- S23, S16: masks and cores ----

def test_S23_brain_and_eyes_have_no_capability_and_a_filter(shared):
    for pid in both(shared).values():
        check_is_confined(pid)


def test_S23_eyes_that_were_started_again_have_given_up_the_same(place):
    replace_eyes(place)
    check_is_confined(both(place)["lessor-eyes"])


@needs_root
def test_S16_brain_and_eyes_cannot_be_dumped_or_looked_into_by_their_own_user(bare):
    """What a process cannot be dumped for belongs to root in /proc, whoever it runs as."""
    alice = NOBODY_LIKE_UIDS[0]
    os.chmod(bare.dir, 0o755)
    for path in (bare.home,):
        os.mkdir(path, 0o700)
        os.chown(path, alice, alice)
    os.chmod(bare.card, 0o666)
    programs = programs_for_others(bare)
    with open(os.path.join(bare.dir, "lessord.err"), "ab") as err:
        bare.daemon = subprocess.Popen(
            ["setpriv", f"--reuid={alice}", f"--regid={alice}", "--clear-groups", os.path.join(programs, "simgpu"), "run",
             "--file", bare.card, "--", os.path.join(programs, "lessord"), "--dir", bare.home],
            env=bare.env, cwd="/", stdin=subprocess.DEVNULL, stdout=err, stderr=err)
    until("it is ready", lambda: "lessord: ready" in bare.log() or bare.daemon.poll() is not None)
    for name, pid in both(bare).items():
        assert status_of(pid)["Uid"].split() == [str(alice)] * 4, name
        assert os.stat(f"/proc/{pid}/environ").st_uid == 0, name
        check_is_confined(pid)


@needs_root
def test_S23_brain_whose_rights_do_not_go_away_refuses_to_start(bare):
    """capset(2) says yes and does nothing."""
    r = subprocess.run([ENOSYS, "capset=0", "--", LESSORD, "--dir", bare.home], env=bare.env, capture_output=True, text=True,
                       timeout=60, check=False)
    assert r.returncode == 78, r
    assert re.search(r"more rights are left than this program may have: Cap\w+ is [0-9a-f]{16}, not 0{16}", r.stderr), r.stderr
    assert not os.path.exists(bare.socket)


def test_S22_brain_on_a_kernel_without_filters_warns_once_and_starts(bare):
    with open(os.path.join(bare.dir, "lessord.err"), "ab") as err:
        bare.daemon = subprocess.Popen([ENOSYS, "filters", "--", SIMGPU, "run", "--file", bare.card, "--", LESSORD, "--dir",
                                        bare.home], env=bare.env, stdin=subprocess.DEVNULL, stdout=err, stderr=err)
    until("it is ready", lambda: "lessord: ready" in bare.log() or bare.daemon.poll() is not None)
    replace_eyes(bare)
    assert bare.log().count("event=not-filtered") == 1, bare.log()
    for pid in both(bare).values():
        assert status_of(pid)["CapPrm"].strip() == NONE and status_of(pid)["NoNewPrivs"].strip() == "1"
    assert bare.ask("1G", mode="now").status == 201


# ---- a user's command is theirs ----

def test_S11_command_of_a_user_is_confined_by_nothing_of_ours(shared):
    names = ("CapPrm", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "Seccomp_filters")
    show = ["sh", "-c", f"grep -E '^({'|'.join(names)}):' /proc/self/status; ulimit -c; ulimit -Hc"]
    env = {**shared.env, "LESSOR_SOCKET": shared.socket}
    plain = subprocess.run(show, env=env, capture_output=True, text=True, check=True).stdout
    leased = subprocess.run([LESSOR, "run", "--vram", "100M", "--", *show], env=env, capture_output=True, text=True, check=True)
    assert leased.stdout == plain


# ---- S16: secrets ----

@pytest.fixture(scope="module")
def with_secrets():
    place = Place()
    place.env |= {"LESSOR_TOKEN": f"T-{SECRET}", "HF_TOKEN": f"H-{SECRET}", "AWS_SECRET_ACCESS_KEY": f"A-{SECRET}",
                  "LESSOR_EYES_ENV": "LESSOR_TOKEN:MY_DRIVERS_", "MY_DRIVERS_FLAG": "7", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    place.start("--log-level", "debug")
    yield place
    place.close()


def environment_of(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        return dict(v.decode().split("=", 1) for v in file.read().split(b"\0") if b"=" in v)


@needs_root
def test_S16_eyes_get_what_the_driver_needs_of_the_environment_and_no_secret(with_secrets):
    got = environment_of(both(with_secrets)["lessor-eyes"])
    assert SECRET not in repr(got)
    assert {name for name in got if name.startswith("LESSOR_")} == set()
    assert got["SIMGPU"] == with_secrets.card and got["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID" and got["MY_DRIVERS_FLAG"] == "7"
    assert "PATH" in got and "LD_LIBRARY_PATH" in got and "HOME" not in got


def test_S16_secret_of_an_environment_is_in_no_log_file_or_answer(with_secrets):
    place = with_secrets
    hog = place.hog("256M")
    lease = place.ask("512M", mode="now", bind={"to": "process", "pid": hog.pid}).json["id"]
    until("it is seen", lambda: place.device()["used_bytes"] >= 256 << 20)
    answers = [place.get(path).raw for path in ("/api/status", "/api/devices", "/api/leases", "/api/events", "/api/queue",
                                                f"/api/leases/{lease}")]
    replace_eyes(place)  # those that come after are told nothing else
    place.release(lease)
    assert place.stop() == 0
    for answer in answers:
        assert SECRET.encode() not in answer
    assert SECRET not in place.log()
    found = 0
    for folder, _, files in os.walk(place.home):
        for name in files:
            with contextlib.suppress(OSError), open(os.path.join(folder, name), "rb") as file:
                found += 1
                assert SECRET.encode() not in file.read(), name
    assert found >= 2  # the journal is one of them
