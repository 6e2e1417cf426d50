# SPDX-License-Identifier: Apache-2.0
"""`lessor run`: the command does not notice it, and the lease lives exactly as long as the command and its workers."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from cli_helpers import LESSOR, MIB, SIMGPU, Place, Terminal, is_alive, parent_of, until

PYTHON = sys.executable

# Tells the signals it gets; told by SIGUSR2 it says them all and leaves with 3. sigwaitinfo, because a handler that runs
# just before pause() would leave it waiting for ever.
COUNTS_SIGNALS = """
import signal, sys
numbers = {1, 2, 3, 10, 12, 15, 18, 28, 35}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
print("ready", flush=True)
seen = []
while (number := signal.sigwaitinfo(numbers).si_signo) != 12:
    seen.append(number)
    print(number, flush=True)
print(seen, flush=True)
sys.exit(3)
"""


@pytest.fixture(scope="module", name="place")
def fixture_place():
    place = Place()
    yield place
    place.close()


@pytest.fixture(name="own")
def fixture_own():
    """For tests that kill the daemon or leave things behind."""
    place = Place()
    yield place
    place.close()


@pytest.fixture(name="two")
def fixture_two():
    """Two cards; CUDA numbers them the other way round than the driver (F27)."""
    place = Place("--gpus", "2", "--memory", "3G", "--reverse-cuda")
    yield place
    place.close()


# ---- the command does not notice ----

@pytest.mark.parametrize("code", [0, 1, 7, 69, 124, 125, 255])
def test_exit_status_is_the_commands_own(place, code):
    assert place.lessor("run", "--vram", "100M", "--", "sh", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT, signal.SIGPIPE])
def test_command_ended_by_a_signal_ends_lessor_by_the_same(place, number):
    ended = place.lessor("run", "--vram", "100M", "--", "sh", "-c", f"kill -{number.value} $$")
    assert ended.returncode == -number
    in_shell = subprocess.run(["sh", "-c", f'"{LESSOR}" run --vram 100M -- sh -c "kill -{number.value} \\$\\$"; echo $?'],
                              env=place.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    assert in_shell.stdout.strip() == str(128 + number)


def without_a_wait(stderr):
    """What is on stderr but for the lines about a wait, which a busy machine's look at its cards may make of it."""
    return re.sub(r"^lessor run: L\d+ (wants .* waits: |has ).*\n", "", stderr, flags=re.M)


def test_stdin_and_stdout_belong_to_the_command(place):
    data = os.urandom(1 << 20)
    through = subprocess.run([LESSOR, "run", "--vram", "100M", "--", "cat"], env=place.env, input=data,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    assert through.stdout == data
    assert without_a_wait(through.stderr.decode()) == ""


def test_stderr_has_only_what_the_command_wrote(place):
    said = place.lessor("run", "--vram", "100M", "--", "sh", "-c", "echo mine >&2").stderr
    assert without_a_wait(said) == "mine\n", said


def test_S11_environment_gains_lease_and_token_and_nothing_else(place):
    printed = place.lessor("run", "--vram", "100M", "--", "env", "-0").stdout
    inside = dict(line.split("=", 1) for line in printed.split("\0") if line)
    gained = {k: v for k, v in inside.items() if place.env.get(k) != v}
    assert set(gained) == {"LESSOR_LEASE", "LESSOR_TOKEN"}
    assert re.fullmatch(r"L\d+", gained["LESSOR_LEASE"])
    assert set(place.env) <= set(inside)


def test_S11_arguments_arrive_as_they_are(place):
    words = ["", " ", "-x", "--", "--vram", "$(id)", "a\nb", "*", "ä", "'\""]
    shown = place.lessor("run", "--vram", "100M", "--", PYTHON, "-c", "import sys,json; print(json.dumps(sys.argv[1:]))", *words)
    assert json.loads(shown.stdout) == words


def test_command_without_dashes_in_front_keeps_its_own_options(place):
    assert place.lessor("run", "--vram", "100M", "echo", "--help", "--vram").stdout == "--help --vram\n"


FACTS = """
import os, json, re, resource, signal
status = open('/proc/self/status').read()
print(json.dumps(dict(
    cwd=os.getcwd(), umask=os.umask(0), fds=sorted(f for f in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + f)),
    limits=resource.getrlimit(resource.RLIMIT_NOFILE), core=resource.getrlimit(resource.RLIMIT_CORE),
    nice=os.nice(0), sid=os.getsid(0), pgrp=os.getpgrp(),
    masks=re.findall('^(SigBlk|SigIgn):\\\\s*(\\\\w+)', status, re.M))))
"""


def facts(place, *words, **options):
    shown = subprocess.run([*words, PYTHON, "-c", FACTS], env=place.env, stdout=subprocess.PIPE, check=True, **options)
    return json.loads(shown.stdout)


def test_S11_everything_inherited_stays_as_it_was(place, tmp_path):
    with open(tmp_path / "open", "w", encoding="utf-8") as file:
        options = {"cwd": tmp_path, "pass_fds": (file.fileno(),), "umask": 0o27,
                   "preexec_fn": lambda: (signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]),
                                          signal.signal(signal.SIGHUP, signal.SIG_IGN), signal.signal(signal.SIGCHLD, signal.SIG_IGN))}
        plain = facts(place, **options)
        leased = facts(place, LESSOR, "run", "--vram", "100M", "--", **options)
    assert leased == plain


