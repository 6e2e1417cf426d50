# SPDX-License-Identifier: Apache-2.0
"""`lessor doctor --prove`: a throw-away process goes off the device and comes back, or it is said in words at which step it did not."""

import contextlib
import glob
import json
import os
import signal
import subprocess

import pytest

from cli_helpers import BUILD, LESSOR, SIMGPU, Place, is_alive, until

PROVE = os.path.join(BUILD, "bin", "lessor-prove")
MIB = 1024 * 1024
STEPS = ["start", "lock", "checkpoint", "settle", "stop", "restore", "unlock", "memory"]


class Card:
    """A card and no lessord; a runtime folder of its own, so that nothing of anybody's is met there."""

    def __init__(self, folder, *create):
        self.runtime = os.path.join(folder, "run")
        os.mkdir(self.runtime, 0o700)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("LESSOR_", "CUDA_", "SIMGPU"))}
        self.env |= {"SIMGPU": os.path.join(folder, "card"), "XDG_RUNTIME_DIR": self.runtime, "LESSOR_SOCKET": "/nowhere/lessor.sock"}
        self.started = []
        self.simgpu("create", *(create or ("--gpus", "1", "--memory", "3G")))

    def simgpu(self, *words):
        return subprocess.run([SIMGPU, *words], env=self.env, stdout=subprocess.PIPE, check=True, text=True).stdout

    def fault(self, *words):
        self.simgpu("fault", *words)

    def run(self, *words):
        return [SIMGPU, "run", "--", *words], {"env": self.env, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                                               "stderr": subprocess.PIPE, "text": True}

    def prove(self, *words):
        command, options = self.run(LESSOR, "doctor", "--prove", *words)
        return subprocess.run(command, check=False, timeout=240, **options)

    def report(self):
        """{step: check} of the trial, and the whole."""
        done = self.prove("--json")
        assert done.stderr == "", done
        whole = json.loads(done.stdout)
        return {c["name"].removeprefix("prove: "): c for c in whole["checks"] if c["name"].startswith("prove: ")}, whole

    def start(self, *words):
        command, options = self.run(*words)
        p = subprocess.Popen(command, **(options | {"stdin": subprocess.PIPE}))
        self.started.append(p)
        return p

    def processes(self):
        return [p["pid"] for d in json.loads(self.simgpu("show", "--json"))["devices"] for p in d["processes"]]

    def nothing_is_left(self):
        return self.processes() == [] and os.listdir(self.runtime) == []

    def close(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.fault("clear")
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for p in self.started:
            p.kill()
            p.communicate()


@pytest.fixture(name="card")
def fixture_card(tmp_path):
    card = Card(str(tmp_path))
    yield card
    card.close()


# ---- it works ----

def test_process_comes_back_byte_by_byte_and_nothing_is_left(card):
    steps, whole = card.report()
    assert list(steps) == STEPS and {c["finding"] for c in steps.values()} == {"ok"}, steps
    assert whole["proof"] == "good"
    assert "has 64 MiB on GPU-" in steps["start"]["text"] and "host memory grew by 6" in steps["checkpoint"]["text"]
    assert steps["memory"]["text"] == "it runs on, and every byte is as it was"
    until("nothing is left", card.nothing_is_left)
    calls = [e["kind"] for e in map(json.loads, card.simgpu("trace", "--json").splitlines()) if e["kind"].endswith("-end")]
    assert calls == ["lock-end", "checkpoint-end", "restore-end", "unlock-end"], "each once, by the driver's own word"


def test_without_prove_nothing_is_made_or_called(card):
    command, options = card.run(LESSOR, "doctor", "--json")
    whole = json.loads(subprocess.run(command, check=False, timeout=60, **options).stdout)
    assert whole["proof"] is None and not [c for c in whole["checks"] if c["name"].startswith("prove")]
    assert not [line for line in card.simgpu("trace", "--json").splitlines() if '"lock' in line]


def test_with_lessord_it_is_under_a_lease_that_is_given_back():
    place = Place()
    try:
        until("the hands are there", lambda: place.status()["hands"] == "ok")
        done = subprocess.run([SIMGPU, "run", "--", LESSOR, "doctor", "--prove", "--json"], env=place.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, check=False, text=True, timeout=120)
        whole = json.loads(done.stdout)
        assert whole["proof"] == "good" and done.returncode == 0, done
        assert any(", under lease L" in c["text"] for c in whole["checks"]), whole["checks"]
        until("no lease is left", lambda: place.leases() == [])
        events = place.lessor("events", "--json").stdout
        assert '"stranger"' not in events, "it was never a process that did not ask"
    finally:
        place.close()


def test_with_lessord_and_no_memory_that_is_promised_to_nobody_it_does_not_try():
    place = Place()
    try:
        place.hog("mine", "2500M", alloc="100M")
        place.in_state("mine", "active")
        done = subprocess.run([SIMGPU, "run", "--", LESSOR, "doctor", "--prove"], env=place.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, check=False, text=True, timeout=120)
        assert done.returncode == 1 and "promised to nobody" in done.stdout and "prove: lock" not in done.stdout, done.stdout
        trace = subprocess.run([SIMGPU, "trace", "--json"], env=place.env, stdout=subprocess.PIPE, check=True, text=True).stdout
        assert '"lock' not in trace, "what was leased and not taken yet is somebody's"
    finally:
        place.close()


# ---- it does not ----

@pytest.mark.parametrize("fault, step, finding, words", [
    (["lock-timeout"], "lock", "warn", "could not be done: a kernel was still running at the deadline"),
    (["checkpoint-fail", "304"], "checkpoint", "bad", "tried, and went wrong: the driver tried it and failed (CUDA 304: a call of the "
                                                      "operating system failed)"),
    (["checkpoint-die"], "checkpoint", "bad", "tried, and went wrong: the process is no longer there"),
    (["restore-fail"], "restore", "bad", "tried, and went wrong: the driver tried it and failed (CUDA 2: out of memory)"),
    (["no-effect", "checkpoint"], "checkpoint", "bad", "the driver said that it was done, and it was not"),
    (["no-effect", "unlock"], "unlock", "bad", "the driver said that it was done, and it was not"),
], ids=lambda value: "-".join(value) if isinstance(value, list) else None)
def test_step_that_fails_is_named_with_the_drivers_code_in_words(card, fault, step, finding, words):
    card.fault(*fault)
    steps, whole = card.report()
    assert words in steps[step]["text"] and steps[step]["finding"] == finding and steps[step]["cure"], steps
    assert [s for s in steps if s in STEPS] == STEPS[:STEPS.index(step) + 1], "nothing is tried after it"
    assert whole["proof"] == ("bad" if finding == "bad" else "blocked")
    assert card.prove().returncode == 1
    card.fault("clear")
    until("nothing is left", card.nothing_is_left)


def test_failed_trial_is_the_reason_of_the_tables_no():
    place = Place()
    try:
        until("parking works", lambda: place.status()["host"]["checkpoint"] == "can")
        subprocess.run([SIMGPU, "fault", "checkpoint-fail"], env=place.env, check=True)
        done = subprocess.run([SIMGPU, "run", "--", LESSOR, "doctor", "--prove", "--json"], env=place.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, check=False, text=True, timeout=120)
        whole = json.loads(done.stdout)
        row = next(r for r in whole["table"] if r["current"])
        assert done.returncode == 1 and not row["park"]["works"], row
        assert "did not come back (prove: checkpoint)" in row["park"]["why"] and row["lease"]["works"], row
    finally:
        place.close()


def test_call_that_hangs_is_not_interrupted_and_its_record_is_kept(card):
    card.fault("checkpoint-hang", "restore")
    steps, whole = card.report()
    assert "has not come back within 20 s" in steps["restore"]["text"] and steps["restore"]["finding"] == "bad", steps
    assert whole["proof"] == "bad" and "left as it is" in steps["end"]["text"]
    [folder] = glob.glob(os.path.join(card.runtime, "lessor-prove-*"))
    assert folder in steps["restore"]["cure"]
    [pid] = [int(n.split("-")[0]) for n in os.listdir(os.path.join(folder, "parked")) if n[0].isdigit()]
    assert is_alive(pid)
    card.fault("clear")

    def rescued():
        command, options = card.run(LESSOR, "rescue", "--folder", folder, "--all")
        return subprocess.run(command, check=False, timeout=60, **options).returncode == 0
    until("what is said there helps", rescued)
    until("it goes by itself once it is unlocked", lambda: not is_alive(pid))


def test_f07_driver_without_checkpoints_is_said(tmp_path):
    card = Card(str(tmp_path), "--gpus", "1", "--memory", "1G", "--hide", "cuCheckpointProcessLock")
    try:
        steps, whole = card.report()
        assert "the driver has no checkpoints (570 or newer is needed)" in steps["lock"]["text"], steps
        assert steps["lock"]["cure"] == "install driver 570 or newer" and whole["proof"] == "blocked"
        until("nothing is left", card.nothing_is_left)
    finally:
        card.close()


def test_full_device_is_no_verdict_on_the_driver(card):
    hog = card.start(SIMGPU, "hog", "--alloc", "3040M")
    assert hog.stdout.readline()
    steps, whole = card.report()
    assert "cuMemAlloc: out of memory (CUDA 2)" in steps["start"]["text"] and steps["start"]["finding"] == "warn", steps
    assert whole["proof"] == "blocked" and list(steps) == ["start"]


def test_machine_without_a_driver_is_no_verdict_either(tmp_path):
    runtime = tmp_path / "run"
    runtime.mkdir()
    env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "LESSOR_SOCKET": "/nowhere/lessor.sock"}
    if any(os.path.exists(f"/dev/{name}") for name in ("nvidiactl", "dxg")):
        env["CUDA_VISIBLE_DEVICES"] = "-1"
    done = subprocess.run([LESSOR, "doctor", "--prove", "--json"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          check=False, text=True, timeout=120)
    whole = json.loads(done.stdout)
    assert done.returncode == 1 and whole["proof"] == "blocked", whole
    assert os.listdir(runtime) == []


# ---- nobody is left behind ----

def test_doctor_that_is_killed_while_its_process_is_stopped_leaves_nobody_stopped(card):
    # The third look at the memory is that of the helper, just before the restore: it hangs, and the process is stopped.
    card.fault("nvml-hang", "--symbol", "nvmlDeviceGetMemoryInfo_v2", "--after", "2")
    doctor = card.start(LESSOR, "doctor", "--prove")

    def stopped():
        for path in glob.glob(os.path.join(card.runtime, "lessor-prove-*", "parked", "[0-9]*-*")):
            with contextlib.suppress(FileNotFoundError), open(path, encoding="ascii") as file:
                if "step=stopped\n" in file.read():
                    return int(os.path.basename(path).split("-")[0])
        return None
    pid = until("it is stopped", stopped)

    def state():
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0]
    until("it stands", lambda: state() == "T")
    doctor.kill()
    doctor.wait()
    until("the kernel has ended it", lambda: not is_alive(pid))


