# SPDX-License-Identifier: Apache-2.0
"""Words of strangers are data. S11: what `lessor run` starts is what was typed, as who typed it, by no shell. S18: what others
are called speaks to no log, no terminal and no parser."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from lessor_fixtures import BUILD, NOBODY_LIKE_UIDS, SIMGPU, needs_root, programs_for_others, until

LESSOR = os.path.join(BUILD, "bin", "lessor")
WHO = r"""
import json, os
status = open("/proc/self/status").read().splitlines()
print(json.dumps({name: line.split(":", 1)[1].split() for line in status for name in ("Uid", "Gid", "Groups", "CapEff", "CapPrm")
                  if line.startswith(name + ":")} | {"cwd": os.getcwd(), "env": {k: v for k, v in os.environ.items()
                  if not k.startswith("LESSOR_") and k != "_"}}))
"""


def lessor(place, *words, through=(), **options):
    env = {**place.env, "LESSOR_SOCKET": place.socket, **options.pop("env", {})}
    return subprocess.run([*through, LESSOR, *words], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=120, check=False, **options)


def on_terminal(place, *words):
    """What it writes where its output is a terminal, without colours."""
    ours, its = os.openpty()
    p = subprocess.Popen([LESSOR, *words], env={**place.env, "LESSOR_SOCKET": place.socket, "NO_COLOR": "1"},
                         stdin=subprocess.DEVNULL, stdout=its, stderr=its)
    os.close(its)
    got = b""
    with contextlib.suppress(OSError):  # EIO: it has left
        while part := os.read(ours, 65536):
            got += part
    os.close(ours)
    assert p.wait(60) == 0, got
    return got.replace(b"\r\n", b"\n")


# ---- S11: by no shell ----

NAMES = ["$(touch made)", "`touch made`", "a; touch made", "a\ntouch made", "a|touch made", "-x", "--help", "a b", "*", "%s%n", "'",
         "\x1b[2J"]


def test_S11_program_of_any_name_is_started_by_that_name_and_nothing_else(shared, tmp_path):
    bin_dir, cwd = tmp_path / "bin", tmp_path / "cwd"
    bin_dir.mkdir()
    cwd.mkdir()
    for name in NAMES:
        (bin_dir / name).symlink_to("/bin/echo")
    env = {"PATH": f"{bin_dir}:/usr/bin:/bin"}
    for name in NAMES:
        for word in (str(bin_dir / name), name):  # as a path, and looked for in PATH
            ended = lessor(shared, "run", "--vram", "1M", "--", word, "said", "$(id)", "", cwd=cwd, env=env)
            assert (ended.returncode, ended.stdout) == (0, b"said $(id) \n"), (word, ended)
    assert os.listdir(cwd) == []


def test_S11_word_in_front_of_the_command_never_becomes_an_option(shared):
    for word in ("-x", "--vram=1T", "-", "--"):
        ended = lessor(shared, "run", "--vram", "1M", "--", word)
        assert ended.returncode in (125, 127) and b"SECURITY" not in ended.stderr, (word, ended)
    assert shared.leases() == []


# ---- S11: as who typed it ----

@needs_root
def test_S11_command_is_its_caller_with_all_groups_folder_and_environment(bare):
    """A user of no name with three groups, in a folder that only he may enter, with LD_PRELOAD and PATH of his own."""
    alice = NOBODY_LIKE_UIDS[0]
    os.chmod(bare.dir, 0o755)
    os.chmod(bare.card, 0o666)
    programs = programs_for_others(bare)
    shutil.copy(LESSOR, programs)
    for folder in (bare.home, os.path.join(bare.dir, "inner")):
        os.mkdir(folder, 0o700)
        os.chown(folder, alice, alice)
    become = ["setpriv", f"--reuid={alice}", f"--regid={alice}", f"--groups={alice},61005,61006"]
    with open(os.path.join(bare.dir, "lessord.err"), "ab") as err:
        bare.daemon = subprocess.Popen([*become, os.path.join(programs, "simgpu"), "run", "--file", bare.card, "--",
                                        os.path.join(programs, "lessord"), "--dir", bare.home], env=bare.env, cwd="/",
                                       stdin=subprocess.DEVNULL, stdout=err, stderr=err)
    until("it is ready", lambda: "lessord: ready" in bare.log() or bare.daemon.poll() is not None)
    preload = {} if os.environ.get("LESSOR_SANITIZED") == "1" else {"LD_PRELOAD": "libc.so.6"}  # a sanitizer wants to be first
    env = {**bare.env, **preload, "LESSOR_SOCKET": bare.socket, "PATH": "/usr/bin:/bin:.", "IFS": "x", "ENV": "/x",
           "BASH_ENV": "/x", "PYTHONDONTWRITEBYTECODE": "1"}
    words = {"env": env, "cwd": os.path.join(bare.dir, "inner"), "stdin": subprocess.DEVNULL, "capture_output": True,
             "timeout": 120, "check": True}
    plain = subprocess.run([*become, "/usr/bin/python3", "-c", WHO], **words)
    leased = subprocess.run([*become, os.path.join(programs, "lessor"), "run", "--vram", "1M", "--", "/usr/bin/python3", "-c", WHO],
                            **words)
    inside, outside = json.loads(leased.stdout), json.loads(plain.stdout)
    assert inside == outside
    assert inside["Groups"] == [str(alice), "61005", "61006"] and preload.items() <= inside["env"].items()


def test_S11_programs_of_lessord_are_its_own_and_never_found_by_path(bare, tmp_path):
    """Whoever starts lessord may have anything in PATH and in the folder he is in."""
    made = tmp_path / "made"
    for name in ("lessor-eyes", "lessor-warden", "sh", "env"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} >> {made}\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    with open(os.path.join(bare.dir, "lessord.err"), "ab") as err:
        bare.daemon = subprocess.Popen([SIMGPU, "run", "--file", bare.card, "--", os.path.join(BUILD, "bin", "lessord"), "--dir",
                                        bare.home], env={**bare.env, "PATH": f"{tmp_path}:/usr/bin:/bin"}, cwd=tmp_path,
                                       stdin=subprocess.DEVNULL, stdout=err, stderr=err)
    until("its eyes see", lambda: os.path.exists(bare.socket) and "event=eyes-hello" in bare.log())
    assert bare.ask("1M", mode="queue").status in (201, 202)
    assert not made.exists(), made.read_text()


# ---- S18: names ----

EVIL = "a\n\x1b[2J\x9blessor"  # what the kernel keeps of a program's name: 15 bytes; \x9b is a terminal's ESC [ in UTF-8
C0 = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


def forged(text):
    """What must not be in anything that goes to a terminal or a log."""
    return C0.search(text) or re.search(rb"^\S*\[2J|^lessord: level=error event=forged", text, re.M)


@pytest.fixture(scope="module")
def evil(shared, tmp_path_factory):
    """A stranger whose program has a newline and a terminal sequence in its name, and words that look like a line of ours."""
    program = tmp_path_factory.mktemp("evil") / EVIL
    shutil.copy(SIMGPU, program)
    words = [str(program), "hog", "--alloc", "64M"]
    p = subprocess.Popen([SIMGPU, "run", "--", *words], env=shared.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    shared.started.append(p)
    until("it is seen", lambda: [s for s in shared.strangers() if s["pid"] == p.pid])
    return p


def test_S18_name_of_a_program_speaks_to_no_terminal_and_no_log(shared, evil):
    (seen,) = [s for s in shared.get("/api/status").json["strangers"] if s["pid"] == evil.pid]
    assert seen["comm"] == EVIL, seen  # programs are told what it is; who shows it escapes it
    adopted = lessor(shared, "adopt", str(evil.pid), "--name", "adopted")
    assert adopted.returncode == 0, adopted
    lease = adopted.stdout.decode().strip()
    for words in (["status"], ["devices"], ["queue"], ["events"], ["why", lease], ["limits"], ["plan", "--vram", "9G"]):
        shown = lessor(shared, *words)
        assert not forged(shown.stdout) and not forged(shown.stderr), (words, shown)
    for words in (["status", "--json"], ["events", "--json"]):
        shown = lessor(shared, *words).stdout
        json.loads(b"[" + b",".join(shown.splitlines() if words[0] == "events" else [shown]) + b"]")
    for words in (["status"], ["status", "--json"], ["events", "--json"], ["why", lease]):
        shown = on_terminal(shared, *words)
        assert len(shown) > 40 and not forged(shown), (words, shown)
    assert lessor(shared, "unadopt", lease).returncode == 0
    assert not forged(shared.log().encode())


def test_S18_words_that_are_typed_come_back_escaped(shared):
    bad = "x\x1b[2J\nlessord: level=error event=forged"
    for words in (["run", "--name", bad, "--vram", "1M", "--", "true"], ["run", "--vram", bad, "--", "true"], ["why", bad],
                  ["run", "--vram", "1M", "--device", bad, "--", "true"], ["run", "--vram", "1M", "--", bad], [bad],
                  ["renice", bad, "3"], ["adopt", bad], ["limits", "--user", bad], ["plan", "--vram", "1M", "--name", bad]):
        shown = lessor(shared, *words)
        assert shown.returncode != 0 and not forged(shown.stdout) and not forged(shown.stderr), (words, shown)
    assert not forged(shared.log().encode())


def test_S18_mebibyte_of_words_is_one_short_line(shared):
    """What a command is called is kept in 63 bytes; its words are not kept at all."""
    words = ["x" * 100000] * 10
    big = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", *words], stdin=subprocess.DEVNULL)
    shared.started.append(big)
    until("it is Python already", lambda: b"xxx" in open(f"/proc/{big.pid}/cmdline", "rb").read())
    lease = shared.ask("1M", mode="queue", bind={"to": "process", "pid": big.pid}).json
    assert len(lease["consumer"].encode()) < 64, lease
    ended = lessor(shared, "run", "--vram", "1M", "--", "true", *words)
    assert ended.returncode == 0, ended.stderr[-400:]
    assert max(len(line) for line in shared.log().splitlines()) < 2048
    for path in ("/api/status", "/api/events", f"/api/leases/{lease['id']}"):
        assert b"x" * 64 not in shared.get(path).raw, path
    assert shared.release(lease["id"]).status == 200


# ---- S18: how many lines ----

def test_S18_thousands_of_events_are_counted_and_not_all_written(bare):
    bare.conf("requests_per_s = 0\n")
    bare.start()
    n, c = 1500, bare.connection()
    lease = bare.ask("1M", mode="queue", connection=c).json["id"]
    for i in range(n):
        a = bare.request("PATCH", f"/api/leases/{lease}", {"priority": 3 + i % 2}, connection=c)
        assert a.status == 200, a
    assert bare.stop() == 0
    log = bare.log()
    written = log.count(" event=changed ")
    dropped = sum(int(x) for x in re.findall(r" event=log-suppressed what=\"changed\" dropped=(\d+)$", log, re.M))
    assert written + dropped == n and written >= 200, (written, dropped)  # its burst; how many more depends on how long it took
    assert log.count("event=log-suppressed") <= 2 + (written - 200) // 50
