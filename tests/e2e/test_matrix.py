# SPDX-License-Identifier: Apache-2.0
"""Who may do what (security S02, S03, S09): every address x {owner, other, administrator, root, container}, against
lessord --system, and what each gets to see of a lease that is not his."""

import json
import os
import subprocess
import sys

import pytest

from lessor_fixtures import needs_root, programs_for_others, until
from test_limits import ADMIN_GROUP, ALICE, BOB, GPU_GROUP, System

pytestmark = needs_root
BEAT = {"to": "heartbeat", "ttl_ms": 600000}
SECRET = "the-name-of-a-project"
CALLERS = ("owner", "other", "administrator", "root", "container")

# What is asked, and what each of CALLERS is answered. "{lease}" is a fresh lease of the owner's, "{pid}" a program of his on
# the card without a lease.
MATRIX = [
    ("GET", "/healthz", None, (200, 200, 200, 200, 403)),
    ("GET", "/api/status", None, (200, 200, 200, 200, 403)),
    ("GET", "/api/devices", None, (200, 200, 200, 200, 403)),
    ("GET", "/api/processes", None, (200, 200, 200, 200, 403)),
    ("GET", "/api/queue", None, (200, 200, 200, 200, 403)),
    ("GET", "/api/leases", None, (200, 200, 200, 200, 403)),
    ("GET", "/api/leases/{lease}", None, (200, 200, 200, 200, 403)),
    ("GET", "/api/events", None, (200, 200, 200, 200, 403)),
    ("GET", "/api/why/{lease}", None, (200, 200, 200, 200, 403)),
    ("GET", "/api/why?lease={lease}", None, (200, 200, 200, 200, 403)),
    ("GET", "/api/why?event=1", None, (200, 200, 200, 200, 403)),
    ("GET", "/api/usage", None, (200, 200, 200, 200, 403)),
    ("GET", "/api/usage?by=consumer", None, (200, 200, 200, 200, 403)),
    ("GET", "/api/audit", None, (200, 200, 200, 200, 403)),
    ("GET", "/api/audit?all=true", None, (200, 200, 200, 200, 403)),
    ("GET", "/api/enforce", None, (200, 200, 200, 200, 403)),
    ("POST", "/api/enforce", {"mode": "observe"}, (403, 403, 200, 200, 403)),
    ("GET", "/api/approvals", None, (200, 200, 200, 200, 403)),
    ("POST", "/api/approve", {"pid": "{pid}"}, (403, 403, 409, 409, 403)),  # what another user runs, lessord does not see
    ("POST", "/api/unapprove", {"approval": "A4711"}, (403, 403, 404, 404, 403)),
    ("GET", "/api/limits", None, (200, 200, 200, 200, 403)),
    ("GET", f"/api/limits?user={ALICE}", None, (403, 403, 200, 200, 403)),
    ("GET", "/api/config", None, (200, 200, 200, 200, 403)),
    ("POST", "/api/reload", None, (403, 403, 200, 200, 403)),
    ("POST", "/api/leases", {"bytes": "16M", "mode": "now", "bind": BEAT}, (201, 201, 201, 201, 403)),
    ("POST", "/api/leases", {"bytes": "16M", "mode": "now", "bind": BEAT, "priority": 1, "for": "1h", "kill_at_end": True},
     (403, 403, 201, 201, 403)),
    ("POST", "/api/plan", {"bytes": "16M"}, (200, 200, 200, 200, 403)),
    ("POST", "/api/leases/{lease}/activate", {}, (200, 403, 200, 200, 403)),
    ("POST", "/api/leases/{lease}/renew", None, (200, 403, 200, 200, 403)),
    ("PATCH", "/api/leases/{lease}", {"priority": 4}, (200, 403, 200, 200, 403)),
    ("PATCH", "/api/leases/{lease}", {"priority": 1, "for": "1h"}, (403, 403, 403, 403, 403)),  # urgent needs a way out
    ("PATCH", "/api/leases/{lease}", {"pin": True}, (200, 403, 200, 200, 403)),
    ("DELETE", "/api/leases/{lease}", None, (200, 403, 200, 200, 403)),
    ("POST", "/api/adopt", {"pid": "{pid}"}, (201, 403, 201, 201, 403)),
]

# A caller in a pid namespace of its own, uid 0 inside: asks, and prints the status.
CONTAINED = """
import http.client, json, socket, sys
method, path, body, where = sys.argv[1:5]
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(where)
c = Unix("localhost")
c.request(method, path, body or None, {"Content-Type": "application/json"} if body else {})
r = c.getresponse()
print(json.dumps({"status": r.status, "body": r.read().decode()}))
"""


@pytest.fixture(scope="module", name="system")
def fixture_system():
    place = System()
    place.conf("admin_group = gpuadmins\n")
    place.simgpu = os.path.join(programs_for_others(place), "simgpu")
    os.chmod(place.card, 0o666)
    place.start()
    yield place
    place.close()


def ask_as(system, caller, method, path, body):
    """(status, answer as text)"""
    if caller == "container":
        said = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", CONTAINED, method, path,
                               json.dumps(body) if body is not None else "", system.socket],
                              capture_output=True, text=True, timeout=60, check=False)
        if said.returncode != 0 and "unshare" in said.stderr:
            pytest.skip("no pid namespaces here")
        answer = json.loads(said.stdout)
        return answer["status"], answer["body"]
    if caller == "root":
        a = system.request(method, path, body)
    elif caller == "administrator":
        a = system.as_user(BOB + 10, method, path, body, gids=(GPU_GROUP, ADMIN_GROUP))
    else:
        a = system.as_user(ALICE if caller == "owner" else BOB, method, path, body)
    return a.status, a.raw.decode()