def test_S11_closed_stdin_stays_closed(place):
    shown = subprocess.run(["sh", "-c", f'"{LESSOR}" run --vram 100M -- sh -c "ls -l /proc/self/fd/0 2>&1; true" <&-'],
                           env=place.env, stdout=subprocess.PIPE, text=True, check=True)
    assert "/dev/null" not in shown.stdout


@pytest.mark.parametrize("number", [1, 2, 3, 10, 15, 18, 28, 35])
def test_signal_to_lessor_reaches_the_command_once(place, number):
    run = place.start("run", "--vram", "100M", "--", PYTHON, "-c", COUNTS_SIGNALS)
    assert run.stdout.readline() == "ready\n"
    run.send_signal(number)
    assert run.stdout.readline() == f"{number}\n"
    run.send_signal(signal.SIGUSR2)
    assert run.stdout.read() == f"[{number}]\n"
    assert run.wait() == 3


def test_stopping_the_command_stops_lessor_and_continuing_lessor_continues_it(place):
    # a group of its own: in one whose parents are all in another session, as meson makes it, the kernel drops SIGTSTP
    run = place.start("run", "--vram", "100M", "--", PYTHON, "-c", COUNTS_SIGNALS, process_group=0)
    assert run.stdout.readline() == "ready\n"
    run.send_signal(signal.SIGTSTP)
    pid, status = os.waitpid(run.pid, os.WUNTRACED)
    assert pid == run.pid and os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGTSTP
    run.send_signal(signal.SIGCONT)
    assert run.stdout.readline() == "18\n"
    run.send_signal(signal.SIGUSR2)
    assert run.stdout.read().endswith("]\n")
    assert run.wait() == 3


@pytest.mark.parametrize("command, code", [("no-such-command-here", 127), ("/no/such/file", 127), ("/etc", 126), ("/etc/passwd", 126)])
def test_command_that_cannot_run_is_told_before_anything_is_asked_for(place, command, code):
    last = len(place.lessor("events", "--json").stdout.splitlines())
    ended = place.lessor("run", "--vram", "100M", "--", command)
    assert ended.returncode == code
    assert command in ended.stderr
    assert not [line for line in place.lessor("events", "--json").stdout.splitlines()[last:] if json.loads(line).get("lease")]


def test_format_error_goes_to_the_shell_as_execvp_does(place, tmp_path):
    script = tmp_path / "script"
    script.write_text("echo no shebang\n")
    script.chmod(0o755)
    assert place.lessor("run", "--vram", "100M", "--", str(script)).stdout == "no shebang\n"


# ---- the terminal ----

JOB = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
print("begun", flush=True)
while signal.sigwaitinfo({signal.SIGINT}):
    print("interrupted", flush=True)
