# SPDX-License-Identifier: Apache-2.0
"""Process accounting as lessord's side sees it: read where it is kept, said in status and by doctor, and gone when it is gone."""

import ctypes
import json
import os

import pytest

from cli_helpers import Place, until

LIBC = ctypes.CDLL(None, use_errno=True)


@pytest.fixture(name="records")
def fixture_records(tmp_path):
    """The kernel writes to a file as lessor-accounting keeps it. There is one for all of this pid namespace: only where nobody else has it."""
    if os.geteuid() != 0 or any(map(os.path.exists, ("/var/log/account/pacct", "/var/account/pacct"))) or LIBC.acct(None) != 0:
        pytest.skip("process accounting is not ours to switch here")
    folder = tmp_path / "accounting"
    folder.mkdir(mode=0o700)
    path = folder / "records"
    path.touch(mode=0o600)
    assert LIBC.acct(bytes(path)) == 0
    yield path
    LIBC.acct(None)


def test_accounting_is_read_where_it_is_kept_and_doctor_says_so(records):
    place = Place()
    try:
        place.daemon.terminate()
        place.daemon.wait(timeout=60)
        with open(os.path.join(place.dir, "lessord.conf"), "w", encoding="ascii") as conf:
            conf.write(f"accounting = {records.parent}\n")
        place.start_daemon()

        def is_read():
            return json.loads(place.lessor("status", "--json").stdout)["accounting"]
        until("the eyes read it", lambda: is_read() is True)
        rows = {c["name"]: c for c in json.loads(place.lessor("doctor", "--json").stdout)["checks"]}
        assert rows["accounting"]["finding"] == "ok" and "is read" in rows["accounting"]["text"]
        assert LIBC.acct(None) == 0
        os.unlink(records)
        until("it is gone", lambda: is_read() is False)
        rows = {c["name"]: c for c in json.loads(place.lessor("doctor", "--json").stdout)["checks"]}
        assert "lessor-accounting" in rows["accounting"]["cure"]
    finally:
        place.close()
