# SPDX-License-Identifier: Apache-2.0
"""`lessor run` when the memory of its command is wanted: ended and started again, told by a signal or a hook, and parked by others."""

import contextlib
import http.server
import os
import signal
import subprocess
import sys
import threading

import pytest

from cli_helpers import LESSOR, Terminal, all_pids, is_alive, parent_of, until
from scripted_lessord import Desk

PYTHON = sys.executable

# Says who and where it is, then waits; ended, it leaves with its number of runs. Each run is a line of the file in $RUNS.
WORKER = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT})
with open(os.environ["RUNS"], "a+") as file:
    file.write("run\\n")
    file.seek(0)
    n = len(file.readlines())
mode = os.environ.get("MODE", "")
print(f"run {n} pid {os.getpid()} in {os.getcwd()} lease {os.environ['LESSOR_LEASE']} word {os.environ.get('WORD')} "
      f"args {sys.argv[1:]} tty {os.isatty(0)} umask {os.umask(0o77):o}", flush=True)
if mode == "finish" and n > 1:
    sys.exit(40 + n)
while True:
    number = signal.sigwaitinfo({signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT}).si_signo
    print("got", number, flush=True)
    if mode == "saves" and number == signal.SIGUSR1:
        print("saved", flush=True)
        sys.exit(n)
    if number == signal.SIGTERM and mode not in ("stubborn", "saves"):
        sys.exit(n)
