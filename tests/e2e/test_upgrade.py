# SPDX-License-Identifier: Apache-2.0
"""From the version before (built from the commit that tests/upgrade/previous names) to this one and back, with live leases.

What a user expects: an upgrade ends nobody's lease; a newer journal is refused untouched by the older program, and what the
newer one kept beside it (journal.db.vFORMAT) is the way back."""

import contextlib
import glob
import os
import shutil
import sqlite3
import subprocess

import pytest

from lessor_fixtures import BUILD, HERE, MIB, SIMGPU, Place, until

SOURCE = os.path.abspath(os.path.join(HERE, "..", ".."))
PROGRAMS = ("lessord", "lessor", "lessor-eyes")
BUILD_LIMIT_S = 540


def previous_commit():
    with open(os.path.join(SOURCE, "tests", "upgrade", "previous"), encoding="ascii") as file:
        return file.read().strip()


def run(*words, **kw):
    done = subprocess.run(words, capture_output=True, text=True, timeout=BUILD_LIMIT_S, **kw)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def build_previous(commit, folder):
    """The three programs of that commit, built once, into FOLDER."""
    work = folder + ".work"
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(os.path.join(work, "source"))
    tar = os.path.join(work, "source.tar")
    run("git", "-c", f"safe.directory={SOURCE}", "-C", SOURCE, "archive", "--output", tar, commit)
    run("tar", "-xf", tar, "-C", os.path.join(work, "source"))
    # Beside a sanitized driver library everything has to be sanitized.
    sanitizers = ["-Db_sanitize=address,undefined"] if os.environ.get("LESSOR_SANITIZED") == "1" else []
    run("meson", "setup", *sanitizers, os.path.join(work, "build"), os.path.join(work, "source"))
    targets = [f"src/programs/{name}/{name}" for name in PROGRAMS]
    run("ninja", "-C", os.path.join(work, "build"), *targets)
    os.mkdir(os.path.join(work, "bin"))
    for target in targets:
        shutil.copy(os.path.join(work, "build", target), os.path.join(work, "bin"))
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(os.path.join(work, "bin"), folder)
    shutil.rmtree(work)


@pytest.fixture(scope="module")
def previous():
    """Where the programs of the version before lie."""
    commit = previous_commit()
    known = subprocess.run(["git", "-c", f"safe.directory={SOURCE}", "-C", SOURCE, "cat-file", "-e", commit + "^{commit}"],
                           capture_output=True)
    if known.returncode != 0:
        pytest.skip(f"this clone does not have commit {commit[:12]} (a shallow clone, or no clone at all)")
    folder = os.path.join(BUILD, "upgrade", commit)
    if not all(os.access(os.path.join(folder, name), os.X_OK) for name in PROGRAMS):
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        build_previous(commit, folder)
    return folder


class Both(Place):
    """A place where either version can be started."""

    def __init__(self, previous):
        super().__init__()
        self.previous = previous

    def spawn_previous(self):
        with open(os.path.join(self.dir, "lessord.err"), "ab") as err:
            return subprocess.Popen([SIMGPU, "run", "--file", self.card, "--", os.path.join(self.previous, "lessord"),
                                     "--dir", self.home], env=self.env, stdin=subprocess.DEVNULL, stdout=err, stderr=err)

    def start_previous(self):
        said = self.log().count("lessord: ready socket=")
        self.daemon = self.spawn_previous()

        def ready():
            assert self.daemon.poll() is None, "the previous lessord ended: " + self.log()
            return self.log().count("lessord: ready socket=") > said
        until("the previous lessord is ready", ready)

    def run_by_previous(self, size):
        """`lessor run` of the version before, around a process that stays."""
        p = subprocess.Popen([os.path.join(self.previous, "lessor"), "run", "--vram", size, "--", "sleep", "1000"],
                             env={**self.env, "LESSOR_SOCKET": self.socket}, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.started.append(p)
        return p

    @property
    def journal(self):
        return os.path.join(self.home, "journal.db")

    def copies(self):
        return glob.glob(glob.escape(self.journal) + ".v*")


@pytest.fixture
def both(previous):
    p = Both(previous)
    yield p
    p.close()


def fill(place):
    """One with a process, one by `lessor run`, one that waits. What must be there afterwards."""
    owner = place.sleeper()
    place.ask("1000M", mode="now", name="held", bind={"to": "process", "pid": owner.pid})
    run_by_previous = place.run_by_previous("500M")
    until("the run has its lease", lambda: [x["state"] for x in place.leases()] == ["active", "active"])
    place.ask("2000M", mode="queue", name="waits", bind={"to": "process", "pid": owner.pid})
    return owner, run_by_previous


def books(place):
    return [(x["id"], x["state"], x["bytes"], x["reserved_bytes"], x["name"], x["uid"]) for x in place.leases()]


def files(place):
    found = {}
    for path in sorted(glob.glob(glob.escape(place.journal) + "*")):
        with open(path, "rb") as file:
            found[path] = file.read()
    return found


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_upgrade_keeps_live_leases_and_the_way_back(both, end):
    both.start_previous()
    owner, run_by_previous = fill(both)
    before, events = books(both), [(e["id"], e["kind"], e["rule"]) for e in both.events()]
    getattr(both, end)()

    both.start()
    assert both.get("/healthz").json["degraded"] is None
    assert books(both) == before
    assert [(e["id"], e["kind"], e["rule"]) for e in both.events()][:len(events)] == events
    assert "event=journal-upgraded" in both.log() and "event=journal-disagrees" not in both.log()
    assert run_by_previous.poll() is None, "the command of the client of before was ended"
    assert both.ask(100 * MIB, mode="now").json["id"] == "L4"
    run_by_previous.terminate()  # and its client goes on with the new daemon
    run_by_previous.wait()
    until("the lease of the run is over", lambda: "L2" not in [x["id"] for x in both.leases()])
    assert both.stop() == 0

    # Back: refused, and not a byte changed.
    (copy,) = both.copies()
    was = files(both)
    refused = both.spawn_previous()
    assert refused.wait(60) == 78
    assert "was written by a newer lessor" in both.log()
    assert files(both) == was
    # With the copy in its place the version before starts, as of the upgrade.
    os.rename(both.journal, both.journal + ".newer")
    os.rename(copy, both.journal)
    both.start_previous()
    both.ended("L2")
    assert both.lease("L1").json["state"] == "active" and both.lease("L3").json["state"] == "granted"
    owner.kill()
    assert both.ended("L1") == "owner-exited"
    assert both.stop() == 0


def test_copy_names_the_format_that_the_previous_version_says_it_knows(both):
    """Its words cannot be changed any more: "this one knows 1003" has to lead to journal.db.v1003."""
    both.start_previous()
    assert both.stop() == 0
    both.start()
    assert both.stop() == 0
    assert both.spawn_previous().wait(60) == 78
    (copy,) = both.copies()
    known = both.log().rsplit("this one knows ", 1)[1].split(")", 1)[0]
    assert os.path.basename(copy) == "journal.db.v" + known


def test_newer_journal_is_refused_untouched_by_this_version_too(both):
    both.start()
    assert both.stop() == 0
    with contextlib.closing(sqlite3.connect(both.journal)) as db:
        db.execute("PRAGMA user_version = 999999")
    was = files(both)
    assert both.spawn_daemon().wait(60) == 78
    assert files(both) == was
