# SPDX-License-Identifier: Apache-2.0
"""Approvals of interpreters: of another user's one script, and not all that it may run (S09, S10). As in test_enforce_users.py lessord is
BOB's and has no rights over ALICE's processes; what they run is seen by the hands, which are root's."""

import os
import shutil
import signal
import subprocess

import pytest

from cli_helpers import LESSOR
from lessor_fixtures import needs_root, until
from test_enforce_users import ADMIN, ALICE, BOB, as_uid, fixture_unit, fixture_users, would_end
from test_limits import ADMIN_GROUP, GPU_GROUP

pytestmark = needs_root
__all__ = ["fixture_unit", "fixture_users"]

PYTHON = "/usr/bin/python3"
# Python is not built with a sanitizer, which wants to be the first library of a process.
needs_plain = pytest.mark.skipif(os.environ.get("LESSOR_SANITIZED") == "1",
                                 reason="built with sanitizers, which are to be the first library")

# Takes 260 MiB, and calls itself by the words in the file that it was told of when it is told to.
TAKES = """
import ctypes, os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *args):
    assert getattr(cuda, name)(*args) == 0, name
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
call("cuInit", 0); call("cuDeviceGet", ctypes.byref(device), 0); call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(260 << 20))
while True:
    signal.sigwait({signal.SIGUSR1})
    with open("words", "rb") as file:
        words = file.read()
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    begin, end = int(fields[45]), int(fields[46])  # of its command line: fields 48 and 49
    assert len(words) <= end - begin
    ctypes.memmove(begin, words.ljust(end - begin, b"\\0"), end - begin)
"""


def follow(link):
    """As whoever uses it does, until the kernel need not write down that it was: that is what it cannot do from memory alone."""
    def followed():
        os.stat(link)
        return os.lstat(link).st_atime_ns > os.lstat(link).st_ctime_ns
    if not os.statvfs(link).f_flag & os.ST_NOATIME:
        until("it was used after it was made", followed)


@pytest.fixture(name="folder")
def fixture_folder(users):
    """A home of ALICE's, closed to others, with a.py and b.py in it, which are the same but for their names."""
    home = os.path.join(users.dir, "alice")
    os.mkdir(home, 0o700)
    for name in ("a.py", "b.py"):
        with open(os.path.join(home, name), "w", encoding="ascii") as file:
            file.write(TAKES)
    os.symlink("a.py", os.path.join(home, "link.py"))
    os.symlink(os.path.join(home, "a.py"), os.path.join(home, "whole.py"))
    for name in ("link.py", "whole.py"):
        follow(os.path.join(home, name))
    os.chown(home, ALICE, ALICE)
    return home


def spawn(users, folder, command, uid=ALICE, before=(), stdin=subprocess.DEVNULL):
    process = subprocess.Popen([*before, *as_uid(uid), users.simgpu, "run", "--file", users.card, "--", *command], env=users.env, cwd=folder,
                               stdin=stdin, stdout=subprocess.DEVNULL)
    users.started.append(process)
    return process


def seen(users, process):
    """The pid of who has its memory: all that stood before it has become it."""
    def listed():
        assert process.poll() is None, "the program could not start"
        return process.pid in [s["pid"] for s in users.get("/api/status").json["strangers"]]
    until("it is seen", listed)
    return process.pid


def start(users, folder, command, **how):
    process = spawn(users, folder, command, **how)
    return process, seen(users, process)


def facts(users, pid):
    return next(p for p in users.get("/api/processes").json["processes"] if p["pid"] == pid)


def approve(users, pid, **more):
    """Once the hands have seen it."""
    until("it is seen whole", lambda: facts(users, pid)["guard"] == "none")
    return users.admin("POST", "/api/approve", {"pid": pid, "for": "1d", **more})


def is_ended(users, process, pid):
    assert process.wait(timeout=120) == -signal.SIGTERM
    until("its end is in the books", lambda: "stranger-ended" in users.said(pid))
    return True


