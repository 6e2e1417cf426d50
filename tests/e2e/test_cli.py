# SPDX-License-Identifier: Apache-2.0
"""The verbs of `lessor`: what they print for people and for programs, their help, their exit codes."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from cli_helpers import LESSOR, LESSORD, MIB, SIMGPU, SOURCE, Place, Terminal, until

VERBS = ["run", "status", "devices", "processes", "queue", "events", "why", "lease", "renice", "extend", "pin", "unpin", "adopt", "unadopt",
         "plan", "park", "thaw", "idle", "busy", "clear", "resume", "book", "enforce", "approve", "approvals", "unapprove", "audit", "costs", "limits", "config", "tenants", "doctor", "rescue", "replay",
         "usage", "journal", "completion", "help", "version"]
PARTS = {"lease": ["acquire", "show", "renew", "release"], "book": ["list", "cancel"], "config": ["check", "show"], "journal": ["verify"], "tenants": ["list", "show", "match", "check"]}
EVERY = [[verb] for verb in VERBS] + [[group, part] for group, parts in PARTS.items() for part in parts]
ASKING = [["status"], ["devices"], ["processes"], ["queue"], ["events"], ["why", "L1"], ["lease", "show", "L1"], ["lease", "renew", "L1"],
          ["lease", "release", "L1"], ["renice", "4", "L1"], ["extend", "L1", "5m"], ["pin", "L1"], ["unpin", "L1"],
          ["adopt", "1"], ["unadopt", "L1"], ["plan", "--vram", "1G"], ["limits"], ["usage"], ["audit"], ["audit", "1"],
          ["park", "L1"], ["thaw", "L1"], ["idle", "L1"], ["busy", "L1"], ["resume"], ["book", "list"], ["book", "cancel", "L1"], ["book", "--in", "1h", "--for", "1h", "--vram", "1G"], ["costs"], ["enforce"], ["enforce", "off"], ["approve", "1"], ["approvals"],
          ["unapprove", "A1"], ["config", "show", "--json"]]


@pytest.fixture(scope="module", name="place")
def fixture_place():
    place = Place()
    yield place
    place.close()


@pytest.fixture(name="own")
def fixture_own():
    place = Place()
    yield place
    place.close()


def plain(*words, env=None):
    """A `lessor` that needs no daemon."""
    return subprocess.run([LESSOR, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                          check=False, env={**os.environ, "LESSOR_SOCKET": "/nowhere/lessor.sock", **(env or {})})


# ---- help ----

def test_bare_lessor_answers_by_task():
    shown = plain()
    assert shown.returncode == 0 and shown.stderr == ""
    assert "I want to" in shown.stdout
    assert re.search(r"→ lessor run --vram", shown.stdout)
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", shown.stdout, re.M), verb
    assert re.findall(r"^  (\w+) ", shown.stdout.split("Verbs (each has --help):")[1].split("\n\n")[0], re.M) == VERBS
    assert plain("help").stdout == plain("--help").stdout == plain("-h").stdout == shown.stdout


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_each_verb_has_help(words):
    shown = plain(*words, "--help")
    assert shown.returncode == 0 and shown.stderr == ""
    assert shown.stdout.startswith(f"lessor {' '.join(words)} - ")
    assert "usage: lessor " + " ".join(words) in shown.stdout
    assert plain("help", *words).stdout == shown.stdout
    assert all(len(line) <= 120 for line in shown.stdout.splitlines())


def test_version_is_printed():
    assert re.fullmatch(r"lessor \d+\.\d+\.\d+\n", plain("version").stdout)
    assert plain("--version").stdout == plain("version").stdout


@pytest.mark.parametrize("typed, meant", [
    ("stats", "status"), ("statsu", "status"), ("rnu", "run"), ("device", "devices"), ("ques", "queue"), ("event", "events"),
    ("renise", "renice"), ("adopr", "adopt"), ("confg", "config"), ("config chek", "config check"), ("lease aquire", "lease acquire"), ("lease realease", "lease release"), ("versoin", "version")])
def test_mistyped_verb_suggests_the_nearest(typed, meant):
    shown = plain(*typed.split())
    assert shown.returncode == 2
    assert f"Did you mean `lessor {meant}`?" in shown.stderr
    assert shown.stdout == ""


def test_word_that_is_like_nothing_suggests_nothing():
    shown = plain("xyzzyplugh")
    assert shown.returncode == 2 and "Did you mean" not in shown.stderr
    assert "\x1b" not in plain("\x1b[31mred").stderr


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_unknown_option_is_wrong_use(words):
    shown = plain(*words, "--jsno")
    if words[0] in PARTS and len(words) == 1:
        assert shown.returncode == 2
        return
    assert shown.returncode == (125 if words == ["run"] else 2)
    assert "--jsno" in shown.stderr
    if "--json" in plain(*words, "--help").stdout:
        assert "did you mean --json" in shown.stderr


@pytest.mark.parametrize("words", [["why"], ["why", "17x"], ["why", "L1", "L2"], ["why", ""], ["lease", "show", "-5"],
                                   ["lease", "release", "L18446744073709551616"], ["status", "now"], ["events", "--lease", "x"],
                                   ["events", "--after", "-1"], ["lease"], ["lease", "acquire"], ["version", "x"],
                                   ["renice", "L1"], ["renice", "7", "L1"], ["renice", "4", "L1", "L2"], ["renice", "4", "x"],
                                   ["extend", "L1"], ["extend", "L1", "0s"], ["extend", "L1", "soon"], ["pin"],
                                   ["pin", "L1", "--for", "0"], ["unpin", "L1", "L2"], ["park"], ["park", "L1", "L2"], ["park", "L1", "--for", "0"],
                                   ["park", "L1", "--rehearse", "--for", "1h"], ["thaw"], ["thaw", "x"], ["idle", "L1", "--keep-alive", "x"],
                                   ["clear", "16G"], ["clear", "--for", "2d"], ["clear", "--vram", "x"], ["resume", "x"], ["resume", "L1", "L2"], ["enforce", "maybe"], ["approve"], ["approve", "x"], ["approve", "1", "--for", "soon"], ["unapprove"], ["unapprove", "3"],
                                   ["adopt"], ["adopt", "x"],
                                   ["adopt", "1", "--unit", "u"], ["adopt", "1", "2"], ["adopt", "0"], ["unadopt"],
                                   ["plan", "--vram", "12 G"], ["limits", "alice"], ["config"], ["config", "check", "a", "b"],
                                   ["status", "--watch=0"], ["status", "--watch=x"], ["status", "--watch", "2h"], ["replay", "a", "b"],
                                   ["replay", "--since", "soon"], ["replay", "--since", "2026-02-30"], ["replay", "--since", "0"],
                                   ["replay", "--limit", "-1"], ["replay", "--with"], ["why", "P0"], ["why", "X1"], ["usage", "now"],
                                   ["usage", "--by", "tenant"], ["usage", "--csv", "--json"], ["audit", "x"], ["audit", "0"], ["audit", "P"], ["audit", "1", "2"], ["audit", "--all", "1"], ["usage", "--since", "17"], ["journal"],
                                   ["journal", "verify", "a", "b"]], ids=" ".join)
def test_wrong_use_is_2_and_says_what_is_right(words):
    shown = plain(*words)
    assert shown.returncode == 2 and shown.stdout == "" and len(shown.stderr) > 20


def help_options(words):
    return set(re.findall(r"^  --([a-z-]+)", plain(*words, "--help").stdout, re.M))


def page_options(page, section=None):
    with open(os.path.join(SOURCE, "man", page), encoding="utf-8") as file:
        text = file.read()
    if section:
        text = re.split(rf"^# {section}$", text, flags=re.M)[1].split("\n# ")[0]
    return set(re.findall(r"^\*--([a-z-]+)\*", text, re.M)) - {"help"}


PAGES = {"run": "OPTIONS", "lease acquire": "OPTIONS OF ACQUIRE", "status": "OPTIONS", "adopt": "OPTIONS", "plan": "OPTIONS",
         "park": "OPTIONS", "book": "OPTIONS", "config show": "OPTIONS", "doctor": "OPTIONS", "rescue": "OPTIONS", "replay": "OPTIONS", "why": "OPTIONS", "usage": "OPTIONS", "audit": "OPTIONS",
         "journal verify": "OPTIONS", "tenants match": "OPTIONS"}


def test_man_pages_and_help_name_the_same_options():
    for name, section in PAGES.items():
        assert page_options(f"lessor-{name.split()[0]}.1.scd", section) == help_options(name.split()) - {"help"}, name
    with open(os.path.join(SOURCE, "man", "lessor.1.scd"), encoding="utf-8") as file:
        page = file.read()
    for verb in VERBS:
        heading = re.search(rf"^\*{verb}\*(.*)$", page, re.M)
        assert heading, verb
        own_page = os.path.exists(os.path.join(SOURCE, "man", f"lessor-{verb}.1.scd"))
        assert own_page == (f"*lessor-{verb}*(1)" in page.split("# SEE ALSO")[1]), f"{verb} and its own page"
        if not own_page:
            assert set(re.findall(r"--([a-z-]+)", heading[1])) == help_options([verb]) - {"help"}, verb
    for group, parts in PARTS.items():
        with open(os.path.join(SOURCE, "man", f"lessor-{group}.1.scd"), encoding="utf-8") as file:
            synopsis = file.read().split("# SYNOPSIS")[1].split("\n# ")[0]
        assert re.findall(rf"^\*lessor {group} (\w+)\*", synopsis, re.M) == parts


def test_lessords_pages_name_its_options_and_keys():
    shown = subprocess.run([LESSORD, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    options, _, keys = shown.partition("Keys of")
    with open(os.path.join(SOURCE, "man", "lessord.8.scd"), encoding="utf-8") as file:
        page = file.read().split("# OPTIONS")[1].split("\n# ")[0]
    assert set(re.findall(r"--[a-z-]+", options.split("\n\n")[0] + options.split("\n\n")[2])) <= set(re.findall(r"--[a-z-]+", page))
    with open(os.path.join(SOURCE, "man", "lessord.conf.5.scd"), encoding="utf-8") as file:
        page = file.read().split("\n# SECTIONS\n")[0]  # whose keys are theirs alone
    assert re.findall(r"^  (\w+) ", keys, re.M) == re.findall(r"^\*(\w+)\* = ", page, re.M)


def test_man_pages_name_the_exit_codes():
    for name in PAGES:
        with open(os.path.join(SOURCE, "man", f"lessor-{name.split()[0]}.1.scd"), encoding="utf-8") as file:
            text = file.read().split("# EXIT STATUS")[1].split("\n# ")[0]
        said = plain(*name.split(), "--help").stdout.split("Exit status:")[1]
        assert "69" in said or name in ("doctor", "rescue", "replay", "journal verify", "tenants match"), name
        for code in re.findall(r"\b(?:69|78|12[4-7])\b", said):
            assert re.search(rf"\b{code}$", text, re.M), (name, code)


@pytest.mark.parametrize("words", [w for w in EVERY if w[0] not in ("help", "version")], ids=" ".join)
def test_help_has_an_example_and_the_exit_codes(words):
    shown = plain(*words, "--help").stdout
    assert re.search(rf"^  (?:sudo |id=\$\()?lessor {words[0]}\b", shown, re.M)
    assert "Exit status:" in shown or words[0] in PARTS and len(words) == 1


# ---- lessord is away ----

@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_away_is_69_with_socket_and_cure(words):
    shown = plain(*words)
    assert shown.returncode == 69 and shown.stdout == ""
    assert "/nowhere/lessor.sock" in shown.stderr and "Cure: `sudo systemctl start lessord`" in shown.stderr


def test_socket_that_nobody_listens_on_is_told_apart(tmp_path):
    path = tmp_path / "dead.sock"
    subprocess.run([sys.executable, "-c", "import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])", path], check=True)
    assert "nobody listens on it" in plain("status", env={"LESSOR_SOCKET": str(path)}).stderr


def test_socket_path_that_is_too_long_is_told():
    shown = plain("status", env={"LESSOR_SOCKET": "/" + "x" * 120})
    assert shown.returncode == 69 and "107" in shown.stderr


ANSWERS_NONSENSE = """
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print("ready", flush=True)
while True:
    peer, _ = server.accept()
    peer.recv(65536)
    peer.sendall(sys.argv[2].encode().decode("unicode_escape").encode("latin-1"))
    peer.close()
