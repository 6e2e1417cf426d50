# SPDX-License-Identifier: Apache-2.0
"""Older kernels and narrow sandboxes: each system call that could be missing is made to answer ENOSYS (security A7).

What lessor can do without, it does without: the whole of a lease's life is gone through. Without pidfds there is no safe way to
hold or signal a process, and lessord and `lessor run` refuse to begin, in words.
"""

import os
import signal
import subprocess

import pytest

from lessor_fixtures import BUILD, LESSORD, MIB, SIMGPU, until

ENOSYS = os.path.join(BUILD, "tests", "e2e", "enosys")
LESSOR = os.path.join(BUILD, "bin", "lessor")

# "filters": no seccomp. "peerpidfd": getsockopt SO_PEERPIDFD (Linux 6.5).
DISPENSABLE = ["clone3", "close_range", "faccessat2", "filters", "getrandom", "io_uring_setup", "membarrier", "openat2",
               "peerpidfd", "rseq", "statx"]
NEEDED = ["pidfd_open", "pidfd_send_signal"]


def start_without(place, *names):
    with open(os.path.join(place.dir, "lessord.err"), "ab") as err:
        place.daemon = subprocess.Popen([ENOSYS, *names, "--", SIMGPU, "run", "--file", place.card, "--", LESSORD, "--dir",
                                         place.home], env=place.env, stdin=subprocess.DEVNULL, stdout=err, stderr=err)

    def ready():
        assert place.daemon.poll() is None, place.log()
        return "lessord: ready socket=" in place.log()
    until("lessord is ready", ready)


def run_without(place, names, *words, **options):
    return subprocess.run([ENOSYS, *names, "--", LESSOR, "run", *words], env={**place.env, "LESSOR_SOCKET": place.socket},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False, **options)


def go_through_a_lease(place, names):
    """Granted, seen on the card as this lease's, ended by a signal to its command; another ended by its owner's death."""
    with subprocess.Popen([ENOSYS, *names, "--", LESSOR, "run", "--vram", "1G", "--", SIMGPU, "hog", "--alloc", "512M"],
                          env={**place.env, "LESSOR_SOCKET": place.socket}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        lease = until("it is active", lambda: next((x for x in place.leases() if x["state"] == "active"), None))
        until("its memory is seen", lambda: place.lease(lease["id"]).json["used_bytes"] == 512 * MIB)
        run.terminate()  # which passes it on
        assert run.wait(60) == 0  # as the hog ends then
    assert place.ended(lease["id"]) == "released"
    owner = place.sleeper()
    lease = place.ask("1G", mode="now", bind={"to": "process", "pid": owner.pid}).json["id"]
    owner.kill()
    owner.wait()
    assert place.ended(lease) == "owner-exited"
    assert run_without(place, names, "--vram", "1G", "--", "sh", "-c", "exit 7").returncode == 7


@pytest.mark.parametrize("name", DISPENSABLE)
def test_A7_without_a_call_that_it_can_do_without_a_lease_lives_and_ends(bare, name):
    start_without(bare, name)
    go_through_a_lease(bare, [name])
    assert bare.stop() == 0


def test_A7_without_all_of_them_at_once_a_lease_lives_and_ends_and_eyes_are_replaced(bare):
    bare.conf("eyes_deadline = 1s\n")
    start_without(bare, *DISPENSABLE)
    go_through_a_lease(bare, DISPENSABLE)
    (first,) = until("the eyes are there", bare.eyes)
    os.kill(first, signal.SIGSTOP)  # as a driver that hangs: they are to be ended by their pidfd
    until("others were started", lambda: (now := bare.eyes()) and first not in now)
    until("they look", lambda: bare.ask("1G", mode="now").status == 201)
    assert bare.stop() == 0


@pytest.mark.parametrize("name", NEEDED)
def test_A7_without_pidfds_the_daemon_refuses_to_start_and_says_why(bare, name):
    r = subprocess.run([ENOSYS, name, "--", LESSORD, "--dir", bare.home], env=bare.env, capture_output=True, text=True,
                       timeout=60, check=False)
    assert r.returncode == 78
    assert f"{name} does not work here (Function not implemented): lessor needs Linux 5.3" in r.stderr
    assert os.listdir(bare.home) == [] if os.path.exists(bare.home) else True


@pytest.mark.parametrize("name", NEEDED)
def test_A7_without_pidfds_run_starts_nothing_and_leaves_no_lease(place, name, tmp_path):
    r = run_without(place, [name], "--vram", "1G", "--", "touch", str(tmp_path / "ran"))
    assert r.returncode == 125
    assert f"lessor run: {name} does not work here (Function not implemented)" in r.stderr
    assert not (tmp_path / "ran").exists()
    assert place.leases() == []