def is_left(users, process, pid):
    """Of somebody who was there before another one was ended: seen whole, nothing said of it, and it lives."""
    until("it is seen whole", lambda: facts(users, pid)["guard"] == "none")
    return process.poll() is None and not [r for r in users.said(pid) if r.startswith(("stranger-noticed", "stranger-end"))]


def enforced(users, folder, left=(), ended=()):
    """All of them are started, each a command or (command, how); then the mode is the one that ends whom nothing speaks for."""
    def begun(commands):
        rows = [c if isinstance(c, tuple) else (c, {}) for c in commands]
        return [(c, spawn(users, how.pop("cwd", folder), c, **how)) for c, how in rows]
    stays, goes = begun(left), begun(ended)
    for command, process in (*stays, *goes):
        pid = seen(users, process)
        until(f"it is seen whole: {command}", lambda pid=pid: facts(users, pid)["guard"] == "none")
    users.mode("enforce")
    for command, process in goes:
        assert is_ended(users, process, process.pid), command
    for command, process in stays:
        assert is_left(users, process, process.pid), command


# ---- another user's interpreter ----

@needs_plain
def test_approval_of_another_users_interpreter_is_of_the_script_that_it_runs(users, folder):
    first, pid = start(users, folder, [PYTHON, "a.py"])
    would_end(users, pid)
    kept = approve(users, pid)
    assert kept.status == 201 and (kept.json["uid"], kept.json["runs"], kept.json["script"]) == (ALICE, "script", True), kept
    os.chmod(folder, 0o755)
    enforced(users, folder,
             left=[[PYTHON, "-u", os.path.join(folder, "a.py"), "--epochs", "3"], ([PYTHON, os.path.join(folder, "whole.py")], {"cwd": "/"}), [PYTHON, "link.py"]],
             ended=[[PYTHON, "b.py"], [PYTHON, "-c", TAKES], ["bash", "-c", 'exec -a a.py "$0" b.py', PYTHON], ["bash", "-c", 'exec -a "$0 a.py" "$0" b.py', PYTHON],
                    ([PYTHON, "a.py"], {"uid": BOB})])
    assert first.poll() is None


@needs_plain
def test_approval_of_a_link_is_of_the_script_behind_it(users, folder):
    process, pid = start(users, folder, [PYTHON, "link.py"])
    assert approve(users, pid).json["runs"] == "script"
    enforced(users, folder, left=[[PYTHON, "a.py"]], ended=[[PYTHON, "b.py"]])
    assert process.poll() is None


@needs_plain
def test_script_that_was_replaced_needs_another_approval(users, folder):
    """Who runs what was approved is left; the file that has its name now is another one."""
    first, pid = start(users, folder, [PYTHON, "a.py"])
    assert approve(users, pid).status == 201
    with open(os.path.join(folder, "new.py"), "w", encoding="ascii") as file:
        file.write(TAKES)
    os.rename(os.path.join(folder, "new.py"), os.path.join(folder, "a.py"))
    enforced(users, folder, ended=[[PYTHON, "a.py"]])
    assert is_left(users, first, pid)


@needs_plain
def test_copy_of_an_interpreter_is_approved_with_one_script_too(users, folder):
    """Its name is no interpreter's; that its first word is called like a script is enough."""
    copy = shutil.copy(os.path.realpath(PYTHON), os.path.join(users.bin, "trainer"))
    _, pid = start(users, folder, [copy, "a.py"])
    kept = approve(users, pid)
    assert kept.status == 201 and kept.json["runs"] == "script", kept
    enforced(users, folder, left=[[copy, "a.py"]], ended=[[copy, "b.py"], [copy, "-c", TAKES]])


# ---- code, and what cannot be seen ----

@needs_plain
def test_code_on_a_command_line_is_approved_as_that_line(users, folder):
    _, pid = start(users, folder, [PYTHON, "-c", TAKES])
    kept = approve(users, pid)
    assert kept.status == 201 and (kept.json["runs"], kept.json["script"]) == ("command", False), kept
    enforced(users, folder, left=[[PYTHON, "-c", TAKES]], ended=[[PYTHON, "-c", TAKES + "#"], [PYTHON, "a.py"]])