"""


@pytest.mark.parametrize("answer", [
    "SSH-2.0-OpenSSH\\r\\n", "HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\n{}", "HTTP/1.1 200 OK\\r\\nContent-Length: 99999999999\\r\\n\\r\\n",
    "HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nzz\\r\\n", "HTTP/1.1 200 OK\\r\\nContent-Length: 3\\r\\n\\r\\n<a>", "\\0\\0\\0", ""])
def test_whoever_else_listens_there_is_not_believed(tmp_path, answer):
    path = tmp_path / "odd.sock"
    with subprocess.Popen([sys.executable, "-c", ANSWERS_NONSENSE, path, answer], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline() == "ready\n"
        shown = plain("status", "--json", env={"LESSOR_SOCKET": str(path)})
        server.kill()
    assert shown.returncode == 69 and shown.stdout == "" and "Cure:" in shown.stderr


# ---- what programs read ----

DEVICE_KEYS = {"uuid", "total_bytes", "used_bytes", "reserved_bytes", "committed_bytes", "free_bytes", "display_bytes",
               "unattributed_bytes", "reading_age_ms"}


def test_devices_json_is_a_list_with_the_promised_fields(place):
    devices = json.loads(place.lessor("devices", "--json").stdout)
    assert isinstance(devices, list) and len(devices) == 1
    assert DEVICE_KEYS <= set(devices[0])
    assert devices[0]["uuid"] == place.card()[0]["uuid"] and devices[0]["total_bytes"] == 3072 * MIB
    assert devices[0]["used_bytes"] == 0 and devices[0]["free_bytes"] == 3072 * MIB


def test_status_json_has_devices_leases_and_queue(own):
    own.hog("holder", "2500M", "--for", "1h")
    own.in_state("holder", "active")
    own.start("run", "--name", "late", "--vram", "1500M", "--", "true")
    own.in_state("late", "queued")
    status = own.status()
    assert {"devices", "leases", "queue", "strangers"} <= set(status)
    for lease in status["leases"]:
        assert {"id", "consumer", "state", "priority", "bytes", "why"} <= set(lease)
    entry = json.loads(own.lessor("queue", "--json").stdout)
    assert [e["lease"] for e in entry] == [own.lease("late")["id"]] == [e["lease"] for e in status["queue"]]
    assert own.lease("holder")["consumer"] == "simgpu"


def test_consumer_is_the_script_not_the_interpreter(place, tmp_path):
    (tmp_path / "train.py").write_text("input()\n")
    run = place.start("run", "--name", "named", "--vram", "100M", "--", sys.executable, "-u", f"{tmp_path}/train.py", stdin=subprocess.PIPE)
    assert place.in_state("named", "active")["consumer"] == "train.py"
    run.communicate("\n")
    assert run.returncode == 0


def test_why_tells_the_story_also_of_what_ended(own):
    assert own.lessor("run", "--name", "short", "--vram", "100M", "--", "true").returncode == 0
    refused = own.lessor("run", "--vram", "9G", "--", "true")
    assert refused.returncode == 125
    until("it is over", lambda: not own.leases())
    story = json.loads(own.lessor("why", "--json", "L1").stdout)
    assert story["events"] and story["text"]
    shown = own.lessor("why", "1")
    assert shown.returncode == 0 and "in the end:" in shown.stdout and "granted" in shown.stdout
    unknown = own.lessor("why", "L999")
    assert unknown.returncode == 1 and "L999" in unknown.stderr


# ---- what people read ----

def test_status_shows_bar_leases_queue_and_strangers(own):
    own.hog("holder", "1500M", "--for", "1h")
    own.in_state("holder", "active")
    own.start("run", "--name", "late", "--vram", "2500M", "--", "true")
    own.in_state("late", "queued")
    stranger = subprocess.Popen([SIMGPU, "hog", "--alloc", "300M"], env=own.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    own.started.append(stranger)
    until("the stranger is seen", own.strangers)
    shown = own.lessor("status").stdout
    assert re.search(r"\[#+=*\.*\]", shown)
    assert "holder" in shown and "1. L2" in shown and "late" in shown
    assert re.search(rf"pid {stranger.pid} .*simgpu.*300 MiB", shown)
    assert "\x1b" not in shown


def test_name_of_a_stranger_cannot_speak_to_the_terminal(own, tmp_path):
    odd = tmp_path / "\x1b[31mevil\n"
    odd.symlink_to(SIMGPU)
    stranger = subprocess.Popen([SIMGPU, "run", "--", str(odd), "hog", "--alloc", "300M"], env=own.env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    own.started.append(stranger)
    seen = until("it is seen", own.strangers)
    assert "evil" in seen[0]["comm"], "the name arrived, whatever it looks like"
    for words in (["status"], ["devices"], ["events"], ["status", "--json"], ["events", "--json"]):
        shown = own.lessor(*words).stdout
        assert "\x1b" not in shown and "evil\n" not in shown, words


def on_terminal(place, *words, **env):
    terminal = Terminal([LESSOR, *words], {**place.env, "TERM": "xterm", **env})
    try:
        code = terminal.wait()
        return code, terminal.all
    finally:
        terminal.close()


def test_colour_is_for_terminals_only_and_not_against_the_persons_will(place):
    assert "\x1b[" in on_terminal(place, "status")[1]
    assert "\x1b" not in on_terminal(place, "status", NO_COLOR="1")[1]
    assert "\x1b" not in on_terminal(place, "status", TERM="dumb")[1]
    assert "\x1b" not in place.lessor("status").stdout


def test_banner_says_that_the_driver_is_silent(own):
    subprocess.run([SIMGPU, "fault", "nvml-hang"], env=own.env, check=True)
    until("it is noticed", lambda: own.status()["gpu"] == "stale")
    assert "the driver does not answer" in own.lessor("status").stdout
    subprocess.run([SIMGPU, "fault", "clear"], env=own.env, check=True)
    until("it is back", lambda: own.status()["gpu"] == "ok")
    assert "the driver does not answer" not in own.lessor("status").stdout


# ---- events ----

def test_events_are_json_lines_in_order_and_follow_goes_on_over_a_restart(own):
    follower = own.start("events", "--follow", "--json")
    assert own.lessor("run", "--name", "one", "--vram", "100M", "--", "true").returncode == 0
    seen = []

    def read_to(kind, lease):
        for line in follower.stdout:
            seen.append(json.loads(line))
            if seen[-1]["kind"] == kind and seen[-1]["lease"] == lease:
                return
        raise AssertionError(f"ended without {kind} of {lease}: {follower.stderr.read()}")
    read_to("ended", "L1")
    own.kill_daemon()
    own.start_daemon()
    assert own.lessor("run", "--name", "two", "--vram", "100M", "--", "true").returncode == 0
    read_to("ended", "L2")
    ids = [event["id"] for event in seen]
    assert ids == sorted(set(ids))
    listed = [json.loads(line) for line in own.lessor("events", "--json").stdout.splitlines()]
    assert [event["id"] for event in listed][:len(ids)] == ids
    only = [json.loads(line) for line in own.lessor("events", "--lease", "L1", "--json").stdout.splitlines()]
    assert only and {event["lease"] for event in only} == {"L1"}
    assert [e["id"] for e in only] == [e["id"] for e in listed if e["lease"] == "L1"]
    follower.send_signal(signal.SIGINT)
    assert follower.wait() == -signal.SIGINT


def test_events_into_a_reader_that_leaves_end_quietly(place):
    shown = subprocess.run(["sh", "-c", f'"{LESSOR}" events --follow | head -n 1'], env=place.env, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, check=True, timeout=60)
    assert shown.stdout.count("\n") == 1 and shown.stderr == ""


# ---- lease … for scripts ----

def script(place, text, **options):
    return subprocess.Popen(["sh", "-c", text], env=place.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.parametrize("acquire", ["lessor lease acquire --vram 500M --name scripted",
                                     "lessor lease acquire --vram 500M --name scripted --pid $$ | cat"])
def test_lease_of_a_script_ends_with_the_script(place, acquire):
    shell = script(place, f"id=$({acquire}); echo $id; read -r line; exit 3")
    lease_id = shell.stdout.readline().strip()
    lease = place.in_state("scripted", "active")
    assert lease["id"] == lease_id and lease["binding"]["pid"] == shell.pid
    shell.communicate("\n")
    assert shell.returncode == 3
    place.gone("scripted")


def test_use_below_the_script_counts_under_its_lease(place):
    shell = script(place, f'id=$(lessor lease acquire --vram 500M --name scripted --pid $$); "{SIMGPU}" hog --alloc 500M; true')
    until("its use is counted", lambda: (place.lease("scripted") or {}).get("used_bytes") == 500 * MIB)
    assert not place.status()["strangers"]
    os.kill(place.holds(500 * MIB), signal.SIGTERM)
    assert shell.wait() == 0
    shell.communicate()
    place.gone("scripted")


def test_release_gives_back_and_a_second_one_says_how_it_ended(place):
    shell = script(place, "lessor lease acquire --vram 500M --name given --pid $$; read -r line")
    lease_id = shell.stdout.readline().strip()
    assert place.lessor("lease", "release", lease_id).returncode == 0
    place.gone("given")
    again = place.lessor("lease", "release", lease_id)
    assert again.returncode == 1 and lease_id in again.stderr
    gone = place.lessor("lease", "show", lease_id)
    assert gone.returncode == 1 and lease_id in gone.stderr
    shell.communicate("\n")


def test_lease_with_ttl_lives_by_its_heartbeat(place):
    lease_id = place.lessor("lease", "acquire", "--vram", "500M", "--name", "beating", "--ttl", "1h").stdout.strip()
    shown = json.loads(place.lessor("lease", "show", "--json", lease_id).stdout)
    assert shown["binding"]["to"] == "heartbeat" and shown["binding"]["ttl_ms"] == 3600000 and shown["state"] == "active"
    assert place.lessor("lease", "renew", lease_id).returncode == 0
    assert "500 MiB" in place.lessor("lease", "show", lease_id).stdout
    assert place.lessor("lease", "release", lease_id).returncode == 0


def test_lease_with_ttl_ends_when_nobody_renews_it(place):
    shown = place.lessor("lease", "acquire", "--vram", "500M", "--name", "brief", "--ttl", "1s", "--json")
    assert json.loads(shown.stdout)["name"] == "brief"
    place.gone("brief")


def test_acquire_waits_and_its_death_gives_up_the_place(own):
    holder = own.hog("holder", "3000M")
    own.in_state("holder", "active")
    for number in (signal.SIGINT, signal.SIGKILL):
        waiting = own.start("lease", "acquire", "--vram", "2000M", "--name", "patient")
        own.in_state("patient", "queued")
        waiting.send_signal(number)
        assert waiting.wait() == -number
        own.gone("patient")
    waiting = own.start("lease", "acquire", "--vram", "2000M", "--name", "patient")
    own.in_state("patient", "queued")
    holder.terminate()
    assert waiting.wait() == 0
    assert own.in_state("patient", "active")["id"] == waiting.stdout.read().strip()


@pytest.mark.parametrize("words, said", [
    (["--gpus", "9"], "--gpus"), (["--gpus", "0"], "--gpus"), (["--consumer", ""], "--consumer is empty"),
    (["--consumer", "x" * 64], "64 bytes"), (["--consumer", "a\x1bb"], "control characters")])
def test_what_cannot_be_asked_for_is_said_before_anybody_is_asked(words, said):
    for verb, code in ((["run"], 125), (["lease", "acquire", "--vram", "1G"], 2)):
        shown = plain(*verb, *words, *(["--", "true"] if verb == ["run"] else []))
        assert shown.returncode == code and said in shown.stderr, shown.stderr


def test_consumer_can_be_named(place):
    shown = place.lessor("lease", "acquire", "--vram", "100M", "--consumer", "nightly", "--ttl", "1h", "--json")
    lease = json.loads(shown.stdout)
    assert lease["consumer"] == "nightly"
    assert place.lessor("lease", "release", lease["id"]).returncode == 0


def test_acquire_exit_codes(own):
    own.hog("holder", "3000M")
    own.in_state("holder", "active")
    assert own.lessor("lease", "acquire", "--vram", "2000M", "--no-wait").returncode == 124
    assert own.lessor("lease", "acquire", "--vram", "2000M", "--wait", "200ms").returncode == 124
    assert own.lessor("lease", "acquire", "--vram", "9G").returncode == 1
    assert own.lessor("lease", "acquire", "--vram", "12 G").returncode == 2
    assert own.lessor("lease", "acquire", "--vram", "1G", "--pid", "1", "--ttl", "5s").returncode == 2
    assert own.lessor("lease", "acquire", "--vram", "1G", "--ttl", "500ms").returncode == 2
    assert own.lessor("lease", "acquire", "--vram", "1G", "--if-down", "fail",
                      env={"LESSOR_SOCKET": "/nowhere/s"}).returncode == 69
    assert [lease["name"] for lease in own.leases()] == ["holder"]