def test_lessor_prove_sees_a_single_changed_byte(card):
    child = card.start(PROVE)
    word, uuid, size = child.stdout.readline().split()
    assert word == "ready" and uuid.startswith("GPU-") and int(size) == 64 * MIB
    pid = card.processes()[0]
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        if "memfd:" in os.readlink(path) and os.stat(path).st_size >= 64 * MIB:
            with open(path, "r+b") as memory:  # the card's memory, behind the back of the program
                memory.seek(40 * MIB + 12345)
                was = memory.read(1)
                memory.seek(40 * MIB + 12345)
                memory.write(bytes([was[0] ^ 1]))
    said, _ = child.communicate("go\n", timeout=60)
    assert said.startswith("different ") and child.returncode == 1, said


def test_lessor_prove_ends_when_nobody_asks_any_more(card):
    child = card.start(PROVE)
    assert child.stdout.readline().startswith("ready ")
    said, _ = child.communicate(timeout=60)
    assert said == "" and child.returncode == 4


def test_help_and_wrong_words():
    helped = subprocess.run([PROVE, "now"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert helped.returncode == 2 and "lessor doctor --prove" in helped.stderr
    wrong = subprocess.run([LESSOR, "doctor", "--proof"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert wrong.returncode == 2 and "did you mean --prove" in wrong.stderr
