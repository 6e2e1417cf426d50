# SPDX-License-Identifier: Apache-2.0
"""How lessord starts: what its starter leaves it (descriptors, signals), what lies in its folders, who else is there."""

import contextlib
import os
import resource
import re
import shutil
import sqlite3
import signal
import stat
import subprocess
import threading

import pytest
from lessor_fixtures import LESSORD, SIMGPU, Background, needs_root, until


def gpu(place):
    return place.get("/healthz").json["gpu"]


def start_through(place, *through, **popen):
    """lessord, by a program that does something before it execs it."""
    with open(os.path.join(place.dir, "lessord.err"), "ab") as err:
        place.daemon = subprocess.Popen([SIMGPU, "run", "--file", place.card, "--", *through, LESSORD, "--dir", place.home],
                                        env=place.env, stdin=subprocess.DEVNULL, stdout=err, stderr=err, **popen)

    def serves():
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):  # not bound yet, or not listened on yet
            return gpu(place)
        return None
    until("it serves", serves)
    return place


def refused(place, *arguments, **popen):
    """Exit status and words of a lessord that does not start."""
    r = subprocess.run([SIMGPU, "run", "--file", place.card, "--", LESSORD, *(arguments or ("--dir", place.home))],
                       env=place.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False, **popen)
    return r.returncode, r.stderr


# ---- what the starter leaves ----

def test_closed_descriptors_become_nobody_elses(bare):
    start_through(bare, "sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    until("the eyes see", lambda: gpu(bare) == "ok")
    for fd in range(3):
        assert os.readlink(f"/proc/{bare.daemon.pid}/fd/{fd}") == "/dev/null"
    assert bare.ask("1G", mode="now").status == 201


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def test_ignored_sigchld_hides_no_end_of_the_eyes(bare):
    start_through(bare, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    until("the eyes see", lambda: gpu(bare) == "ok")
    for _ in range(2):
        (eyes,) = bare.eyes()
        os.kill(eyes, signal.SIGKILL)
        until("others look", lambda eyes=eyes: gpu(bare) == "ok" and bare.eyes() not in ([], [eyes]))
        until("it sleeps, and does not spin on an end that it cannot learn",
              lambda: [state_of(bare.daemon.pid) for _ in range(20)] == ["S"] * 20)


def test_blocked_sigterm_ends_it_all_the_same(bare):
    start_through(bare, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG)))
    assert bare.stop() == 0


# ---- what lies there ----

def test_S12_configuration_that_is_no_file_is_refused_and_not_waited_for(bare):
    os.makedirs(bare.home, mode=0o700)
    conf = os.path.join(bare.home, "lessord.conf")
    for make, remove in ((os.mkdir, os.rmdir), (os.mkfifo, os.unlink)):
        make(conf)
        status, words = refused(bare)
        assert status == 78 and "no regular file" in words, words
        remove(conf)


def test_long_line_of_the_configuration_is_refused_and_a_long_comment_is_not(bare):
    bare.conf("margin = 1\npoll = 1s" + " " * 300 + "; c\n")
    status, words = refused(bare)
    assert status == 78 and "lessord.conf:2: the line is too long" in words, words
    bare.conf("# " + "x" * 198 + "poll = 1s\n  ; " + "margin = 9 " * 100 + "\nwaiting_per_user_max = 1\n")
    bare.start()
    assert bare.ask("4G", mode="queue").status == 422


@needs_root
def test_S12_link_of_another_user_is_not_followed(bare):
    target = os.path.join(bare.dir, "roots_own")
    os.mkdir(target, 0o700)
    os.symlink(target, bare.home)
    os.chown(bare.home, 1000, 1000, follow_symlinks=False)
    status, words = refused(bare)
    assert status == 78 and "a link that another user made (uid 1000)" in words and os.listdir(target) == [], words


@needs_root
def test_users_can_reach_the_folder_of_the_system_wide_daemon(bare):
    if not shutil.which("unshare") or subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("no mount namespaces here")
    with open(os.path.join(bare.dir, "lessord.err"), "ab") as err:
        bare.daemon = subprocess.Popen(
            [SIMGPU, "run", "--file", bare.card, "--", "unshare", "--mount", "sh", "-c",
             'mount -t tmpfs none /run && mount -t tmpfs none /var/lib && exec "$0" --system', LESSORD],
            env=bare.env, stdin=subprocess.DEVNULL, stdout=err, stderr=err)
    until("it is ready", lambda: "lessord: ready socket=/run/lessor/lessor.sock" in bare.log())
    root = f"/proc/{bare.daemon.pid}/root"
    modes = {"run/lessor": 0o755, "run/lessor/lessor.sock": 0o660, "run/lessor/lessord.lock": 0o600,
             "var/lib/lessor": 0o700, "var/lib/lessor/journal.db": 0o600}
    assert {name: stat.S_IMODE(os.stat(os.path.join(root, name)).st_mode) for name in modes} == modes
    assert bare.stop() == 0


# ---- who else is there, and what is missing ----

