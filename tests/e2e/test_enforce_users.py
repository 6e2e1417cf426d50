# SPDX-License-Identifier: Apache-2.0
"""The enforcer of the system among several users: who may switch it on and approve, whose program is judged as whose, and that
what may not be seen is not touched (F50, F54, F58, S09, S10).

lessord runs as BOB here, who is no administrator of it: without rights of root's it sees which programs BOB's processes run,
and nobody else's. The hands are root's, and tell it of the others."""

import contextlib
import os
import shutil
import signal
import subprocess
import uuid

import pytest

from lessor_fixtures import BUILD, needs_root, programs_for_others, until
from test_containers import cgroup_mount
from test_limits import ADMIN_GROUP, ALICE, BOB, GPU_GROUP, System

pytestmark = needs_root
ADMIN = BOB + 10
WARDEN = os.path.join(BUILD, "bin", "lessor-warden")
QUICK = ("admin_group = gpuadmins\nenforce_sweep = 1s\nenforce_stay = 0s\nenforce_notice = 1s\nenforce_grace = 10s\n"
         "enforce_grace_script = 10s\nenforce_grace_place = 10s\n")


class Users(System):
    def __init__(self):
        super().__init__()
        self.bin = programs_for_others(self)
        for file in (os.path.join(self.dir, "lib"), self.home):
            os.chown(file, BOB, BOB)
        os.chmod(self.card, 0o666)
        self.simgpu = os.path.join(self.bin, "simgpu")
        shutil.copy(os.path.join(BUILD, "bin", "lessor"), self.bin)
        self.conf(QUICK)
        os.chmod(self.conf_path, 0o644)
        self.warden = self.start_hands()

    def start_hands(self):
        config = os.path.join(self.dir, "warden.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write(f"signal_uids = {ALICE}-{BOB}\n")
        os.chmod(config, 0o600)
        with open(os.path.join(self.dir, "warden.err"), "ab") as err:
            return subprocess.Popen([WARDEN, "--system", "--dir", os.path.join(self.dir, "warden"), "--parked", os.path.join(self.dir, "parked"),
                                     "--socket", os.path.join(self.home, "warden.sock"), "--config", config, "--brain-uid", str(BOB)],
                                    stdin=subprocess.DEVNULL, stdout=err, stderr=err)

    def spawn_daemon(self, *options):
        script = ('[ ! -e "$1/bin/way-in" ] || mount --bind "$1/bin/way-in" /usr/sbin/agetty && mount --bind "$1/group" /etc/group && mount -t tmpfs none /run && mkdir -m 755 /run/lessor && mkdir -m 1777 /run/lock && '
                  'mount --bind "$1/run" /run/lessor && mount --bind "$1/lib" /var/lib && shift && exec "$@"')
        with open(os.path.join(self.dir, "lessord.err"), "ab") as err:
            return subprocess.Popen(
                [self.simgpu, "run", "--file", self.card, "--", "unshare", "--mount", "sh", "-c", script, "sh", self.dir, "setpriv",
                 f"--reuid={BOB}", f"--regid={BOB}", f"--groups={GPU_GROUP}", os.path.join(self.bin, "lessord"), "--system", "--config",
                 self.conf_path, *options], env=self.env, cwd="/", stdin=subprocess.DEVNULL, stdout=err, stderr=err)

    def admin(self, method, path, body=None):
        return self.as_user(ADMIN, method, path, body, gids=(GPU_GROUP, ADMIN_GROUP))

    def mode(self, word):
        answer = self.admin("POST", "/api/enforce", {"mode": word})
        assert answer.status == 200 and answer.json["mode"] == word, answer

    def stranger(self, uid, *options, program=None, before=()):
        """A program of that user's that takes a gigabyte without asking; (Popen, pid of who has the memory)."""
        known = {s["pid"] for s in self.get("/api/status").json["strangers"]}
        process = subprocess.Popen([*before, *as_uid(uid), self.simgpu, "run", "--file", self.card, "--", program or self.simgpu, "hog", "--alloc",
                                    "1G", *options], env=self.env, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.started.append(process)

        def seen():
            assert process.poll() is None, "the program could not start"
            return [s["pid"] for s in self.strangers() if s["pid"] not in known and s["uid"] == uid]
        return process, until("it is seen", seen)[0]

    def audit(self, pid):
        return next((a for a in self.get("/api/enforce").json["last_day"] if a["pid"] == pid), None)

    def said(self, pid):
        return [e["rule"] for e in self.events(limit=1000) if e.get("pid") == pid]

    def hands(self):
        return [e for e in self.events(limit=1000) if e["kind"] == "hand"]

    def eyes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                exe = os.readlink(f"/proc/{pid}/exe")
            except OSError:
                continue
            if exe == os.path.join(self.bin, "lessor-eyes"):
                found.append(int(pid))
        return found

    def close(self):
        status = super().close()
        self.warden.terminate()
        self.warden.wait()
        return status


def as_uid(uid):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", f"--groups={GPU_GROUP}"]


@pytest.fixture(name="users")
def fixture_users():
    place = Users()
    try:
        place.start()
        until("the hands are there", lambda: place.get("/api/status").json["hands"] == "ok")
        yield place
    finally:
        place.close()


def would_end(users, pid):
    return until("it is said what would be done", lambda: (a := users.audit(pid)) and a["would_end"] and a)


# ---- who may ----

def test_S09_who_is_no_administrator_changes_nothing_and_it_is_said_who_tried(users):
    process, pid = users.stranger(BOB)
    would_end(users, pid)
    kept = users.admin("POST", "/api/approve", {"pid": pid, "for": "1d"})
    assert kept.status == 201, kept
    before = users.get("/api/enforce").json
    for uid, path, body in ((ALICE, "/api/enforce", {"mode": "enforce"}), (ALICE, "/api/approve", {"pid": pid}), (BOB, "/api/approve", {"pid": pid}),
                            (ALICE, "/api/unapprove", {"approval": kept.json["id"]}), (BOB, "/api/enforce", {"mode": "observe"})):
        newest = users.events(limit=1000)[-1]["id"]
        refused = users.as_user(uid, "POST", path, body)
        assert (refused.status, refused.problem) == (403, "not-admin"), (uid, path, refused)
        told = [e for e in users.events(limit=1000) if e["id"] > newest and e["rule"] == "admin-only"]
        assert [(e["kind"], e["uid"], e.get("pid")) for e in told] == [("refused", uid, body.get("pid"))], (uid, path, told)
    after = users.get("/api/enforce").json
    assert all(before[k] == after[k] for k in ("mode", "asked_mode", "by_uid", "since", "approvals")), (before, after)
    assert [a["id"] for a in users.get("/api/approvals").json["approvals"]] == [kept.json["id"]]
    assert process.poll() is None and not users.hands()


def test_who_is_no_administrator_is_told_so_in_words(users):
    refused = subprocess.run([*as_uid(ALICE), os.path.join(users.bin, "lessor"), "enforce", "on", "--yes"], cwd="/", text=True, check=False,
                             env={**users.env, "LESSOR_SOCKET": users.socket}, stdin=subprocess.DEVNULL, capture_output=True)
    assert refused.returncode == 1 and "administrator" in refused.stderr, refused
    assert users.get("/api/enforce").json["mode"] == "observe"


# ---- whose it is ----

def test_program_is_judged_as_its_own_user_also_where_the_hands_alone_can_see_it(users):
    """Both run the same file; an approval of one user's is none of the other's."""
    hers, her_pid = users.stranger(ALICE)
    his, his_pid = users.stranger(BOB)
    would_end(users, her_pid)
    kept = users.admin("POST", "/api/approve", {"pid": his_pid, "for": "1d"})
    assert kept.status == 201, kept
    users.mode("enforce")
    assert hers.wait(timeout=60) == 0
    until("its end is in the books", lambda: "stranger-ended" in users.said(her_pid))
    found = users.audit(her_pid)
    assert (found["uid"], found["verdict"], found["signals"]) == (ALICE, "ended", 1), found
    assert {(e["pid"], e["uid"]) for e in users.hands()} == {(her_pid, ALICE)}
    assert his.poll() is None


def test_another_users_program_can_be_approved(users):
    hers, her_pid = users.stranger(ALICE)
    would_end(users, her_pid)
    kept = users.admin("POST", "/api/approve", {"pid": her_pid, "for": "1d"})
    assert kept.status == 201 and kept.json["uid"] == ALICE, kept
    his, _ = users.stranger(BOB)
    users.mode("enforce")
    assert his.wait(timeout=60) == 0 and hers.poll() is None


def test_F50_who_cannot_be_seen_is_left_alone_until_the_hands_are_there(users):
    users.warden.terminate()
    users.warden.wait()
    until("the hands are away", lambda: users.get("/api/status").json["hands"] != "ok")
    hers, her_pid = users.stranger(ALICE)
    users.mode("enforce")
    until("it is said that somebody is hidden", lambda: "enforce-doubt" in [e["rule"] for e in users.events(limit=1000)])
    assert users.get("/api/enforce").json["doubt"] == "blind" and hers.poll() is None and users.audit(her_pid) is None
    users.warden = users.start_hands()
    assert hers.wait(timeout=120) == 0
    until("its end is in the books", lambda: "stranger-ended" in users.said(her_pid))


def test_program_that_the_hands_saw_is_asked_for_again_when_there_are_new_eyes(users):
    """They name everybody anew, and again without it."""
    hers, her_pid = users.stranger(ALICE)
    would_end(users, her_pid)
    [before] = users.eyes()
    os.kill(before, signal.SIGKILL)
    until("there are new eyes", lambda: (now := users.eyes()) and now != [before])
    users.mode("enforce")
    assert hers.wait(timeout=60) == 0


def test_what_was_judged_is_shown_to_its_owner_and_to_administrators(users):
    _, pid = users.stranger(BOB)
    would_end(users, pid)
    shown = {uid: [a["pid"] for a in users.as_user(uid, "GET", "/api/enforce").json["last_day"]] for uid in (ALICE, BOB)}
    assert shown == {ALICE: [], BOB: [pid]}, shown
    assert [a["pid"] for a in users.admin("GET", "/api/enforce").json["last_day"]] == [pid]


def test_stranger_that_ignores_sigterm_is_killed_once_by_the_hands_of_the_system(users):
    process, pid = users.stranger(BOB, "--ignore-term")
    users.mode("enforce")
    assert process.wait(timeout=120) == -signal.SIGKILL
    until("its end is in the books", lambda: "stranger-ended" in users.said(pid))
    assert [(e["pid"], e["rule"]) for e in users.hands()] == [(pid, "stranger-ending")] * 2
    assert users.audit(pid)["signals"] == 2


def test_F50_whom_the_hands_may_not_signal_is_not_ended(users):
    """root's file of the hands names the users; what lessord orders beyond it is refused, and nobody is harmed."""
    with open(os.path.join(users.dir, "warden.conf"), "w", encoding="ascii") as file:
        file.write(f"signal_uids = {ALICE}\n")
    users.warden.terminate()
    users.warden.wait()
    until("the hands are away", lambda: users.get("/api/status").json["hands"] != "ok")
    users.warden = subprocess.Popen(users.warden.args, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until("the hands are there", lambda: users.get("/api/status").json["hands"] == "ok")
    process, pid = users.stranger(BOB)
    users.mode("enforce")
    until("it is refused", lambda: "uid_not_allowed" in open(os.path.join(users.dir, "lessord.err"), encoding="utf-8").read())
    assert process.poll() is None and users.audit(pid)["sigkill"] is None


@pytest.fixture(name="guarded")
def fixture_guarded():
    """Where lessord looks, the card's own program is a program that people log in by: the file, under the name it has here."""
    if not os.path.exists("/usr/sbin/agetty"):
        pytest.skip("no agetty here")
    place = Users()
    try:
        shutil.copy(place.simgpu, os.path.join(place.bin, "way-in"))
        place.start()
        until("the hands are there", lambda: place.get("/api/status").json["hands"] == "ok")
        yield place
    finally:
        place.close()


def test_F49_file_that_is_never_a_target_is_known_before_anything_is_decided(guarded):
    """Where the hands look it is no such file: it is lessord that spares it. A copy of it, called as the real one is, is a stranger."""
    way_in = os.path.join(guarded.bin, "way-in")
    named = shutil.copy(guarded.simgpu, os.path.join(guarded.bin, "agetty"))
    spared, pid = guarded.stranger(BOB, program=way_in)
    guarded.mode("enforce")
    other, other_pid = guarded.stranger(BOB, program=named)
    assert other.wait(timeout=60) == 0
    until("its end is in the books", lambda: "stranger-ended" in guarded.said(other_pid))
    assert spared.poll() is None and guarded.audit(pid) is None
    shown = {p["pid"]: p["guard"] for p in guarded.get("/api/processes").json["processes"]}
    assert shown[pid] == "sshd", shown
    assert {e["pid"] for e in guarded.hands()} == {other_pid}


# ---- approvals ----

@pytest.fixture(name="unit")
def fixture_unit():
    """A cgroup that is called as systemd calls a unit's; (words that put a command into it, its folder)."""
    folder = os.path.join(cgroup_mount(), "system.slice", f"lessor-test-{uuid.uuid4().hex[:8]}.service")
    made = not os.path.isdir(os.path.dirname(folder))
    try:
        os.makedirs(folder)
    except OSError as e:
        pytest.skip(f"no cgroup can be made here: {e}")
    yield ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', folder]

    def removed():
        try:
            os.rmdir(folder)
        except OSError:
            return False
        return True
    until("the cgroup is empty", removed)
    if made:
        with contextlib.suppress(OSError):  # another test's is in there by now
            os.rmdir(os.path.dirname(folder))


def test_approval_of_a_place_holds_there_and_nowhere_else(unit, users):
    inside, pid = users.stranger(BOB, before=unit)
    would_end(users, pid)
    approved = users.admin("POST", "/api/approve", {"pid": pid, "here": True})
    assert approved.status == 201 and approved.json["here"] and approved.json["uid"] == BOB, approved
    assert (users.audit(pid)["verdict"], users.audit(pid)["why"]) == ("spared", "approved")
    users.mode("enforce")
    outside, other = users.stranger(BOB)
    assert outside.wait(timeout=60) == 0
    until("its end is in the books", lambda: "stranger-ended" in users.said(other))
    assert inside.poll() is None and {e["pid"] for e in users.hands()} == {other}


def test_approval_of_a_place_needs_one(users):
    _, pid = users.stranger(BOB)
    would_end(users, pid)
    refused = users.admin("POST", "/api/approve", {"pid": pid, "here": True})
    assert refused.status == 409 and refused.problem == "place-unknown", refused


def test_approval_that_lapsed_is_a_warning_for_a_day_and_no_end(users):
    process, pid = users.stranger(BOB)
    would_end(users, pid)
    users.mode("enforce")
    approved = users.admin("POST", "/api/approve", {"pid": pid, "for": "1s"})
    assert approved.status == 201, approved
    until("it lapsed, and its owner is warned", lambda: {"approval-lapsed", "stranger-warned"} <= {e["rule"] for e in users.events(limit=1000)})
    assert (users.audit(pid)["verdict"], users.audit(pid)["why"]) == ("warn", "approval-lapsed")
    assert process.poll() is None and not users.hands()


# ---- leases ----

def test_F54_worker_that_outlives_its_command_is_no_strangers_prey_while_its_lease_lives(users):
    """The command is over and its lease is orphaned; a stranger beside it is ended."""
    run = subprocess.run([*as_uid(BOB), os.path.join(users.bin, "lessor"), "run", "--name", "boss", "--vram", "1200M", "--", "sh", "-c",
                          f'"{users.simgpu}" run --file "{users.card}" -- "{users.simgpu}" hog --alloc 1G >/dev/null 2>&1 & echo $!'], cwd="/",
                         check=False, text=True, timeout=60, env={**users.env, "LESSOR_SOCKET": users.socket}, stdin=subprocess.DEVNULL, capture_output=True)
    assert run.returncode == 0, run
    worker = int(run.stdout)
    try:
        [lease] = users.get("/api/leases").json["leases"]
        until("the lease says so", lambda: (a := users.lease(lease["id"])).status == 200 and a.json["state"] == "orphaned" and a.json["used_bytes"])
        process, pid = users.stranger(BOB)
        users.mode("enforce")
        assert process.wait(timeout=60) == 0
        until("its end is in the books", lambda: "stranger-ended" in users.said(pid))
        assert users.lease(lease["id"]).json["state"] == "orphaned" and users.audit(worker) is None
        assert {e["pid"] for e in users.hands()} == {pid}
        os.kill(worker, 0)
    finally:
        os.kill(worker, signal.SIGKILL)