"""


@pytest.fixture(name="shell")
def fixture_shell(place):
    shell = Terminal(["bash", "--norc", "--noediting", "-i"], {**place.env, "TERM": "xterm"})
    shell.send("PS1='pro''mpt> '; set -b\n")
    shell.expect("prompt> ")
    yield shell
    shell.close()


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_job_control_is_the_commands(shell, tmp_path):
    def foreground(is_job):
        def changed():
            group = os.tcgetpgrp(shell.fd)
            # a shell gives the terminal away before it has the job go on, and that would undo a stop of before
            return state_of(group) != "T" if is_job and group != shell.pid else is_job == (group != shell.pid)
        until("the terminal changes hands", changed)

    (tmp_path / "job.py").write_text(JOB)
    shell.send(f"lessor run --vram 100M -- {PYTHON} {tmp_path}/job.py\n")
    shell.expect("begun")
    shell.send("\x03")
    shell.expect("interrupted")
    for again in ("fg", "bg"):
        shell.send("\x1a")
        shell.expect("Stopped")
        shell.expect("prompt> ")
        foreground(False)
        shell.send(again + "\n")
        if again == "bg":
            shell.expect("&")
            shell.expect("prompt> ")
            shell.send("fg\n")
        foreground(True)
    shell.send("\x03")
    shell.expect("interrupted")
    shell.send("\x1c")
    shell.expect("prompt> ")
    shell.send("echo status=$?\n")
    shell.expect("status=131")


def test_interactive_shell_inside_can_be_suspended(shell):
    shell.send("lessor run --vram 100M -- bash --norc --noediting -i\n")
    shell.expect(r"[#$] $")
    shell.send("PS1='in''ner> '\n")
    shell.expect("inner> ")
    shell.send("suspend\n")
    shell.expect("Stopped")
    shell.expect("prompt> ")
    shell.send("fg\n")
    shell.expect("inner> ")
    shell.send("exit 5\n")
    shell.expect("prompt> ")
    shell.send("echo status=$?\n")
    shell.expect("status=5")


def test_neighbour_in_a_pipeline_can_read_the_terminal(shell):
    shell.send("lessor run --vram 100M -- echo through | (read -r line </dev/tty; echo \"got $line\"; cat)\n")
    shell.send("typed\n")
    shell.expect("got typed")
    shell.expect("through")


def test_command_is_in_the_foreground(shell):
    shell.send(f"lessor run --vram 100M -- {PYTHON} -c 'import os; print(\"fg\", os.tcgetpgrp(0) == os.getpgrp())'\n")
    assert shell.expect("fg (True|False)")[1] == "True"


def test_ctrl_c_while_waiting_gives_up_the_place(own):
    own.hog("holder", "3000M")
    own.in_state("holder", "active")
    shell = Terminal(["bash", "--norc", "--noediting", "-i"], {**own.env, "TERM": "xterm"})
    try:
        shell.send("PS1='pro''mpt> '; lessor run --name late --vram 3000M -- true\n")
        shell.expect("waits since")
        own.in_state("late", "queued")
        shell.send("\x03")
        shell.expect("prompt> ")
        own.gone("late")
        shell.send("echo status=$?\n")
        shell.expect("status=130")
    finally:
        shell.close()


# ---- waiting ----

def read_until(stream, pattern):
    for line in stream:
        if re.search(pattern, line):
            return line
    raise AssertionError(f"ended without {pattern!r}")


def test_waiting_tells_reason_place_and_expectation_and_then_runs(own):
    first = own.hog("first", "2500M", "--for", "10m")
    own.holds(2500 * MIB)
    second = own.start("run", "--name", "second", "--vram", "1500M", "--", "echo", "my turn")
    line = read_until(second.stderr, "waits: ")
    assert re.search(r"L\d+ wants 1500 MiB \(1\.57 GB\) and waits: .+; place 1 of 1.*; expected start ", line), line
    lease = own.in_state("second", "queued")
    assert lease["place"] == 1 and lease["why"] and lease["expectation"]
    first.terminate()
    assert second.wait() == 0
    assert second.stdout.read() == "my turn\n"
    assert re.search(r"L\d+ has 1500 MiB .* on GPU-.* after ", second.stderr.read())
    assert first.wait() == 0


def test_log_gets_a_line_only_when_something_changed(own):
    holder = own.hog("holder", "3000M")
    own.in_state("holder", "active")
    ahead = own.start("run", "--name", "ahead", "--vram", "3000M", "--", "true")
    own.in_state("ahead", "queued")
    behind = own.start("run", "--name", "behind", "--vram", "2000M", "--", "true")
    read_until(behind.stderr, "place 2 of 2")
    ahead.send_signal(signal.SIGTERM)
    assert ahead.wait() == -signal.SIGTERM
    assert "place 1 of 1" in read_until(behind.stderr, "place 1 of")
    holder.terminate()
    assert behind.wait() == 0
    rest = behind.stderr.read().splitlines()
    assert len([line for line in rest if "waits: " in line]) <= 1, rest  # the reason may still change once


def test_no_wait_is_refused_at_once_and_leaves_nothing(own):
    own.hog("holder", "3000M")
    own.in_state("holder", "active")
    ended = own.lessor("run", "--vram", "500M", "--no-wait", "--", "true")
    assert ended.returncode == 124
    assert "would have to wait" in ended.stderr and "leave out --no-wait" in ended.stderr and "mode" not in ended.stderr
    assert [lease["name"] for lease in own.leases()] == ["holder"]


def test_no_wait_runs_where_there_is_room(place):
    run = place.hog("now", "700M", "--no-wait")
    lease = place.in_state("now", "active")
    pid = place.holds(700 * MIB)
    until("its use is counted", lambda: place.lease("now")["used_bytes"] == 700 * MIB)
    assert lease["device"] and parent_of(pid) == run.pid
    run.terminate()
    assert run.wait() == 0
    place.gone("now")


@pytest.mark.parametrize("wait", ["0", "300ms"])
def test_wait_over_exits_with_124(own, wait):
    own.hog("holder", "3000M")
    own.in_state("holder", "active")
    ended = own.lessor("run", "--vram", "500M", "--wait", wait, "--", "true")
    assert ended.returncode == 124 and ended.stderr
    until("the place is free again", lambda: [lease["name"] for lease in own.leases()] == ["holder"])


def test_more_than_the_card_fails_at_once_naming_ceiling(place):
    ended = place.lessor("run", "--vram", "3500M", "--", "true")
    assert ended.returncode == 125
    ceiling = place.status()["devices"][0]["ceiling_bytes"]
    assert ceiling == 3072 * MIB and "3 GiB" in ended.stderr


def test_without_vram_the_whole_device_is_asked_for_and_said(place):
    run = place.start("run", "--name", "all", "--", "sh", "-c", "echo up; read line", stdin=subprocess.PIPE)
    assert run.stdout.readline() == "up\n"
    lease = place.in_state("all", "active")
    assert lease["bytes"] == place.status()["devices"][0]["ceiling_bytes"]
    run.communicate("\n")
    assert run.returncode == 0


def test_two_hundred_waiting_runs_of_one_user_all_get_their_turn(own, tmp_path):
    holder = own.hog("holder", "3000M")
    own.in_state("holder", "active")
    done = tmp_path / "done"
    with open(tmp_path / "err", "w", encoding="utf-8") as err:
        runs = [own.start("run", "--name", f"w{i}", "--vram", "1000M", "--", "sh", "-c", f"echo {i} >>{done}", stdout=err, stderr=err)
                for i in range(200)]
        until("200 wait", lambda: len(own.status()["queue"]) == 200)
        queue = own.status()["queue"]
        assert [entry["place"] for entry in queue] == list(range(1, 201))
        holder.terminate()
        assert [run.wait() for run in runs] == [0] * 200, (tmp_path / "err").read_text()[-2000:]
    assert sorted(int(line) for line in done.read_text().split()) == list(range(200))
    until("nothing is left", lambda: not own.leases() and not own.status()["queue"])
    own.free_is(3072 * MIB)


# ---- the lease lives as long as the command and its workers ----

def test_killed_program_frees_its_lease(place):
    run = place.hog("victim", "900M")
    place.in_state("victim", "active")
    os.kill(place.holds(900 * MIB), signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    place.gone("victim")
    place.free_is(3072 * MIB)


def test_F46_killed_wrapper_orphans_the_lease_until_the_program_ends(own):
    run = own.hog("left", "900M")
    lease = own.in_state("left", "active")
    pid = own.holds(900 * MIB)
    until("its use is counted", lambda: own.lease("left")["used_bytes"] == 900 * MIB)
    run.kill()
    run.wait()
    assert own.in_state("left", "orphaned")["id"] == lease["id"]
    until("its use is still counted", lambda: own.lease("left")["used_bytes"] == 900 * MIB)
    assert is_alive(pid)
    own.free_is(3072 * MIB - 900 * MIB)
    os.kill(pid, signal.SIGTERM)
    own.gone("left")
    own.free_is(3072 * MIB)


def test_killed_wrapper_keeps_the_lease_of_a_program_that_has_no_memory_yet(own):
    """It loads its model for a minute before it touches the card: nothing lists it, and it is alive."""
    run = own.start("run", "--name", "early", "--vram", "900M", "--", PYTHON, "-c",
                    "import os, signal; print(os.getpid(), flush=True); signal.pause()")
    pid = int(run.stdout.readline())
    lease = own.in_state("early", "active")
    run.kill()
    run.wait()
    until("lessord noticed", lambda: (own.lease("early") or {}).get("state") != "active")
    assert (own.lease("early") or {}).get("state") == "orphaned"
    assert own.lease("early")["id"] == lease["id"]
    os.kill(pid, signal.SIGKILL)
    own.gone("early")


@pytest.mark.parametrize("how", ["", "setsid"])
def test_F54_workers_that_outlive_the_command_keep_its_lease(own, how):
    """The worker is re-parented, and with setsid in a session of its own, and still counts under the lease."""
    run = own.lessor("run", "--name", "boss", "--vram", "900M", "--", "sh", "-c",
                     f'{how} "{SIMGPU}" hog --alloc 900M >/dev/null 2>&1 & echo $!')
    assert run.returncode == 0
    assert re.search(r"still alive.*L\d+ goes on, as orphaned", run.stderr), run.stderr
    pid = own.holds(900 * MIB)
    lease = own.in_state("boss", "orphaned")
    until("its use is counted under the lease", lambda: own.lease("boss")["used_bytes"] == 900 * MIB)
    assert not own.status()["strangers"]
    assert lease["bytes"] == 900 * MIB
    os.kill(pid, signal.SIGTERM)
    own.gone("boss")
    own.free_is(3072 * MIB)


@pytest.mark.parametrize("how", ["", "setsid"])
def test_F54_worker_without_memory_yet_keeps_the_lease_of_a_command_that_is_over(own, tmp_path, how):
    """It loads for a minute before it touches the card: nothing lists it, its parents are gone, and it is alive."""
    go = tmp_path / "go"
    run = own.lessor("run", "--name", "boss", "--vram", "900M", "--", "sh", "-c",
                     f'{how} sh -c \'while [ ! -e "{go}" ]; do sleep 0.05; done; exec "{SIMGPU}" hog --alloc 900M\' >/dev/null 2>&1 &')
    assert run.returncode == 0
    lease = re.search(r"still alive.*(L\d+) goes on, as orphaned", run.stderr)[1]
    assert own.in_state("boss", "orphaned")["id"] == lease
    go.touch()
    pid = own.holds(900 * MIB)
    until("its use is counted under the lease", lambda: own.lease("boss")["used_bytes"] == 900 * MIB)
    assert own.lease("boss")["id"] == lease and not own.strangers()
    os.kill(pid, signal.SIGTERM)
    own.gone("boss")
    own.free_is(3072 * MIB)


def test_grandchildren_count_under_the_lease(place):
    run = place.start("run", "--name", "deep", "--vram", "800M", "--", "sh", "-c", f'sh -c \'"{SIMGPU}" hog --alloc 800M; true\'; true')
    pid = place.holds(800 * MIB)
    until("its use is counted", lambda: (place.lease("deep") or {}).get("used_bytes") == 800 * MIB)
    assert not place.status()["strangers"]
    os.kill(pid, signal.SIGTERM)
    assert run.wait() == 0


def test_cgroup_folders_do_not_pile_up(own):
    def folders():
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            here = next((line.rstrip("\n")[3:] for line in file if line.startswith("0::/")), None)
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            mount = next((line.split()[4] for line in file if " - cgroup2 " in line), None)
        return set(os.listdir(mount + here)) if here and mount and os.path.isdir(mount + here) else set()
    run = own.hog("left", "900M")
    own.in_state("left", "active")
    pid = own.holds(900 * MIB)
    name = f"lessor-{own.lease('left')['id']}.{run.pid}"
    run.kill()
    run.wait()
    os.kill(pid, signal.SIGKILL)
    own.gone("left")
    assert own.lessor("run", "--vram", "100M", "--", "true").returncode == 0
    assert name not in folders()


def test_systemd_scope_is_used_where_a_user_manager_is(own, tmp_path):
    """A stand-in for systemd-run that does what the real one does with --scope: becomes the command."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tmp_path / "systemd").mkdir()
    (tmp_path / "systemd" / "private").touch()
    (tools / "systemd-run").write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/asked\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
    (tools / "systemd-run").chmod(0o755)
    ended = own.lessor("run", "--vram", "100M", "--", "sh", "-c", "echo in; exit 4",
                       env={"PATH": f"{tools}:{own.env['PATH']}", "XDG_RUNTIME_DIR": str(tmp_path)})
    assert (ended.stdout, ended.returncode, without_a_wait(ended.stderr)) == ("in\n", 4, "")
    asked = (tmp_path / "asked").read_text()
    assert re.match(r"--user --scope --quiet --collect --unit=lessor-L\d+-\d+\.scope -- ", asked), asked


