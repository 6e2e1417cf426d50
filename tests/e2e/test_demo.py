# SPDX-License-Identifier: Apache-2.0
"""The demo: it runs through, it can be stopped and looked at, and nothing is left of it; broken things break it."""

import json
import os
import shutil
import signal
import subprocess
import tempfile

import pytest

from cli_helpers import BUILD, LESSOR, MIB, SIMGPU, SOURCE, all_pids, until

DEMO = os.path.join(SOURCE, "demo", "run")


@pytest.fixture(name="folder")
def fixture_folder():
    """A name for a folder, short enough for a socket, that does not exist yet."""
    base = tempfile.mkdtemp(prefix="lessor-t-", dir="/tmp")
    yield os.path.join(base, "demo")
    shutil.rmtree(base)


def demo(*words, env=None):
    return subprocess.run([DEMO, *words], env={**os.environ, "LESSOR_BUILD_DIR": BUILD, **(env or {})}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False, timeout=200)


def mentions(folder):
    """Processes and sockets that know the folder."""
    found = []
    for pid in all_pids():
        for fact in ("cmdline", "environ"):
            try:
                with open(f"/proc/{pid}/{fact}", "rb") as file:
                    if folder.encode() in file.read() and pid != os.getpid():
                        found.append((pid, fact))
            except OSError:
                pass
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
        found += [line for line in file if folder in line]
    return found


def test_demo_runs_through_and_leaves_nothing(folder):
    shown = demo("--dir", folder)
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == ""
    for words in ("place 1 of 1", "exit status 125", "3 GiB", "stranger", "exit status 124", "has ended", "lessord is dead",
                  "nothing is left"):
        assert words in shown.stdout, words
    assert not os.path.exists(folder)
    until("everything is gone", lambda: not mentions(folder))


def look(env):
    """What somebody else's check reads: the product's words and the card's."""
    status = json.loads(subprocess.run([LESSOR, "status", "--json"], env=env, stdout=subprocess.PIPE, check=True).stdout)
    card = json.loads(subprocess.run([SIMGPU, "show", "--json"], env=env, stdout=subprocess.PIPE, check=True).stdout)["devices"][0]
    return {lease["name"]: lease for lease in status["leases"]}, status, sorted(p["bytes"] // MIB for p in card["processes"] if p["bytes"])


def test_demo_can_be_stopped_and_looked_at(folder):
    env = {**os.environ, "LESSOR_BUILD_DIR": BUILD}
    steps = [line.split()[0] for line in demo("--list-steps").stdout.splitlines()]
    run = subprocess.Popen([DEMO, "--step", "--dir", folder], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    seen, ids = [], {}
    try:
        for line in run.stdout:
            if line.startswith("export "):
                key, _, value = line[7:].strip().partition("=")
                env[key] = value.strip("'")
            if not line.startswith("STEP "):
                continue
            step = line.split()[1]
            seen.append(step)
            leases, status, held = look(env)
            states = {name: lease["state"] for name, lease in leases.items()}
            if step == "card":
                assert (states, held) == ({}, [])
            elif step in ("waiting", "refused", "before-restart", "restarted"):
                assert states == {"trainer": "active", "painter": "queued", "voice": "active"}
                assert held == [400, 2500]
                assert [(e["lease"], e["place"]) for e in status["queue"]] == [(leases["painter"]["id"], 1)]
            elif step == "handover":
                assert (states, held) == ({"painter": "active", "voice": "active"}, [400, 1500])
            elif step == "stranger":
                assert held == [400, 700, 1500] and [s["used_bytes"] for s in status["strangers"]] == [700 * MIB]
                assert status["devices"][0]["free_bytes"] == 472 * MIB
            elif step == "shrunk":
                assert states["small"] == "active" and held == [400, 400, 700, 1500]
            elif step == "killed":
                assert (states, held) == ({"voice": "active"}, [400])
            elif step in ("parked", "liar", "stubborn"):
                name = {"parked": "dreamer"}.get(step, step)
                assert (states, held) == ({name: "parked", "writer": "active"}, [1500])
                assert leases[name]["park"]["way"] == ("restart" if step == "stubborn" else "checkpoint")
                assert (status["ledger"]["charged_bytes"] >= 2500 * MIB) == (step != "stubborn")
            elif step == "thawed":
                assert (states, held, status["ledger"]["charged_bytes"]) == ({"dreamer": "active"}, [2500], 0)
            elif step == "died":
                assert (states, held, status["ledger"]["charged_bytes"]) == ({"writer": "active"}, [1500], 0)
            elif step == "end":
                assert (states, held) == ({}, [])
            if step == "before-restart":
                ids = {name: (lease["id"], lease["binding"]["pid"]) for name, lease in leases.items()}
            if step == "restarted":
                assert {name: (lease["id"], lease["binding"]["pid"]) for name, lease in leases.items()} == ids
            run.stdin.write("\n")
            run.stdin.flush()
        assert run.wait() == 0, run.stderr.read()
    finally:
        run.stdin.close()
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
            run.wait()
        run.stdout.close()
        run.stderr.close()
    assert seen == steps
    until("everything is gone", lambda: not mentions(folder))


def test_demo_that_is_interrupted_cleans_up(folder):
    run = subprocess.Popen([DEMO, "--step", "--dir", folder], env={**os.environ, "LESSOR_BUILD_DIR": BUILD}, stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    run.stdin.write("\n")
    run.stdin.flush()
    for line in run.stdout:
        if line == "STEP waiting\n":
            run.send_signal(signal.SIGINT)
            break
    _, words = run.communicate()
    assert run.returncode == 1 and "interrupted" in words
    assert not os.path.exists(folder)
    until("everything is gone", lambda: not mentions(folder))


def test_demo_notices_that_the_card_lies(folder):
    """The card says other bytes than lessord was told: the demo must not go on as if nothing were wrong."""
    run = subprocess.Popen([DEMO, "--step", "--dir", folder], env={**os.environ, "LESSOR_BUILD_DIR": BUILD}, stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in run.stdout:
        if line == "STEP card\n":
            # a million bytes that nobody owns: what is free is no longer what was promised
            subprocess.run([SIMGPU, "fault", "residue", "1000000", "--file", os.path.join(folder, "card")], check=True)
            break
    out, words = run.communicate("\n" * 50)
    assert run.returncode == 1
    assert "still not true" in words or "not as promised" in words
    assert "nothing is left" not in out
    assert not os.path.exists(folder)


def test_demo_wants_a_folder_of_its_own(folder):
    os.mkdir(folder)
    with open(os.path.join(folder, "mine"), "w", encoding="utf-8"):
        pass
    shown = demo("--dir", folder)
    assert shown.returncode == 1 and "not empty" in shown.stderr
    assert os.listdir(folder) == ["mine"]
    assert "107" in demo("--dir", folder + "x" * 100).stderr


def test_demo_keeps_what_it_is_told_to_keep(folder):
    shown = demo("--dir", folder, "--keep")
    assert shown.returncode == 0, shown.stderr
    assert os.path.isdir(os.path.join(folder, "log")) and "is kept" in shown.stdout
    until("everything is gone", lambda: not mentions(folder))


def test_demo_without_a_build_says_what_to_do(folder):
    shown = demo("--dir", folder, env={"LESSOR_BUILD_DIR": "/nowhere"})
    assert shown.returncode == 1 and "./dev build" in shown.stderr
    assert demo("--what").returncode == 2