@needs_plain
def test_interpreter_whose_script_cannot_be_seen_is_approved_in_its_place_alone(unit, users, folder):
    """From its input; a file that it removed; in a unit that is a way out."""
    with open(os.path.join(folder, "a.py"), "rb") as code:
        _, pid = start(users, folder, [PYTHON, "-"], stdin=code)
    refused = approve(users, pid)
    assert (refused.status, refused.problem) == (409, "script-unknown"), refused
    with open(os.path.join(folder, "gone.py"), "w", encoding="ascii") as file:
        file.write("import os; os.unlink('gone.py')\n" + TAKES)
    _, gone = start(users, folder, [PYTHON, "gone.py"])
    assert approve(users, gone).problem == "script-unknown"
    said = subprocess.run(["setpriv", f"--reuid={ADMIN}", f"--regid={ADMIN}", f"--groups={GPU_GROUP},{ADMIN_GROUP}", os.path.join(users.bin, os.path.basename(LESSOR)),
                           "approve", str(gone)], env={**users.env, "LESSOR_SOCKET": users.socket}, cwd="/", check=False, text=True, capture_output=True)
    assert said.returncode == 1 and "here" in said.stderr and "adopt" in said.stderr, said
    assert approve(users, gone, here=True).problem == "place-unknown"
    assert users.get("/api/approvals").json["approvals"] == []

    with open(os.path.join(folder, "a.py"), "rb") as code:
        inside, pid = start(users, folder, [PYTHON, "-"], before=unit, stdin=code)
    kept = approve(users, pid, here=True)
    assert kept.status == 201 and (kept.json["runs"], kept.json["here"]) == ("unknown", True), kept
    with open(os.path.join(folder, "a.py"), "rb") as code:
        enforced(users, folder, ended=[([PYTHON, "-"], {"stdin": code})])
    assert is_left(users, inside, pid)


# ---- words that change ----

def say_words(process, pid, folder, words):
    with open(os.path.join(folder, "words"), "wb") as file:
        file.write(words)

    def said():
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().startswith(words)
    os.kill(pid, signal.SIGUSR1)
    until("it calls itself so", lambda: said() or process.poll() is not None)


@needs_plain
def test_S10_words_that_a_process_changes_widen_nothing(users, folder):
    """Whoever was seen with another script stays who he is; whoever was approved stays so, and nobody else by his words."""
    approved, pid = start(users, folder, [PYTHON, "a.py"])
    other, other_pid = start(users, folder, [PYTHON, "b.py"])
    assert approve(users, pid).status == 201
    would_end(users, other_pid)
    say_words(other, other_pid, folder, b"x\0a.py\0")
    say_words(approved, pid, folder, b"VLLM::Engine")
    [before] = users.eyes()
    os.kill(before, signal.SIGKILL)
    until("there are new eyes", lambda: (now := users.eyes()) and now != [before])
    users.mode("enforce")
    is_ended(users, other, other_pid)
    assert is_left(users, approved, pid)


# ---- what is told of it ----

def test_audit_tells_which_program_and_script_another_users_process_runs(users, folder):
    """A program that is called like an interpreter, and a file that its first word names."""
    program = shutil.copy(users.simgpu, os.path.join(users.bin, "python3"))
    script = os.path.join(folder, "hog")
    with open(script, "w", encoding="ascii"):
        pass
    _, pid = start(users, folder, [program, "hog", "--alloc", "1G"])

    def told(known_to):
        answer = users.admin("GET", f"/api/audit?pid={pid}")
        assert answer.status == 200, answer
        [row] = answer.json["audits"]
        return row["facts"] if known_to(row["facts"]) else None
    found = until("the hands have told of it", lambda: told(lambda f: f["program"]))
    st, program_st = os.stat(script), os.stat(program)
    assert found["program"] == {"path": program, "deleted": False, "dev": program_st.st_dev, "inode": program_st.st_ino}, found
    assert found["script"] == {"path": "hog", "is_module": False, "dev": st.st_dev, "inode": st.st_ino}, found
    kept = approve(users, pid)
    assert kept.status == 201 and kept.json["runs"] == "script", kept