@pytest.mark.parametrize("fails", ["exit 1", "echo nonsense >&2"])
def test_user_manager_that_fails_is_done_without(own, tmp_path, fails):
    tools = tmp_path / "bin"
    tools.mkdir()
    (tmp_path / "systemd").mkdir()
    (tmp_path / "systemd" / "private").touch()
    (tools / "systemd-run").write_text(f"#!/bin/sh\n{fails}\n")
    (tools / "systemd-run").chmod(0o755)
    ended = own.lessor("run", "--vram", "100M", "--", "sh", "-c", "exit 4",
                       env={"PATH": f"{tools}:{own.env['PATH']}", "XDG_RUNTIME_DIR": str(tmp_path)})
    assert ended.returncode == 4


# ---- what becomes of the lease meanwhile ----

@pytest.mark.parametrize("slot, told", [
    ("6s", r"its slot ends (in \S.*|now); after that it ranks as a filler"),  # warned of at its half
    ("200ms", "its slot is over: it ranks as a filler from now on")])
def test_slot_that_ends_is_told_on_stderr_and_in_status(place, slot, told):
    run = place.start("run", "--name", "short", "--vram", "100M", "--for", slot, "--", "sh", "-c", "echo up; read line; echo mine >&2; exit 7",
                      stdin=subprocess.PIPE)
    read_until(run.stderr, rf"^lessor run: L\d+: {told}$")  # of a short one also that it ends, where the daemon looked in time
    assert re.search(rf"^ +(its slot is over.*|{told})$", place.lessor("status").stdout, re.M)
    stdout, stderr = run.communicate("\n")
    assert stdout == "up\n" and stderr.splitlines()[-1] == "mine"
    assert run.returncode == 7
    place.gone("short")


