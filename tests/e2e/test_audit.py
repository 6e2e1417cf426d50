# SPDX-License-Identifier: Apache-2.0
"""Who has device memory and no lease, in words: on real processes, over restarts, and with hostile names (F54, F57, S10, S16)."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys

import pytest

from lessor_fixtures import MIB, SIMGPU, needs_root, until
from test_containers import Container, Engine, docker
from test_enforce import LESSOR, hog, lessor, stranger

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
    shown = lessor(place, "audit", str(pid)).stdout
    assert all(f"└ ~({p['pid']})  " in shown for p in lost) and f"└ bash({shell.pid})  " in shown, shown
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
    """A program that is called like an interpreter, and a file that its first word names."""
    program = shutil.copy(SIMGPU, os.path.join(place.dir, "python3"))
    script = os.path.join(place.dir, "hog")
    with open(script, "w", encoding="ascii"):
        pass
    _, pid = stranger(place, [program, "hog", "--alloc", "1G"], cwd=place.dir)
    facts = audited(place, pid)["facts"]
    assert facts["script"] == {"path": "hog", "is_module": False, "dev": os.stat(script).st_dev, "inode": os.stat(script).st_ino}, facts
    assert facts["command"] == [program, "hog", "--alloc", "1G"]
    assert "  script    hog\n" in lessor(place, "audit", str(pid)).stdout


# ---- containers ----

def contained(place, container):
    """A program with memory in the container; as the kernel sees it."""
    return stranger(place, ["sh", "-c", 'echo $$ > "$1/cgroup.procs" && shift && exec "$@"', "sh", container.cgroup, *hog("1G")])[1]


@pytest.fixture(name="made")
def fixture_made(bare):
    container = Container(bare)
    yield container
    for process in bare.started:
        process.kill()
        process.wait()
    container.remove()


@needs_root
def test_container_is_named_by_its_engine_with_image_and_service(bare, made):
    engine = Engine(os.path.join(bare.dir, "engine.sock"))
    engine.known[made.id] = docker("shop-web-1", **{"com.docker.compose.project": "shop", "com.docker.compose.service": "web"})
    bare.conf(f"engine_socket = {engine.server_address}\n")
    bare.start()
    pid = contained(bare, made)
    row = until("its engine has answered", lambda: (r := audited(bare, pid))["facts"]["place"]["name"] and r)
    place = row["facts"]["place"]
    assert (place["kind"], place["container"], place["image"]) == ("container", made.id, "ghcr.io/x/webui:v2"), place
    assert (place["name"], place["project"], place["service"]) == ("shop-web-1", "shop", "web"), place
    shown = lessor(bare, "audit", str(pid)).stdout
    assert f"  container {made.id}\n  name      shop-web-1\n  image     ghcr.io/x/webui:v2\n" in shown and "  service   web\n" in shown, shown
    os.kill(pid, signal.SIGKILL)
    row = until("it is gone, and the journal has it", lambda: (r := audited(bare, pid))["live"] is False and r["id"] and r)
    assert row["id"] == 1 and row["facts"]["place"] == place
    engine.close()


@needs_root
def test_engine_that_is_silent_costs_its_words_and_nothing_else(bare, made):
    engine = Engine(os.path.join(bare.dir, "engine.sock"))
    engine.behave = lambda handler: engine.gate.wait(60)
    bare.conf(f"engine_socket = {engine.server_address}\n")
    bare.start()
    pid = contained(bare, made)
    until("it was asked", lambda: engine.asked)
    os.kill(pid, signal.SIGKILL)
    row = until("its end is in the journal", lambda: (r := audited(bare, pid))["live"] is False and r["id"] and r)
    assert row["id"] == 1 and row["facts"]["place"]["container"] == made.id and row["facts"]["place"]["name"] is None, row
    engine.gate.set()
    assert bare.stop() == 0
    engine.close()


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


# ---- the verb ----

def test_tree_is_drawn_from_the_top_down_with_the_evidence(place):
    _, pid = stranger(place, ["sh", "-c", '"$0" hog --alloc 1G; true', SIMGPU])
    shown = lessor(place, "audit")
    assert shown.returncode == 0 and shown.stderr == "", shown
    lines = shown.stdout.splitlines()
    assert lines[0].startswith(f"P{pid}  ") and ", has 1 GiB, first seen " in lines[0], lines
    tree = [line for line in lines if "└ " in line]
    chain = audited(place, pid)["facts"]["parents"]
    assert [len(line) - len(line.lstrip()) for line in tree] == [2 * i for i in range(1, len(chain) + 1)], tree
    words = {"parent": "its child, as the kernel has it", "event": "forked by it, the kernel told",
             "session": "lives in the session that it began"}
    assert tree[-1].strip() == f"└ simgpu({pid})  {words[chain[0]['link']]}"
    assert tree[-2].strip() == f"└ sh({chain[0]['pid']})  {words[chain[1]['link']]}"
    assert f"  command   {SIMGPU} hog --alloc 1G" in lines
    assert lessor(place, "audit", f"P{pid}").stdout.startswith(shown.stdout.rstrip("\n"))
    assert json.loads(lessor(place, "audit", "--json", str(pid)).stdout)["audits"][0]["pid"] == pid


def test_who_is_gone_is_told_from_the_journal(place):
    process, pid = stranger(place, hog("1G"))
    gone(place, process)
    assert lessor(place, "audit").stdout == "nobody has device memory without a lease\n"
    for words in (["--all"], [str(pid)]):
        shown = lessor(place, "audit", *words)
        assert shown.returncode == 0 and shown.stdout.startswith(f"P{pid}  ") and ", gone, first seen" in shown.stdout, shown
    assert "  memory    " in lessor(place, "audit", str(pid)).stdout
    unknown = lessor(place, "audit", "4194303")
    assert unknown.returncode == 1 and "4194303" in unknown.stderr and unknown.stdout == "", unknown
    assert place.stop() == 0
    for words in (["--journal", place.home], ["--journal", place.home, str(pid)]):
        shown = lessor(place, "audit", *words)
        assert shown.returncode == 0 and shown.stdout.startswith(f"P{pid}  ") and "gone" not in shown.stdout.splitlines()[0], shown
    assert lessor(place, "audit", "--journal", place.home, "4194303").returncode == 1
    nowhere = lessor(place, "audit", "--journal", os.path.join(place.dir, "nowhere"))
    assert nowhere.returncode == 125 and nowhere.stdout == "", nowhere


def test_F57_hostile_names_write_nothing_but_text_to_the_terminal(place):
    program = os.path.join(os.fsencode(place.dir), b"a\n\x1b[31m(\xff]) \"")
    shutil.copy(SIMGPU, program)
    _, pid = stranger(place, [sys.executable, "-c", CALLED, program, b"\x1b]0;x\x07\xff\nP1  root", "hog", "--alloc", "1G"])
    for words in ([], ["--all"], [str(pid)], ["--json"]):
        shown = subprocess.run([LESSOR, "audit", *words], env={**place.env, "LESSOR_SOCKET": place.socket}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert shown.returncode == 0, shown
        text = shown.stdout.decode("utf-8")
        assert not [c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160], text
        assert not [line for line in text.splitlines() if line.startswith("P1 ")], text


def test_more_than_a_page_is_told_whole(place):
    _, pid = stranger(place, hog("1G"))
    assert place.stop() == 0
    with sqlite3.connect(os.path.join(place.home, "journal.db")) as db:
        db.executemany("INSERT INTO audit SELECT ?, seq, wall_ms, boot_id, pid, ?, uid, facts, hash FROM audit WHERE id = 1",
                       [(i, 1000000000 + i) for i in range(2, 2503)])
    shown = lessor(place, "audit", "--all", "--json", "--journal", place.home)
    ids = [row["id"] for row in json.loads(shown.stdout)["audits"]]
    assert ids == list(range(2502, 0, -1)) and pid, shown.stderr
    place.start()
    assert [row["id"] for row in json.loads(lessor(place, "audit", "--all", "--json").stdout)["audits"]] == ids
    page = place.get("/api/audit?all=true&limit=10").json
    assert [row["id"] for row in page["audits"]] == ids[:10] and page["next"] == ids[9]
    page = place.get(f"/api/audit?all=true&limit=10&before={page['next']}").json
    assert [row["id"] for row in page["audits"]] == ids[10:20]


# ---- questions ----

@pytest.mark.parametrize("path", ["/api/audit?pid=0", "/api/audit?pid=x", "/api/audit?all=1", "/api/audit?limit=0", "/api/audit?limit=1001",
                                  "/api/audit?before=0", "/api/audit?who=me"])
def test_wrong_questions_are_400_and_say_what_is_right(shared, path):
    assert shared.get(path).status == 400


def test_unknown_pid_is_404(shared):
    answer = shared.get("/api/audit?pid=4194303")
    assert answer.status == 404 and answer.problem == "not-found"
    assert json.loads(shared.get("/api/audit").raw) == {"audits": [], "next": None, "damages": 0}
