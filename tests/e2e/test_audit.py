# SPDX-License-Identifier: Apache-2.0
"""Who has device memory and no lease, in words: on real processes, over restarts, and with hostile names (F54, F57, S10, S16)."""

import json
import os
import shutil
import signal
import sqlite3
import sys

import pytest

from lessor_fixtures import MIB, SIMGPU, until
from test_enforce import hog, stranger

SECRET = "hunter2-hunter2-hunter2"
CALLED = "import os, sys; os.execv(sys.argv[1], sys.argv[2:])"


def audits(place, query=""):
    answer = place.get("/api/audit" + query)
    assert answer.status == 200, answer
    return answer.json["audits"]


def audited(place, pid):
    [row] = audits(place, f"?pid={pid}")
    return row


def gone(place, process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    until("its memory is gone", lambda: not place.get("/api/status").json["strangers"])


def parents(row):
    return [(p["comm"], p["link"], p["gone"]) for p in row["facts"]["parents"]]


def test_stranger_is_written_down_with_its_program_user_and_start(place):
    process, pid = stranger(place, hog("1G"))
    [row] = audits(place)
    assert (row["pid"], row["uid"], row["comm"], row["live"], row["lease"]) == (pid, os.geteuid(), "simgpu", True, None), row
    assert row["used_bytes"] == 1024 * MIB and row["first_seen"] >= row["facts"]["started"]
    facts = row["facts"]
    there = os.stat(SIMGPU)
    assert (facts["program"]["path"], facts["program"]["inode"], facts["program"]["deleted"]) == (os.path.realpath(SIMGPU), there.st_ino, False)
    assert facts["command"] == [SIMGPU, "hog", "--alloc", "1G"] and not facts["command_cut"] and facts["script"] is None
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        assert f"0::{facts['cgroup']}\n" in file.read()
    parent = facts["parents"][0]
    assert parent["pid"] == os.getpid() and not parent["gone"], facts["parents"]
    gone(place, process)
    assert audits(place) == []
    row = audited(place, pid)
    assert (row["live"], row["used_bytes"], row["facts"]) == (False, None, facts)
    [row] = audits(place, "?all=true")
    assert row["pid"] == pid


def test_F54_worker_that_outlives_its_shells_is_traced_to_who_started_it(place):
    """The inner shells are gone by the time anybody looks: kernel events or the session tell whose it was."""
    script = os.path.join(place.dir, "disown.sh")
    with open(script, "w", encoding="ascii") as file:
        file.write(f'bash -c \'bash -c "{SIMGPU} run -- {SIMGPU} hog --alloc 1G & disown"; true\'; sleep 1000\n')
    shell, pid = stranger(place, ["bash", script])
    row = audited(place, pid)
    ancestors = row["facts"]["parents"]
    [outer] = [p for p in ancestors if p["pid"] == shell.pid]
    assert outer["comm"] == "bash" and not outer["gone"] and outer["link"] in ("parent", "event", "session"), ancestors
    lost = [p for p in ancestors if p["gone"]]
    assert all(p["comm"] is None for p in lost), ancestors
    assert ancestors.index(outer) >= len(lost)
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("name,argv", [("Xorg", ["Xorg"]), ("anything", ["ollama serve"]), ("sshd", ["sshd: root@pts/0"])])
def test_S10_a_name_hides_nobody(place, name, argv):
    program = shutil.copy(SIMGPU, os.path.join(place.dir, name))
    _, pid = stranger(place, [sys.executable, "-c", CALLED, program, *argv, "hog", "--alloc", "1G"])
    row = audited(place, pid)
    assert row["facts"]["program"]["path"] == os.path.realpath(program) and row["facts"]["command"][0] == argv[0], row


def test_program_that_was_deleted_is_said_to_be(place):
    program = shutil.copy(SIMGPU, os.path.join(place.dir, "once"))
    inode = os.stat(program).st_ino
    _, pid = stranger(place, [sys.executable, "-c", "import os, sys; fd = os.open(sys.argv[1], 0); os.unlink(sys.argv[1]); "
                                                    "os.execve(fd, sys.argv[1:], os.environ)", program, "hog", "--alloc", "1G"])
    found = audited(place, pid)["facts"]["program"]
    assert (found["path"], found["inode"], found["deleted"]) == (os.path.realpath(program), inode, True), found


def test_script_of_an_interpreter_is_named(place):
    script = os.path.join(place.dir, "train.py")
    with open(script, "w", encoding="ascii") as file:
        file.write("import ctypes, signal\ncuda = ctypes.CDLL('libcuda.so.1')\nassert cuda.cuInit(0) == 0\n"
                   "context = ctypes.c_void_p()\nassert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0\n"
                   "memory = ctypes.c_uint64()\nassert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 30)) == 0\nsignal.pause()\n")
    _, pid = stranger(place, [sys.executable, script, "--epochs", "3"])
    facts = audited(place, pid)["facts"]
    assert facts["script"] == {"path": script, "is_module": False, "dev": os.stat(script).st_dev, "inode": os.stat(script).st_ino}, facts
    assert facts["command"][1:] == [script, "--epochs", "3"]


def test_S16_secret_on_a_command_line_is_nowhere_on_the_disk(place):
    _, pid = stranger(place, [sys.executable, "-c", "import sys, os; os.execv(sys.argv[1], [sys.argv[2], 'hog', '--alloc', '1G'])", SIMGPU,
                              f"--api-key={SECRET}"])
    words = audited(place, pid)["facts"]["command"]
    assert words[0].startswith("--api-key=") and set(words[0].split("=")[1]) == {"*"}, words
    assert place.stop() == 0
    for name in os.listdir(place.home):
        path = os.path.join(place.home, name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                assert SECRET.encode() not in file.read(), name
    assert SECRET not in place.log()


def test_F57_names_made_of_anything_are_text_in_the_answer(place):
    name = b"a\n\x1b[31m(\xff]) \"\\"
    program = os.path.join(os.fsencode(place.dir), name)
    shutil.copy(SIMGPU, program)
    _, pid = stranger(place, [sys.executable, "-c", CALLED, program, b"\x1b]0;x\x07\xff\n", "hog", "--alloc", "1G"])
    answer = place.get(f"/api/audit?pid={pid}")
    answer.raw.decode("utf-8")
    facts = answer.json["audits"][0]["facts"]
    assert "\\xFF" in facts["program"]["path"] and "\\xFF" in facts["command"][0], facts
    assert facts["comm"] and "\\xFF" in facts["comm"], facts


def test_records_outlive_a_restart_and_are_not_written_twice(place):
    _, pid = stranger(place, hog("1G"))
    before = audited(place, pid)
    place.kill()
    place.start()
    after = until("it is known again", lambda: (rows := audits(place)) and rows[0])
    assert after["id"] == before["id"] and after["facts"] == before["facts"] and after["first_seen"] == before["first_seen"]
    [row] = audits(place, "?all=true")
    assert row["pid"] == pid and row["live"]
    assert place.stop() == 0
    with sqlite3.connect(os.path.join(place.home, "journal.db")) as db:
        assert db.execute("SELECT count(*) FROM audit").fetchone() == (1,)


def test_memory_over_time_and_who_waits_for_it_is_told_of_one(place):
    _, pid = stranger(place, hog("1G", "--grow", "64M/50ms", "--max", "1500M"))
    until("it has all it wants", lambda: audits(place) and audits(place)[0]["used_bytes"] >= 1450 * MIB)
    waits = place.ask("2G", mode="queue").json["id"]
    row = until("it is told why", lambda: (r := audited(place, pid))["displaced"] and r)
    last = row["memory"][-1]
    [first] = [e["bytes"] for e in place.events(limit=1000) if e["rule"] == "stranger-seen"]
    assert last["max_bytes"] == last["last_bytes"] == row["used_bytes"] and row["memory"][0]["min_bytes"] == first, row
    assert [d["lease"] for d in row["displaced"]] == [waits] and row["displaced"][0]["bytes"] >= 1450 * MIB, row


def test_process_under_a_lease_is_told_while_it_lives(place):
    process, pid = stranger(place, hog("1G"))
    adopted = place.request("POST", "/api/adopt", {"pid": pid})
    assert adopted.status == 201, adopted
    row = audited(place, pid)
    assert (row["lease"], row["live"]) == (adopted.json["id"], True), row
    assert audits(place) == []
    assert process.poll() is None


@pytest.mark.parametrize("path", ["/api/audit?pid=0", "/api/audit?pid=x", "/api/audit?all=1", "/api/audit?limit=0", "/api/audit?limit=1001",
                                  "/api/audit?before=0", "/api/audit?who=me"])
def test_wrong_questions_are_400_and_say_what_is_right(shared, path):
    assert shared.get(path).status == 400


def test_unknown_pid_is_404(shared):
    answer = shared.get("/api/audit?pid=4194303")
    assert answer.status == 404 and answer.problem == "not-found"
    assert json.loads(shared.get("/api/audit").raw) == {"audits": [], "next": None, "damages": 0}