def test_memory_on_another_card_than_granted_is_told_once_with_the_cure(two):
    granted, other = (card["uuid"] for card in two.card())
    run = two.start("run", "--name", "astray", "--vram", "600M", "--device", granted, "--", "sh", "-c",
                    f'unset CUDA_VISIBLE_DEVICES; exec "{SIMGPU}" hog --alloc 300M --grow 10M/20ms --max 600M')
    assert re.search(r"appeared on another device than granted; set CUDA_VISIBLE_DEVICES to the granted one "
                     rf"\({granted}\)$", run.stderr.readline())
    two.holds(600 * MIB)
    assert where(two, 600 * MIB) == [other]
    assert "appeared on another device than granted" in two.lessor("status").stdout
    assert two.lessor("lease", "release", two.lease("astray")["id"]).returncode == 0
    assert "its owner released it" in run.stderr.readline()
    run.terminate()
    assert run.wait() == 0
    assert run.stderr.read() == ""


def test_use_beyond_the_reservation_is_told_with_the_cure(own):
    own.kill_daemon()
    with open(os.path.join(own.dir, "lessord.conf"), "w", encoding="utf-8") as conf:
        conf.write("over_use = 1MiB\nover_use_for = 0s\n")
    own.start_daemon()
    run = own.hog("greedy", "100M", alloc="300M")
    assert re.search(r"L\d+: uses 300 MiB, reserved 100 MiB; ask for more next time", run.stderr.readline())
    run.terminate()
    assert run.wait() == 0


def test_device_that_is_lost_and_comes_back_is_told(own):
    run = own.hog("unlucky", "300M")
    own.in_state("unlucky", "active")
    own.holds(300 * MIB)  # else the command itself stumbles over the lost card
    subprocess.run([SIMGPU, "fault", "lost"], env=own.env, stdout=subprocess.DEVNULL, check=True)
    assert re.search(r"L\d+: its device GPU-\S+ is lost", run.stderr.readline())
    subprocess.run([SIMGPU, "fault", "clear"], env=own.env, stdout=subprocess.DEVNULL, check=True)
    assert re.search(r"L\d+: its device GPU-\S+ is back", run.stderr.readline())
    run.terminate()
    assert run.wait() == 0
    assert run.stderr.read() == ""


