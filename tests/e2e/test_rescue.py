# SPDX-License-Identifier: Apache-2.0
"""`lessor rescue`: what lessord parked comes back by its records alone, when lessord and its hands are dead, and nothing else is touched."""

import contextlib
import json
import os
import shutil
import signal
import subprocess

import pytest

from lessor_fixtures import BUILD, MIB, NOBODY_LIKE_UIDS, SIMGPU, needs_root, programs_for_others, until
from test_park_lessord import Scene, warden

LESSOR = os.path.join(BUILD, "bin", "lessor")


def start_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[19])


class Wreck(Scene):
    """A filler that lessord parked, and afterwards neither lessord nor its hands."""

    def __init__(self, **conf):
        super().__init__(**conf)
        self.folder = os.path.join(self.place.home, "parked")

    def park(self):
        self.filler()
        self.goes_on()
        self.who = self.demand()
        self.wait_state(self.who, "granted")
        self.books_say_parked()
        self.was = self.count()

    def wreck(self):
        """SIGKILL to both at once, so that neither can put anything right."""
        pid = warden(self)
        os.kill(pid, signal.SIGSTOP)
        self.place.kill()
        os.kill(pid, signal.SIGKILL)
        until("the hands are dead", lambda: warden(self) is None)

    def parked_and_wrecked(self):
        self.park()
        self.wreck()
        return self

    def rescue(self, *words, env=None, **options):
        return subprocess.run([SIMGPU, "run", "--", LESSOR, "rescue", "--folder", self.place.home, *words],
                              env={**self.place.env, **(env or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=120, **options)

    def told(self, *words):
        """{pid: what is told of it}."""
        done = self.rescue("--json", *words)
        return {p["pid"]: p for p in json.loads(done.stdout)["processes"]}

    def calls(self):
        """(pid, call, code) of each call that changed something on the card."""
        done = subprocess.run([SIMGPU, "trace", "--json"], env=self.place.env, stdout=subprocess.PIPE, check=True, text=True)
        lines = map(json.loads, done.stdout.splitlines())
        return [(e["pid"], e["kind"][:-4], e["rc"]) for e in lines if e["kind"].endswith("-end")]

    def back_calls(self):
        return [(pid, call) for pid, call, _ in self.calls() if call in ("restore", "unlock")]

    def record_text(self):
        name = next(n for n in os.listdir(self.folder) if n.startswith(f"{self.hog.pid}-") and not n.endswith(".aside"))
        with open(os.path.join(self.folder, name), encoding="ascii") as file:
            return file.read()

    def write_record(self, pid, ticks, text=None, **changes):
        """Another record, made of the real one."""
        lines = dict(line.split("=", 1) for line in (self.record_text() if text is None else "").splitlines())
        lines |= {"pid": str(pid), "start_ticks": str(ticks), "pidfd_inode": "0"} | changes
        body = "".join(f"{k}={v}\n" for k, v in lines.items()) if text is None else text
        path = os.path.join(self.folder, f"{pid}-{ticks}")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(body)
        return path

    def close(self):
        with contextlib.suppress(AttributeError):
            os.kill(self.hog.pid, signal.SIGCONT)
        return super().close()


@pytest.fixture(name="wreck")
def fixture_wreck():
    w = Wreck()
    yield w
    w.close()


# ---- it comes back ----

def test_what_was_parked_comes_back_and_counts_on_with_no_daemon_at_all(wreck):
    wreck.parked_and_wrecked()
    told = wreck.told()
    assert list(told) == [wreck.hog.pid]
    p = told[wreck.hog.pid]
    assert p["standing"] == "parked" and p["step"] == "stopped" and p["lease"] == "L1" and p["uid"] == os.geteuid(), p
    assert p["bytes"] == 200 * MIB and p["device"].startswith("GPU-") and "hog" in p["command"] and p["why"] is None, p
    listed = wreck.rescue()
    assert listed.returncode == 0 and "1 record, of which 1 can be brought back" in listed.stdout, listed
    for word in (str(wreck.hog.pid), "L1", "200 MiB", "stopped", "lessor rescue --all"):
        assert word in listed.stdout, listed.stdout
    assert wreck.process_state() == "T" and wreck.back_calls() == [], "a list changes nothing"

    done = wreck.rescue("--all")
    assert done.returncode == 0 and done.stderr == "" and f"{wreck.hog.pid} (L1): it runs again" in done.stdout, done
    assert wreck.goes_on() > wreck.was
    assert wreck.back_calls() == [(wreck.hog.pid, "restore"), (wreck.hog.pid, "unlock")]
    again = wreck.rescue("--all")
    assert again.returncode == 0 and "nothing is parked" in again.stdout, again
    assert len(wreck.back_calls()) == 2, "who runs is left alone"


def test_lease_of_what_was_rescued_goes_on_under_the_next_lessord(wreck):
    wreck.parked_and_wrecked()
    assert wreck.rescue("--thaw", "L1").returncode == 0
    wreck.goes_on()
    wreck.place.start()
    wreck.books_say_back()


def test_rescued_without_its_database_it_is_a_process_like_any_other(wreck):
    wreck.parked_and_wrecked()
    for name in os.listdir(wreck.place.home):
        if name.startswith("journal.db"):
            os.unlink(os.path.join(wreck.place.home, name))
    assert wreck.rescue("--thaw", str(wreck.hog.pid)).returncode == 0
    assert wreck.goes_on() > wreck.was
    wreck.place.start()

    def stranger():
        found = [h for h in wreck.place.device()["holders"] if h["used_bytes"] and h["used_bytes"] >= 200 * MIB]
        return found and found[0]
    holder = until("the new lessord sees it", stranger)
    assert holder["kind"] == "stranger", holder


def test_f03_rescue_that_was_killed_in_the_middle_of_a_restore_is_gone_on_with(wreck):
    wreck.parked_and_wrecked()
    wreck.place.fault("checkpoint-hang", "restore")
    first = subprocess.Popen([SIMGPU, "run", "--", LESSOR, "rescue", "--folder", wreck.place.home, "--all"], env=wreck.place.env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wreck.place.started.append(first)
    until("it is being restored", lambda: wreck.records()[wreck.hog.pid]["step"] == "restoring")
    first.kill()
    first.wait()
    busy = wreck.rescue("--all")
    assert busy.returncode == 1 and "another order on the same process is still being carried out" in busy.stderr, busy
    wreck.place.fault("clear")
    until("its helper is done", lambda: wreck.records()[wreck.hog.pid]["step"] == "locked")
    until("and gone", lambda: wreck.rescue("--all").returncode == 0)
    assert wreck.goes_on() > wreck.was
    assert wreck.back_calls() == [(wreck.hog.pid, "restore"), (wreck.hog.pid, "unlock")]


@pytest.mark.skipif(os.environ.get("LESSOR_SANITIZED") == "1", reason="a sanitized libcuda cannot be loaded into python")
def test_f05_all_processes_of_a_lease_are_restored_before_one_is_unlocked(wreck):
    # lessord is not needed for this: its hands parked the second one under the same lease.
    wreck.parked_and_wrecked()
    wreck.place.start()
    wreck.place.release(wreck.who)
    wreck.wait_state("L1", "active")
    wreck.goes_on()
    second = wreck.place.hog("40M", "--count")
    until("both are on the card", lambda: len(wreck.place.device()["holders"]) > 1)
    wreck.wreck()
    first_record, second_record = wreck.hog.pid, second.pid
    lock_by_hand(wreck, first_record, 200 * MIB)
    lock_by_hand(wreck, second_record, 40 * MIB)
    n = len(wreck.back_calls())
    done = wreck.rescue("--thaw", "L1")
    assert done.returncode == 0, done
    calls = wreck.back_calls()[n:]
    assert [c for _, c in calls] == ["restore", "restore", "unlock", "unlock"], calls
    assert {pid for pid, _ in calls} == {first_record, second_record}
    wreck.goes_on()

    lock_by_hand(wreck, first_record, 200 * MIB)
    lock_by_hand(wreck, second_record, 40 * MIB)
    wreck.place.hog("270M")  # 242 MiB are free: room for one, not for the lease
    until("the card has it", lambda: card_used(wreck) == 270 * MIB)
    n = len(wreck.back_calls())
    done = wreck.rescue("--thaw", "L1")
    assert done.returncode == 1 and done.stderr.count("too little room") == 2 and "needs 240 MiB" in done.stderr, done
    assert len(wreck.back_calls()) == n, "none of it is begun"
    one = wreck.rescue("--thaw", str(second_record))
    assert one.returncode == 0 and "1 more of L1 are still parked: `lessor rescue --thaw L1`" in one.stderr, one


def lock_by_hand(wreck, pid, n_bytes):
    """Locked and checkpointed as a person with NVIDIA's tool would, and a record that says so."""
    code = ("import ctypes,sys;c=ctypes.CDLL('libcuda.so.1');a=(ctypes.c_uint8*64)();p=int(sys.argv[1]);"
            "sys.exit(c.cuCheckpointProcessLock(p,a) or c.cuCheckpointProcessCheckpoint(p,a))")
    subprocess.run([SIMGPU, "run", "--", "/usr/bin/python3", "-c", code, str(pid)], env=wreck.place.env, check=True)
    for name in os.listdir(wreck.folder):
        if name.startswith(f"{pid}-"):
            os.unlink(os.path.join(wreck.folder, name))
    uuid = subprocess.run([SIMGPU, "show", "--json"], env=wreck.place.env, stdout=subprocess.PIPE, check=True)
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot_id = file.read().strip()
    ticks = start_ticks(pid)
    text = (f"lessor_record=1\nboot_id={boot_id}\npid={pid}\nstart_ticks={ticks}\npidfd_inode=0\nuid={os.geteuid()}\n"
            f"device={json.loads(uuid.stdout)['devices'][0]['uuid']}\nbytes={n_bytes}\nhost_bytes={n_bytes}\nstep=checkpointed\n"
            "lease_id=1\nflags=0\nhold=0\nending=0\nrestored=0\noom_kept=0\noom_score_adj=0\ntime_s=1\n")
    wreck.write_record(pid, ticks, text)


# ---- it does not ----

def test_f01_too_little_room_is_refused_with_figures_and_nothing_is_called(wreck):
    wreck.parked_and_wrecked()
    hog = wreck.place.hog("400M")
    until("the card is full", lambda: card_used(wreck) == 400 * MIB)
    done = wreck.rescue("--all")
    assert done.returncode == 1 and done.stdout == "", done
    for words in ("too little room on GPU-", "it needs 200 MiB and 10.24 MiB to spare", "of 512 MiB are 112 MiB free", "Nothing was done"):
        assert words in done.stderr, done.stderr
    assert wreck.back_calls() == [] and wreck.process_state() == "T"
    p = wreck.told("--all")[wreck.hog.pid]
    assert p["rescue"]["result"] == "blocked" and "too little room" in p["rescue"]["words"]
    hog.kill()
    hog.wait()
    assert wreck.rescue("--all").returncode == 0
    assert wreck.goes_on() > wreck.was


def card_used(wreck):
    shown = subprocess.run([SIMGPU, "show", "--json"], env=wreck.place.env, stdout=subprocess.PIPE, check=True)
    return json.loads(shown.stdout)["devices"][0]["used_bytes"]


def test_f01_two_percent_more_than_it_had_must_be_free(wreck):
    wreck.parked_and_wrecked()
    wreck.place.hog("305M")  # 207 MiB are free: more than the 200, and less than 200 + 2 % of 512
    until("the card has it", lambda: card_used(wreck) == 305 * MIB)
    done = wreck.rescue("--all")
    assert done.returncode == 1 and "too little room" in done.stderr and wreck.back_calls() == [], done


def test_driver_that_does_not_answer_leaves_everything_as_it_is(wreck):
    wreck.parked_and_wrecked()
    wreck.place.fault("nvml-hang")
    done = wreck.rescue("--all")
    assert done.returncode == 1 and "the driver does not answer within" in done.stderr and "Nothing was done" in done.stderr, done
    assert wreck.back_calls() == [] and wreck.process_state() == "T"


def test_f01_restore_that_fails_says_the_drivers_code_in_words_and_is_not_tried_again(wreck):
    wreck.parked_and_wrecked()
    wreck.place.fault("restore-fail")
    done = wreck.rescue("--all")
    assert done.returncode == 1, done
    assert "restore: the driver tried it and failed (CUDA 2: out of memory)" in done.stderr, done.stderr
    n = len(wreck.calls())
    again = wreck.rescue("--all")
    assert again.returncode == 1 and "failed on it for good" in again.stderr and "kill -KILL" in again.stderr, again
    assert len(wreck.calls()) == n


def test_while_lessord_answers_it_says_lessor_thaw_and_does_nothing(wreck):
    wreck.park()
    done = wreck.rescue("--all")
    assert done.returncode == 1 and "lessord answers here" in done.stderr and "`lessor thaw ID`" in done.stderr, done
    assert "lessord answers here" in wreck.rescue().stdout
    assert wreck.back_calls() == [] and wreck.process_state() == "T"
    forced = wreck.rescue("--all", "--force")
    assert forced.returncode == 0 and wreck.goes_on() > wreck.was, forced


def test_while_the_hands_live_it_does_nothing_either(wreck):
    wreck.parked_and_wrecked()
    lock = os.path.join(wreck.place.home, "warden", "lock")
    code = "import fcntl,sys;f=open(sys.argv[1],'r+');fcntl.lockf(f,fcntl.LOCK_EX);print('has it',flush=True);sys.stdin.read()"
    with subprocess.Popen(["/usr/bin/python3", "-c", code, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as hands:
        assert hands.stdout.readline() == "has it\n"
        done = wreck.rescue("--all")
        assert done.returncode == 1 and f"lessor-warden (pid {hands.pid}) waits for one" in done.stderr, done
        assert wreck.back_calls() == []
        os.kill(hands.pid, signal.SIGSTOP)
        until("it stands", lambda: wreck.rescue("--all").returncode == 0)  # hands that stand still answer for nobody
        os.kill(hands.pid, signal.SIGCONT)
        hands.stdin.close()
    wreck.goes_on()


# ---- whose record it is ----

def test_only_the_process_of_a_record_is_touched_and_of_each_other_it_says_what_it_is(wreck):
    wreck.parked_and_wrecked()
    sleepers = [wreck.place.sleeper() for _ in range(4)]
    dead = wreck.place.sleeper()
    dead_ticks = start_ticks(dead.pid)
    dead.kill()
    dead.wait()
    boot, reused, foreign, final = sleepers
    wreck.write_record(boot.pid, start_ticks(boot.pid), boot_id="00000000-0000-4000-8000-000000000000")
    wreck.write_record(reused.pid, start_ticks(reused.pid) - 1)
    wreck.write_record(foreign.pid, start_ticks(foreign.pid), uid="12345")
    wreck.write_record(final.pid, start_ticks(final.pid), step="failed")
    wreck.write_record(dead.pid, dead_ticks)
    damaged = wreck.place.sleeper()
    wreck.write_record(damaged.pid, start_ticks(damaged.pid), "lessor_record=1\npid=x\n")
    link = wreck.place.sleeper()
    os.symlink("/etc/passwd", os.path.join(wreck.folder, f"{link.pid}-{start_ticks(link.pid)}"))

    told = wreck.told()
    assert {pid: p["standing"] for pid, p in told.items()} == {
        wreck.hog.pid: "parked", boot.pid: "other_boot", reused.pid: "other_process", foreign.pid: "foreign",
        final.pid: "final", dead.pid: "gone", damaged.pid: "damaged", link.pid: "damaged"}
    for pid, words in {boot.pid: "before this boot", reused.pid: "another one by now", foreign.pid: "says uid 12345",
                       final.pid: "failed on it for good", dead.pid: "its process ended", damaged.pid: "its record is damaged",
                       link.pid: "not a file that the folder's owner wrote"}.items():
        assert words in told[pid]["why"], told[pid]

    for whom in (boot, reused, foreign, final, damaged, link):
        one = wreck.rescue("--thaw", str(whom.pid))
        assert one.returncode == 1 and told[whom.pid]["why"] in one.stderr, one
    assert wreck.back_calls() == []
    done = wreck.rescue("--all")
    assert done.returncode == 1, "the damaged, the foreign and the final one did not come back"
    assert {pid for pid, _ in wreck.back_calls()} == {wreck.hog.pid}
    assert wreck.goes_on() > wreck.was
    assert all(s.poll() is None for s in sleepers)


@needs_root
def test_folder_of_another_user_is_listed_and_says_who_may_act(wreck):
    wreck.parked_and_wrecked()
    uid = NOBODY_LIKE_UIDS[0]
    for name in os.listdir(wreck.folder):
        os.chown(os.path.join(wreck.folder, name), uid, uid, follow_symlinks=False)
    os.chown(wreck.folder, uid, uid)
    told = wreck.told()[wreck.hog.pid]
    assert told["standing"] == "foreign" and f"in a folder of uid {uid}" in told["why"], "a user's word about root's process"
    assert wreck.rescue("--all").returncode == 1 and wreck.back_calls() == []


@needs_root
def test_root_does_not_write_in_a_users_folder_but_names_the_user(wreck):
    wreck.parked_and_wrecked()
    uid = NOBODY_LIKE_UIDS[0]
    own = subprocess.Popen(["sleep", "1000"], user=uid)
    wreck.place.started.append(own)
    path = wreck.write_record(own.pid, start_ticks(own.pid), uid=str(uid))
    os.chown(path, uid, uid)
    os.chown(wreck.folder, uid, uid)
    assert wreck.told()[own.pid]["standing"] == "parked"
    done = wreck.rescue("--thaw", str(own.pid))
    assert done.returncode == 125 and f"sudo -u '#{uid}' lessor rescue --folder {wreck.place.home}" in done.stderr, done


@needs_root
def test_folder_that_is_closed_to_a_user_says_so(wreck):
    wreck.parked_and_wrecked()
    others = programs_for_others(wreck.place)
    shutil.copy(LESSOR, others)
    os.chmod(os.path.join(others, "lessor"), 0o755)
    os.chmod(wreck.place.dir, 0o755)
    os.chmod(wreck.place.home, 0o755)  # the records themselves are for their owner only
    done = subprocess.run([os.path.join(others, "lessor"), "rescue", "--folder", wreck.place.home], user=NOBODY_LIKE_UIDS[0],
                          cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 125 and f"{wreck.folder} is closed to this user" in done.stderr, done


# ---- where ----

def test_folder_is_that_of_the_socket_or_of_the_session(wreck):
    wreck.parked_and_wrecked()
    by_socket = subprocess.run([LESSOR, "rescue", "--json"], env={**wreck.place.env, "LESSOR_SOCKET": wreck.place.socket},
                               stdout=subprocess.PIPE, check=True, text=True)
    assert [f["folder"] for f in json.loads(by_socket.stdout)["folders"]] == [wreck.folder]
    runtime = os.path.join(wreck.place.dir, "run")
    os.mkdir(runtime, 0o700)
    os.symlink(wreck.place.home, os.path.join(runtime, "lessor"))
    env = {k: v for k, v in wreck.place.env.items() if k != "LESSOR_SOCKET"} | {"XDG_RUNTIME_DIR": runtime}
    of_session = subprocess.run([LESSOR, "rescue", "--json"], env=env, stdout=subprocess.PIPE, check=True, text=True)
    told = json.loads(of_session.stdout)
    assert [f["folder"] for f in told["folders"]] == [f"{runtime}/lessor/parked", "/run/lessor/parked"]
    assert wreck.hog.pid in [p["pid"] for p in told["processes"]]
    named = wreck.rescue("--folder", wreck.folder, "--json")
    assert [f["folder"] for f in json.loads(named.stdout)["folders"]] == [wreck.folder], "also when the records are named"


# ---- words ----

def test_nothing_was_ever_parked(wreck):
    listed = wreck.rescue()
    assert listed.returncode == 0 and "nothing is parked" in listed.stdout, listed
    none = wreck.rescue("--thaw", "L9")
    assert none.returncode == 1 and "nothing is parked that is L9" in none.stderr, none
    assert wreck.rescue("--all").returncode == 0


@pytest.mark.parametrize("words, said", [
    (["--thaw", "me"], 'neither a lease (L17) nor a process (4711)'),
    (["--thaw", "L0"], "neither a lease"),
    (["--all", "--list"], "one of --list, --all and --thaw"),
    (["L17"], "it takes no words"),
    (["--thwa", "L1"], "did you mean --thaw"),
])
def test_wrong_use_is_refused_with_the_cure(words, said):
    done = subprocess.run([LESSOR, "rescue", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    assert done.returncode == 2 and said in done.stderr, done


def test_folder_that_is_not_there_is_named(tmp_path):
    done = subprocess.run([LESSOR, "rescue", "--folder", str(tmp_path / "no")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 125 and "/no: No such file or directory" in done.stderr, done
