# SPDX-License-Identifier: Apache-2.0
"""S14: what is read back from the disk is input like any other. The real daemon is started on journals that were changed at
random, in their bytes or by valid SQL with values that no lessord wrote: it serves, or ends with words; nothing else.

$LESSOR_MUTATIONS: how many (200; with sanitizers 60); $LESSOR_SEED: another draw. A seed that failed is printed.
"""

import contextlib
import os
import random
import shutil
import sqlite3
import struct

import pytest
from lessor_fixtures import Place, until

SANITIZED = os.environ.get("LESSOR_SANITIZED") == "1"
N = int(os.environ.get("LESSOR_MUTATIONS", "60" if SANITIZED else "200"))
SEED = int(os.environ.get("LESSOR_SEED", "20"))
FILES = ("journal.db", "journal.db-wal")


@pytest.fixture(scope="module")
def lived():
    """A folder as a daemon left it that was killed: leases in all states, two lives, part of it still in the log."""
    place = Place()
    place.start()
    first = place.ask("64M", mode="now", name="first").json["id"]
    for n in range(8):
        place.release(place.ask("64M", mode="now", name=f"n{n}", priority=4).json["id"])
    assert place.stop() == 0
    place.start()
    hog = place.hog("256M")
    place.ask("512M", mode="now", bind={"to": "process", "pid": hog.pid}, **{"for": "1h"})
    place.ask("3G", mode="queue", bind={"to": "process", "pid": hog.pid})
    until("it is seen", lambda: place.device()["used_bytes"] > 0)
    place.release(first)
    place.kill()
    assert all(os.path.getsize(os.path.join(place.home, name)) > 0 for name in FILES)
    yield place
    place.daemon = None
    place.close()


def in_bytes(draw, path):
    """Flips, zeros, copies or cuts."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    page = 4096
    kind = draw.choice(("flip", "flip", "zero", "swap", "cut", "number", "noise"))
    at = draw.randrange(len(data))
    if kind == "flip":
        for _ in range(draw.choice((1, 1, 8, 200))):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif kind == "zero":
        data[at:at + draw.choice((4, 512, page))] = bytes(len(data[at:at + draw.choice((4, 512, page))]))
    elif kind == "swap":
        a, b = (page * draw.randrange(max(1, len(data) // page)) for _ in range(2))
        data[a:a + page], data[b:b + page] = data[b:b + page], data[a:a + page]
    elif kind == "cut":
        del data[at:]
    elif kind == "number":
        at = min(at, len(data) - 8)
        data[at:at + 8] = struct.pack(">Q", draw.choice((0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)))
    else:
        data[at:at + page] = draw.randbytes(len(data[at:at + page]))
    with open(path, "wb") as file:
        file.write(data)
    return f"{kind} at {at} of {os.path.basename(path)}"


def in_values(draw, path):
    """A whole database, whose rows say something else."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
        table = draw.choice(sorted(tables))
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        column = draw.choice(columns)
        kind = draw.choice(("value", "value", "blob", "blob", "blob", "delete", "double", "drop", "version"))
        rows = db.execute(f"SELECT rowid FROM {table} ORDER BY rowid").fetchall()
        if not rows:
            return f"nothing: {table} is empty"
        rowid = draw.choice(rows)
        with contextlib.suppress(sqlite3.Error):  # what the schema does not take is no case
            if kind == "value":
                value = draw.choice((None, -1, 0, 1, 2**63 - 1, -2**63, 1.5, "x" * 100000, "a\x00b", b"", draw.randbytes(5000)))
                db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, rowid[0]))
            elif kind == "blob":
                blobs = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[2] == "BLOB"] or [column]
                column = draw.choice(blobs)
                old = db.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", rowid).fetchone()[0]
                data = bytearray(old) if isinstance(old, bytes) and old else bytearray(draw.randbytes(64))
                for _ in range(draw.choice((1, 4, 64))):
                    data[draw.randrange(len(data))] = draw.choice((0, 1, 127, 128, 255, draw.randrange(256)))
                db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (bytes(data), rowid[0]))
            elif kind == "delete":
                db.execute(f"DELETE FROM {table} WHERE rowid = ?", rowid)
            elif kind == "double":
                db.execute(f"INSERT INTO {table} SELECT * FROM {table}")
            elif kind == "drop":
                db.execute(draw.choice((f"DROP TABLE {table}", f"ALTER TABLE {table} DROP COLUMN {column}",
                                        "CREATE TRIGGER t AFTER INSERT ON " + table + " BEGIN DELETE FROM " + table + "; END",
                                        f"CREATE VIEW v AS SELECT * FROM {table}")))
            else:
                db.execute(f"PRAGMA user_version = {draw.choice((0, 1, 3, 99, 2**31 - 1, -1))}")
    return f"{kind} of {table}.{column}"


def test_S14_journal_that_was_changed_at_random_is_served_or_refused_in_words(lived):
    ends = {"served": 0, "refused": 0}
    for n in range(N):
        draw = random.Random(f"{SEED}/{n}")
        home = os.path.join(lived.dir, f"m{n}")
        os.mkdir(home, 0o700)
        for name in (*FILES, "clock"):
            shutil.copy(os.path.join(lived.home, name), home)
        journal = os.path.join(home, "journal.db")
        how = in_values(draw, journal) if n % 3 == 0 else in_bytes(draw, os.path.join(home, draw.choice(FILES)))
        case = f"seed {SEED}/{n}: {how}"
        twin = Place.__new__(Place)
        twin.__dict__.update(lived.__dict__, home=home, socket=os.path.join(home, "lessor.sock"))
        begin = len(lived.log())
        daemon = twin.daemon = twin.spawn_daemon()

        def said(begin=begin):
            return lived.log()[begin:]
        until(case, lambda d=daemon: d.poll() is not None or "lessord: ready socket=" in said())
        if daemon.poll() is None:
            assert twin.get("/api/status").status == 200, case
            assert twin.get("/api/events").status in (200, 503), case  # or it says which event means nothing
            assert twin.ask("1M", mode="queue").status in (201, 202, 409, 503, 507), case
            assert twin.stop() == 0, f"{case}\n{said()[-2000:]}"
            ends["served"] += 1
        else:
            assert daemon.returncode in (1, 78) and "level=error" in said().splitlines()[-1], f"{case}\n{said()[-2000:]}"
            ends["refused"] += 1
        shutil.rmtree(home, ignore_errors=True)  # its hands may just be ending in there
    # both are there in any draw of this size; a daemon that refused everything would be as wrong as one that takes all
    assert ends["served"] >= N // 2, ends