def test_lease_that_ends_under_its_command_is_told_while_its_memory_is_there(own):
    run = own.hog("robbed", "300M")
    own.in_state("robbed", "active")
    pid = own.holds(300 * MIB)
    until("its use is counted", lambda: own.lease("robbed")["used_bytes"] == 300 * MIB)
    assert own.lessor("lease", "release", own.lease("robbed")["id"]).returncode == 0
    assert re.search(r"L\d+: ended in the books \(its owner released it\), but 300 MiB is still on the device; the command goes on",
                     run.stderr.readline())
    assert is_alive(pid)
    run.terminate()
    assert run.wait() == 0
    assert run.stderr.read() == ""


def test_hundreds_that_run_leave_their_user_connections_to_ask_with(own):
    """A user has 256 of them; one each for what only watches would leave none."""
    for i in range(260):
        own.start("run", "--name", f"r{i}", "--vram", "1M", "--", "cat", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                  stderr=subprocess.DEVNULL)
        if i % 20 == 19:  # all at once would be another test
            until(f"{i + 1} run", lambda i=i: len([lease for lease in own.leases() if lease["state"] == "active"]) == i + 1)
    last = own.start("run", "--name", "last", "--vram", "1M", "--for", "200ms", "--", "cat", stdin=subprocess.PIPE)
    read_until(last.stderr, "its slot is over")  # and nobody is left out


def slot_is_over(place, name):
    until(f"the slot of {name} is over", lambda: place.lease(name)["over_time"])


@pytest.mark.parametrize("option", ["-q", "--quiet"])
def test_quiet_run_says_nothing_about_its_lease(own, option):
    run = own.start("run", option, "--name", "hush", "--for", "200ms", "--", "sh", "-c", "echo mine >&2; read line; exit 7", stdin=subprocess.PIPE)
    own.in_state("hush", "active")
    slot_is_over(own, "hush")
    assert own.lessor("lease", "release", own.lease("hush")["id"]).returncode == 0
    own.gone("hush")
    assert run.communicate("\n") == ("", "mine\n")
    assert run.returncode == 7


def test_quiet_run_waits_silently_and_its_errors_are_said(own):
    holder = own.hog("holder", "3000M")
    own.in_state("holder", "active")
    ended = own.lessor("run", "-q", "--vram", "500M", "--wait", "300ms", "--", "true")
    assert ended.returncode == 124 and len(ended.stderr.splitlines()) == 1
    late = own.start("run", "-q", "--name", "late", "--vram", "500M", "--", "echo", "my turn")
    own.in_state("late", "queued")
    holder.terminate()
    assert late.communicate() == ("my turn\n", "")
    assert late.returncode == 0
    assert own.lessor("run", "-q", "--vram", "3500M", "--", "true").stderr


def test_stderr_that_nobody_empties_holds_up_neither_signals_nor_the_end(own):
    out, full = os.pipe()
    os.set_blocking(full, False)
    for size in (4096, 1):
        try:
            while True:
                os.write(full, b"x" * size)
        except BlockingIOError:
            pass
    os.set_blocking(full, True)
    run = own.start("run", "--name", "mute", "--vram", "100M", "--for", "200ms", "--", PYTHON, "-c", COUNTS_SIGNALS, stderr=full)
    os.close(full)
    assert run.stdout.readline() == "ready\n"
    slot_is_over(own, "mute")
    run.send_signal(signal.SIGUSR1)
    assert run.stdout.readline() == "10\n"
    with open(out, encoding="utf-8") as pipe:
        # what could not be said is said when there is room
        assert re.fullmatch(r"x*lessor run: L\d+: its slot .*\n", read_until(pipe, "its slot is over"))
    assert own.lessor("lease", "release", own.lease("mute")["id"]).returncode == 0  # now nobody reads at all
    own.gone("mute")
    run.send_signal(signal.SIGUSR2)
    assert run.wait() == 3


# ---- lessord goes away ----

def test_restart_while_it_runs_goes_unnoticed(own):
    run = own.hog("steady", "900M")
    before = own.in_state("steady", "active")
    pid = own.holds(900 * MIB)
    own.kill_daemon()
    own.start_daemon()
    after = own.in_state("steady", "active")
    assert (after["id"], after["bytes"], after["device"]) == (before["id"], before["bytes"], before["device"])
    assert is_alive(pid) and run.poll() is None
    run.terminate()
    assert run.wait() == 0
    assert run.stderr.read() == ""
    own.gone("steady")


def test_lessord_that_is_away_is_no_news_and_the_watching_goes_on_afterwards(own):
    run = own.start("run", "--name", "steady", "--vram", "900M", "--", PYTHON, "-c", COUNTS_SIGNALS)
    assert run.stdout.readline() == "ready\n"
    lease = own.in_state("steady", "active")["id"]
    own.kill_daemon()
    run.send_signal(signal.SIGUSR1)
    assert run.stdout.readline() == "10\n"
    own.start_daemon()
    assert own.lessor("lease", "release", lease).returncode == 0
    said = f"lessor run: {lease}: ended: its owner released it; the command goes on without a lease\n"
    assert run.stderr.readline() == said
    run.send_signal(signal.SIGUSR2)
    assert run.wait() == 3
    assert run.stderr.read() == ""
    assert run.stdout.read() == "[10]\n"