def test_two_sessions_of_a_user_do_not_write_one_journal(bare):
    env = {"XDG_STATE_HOME": os.path.join(bare.dir, "state")}
    started = []
    try:
        for name in ("one", "two"):
            os.mkdir(os.path.join(bare.dir, name), 0o700)
            bare.env |= env | {"XDG_RUNTIME_DIR": os.path.join(bare.dir, name)}
            if name == "one":
                with open(os.path.join(bare.dir, "lessord.err"), "ab") as err:
                    started.append(subprocess.Popen([SIMGPU, "run", "--file", bare.card, "--", LESSORD], env=bare.env,
                                                    stdin=subprocess.DEVNULL, stderr=err))
                until("it is ready", lambda: "lessord: ready" in bare.log())
        status, words = refused(bare, "--log-level", "info")
        assert status == 78 and f"another lessord (pid {started[0].pid}) already serves {env['XDG_STATE_HOME']}" in words, words
    finally:
        for daemon in started:
            daemon.terminate()
            assert daemon.wait(60) == 0


def test_start_without_room_on_the_disk_may_be_tried_again(bare):
    status, words = refused(bare, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert status == 1 and "no space left" in words, words


# ---- eyes that do not last ----

def test_eyes_that_die_of_every_second_look_are_started_ever_more_rarely(bare):
    bare.start()
    for _ in range(4):
        until("the eyes see", lambda: gpu(bare) == "ok")
        (eyes,) = bare.eyes()
        os.kill(eyes, signal.SIGKILL)
        until("that is noticed", lambda eyes=eyes: eyes not in bare.eyes() and gpu(bare) == "stale")
    waits = [line.rsplit("again_in_ms=", 1)[1] for line in bare.log().splitlines() if "event=eyes-failed" in line]
    assert waits == ["250", "500", "1000", "2000"]


# ---- questions that start nothing ----

def ask(bare, *options):
    return subprocess.run([LESSORD, "--dir", bare.home, *options], env=bare.env, capture_output=True, text=True, timeout=60,
                          check=False)


def test_S27_edited_row_of_the_journal_is_named(bare):
    bare.start()
    for _ in range(3):
        bare.release(bare.ask("64M", mode="now").json["id"])
    r = ask(bare, "--check-journal")
    assert r.returncode == 0 and "whole, and as they were written" in r.stdout, r
    assert bare.stop() == 0
    path = os.path.join(bare.home, "journal.db")
    with sqlite3.connect(path) as db:
        table = next(name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'") if "record" in name)
        column = next(row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[2] == "BLOB")
        seq = db.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0]
        blob = bytearray(db.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (seq,)).fetchone()[0])
        blob[-1] ^= 1
        db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (bytes(blob), seq))
    r = ask(bare, "--check-journal")
    assert r.returncode == 1 and "record" in r.stdout, r


def test_check_config_says_what_is_wrong_and_starts_nothing(bare):
    bare.conf("poll = 1s\nnonsense = 1\n")
    r = ask(bare, "--check-config")
    assert r.returncode == 78 and "lessord.conf:2: nonsense" in r.stderr, r
    bare.conf("poll = 3s\n")
    assert ask(bare, "--check-config").returncode == 0
    shown = ask(bare, "--check-config", "--print").stdout
    assert re.search(r"^  poll +3s ", shown, re.M), shown
    assert os.listdir(bare.home) == ["lessord.conf"]


PARKING_KEYS = [  # key, a value, how it is shown, a value just outside
    ("host_reserve", "4G", "4GiB", "10%"),
    ("host_reserve_percent", "2.5%", "2.5%", "91%"),
    ("host_reserve_percent", "0%", "0%", "0.25%"),
    ("checkpoint", "off", "off", "no"),
    ("linger", "0s", "0s", "25h"),
    ("linger_filler", "90s", "90s", "-1s"),
    ("immune_max", "3m", "180s", "25h"),
    ("immune_kill", "20m", "1200s", "31d"),
    ("ask", "5s", "5s", "900ms"),
    ("lock", "500ms", "500ms", "61m"),
    ("yield_grace", "10s", "10s", "0s"),
    ("back_off", "1s", "1s", "999ms"),
    ("card_quiet", "0s", "0s", "61s"),
    ("slack", "5%", "5%", "51%"),
    ("returns_per_hour", "8", "8", "9"),
    ("strikes", "1", "1", "0"),
    ("hold_in_place", "on", "on", "yes"),
    ("hold_after", "100ms", "100ms", "61m"),
]


@pytest.mark.parametrize("key, value, shown, outside", PARKING_KEYS)
def test_keys_for_parking_have_bounds_and_are_shown(bare, key, value, shown, outside):
    bare.conf(f"{key} = {value}\n")
    printed = ask(bare, "--check-config", "--print")
    assert printed.returncode == 0 and re.search(rf"^  {key} +{re.escape(shown)} ", printed.stdout, re.M), printed
    bare.conf(f"{key} = {outside}\n")
    refused = ask(bare, "--check-config")
    assert refused.returncode == 78 and f"lessord.conf:1: {key}" in refused.stderr, refused


def test_S27_journal_is_checked_beside_a_daemon_that_writes_it(bare):
    bare.start()
    enough = threading.Event()

    def write():
        n = 0
        while not enough.is_set():
            n += bare.release(bare.ask("64M", mode="queue").json["id"]).status == 200
        return n
    writing = Background(write)
    said = [ask(bare, "--check-journal") for _ in range(12)]
    enough.set()
    assert writing.answer() > 0
    assert [r.returncode for r in said] == [0] * 12, [r.stdout for r in said if r.returncode]