def lease_of_alice(system):
    a = system.as_user(ALICE, "POST", "/api/leases", {"bytes": "16M", "mode": "now", "name": SECRET, "consumer": SECRET + "-c",
                                                       "bind": BEAT})
    assert a.status == 201, a
    return a.json["id"]


def program_of_alice(system):
    before = {s["pid"] for s in system.get("/api/status").json["strangers"]}  # one that was just ended may still be listed
    hog = subprocess.Popen(["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups", system.simgpu, "run",
                            "--file", system.card, "--", system.simgpu, "hog", "--alloc", "32M"],
                           env=system.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    system.started.append(hog)

    def pid_on_card():
        assert hog.poll() is None, "the program could not start"
        return [s["pid"] for s in system.strangers() if s["uid"] == ALICE and s["pid"] not in before]
    return hog, until("it is on the card", pid_on_card)[0]


def release_all(system):
    for lease in system.leases():
        system.release(lease["id"])


@pytest.mark.parametrize("method, path, body, expected", MATRIX,
                         ids=[f"{m}-{p}-{'-'.join(b) if b else 'plain'}" for m, p, b, _ in MATRIX])
def test_S02_everybody_may_do_what_is_his(system, method, path, body, expected):
    hog = None
    for caller, status in zip(CALLERS, expected):
        if body and body.get("pid") == "{pid}":
            hog, pid = program_of_alice(system)
            said = ask_as(system, caller, method, path, {"pid": pid})
            hog.kill()
            hog.wait()
        else:
            where = path.format(lease=lease_of_alice(system)) if "{lease}" in path else path
            said = ask_as(system, caller, method, where, body)
        assert said[0] == status, (caller, said)
        release_all(system)


@pytest.mark.parametrize("caller, sees", [("owner", True), ("other", False), ("administrator", True), ("root", True)])
def test_S02_others_see_who_and_how_much_but_no_names(system, caller, sees):
    lease = lease_of_alice(system)
    waiting = system.as_user(ALICE, "POST", "/api/leases", {"bytes": "3G", "mode": "queue", "name": SECRET, "bind": BEAT}).json
    for path in ("/api/status", "/api/leases", f"/api/leases/{lease}", "/api/queue", f"/api/why/{lease}", "/api/events",
                 f"/api/why?lease={lease}", "/api/usage", "/api/usage?by=consumer",
                 f"/api/leases/{waiting['id']}"):
        status, text = ask_as(system, caller, "GET", path, None)
        assert status == 200
        assert SECRET not in text or sees, (caller, path)
    text = ask_as(system, caller, "GET", f"/api/leases/{lease}", None)[1]
    shown = json.loads(text)
    assert (SECRET in text) == sees
    assert shown["uid"] == ALICE and shown["bytes"] == 16 << 20 and shown["state"] and shown["granted"] and "slot_end" in shown
    release_all(system)


def test_S02_programs_of_others_are_one_row_of_what_was_used(system):
    for consumer in (SECRET + "-1", SECRET + "-2"):
        a = system.as_user(ALICE, "POST", "/api/leases", {"bytes": "16M", "mode": "now", "consumer": consumer, "bind": BEAT})
        assert system.release(a.json["id"]).status == 200
    rows = {caller: [r for r in json.loads(ask_as(system, caller, "GET", "/api/usage?by=consumer", None)[1])["rows"] if r["uid"] == ALICE]
            for caller in ("owner", "other", "administrator")}
    [one] = rows["other"]
    assert one["consumer"] is None and one["leases"] == sum(r["leases"] for r in rows["owner"])
    assert {SECRET + "-1", SECRET + "-2"} <= {r["consumer"] for r in rows["owner"]}
    assert [r["consumer"] for r in rows["administrator"]] == [r["consumer"] for r in rows["owner"]]


@pytest.mark.parametrize("caller, sees", [("owner", True), ("other", False), ("administrator", True), ("root", True)])
def test_S02_command_lines_and_paths_of_strangers_are_their_owners(system, caller, sees):
    hog, pid = program_of_alice(system)
    for path in (f"/api/audit?pid={pid}", "/api/audit", "/api/audit?all=true"):
        status, text = ask_as(system, caller, "GET", path, None)
        assert status == 200, text
        row = next(r for r in json.loads(text)["audits"] if r["pid"] == pid)
        assert row["uid"] == ALICE and row["used_bytes"] == 32 << 20 and row["first_seen"], row
        assert (row["facts"] is not None) == sees and (system.simgpu in text) == sees, (caller, path, row)
    hog.kill()
    hog.wait()


def test_S03_container_is_told_what_would_let_it_in(system):
    status, text = ask_as(system, "container", "GET", "/api/status", None)
    assert status == 403, text
    assert json.loads(text)["type"].split(":")[-1] in ("forbidden-caller", "forbidden-container"), text
    assert "namespace" in text or "[container" in text, text


@pytest.mark.parametrize("gids", [(), (12345,)])
def test_permission_error_names_the_group_that_cures_it(system, gids):
    with pytest.raises(PermissionError):
        system.connection_of(ALICE, *(gids or (ALICE,)))