def test_books_that_were_begun_anew_are_told(own):
    run = own.hog("steady", "900M")
    own.in_state("steady", "active")
    own.holds(900 * MIB)
    own.kill_daemon()
    for name in os.listdir(own.dir):
        if name.startswith("journal"):
            os.remove(os.path.join(own.dir, name))
    own.start_daemon()
    # its id is somebody else's now
    other = own.start("run", "--name", "other", "--vram", "100M", "--", "sleep", "1000")
    own.in_state("other", "active")
    assert re.fullmatch(r"lessor run: L\d+ was lost with lessord's books: the command's memory is under L\d+ now\n",
                        run.stderr.readline())
    other.kill()
    run.terminate()
    assert run.wait() == 0
    assert run.stderr.read() == ""


def test_command_that_ends_while_lessord_is_away_keeps_its_status(own):
    run = own.start("run", "--vram", "100M", "--", "sh", "-c", "echo up; read line; exit 9", stdin=subprocess.PIPE)
    assert run.stdout.readline() == "up\n"
    own.kill_daemon()
    run.communicate("\n")
    assert run.returncode == 9
    own.start_daemon()
    until("its lease is gone", lambda: not own.leases())


def test_restart_while_it_waits_keeps_lease_and_place(own):
    holder = own.hog("holder", "3000M")
    own.in_state("holder", "active")
    waiting = own.start("run", "--name", "patient", "--vram", "2000M", "--", "echo", "finally")
    before = own.in_state("patient", "queued")
    own.kill_daemon()
    read_until(waiting.stderr, "Waiting up to 60 s")
    own.start_daemon()
    assert own.in_state("patient", "queued")["id"] == before["id"]
    holder.terminate()
    assert waiting.wait() == 0
    assert waiting.stdout.read() == "finally\n"


@pytest.fixture(name="nowhere")
def fixture_nowhere(place, tmp_path):
    return {**place.env, "LESSOR_SOCKET": str(tmp_path / "no.sock")}


def test_away_fails_with_69_and_the_cure(place, nowhere):
    for words, env in ((("--if-down", "fail"), {}), ((), {"LESSOR_IF_DOWN": "fail"})):
        ended = place.lessor("run", *words, "--vram", "100M", "--", "true", env={**nowhere, **env})
        assert ended.returncode == 69
        assert nowhere["LESSOR_SOCKET"] in ended.stderr and "Cure:" in ended.stderr and "lessord" in ended.stderr


def test_away_runs_without_a_lease_when_told_so(place, nowhere):
    ended = place.lessor("run", "--if-down", "run", "--vram", "100M", "--", "sh", "-c", "echo ${LESSOR_LEASE:-none}; exit 6", env=nowhere)
    assert (ended.stdout, ended.returncode) == ("none\n", 6)
    assert "without a lease" in ended.stderr


def test_waits_for_a_lessord_that_is_not_there_yet(own):
    own.kill_daemon()
    run = own.start("run", "--vram", "100M", "--", "echo", "hello")
    read_until(run.stderr, "Waiting up to 60 s")
    own.start_daemon()
    assert run.wait() == 0
    assert run.stdout.read() == "hello\n"


def test_interrupted_while_lessord_is_away(place, nowhere):
    run = place.start("run", "--vram", "100M", "--", "true", env=nowhere)
    read_until(run.stderr, "Waiting up to 60 s")
    run.send_signal(signal.SIGINT)
    assert run.wait() == -signal.SIGINT


