# SPDX-License-Identifier: Apache-2.0
"""S12: whatever lies where lessord keeps its files, nothing outside its folder is read, changed or created, and nothing is
waited for. The same while names change hands: tests/unit/test_paths.c."""

import os
import stat

import pytest
from lessor_fixtures import needs_root, until

SECRET = "root-only: hQ7v"
# What the daemon opens below its folder. (lessord.conf is the administrator's and may be a link: test_start.py.)
NAMES = ["journal.db", "journal.db-wal", "journal.db-shm", "clock", "clock.new", "lessord.lock", "lessord.conf.accepted",
         "lessord.conf.accepted.new", "lessor.sock", "hands"]


def put(kind, path, outside):
    if kind == "link":
        os.symlink(outside, path)
    elif kind == "link to nothing":
        os.symlink(outside + ".made", path)
    elif kind == "hard link":
        os.link(outside, path)
    elif kind == "pipe":
        os.mkfifo(path, 0o600)
    elif kind == "folder":
        os.mkdir(path, 0o700)
        os.link(outside, os.path.join(path, "inside"))
    else:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 7))  # /dev/full: what is written to it fails


def looks(path):
    st = os.stat(path)
    with open(path, "rb") as file:
        return st.st_ino, st.st_mode, st.st_uid, st.st_size, st.st_mtime_ns, file.read()


KINDS = ["link", "link to nothing", "hard link", "pipe", "folder", "device"]


@needs_root
@pytest.mark.parametrize("kind", KINDS)
def test_S12_what_lies_in_the_place_of_a_file_leads_nowhere(bare, kind):
    """Each name at a time, with a daemon that starts or refuses to, takes a lease if it started, reloads and ends."""
    outside = os.path.join(bare.dir, "outside")
    with open(outside, "w", encoding="utf-8") as file:
        file.write(SECRET)
    os.chmod(outside, 0o644)
    before = looks(outside)
    for name in NAMES:
        bare.conf("poll = 1s\n")
        path = os.path.join(bare.home, name)
        put(kind, path, outside)
        n_ready = bare.log().count("lessord: ready socket=")
        bare.daemon = bare.spawn_daemon()
        until(f"{name} is found or refused",
              lambda n=n_ready: bare.daemon.poll() is not None or bare.log().count("lessord: ready socket=") > n)
        if bare.daemon.poll() is None:
            assert bare.ask("1M", mode="queue").status in (201, 202), name
            assert bare.request("POST", "/api/reload").status == 200, name
            assert bare.stop() == 0, name
        else:
            assert bare.daemon.wait() in (1, 78), (name, bare.log()[-400:])
            assert "level=error" in bare.log().splitlines()[-1], (name, bare.log()[-400:])
        assert looks(outside) == before, f"a {kind} as {name} led outside"
        assert not os.path.exists(outside + ".made"), f"a {kind} as {name} made a file outside"
        assert SECRET not in bare.log(), f"a {kind} as {name} was read"
        for root, folders, files in os.walk(bare.home, topdown=False):
            for entry in files:
                os.unlink(os.path.join(root, entry))
            for entry in folders:
                full = os.path.join(root, entry)
                (os.unlink if os.path.islink(full) else os.rmdir)(full)


@needs_root
def test_S12_folder_with_a_wide_door_is_refused_before_anything_in_it_is_opened(bare):
    bare.conf("poll = 1s\n")
    os.mkfifo(os.path.join(bare.home, "journal.db"))
    os.chmod(bare.home, 0o777)
    bare.daemon = bare.spawn_daemon()
    assert bare.daemon.wait(60) == 78
    assert "others can write to the folder" in bare.log() and sorted(os.listdir(bare.home)) == ["journal.db", "lessord.conf"]