"""


@pytest.fixture(name="desk")
def fixture_desk():
    desk = Desk()
    yield desk
    desk.close()


class Run:
    """`lessor run … WORKER`, and what both say."""

    def __init__(self, desk, *options, mode="", words=(PYTHON, "-c", WORKER, "one", "two"), **env):
        self.runs = os.path.join(desk.dir, "runs")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("LESSOR_", "CUDA_"))}
        self.env.update(LESSOR_SOCKET=desk.socket, RUNS=self.runs, MODE=mode, WORD="of mine", **env)
        self.process = subprocess.Popen([LESSOR, "run", "--vram", "1M", *options, "--", *words], env=self.env, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=desk.dir)
        desk.wait_said("activate")

    def line(self):
        return self.process.stdout.readline().strip()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        for _ in range(60):  # what it started holds our pipes; one that is in the middle of its exec shows no environment
            self.kill_what_it_started()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.communicate(timeout=1)
                return
        raise AssertionError("somebody still holds its pipes")

    def kill_what_it_started(self):
        for pid in all_pids():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
                if f"LESSOR_SOCKET={self.env['LESSOR_SOCKET']}".encode() in file.read().split(b"\0"):
                    os.kill(pid, signal.SIGKILL)


@pytest.fixture(name="run")
def fixture_run(desk):
    made = []

    def make(*options, **how):
        made.append(Run(desk, *options, **how))
        return made[-1]
    yield make
    for one in made:
        with contextlib.suppress(ValueError):
            one.close()


def pid_in(line):
    return int(line.split()[3])


# ---- restart ----

def test_command_that_gives_way_by_restart_comes_back_as_it_was(desk, run):
    one = run("--yield-by", "restart", mode="finish")
    first = one.line()
    desk.asks("restart")
    desk.wait_said("yielded")
    assert not is_alive(pid_in(first))
    assert one.line() == "got 15"
    desk.parks("restart")
    assert desk.n_said("activate") == 1 and desk.n_said("release") == 0
    desk.thaws("restart")
    told = desk.wait_said("activate", 2)
    second = one.line()
    assert second.split()[4:] == first.split()[4:], "folder, environment, arguments and mask are those of the first run"
    assert told["pid"] == pid_in(second) != pid_in(first)
    out, err = one.process.communicate(timeout=60)
    assert one.process.returncode == 42, "the exit status is that of the last run"
    assert desk.n_said("release") == 1
    assert "L1 gives way for L7 (alice, interactive)" in err
    assert "L1 is parked for L7 (alice, interactive); expected back in about 4 min" in err
    assert "L1 is back at work" in err
    assert out == ""


def test_F15_command_that_ignores_sigterm_is_killed_in_time(desk, run):
    one = run("--yield-by", "restart", mode="stubborn")
    first = one.line()
    desk.asks("restart", deadline_ms=400)
    desk.wait_said("yielded")
    assert not is_alive(pid_in(first))
    desk.thaws("restart")
    desk.wait_said("activate", 2)
    said = one.line()
    if said == "got 15":  # it had time to say so
        said = one.line()
    assert said.startswith("run 2 ")


def test_F15_command_that_ends_within_its_time_is_not_killed(desk, run):
    one = run("--yield-by", "restart", mode="saves")
    first = one.line()
    desk.asks("restart")
    assert one.line() == "got 15"
    assert desk.n_said("yielded") == 0, "it is saving its work"
    os.kill(pid_in(first), signal.SIGUSR1)
    assert one.line() == f"got {int(signal.SIGUSR1)}"
    assert one.line() == "saved"
    desk.wait_said("yielded")


def test_what_the_command_started_is_ended_with_it(desk, run):
    script = f"{PYTHON} -c 'import signal, time; signal.signal(15, signal.SIG_IGN); print(\"up\", flush=True); time.sleep(600)' & echo $!; wait"
    one = run("--yield-by", "restart", words=("sh", "-c", script))
    worker = int(next(line for line in (one.line(), one.line()) if line != "up"))
    until("the worker lives", lambda: is_alive(worker))
    desk.asks("restart", deadline_ms=2000)
    desk.wait_said("yielded")
    assert not is_alive(worker)


def test_memory_that_is_not_wanted_any_more_brings_the_command_back_at_once(desk, run):
    one = run("--yield-by", "restart")
    one.line()
    desk.asks("restart")
    desk.wait_said("yielded")
    desk.become("active")
    desk.wait_said("activate", 2)
    assert one.line() == "got 15"
    assert one.line().startswith("run 2 ")


def test_lease_that_ends_while_its_command_is_away_is_the_end(desk, run):
    one = run("--yield-by", "restart")
    one.line()
    desk.asks("restart")
    desk.wait_said("yielded")
    desk.parks("restart")
    desk.become("ended")
    _, err = one.process.communicate(timeout=60)
    assert one.process.returncode == 125
    assert "the command is not started again" in err


def test_books_begun_anew_while_the_command_is_away_are_asked_again(desk, run):
    one = run("--yield-by", "restart")
    one.line()
    desk.asks("restart")
    desk.wait_said("yielded")
    with desk.changed:
        desk.lease["id"] = "L99"  # somebody else's
        desk._become("active")
    desk.wait_said("ask", 2)
    desk.wait_said("activate", 2)
    assert one.line() == "got 15"
    assert " lease L2 " in one.line()


def test_signal_that_ends_the_command_while_it_is_asked_is_for_good(desk, run):
    one = run("--yield-by", "restart", mode="stubborn")
    first = one.line()
    desk.asks("restart")
    assert one.line() == "got 15"
    one.process.send_signal(signal.SIGTERM)
    assert one.line() == "got 15"
    os.kill(pid_in(first), signal.SIGKILL)
    one.process.wait(timeout=60)
    assert one.process.returncode == -signal.SIGKILL
    assert desk.n_said("activate") == 1


def test_sigterm_while_the_command_is_away_ends_both(desk, run):
    one = run("--yield-by", "restart")
    one.line()
    desk.asks("restart")
    desk.wait_said("yielded")
    desk.parks("restart")
    one.process.send_signal(signal.SIGTERM)
    one.process.wait(timeout=60)
    assert one.process.returncode == -signal.SIGTERM
    assert desk.n_said("release") == 1


def on_terminal(desk, *words):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("LESSOR_", "CUDA_"))}
    env.update(LESSOR_SOCKET=desk.socket, RUNS=os.path.join(desk.dir, "runs"))
    return Terminal([LESSOR, "run", "--vram", "1M", "--yield-by", "restart", "--", *words], env)


def test_first_ctrl_c_while_away_explains_and_the_second_ends(desk):
    terminal = on_terminal(desk, PYTHON, "-c", WORKER)
    try:
        terminal.expect("run 1 ")
        desk.asks("restart")
        desk.wait_said("yielded")
        desk.parks("restart")
        terminal.expect(r"is parked for L7")
        terminal.send("\x03")
        terminal.expect(r"the same again ends it for good")
        assert desk.n_said("release") == 0
        terminal.send("\x03")
        assert terminal.wait() == -signal.SIGINT
        assert desk.n_said("release") == 1
    finally:
        terminal.close()


def test_terminal_is_as_it_was_when_the_command_is_started_again(desk):
    script = "stty -a | grep -q -- '-icanon' && echo broken || echo good; stty -icanon; exec sleep 600"
    terminal = on_terminal(desk, "sh", "-c", script)
    try:
        terminal.expect("good")
        until("the command is at work", lambda: os.popen(f"stty -a -F {os.ttyname(terminal.fd)} 2>/dev/null"))
        desk.asks("restart")
        desk.wait_said("yielded")
        desk.thaws("restart")
        terminal.expect("good")
    finally:
        terminal.close()


def test_command_that_led_a_group_of_its_own_leaves_the_terminal_to_lessor(desk):
    """An interactive shell takes the terminal; ended for others, it cannot give it back."""
    terminal = on_terminal(desk, PYTHON, "-c", "import os, signal; os.setpgid(0, 0); signal.signal(22, signal.SIG_IGN); "
                           "os.tcsetpgrp(0, os.getpgrp()); print('leads', flush=True); signal.pause()")
    try:
        terminal.expect("leads")
        desk.asks("restart")
        desk.wait_said("yielded")
        desk.parks("restart")
        terminal.expect("is parked for L7")
        terminal.send("\x03")
        terminal.expect("the same again ends it for good")
    finally:
        terminal.close()


def test_ctrl_c_while_parked_by_a_checkpoint_explains_and_then_asks_for_it_back(desk):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("LESSOR_", "CUDA_"))}
    env.update(LESSOR_SOCKET=desk.socket, RUNS=os.path.join(desk.dir, "runs"))
    terminal = Terminal([LESSOR, "run", "--vram", "1M", "--yield-by", "checkpoint", "--", PYTHON, "-c", WORKER], env)
    try:
        pid = int(terminal.expect(r"run 1 pid (\d+) ")[1])
        desk.asks("checkpoint")
        os.kill(pid, signal.SIGSTOP)
        desk.parks("checkpoint")
        terminal.expect("is parked for L7")
        terminal.send("\x03")
        terminal.expect("the same again asks for that now")
        terminal.send("\x03")
        desk.wait_said("thaw")
        desk.thaws("checkpoint")
        os.kill(pid, signal.SIGCONT)
        assert terminal.wait() == -signal.SIGINT
    finally:
        terminal.close()


# ---- cooperate ----

def test_command_is_told_by_a_signal_and_by_another_when_it_is_over(desk, run):
    one = run("--yield-by", "cooperate", "--yield-signal", "USR1:SIGUSR2")
    one.line()
    desk.asks("cooperate")
    assert one.line() == f"got {int(signal.SIGUSR1)}"
    desk.wait_said("yielded")  # a signal is no answer: it only means that the device is watched from now on
    desk.parks("cooperate")
    desk.thaws("cooperate")
    assert one.line() == f"got {int(signal.SIGUSR2)}"
    desk.wait_said("activate", 2)


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.seen.append((self.path, self.rfile.read(int(self.headers["Content-Length"])).decode()))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(name="hook")
def fixture_hook():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.seen, server.status = [], 204
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_hook_that_answers_has_given_way(desk, run, hook):
    one = run("--yield-by", "cooperate", "--yield-hook", f"http://127.0.0.1:{hook.server_address[1]}/yield?x=1")
    one.line()
    desk.asks("cooperate")
    desk.wait_said("yielded")
    path, body = hook.seen[0]
    assert path == "/yield?x=1" and '"lease":"L1"' in body and '"state":"asking"' in body and '"for":"L7"' in body
    desk.parks("cooperate")
    desk.thaws("cooperate")
    desk.wait_said("activate", 2)
    assert '"state":"thawing"' in hook.seen[1][1]


def test_hook_that_refuses_has_not_given_way(desk, run, hook):
    hook.status = 500
    one = run("--yield-by", "cooperate,restart", "--yield-hook", f"http://localhost:{hook.server_address[1]}")
    one.line()
    desk.asks("cooperate")
    until("the hook was asked", lambda: hook.seen)
    assert hook.seen[0][0] == "/"
    desk.asks("restart")
    desk.wait_said("yielded")
    assert one.line() == "got 15", "it went by the next way out"
    desk.wait_said("yielded", 1)
    assert desk.n_said("yielded") == 1
    one.process.kill()
    assert "its hook did not give way: the answer was 500" in one.process.stderr.read()


def test_hook_that_is_not_there_is_said(desk, run):
    one = run("--yield-by", "cooperate", "--yield-hook", f"unix:{desk.dir}/nobody")
    one.line()
    desk.asks("cooperate")
    assert "its hook could not be asked" in one.process.stderr.readline()
    assert desk.n_said("yielded") == 0


@pytest.mark.parametrize("words", [("--yield-hook", "https://127.0.0.1/x"), ("--yield-hook", "http://10.0.0.1/x"),
                                   ("--yield-hook", "http://127.0.0.1.evil.example/"), ("--yield-hook", "file:///etc/passwd"),
                                   ("--yield-hook", "http://localhost:0/"), ("--yield-hook", "http://localhost/a b"),
                                   ("--yield-hook", "unix:relative"), ("--yield-signal", "KILL"), ("--yield-signal", "USR3"),
                                   ("--yield-signal", "USR1:"), ("--filler", "--priority", "2")])
def test_yield_option_that_cannot_be_is_refused_before_anything_is_asked(desk, words):
    env = {**os.environ, "LESSOR_SOCKET": desk.socket}
    done = subprocess.run([LESSOR, "run", "--vram", "1M", "--yield-by", "cooperate", *words, "--", "true"], env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 125 and words[0] in done.stderr, done.stderr
    assert desk.n_said("ask") == 0


def test_hook_without_cooperate_is_refused(desk):
    env = {**os.environ, "LESSOR_SOCKET": desk.socket}
    done = subprocess.run([LESSOR, "run", "--vram", "1M", "--yield-signal", "USR1", "--", "true"], env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 125 and "--yield-by cooperate" in done.stderr


def test_filler_asks_as_one(desk, run):
    run("--filler", "--no-stop")
    asked = desk.wait_said("ask")
    assert asked["filler"] is True and asked["no_stop"] is True


# ---- parked by the hands ----

def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_command_that_is_stopped_to_be_parked_does_not_stop_lessor(desk, run):
    one = run("--yield-by", "checkpoint")
    pid = pid_in(one.line())
    desk.asks("checkpoint")
    os.kill(pid, signal.SIGSTOP)
    until("the command is stopped", lambda: state_of(pid) == "T")
    desk.parks("checkpoint")
    assert "L1 is parked for L7" in one.process.stderr.readline()
    assert state_of(one.process.pid) != "T" and state_of(pid) == "T"
    desk.thaws("checkpoint")
    os.kill(pid, signal.SIGCONT)
    desk.become("active")
    assert "L1 is back at work" in one.process.stderr.readline()
    assert one.line() == f"got {int(signal.SIGCONT)}"
    assert desk.n_said("yielded") == 0 and desk.n_said("activate") == 1


def test_command_that_a_person_stops_stops_lessor_as_ever(desk, run):
    one = run("--yield-by", "checkpoint")
    pid = pid_in(one.line())
    os.kill(pid, signal.SIGSTOP)
    until("lessor is stopped as well", lambda: state_of(one.process.pid) == "T")
    one.process.send_signal(signal.SIGCONT)
    until("both go on", lambda: state_of(pid) != "T" and state_of(one.process.pid) != "T")


def test_sigint_while_parked_explains_first_and_then_asks_for_it_back(desk, run):
    one = run("--yield-by", "checkpoint")
    pid = pid_in(one.line())
    desk.asks("checkpoint")
    os.kill(pid, signal.SIGSTOP)
    desk.parks("checkpoint")
    assert "L1 is parked for L7" in one.process.stderr.readline()
    one.process.send_signal(signal.SIGINT)
    assert "L1 is parked for L7" in one.process.stderr.readline()
    assert "the same again asks for that now" in one.process.stderr.readline()
    assert desk.n_said("thaw") == 0
    one.process.send_signal(signal.SIGINT)
    desk.wait_said("thaw")
    assert parent_of(pid) == one.process.pid
    desk.thaws("checkpoint")
    os.kill(pid, signal.SIGCONT)
    one.process.wait(timeout=60)
    assert one.process.returncode != 0