def test_forbidden_socket_names_owner_and_cure(place, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    tool = tmp_path / "lessor"
    shutil.copy(LESSOR, tool)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    ended = subprocess.run([tool, "run", "--vram", "100M", "--", "true"], env=place.env, stderr=subprocess.PIPE, text=True,
                           user=65534, group=65534, extra_groups=[], check=False)
    assert ended.returncode == 69
    assert "may not use lessord's socket" in ended.stderr and "uid 0" in ended.stderr and "Cure:" in ended.stderr


# ---- visible devices ----

def test_only_card_is_left_alone(place):
    shown = place.lessor("run", "--vram", "100M", "--", "sh", "-c", "echo ${CUDA_VISIBLE_DEVICES-unset}")
    assert shown.stdout == "unset\n"


def where(two, n_bytes):
    """UUID of the card on which somebody holds so much."""
    return [d["uuid"] for d in two.card() if any(p["bytes"] == n_bytes for p in d["processes"])]


@pytest.mark.parametrize("how", ["auto", "uuid", "index"])
@pytest.mark.parametrize("nth", [0, 1])
def test_F27_memory_appears_on_the_granted_card(two, nth, how):
    uuid = two.card()[nth]["uuid"]
    run = two.hog("there", "600M", "--device", uuid, "--visible", how)
    lease = two.in_state("there", "active")
    two.holds(600 * MIB)
    assert lease["device"] == uuid
    assert where(two, 600 * MIB) == [uuid]
    until("and is counted there", lambda: two.lease("there")["used_bytes"] == 600 * MIB)
    run.terminate()
    assert run.wait() == 0


def shown_in(two, *options, env=None):
    script = "echo ${CUDA_VISIBLE_DEVICES-unset} ${CUDA_DEVICE_ORDER-unset}"
    return two.lessor("run", "--vram", "100M", *options, "--", "sh", "-c", script, env=env)


def test_visible_ways_say_what_they_promise(two):
    cards = sorted(two.card(), key=lambda card: card["pci"])
    for index, card in enumerate(cards):
        at = ("--device", card["uuid"])
        assert shown_in(two, *at).stdout == f"{card['uuid']} unset\n"
        assert shown_in(two, *at, "--visible", "index").stdout == f"{index} PCI_BUS_ID\n"
        assert shown_in(two, *at, "--visible", "none").stdout == "unset unset\n"


def test_what_the_person_had_set_is_a_constraint(two):
    cards = sorted(two.card(), key=lambda card: card["pci"])
    second = cards[1]["uuid"]
    prefix = second[:12]
    for env in ({"CUDA_VISIBLE_DEVICES": second}, {"CUDA_VISIBLE_DEVICES": prefix},
                {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}):
        run = two.start("run", "--name", "bound", "--vram", "100M", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; read line",
                        env=env, stdin=subprocess.PIPE)
        assert run.stdout.readline() == env["CUDA_VISIBLE_DEVICES"] + "\n"
        assert two.in_state("bound", "active")["device"] == second
        run.communicate("\n")
        two.gone("bound")


@pytest.mark.parametrize("value, order, word", [
    ("1", None, "CUDA_DEVICE_ORDER=PCI_BUS_ID"), ("7", "PCI_BUS_ID", "0 to 1"), ("GPU-nobody", None, "does not know"),
    ("", None, "no card at all"), ("-1", None, "no card at all"), ("GPU-", None, "beginning of 2"), ("1,7", "PCI_BUS_ID", "0 to 1")])
def test_constraint_that_means_nothing_is_told_with_its_cure(two, value, order, word):
    env = {"CUDA_VISIBLE_DEVICES": value}
    if order:
        env["CUDA_DEVICE_ORDER"] = order
    ended = shown_in(two, env=env)
    assert ended.returncode == 125 and ended.stdout == ""
    assert word in ended.stderr and "CUDA_VISIBLE_DEVICES" in ended.stderr


def test_device_outside_the_constraint_is_refused(two):
    first, second = (card["uuid"] for card in two.card())
    assert shown_in(two, "--device", first, env={"CUDA_VISIBLE_DEVICES": second}).returncode == 125
    assert shown_in(two, "--device", first, env={"CUDA_VISIBLE_DEVICES": f"{second},{first}"}).stdout.startswith(first)


# ---- bad input ----

ROWS = ["-1", "0", "9223372036854775808", "18446744073709551616", "1e400", "NaN", "12 G", ""]


@pytest.mark.parametrize("given", ROWS)
@pytest.mark.parametrize("option", ["--vram", "--for", "--priority", "--wait"])
def test_edges_are_refused_with_field_and_cure(place, option, given):
    rest = [] if option == "--vram" else ["--vram", "100M"]
    ended = place.lessor("run", *rest, option, given, "--", "true")
    if (option, given) == ("--wait", "0"):
        assert ended.returncode == 0  # documented: the same as --no-wait
        return
    assert ended.returncode == 125
    assert option in ended.stderr
    assert not given or given in ended.stderr
    assert re.search(r"allowed|write", ended.stderr), ended.stderr


@pytest.mark.parametrize("words, says", [
    (["--priority", "highest"], "urgent"), (["--visible", "all"], "auto"), (["--if-down", "no"], "wait"),
    (["--yield-by", "cooperate,explode"], "explode"), (["--name", ""], "empty"), (["--name", "x" * 64], "63"),
    (["--name", "a\x1b[31m"], "control"), (["--vrma", "1G"], "--vram"), (["--vram"], "needs a value"), (["--managed=yes"], "no value"),
    ([], "which command"), (["--ttl", "60s"], "no option")])
def test_wrong_use_is_125_with_the_cure(place, words, says):
    ended = place.lessor("run", *words, *(["--", "true"] if words not in ([], ["--vram"]) else []))
    assert ended.returncode == 125
    assert says in ended.stderr
    assert "\x1b" not in ended.stderr


# ---- lessord loses its books ----

def lose_books(own):
    own.kill_daemon()
    with open(os.path.join(own.dir, "journal.db"), "r+b") as file:
        file.write(os.urandom(4096))
    for name in ("journal.db-wal", "journal.db-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(own.dir, name))
    own.start_daemon()


@pytest.mark.parametrize("options", [(), ("-q",)], ids=["told", "quiet"])
def test_F75_leases_of_lost_books_are_asked_for_again_over_what_runs(own, options):
    run = own.hog("worker", "700M", *options)
    before = own.in_state("worker", "active")
    pid = own.holds(700 * MIB)
    lose_books(own)
    after = until("its memory is under a lease again", lambda: (x := own.lease("worker")) and x["used_bytes"] == 700 * MIB and x)
    assert after["adopted"] and after["bytes"] == before["bytes"] and after["device"] == before["device"]
    assert own.status()["degraded"] and own.status()["strangers"] == [] and own.holds(700 * MIB) == pid
    if not options:
        read_until(run.stderr, "was lost with lessord's books")
    os.kill(pid, signal.SIGTERM)
    assert run.wait() == 0
    said = run.stderr.read()
    assert "was lost with lessord's books" not in said, said
    own.gone("worker")
    own.free_is(3072 * MIB)
