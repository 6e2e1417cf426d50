# SPDX-License-Identifier: Apache-2.0
"""The verbs that change, adopt, plan and look, as a person types them: on a real lessord and a simulated card."""

import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from cli_helpers import LESSOR, LESSORD, MIB, PATIENCE_S, SIMGPU, Place, Terminal, until

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")


@pytest.fixture(name="own")
def fixture_own():
    place = Place()
    yield place
    place.close()


@pytest.fixture(scope="module", name="place")
def fixture_place():
    place = Place()
    yield place
    place.close()


def acquire(place, *words, vram="500M"):
    done = place.lessor("lease", "acquire", *(["--vram", vram] if vram else []), "--ttl", "1h", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def shown(place, lease_id):
    return json.loads(place.lessor("lease", "show", "--json", lease_id).stdout)


def release(place, *ids):
    for lease_id in ids:
        assert place.lessor("lease", "release", lease_id).returncode == 0


def stranger_on(place, size="300M"):
    """A program that takes memory without asking, as soon as it is seen."""
    process = subprocess.Popen([SIMGPU, "hog", "--alloc", size], env=place.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    place.started.append(process)
    until("the stranger is seen", lambda: process.pid in [s["pid"] for s in place.strangers()])
    return process


def configure(place, text):
    """Another lessord.conf, taken up by a restart."""
    with open(os.path.join(place.dir, "lessord.conf"), "w", encoding="utf-8") as file:
        file.write(text)
    place.kill_daemon()
    place.start_daemon()


# ---- renice, extend, pin ----

def test_renice_by_name_and_number_and_in_either_order(place):
    lease = acquire(place)
    for words, name in ((["batch", lease], "batch"), (["2", lease], "interactive"), ([lease, "5"], "filler"), (["4", lease[1:]], "batch")):
        done = place.lessor("renice", *words)
        assert (done.returncode, done.stdout) == (0, f"{lease} is {name} now\n"), (words, done.stderr)
        assert shown(place, lease)["priority_name"] == name
    assert json.loads(place.lessor("renice", "--json", "3", lease).stdout)["priority"] == 3
    release(place, lease)


def test_renice_moves_who_waits(own):
    own.hog("holder", "3000M")
    own.in_state("holder", "active")
    for name in ("first", "second"):
        own.start("run", "--name", name, "--vram", "2000M", "--priority", "batch", "--", "true")
        own.in_state(name, "queued")
    assert own.lessor("renice", "interactive", own.lease("second")["id"]).returncode == 0
    until("it goes first", lambda: own.lease("second")["place"] == 1 and own.lease("first")["place"] == 2)


def test_renice_to_urgent_without_an_end_is_refused_with_the_cure(place):
    lease = acquire(place)
    done = place.lessor("renice", "urgent", lease)
    assert done.returncode == 1 and "--for" in done.stderr and shown(place, lease)["priority"] == 3
    release(place, lease)


def test_extend_lets_a_slot_end_later(place):
    lease = acquire(place, "--for", "1h")
    done = place.lessor("extend", lease, "30m")
    assert done.returncode == 0 and re.fullmatch(rf"{lease} has 1 h (?:29|30) min left\n", done.stdout)
    assert 5300000 < shown(place, lease)["slot_left_ms"] <= 5400000
    assert place.lessor("extend", "2h", lease).returncode == 0
    assert shown(place, lease)["slot_left_ms"] > 3 * 3600000
    release(place, lease)


def test_extend_of_a_lease_without_an_end_is_refused(place):
    lease = acquire(place)
    done = place.lessor("extend", lease, "30m")
    assert done.returncode == 1 and done.stdout == "" and "for" in done.stderr
    release(place, lease)


def test_pin_and_unpin(place):
    lease = acquire(place)
    done = place.lessor("pin", lease, "--for", "2h")
    assert done.returncode == 0 and re.fullmatch(rf"{lease} is pinned for (?:1 h 59 min|2 h)\n", done.stdout)
    assert shown(place, lease)["pinned"] is True
    assert re.search(rf"{lease} .*  pinned$", place.lessor("status").stdout, re.M)
    assert place.lessor("unpin", lease).stdout == f"{lease} is not pinned any more\n"
    assert shown(place, lease)["pinned"] is False
    release(place, lease)


@pytest.mark.parametrize("words", [["renice", "4", "L9999"], ["extend", "L9999", "5m"], ["pin", "L9999"], ["unpin", "L9999"],
                                   ["unadopt", "L9999"]], ids=" ".join)
def test_lease_that_is_not_there_is_1_and_named(place, words):
    done = place.lessor(*words)
    assert done.returncode == 1 and done.stdout == "" and "L9999" in done.stderr


# ---- exclusive ----

def test_exclusive_run_is_alone_and_says_nothing_about_its_size(own):
    lease = acquire(own, "--name", "before", vram="500M")
    alone = own.start("run", "--exclusive", "--name", "alone", "--", "sleep", "100")
    own.in_state("alone", "queued")
    release(own, lease)
    assert own.in_state("alone", "active")["exclusive"] is True
    assert own.lessor("run", "--vram", "100M", "--no-wait", "--", "true").returncode == 124
    assert re.search(r"alone · .*  exclusive$", own.lessor("status").stdout, re.M)
    alone.terminate()
    assert "no --vram" not in alone.communicate()[1]
    assert "no --vram" not in own.lessor("run", "--exclusive", "--", "true").stderr
    assert "no --vram: asking for all a device can give" in own.lessor("run", "--", "true").stderr


# ---- without a size ----

def run_and_end(place, consumer, n_bytes, *options):
    """One run of a program that takes so much, without --vram if @options have none. Its lease as it was, and what was said."""
    run = place.start("run", "--name", "learner", "--consumer", consumer, *options, "--", SIMGPU, "hog", "--alloc", f"{n_bytes // MIB}M")

    def seen():
        lease = place.lease("learner")
        return lease if lease and lease["state"] == "active" and lease["used_bytes"] and lease["used_bytes"] >= n_bytes else None
    lease = until("its memory is seen", seen)
    run.terminate()
    said = run.communicate()[1]
    place.gone("learner")
    return lease, said


def test_run_without_a_size_takes_all_first_and_then_what_its_last_runs_came_to(own):
    first, said = run_and_end(own, "nightly", 900 * MIB)
    assert (first["sized"], first["sized_by_runs"]) == ("whole", 0) and first["bytes"] > 2000 * MIB
    assert "lessor run: no --vram: asking for all a device can give\n" in said

    second, said = run_and_end(own, "nightly", 600 * MIB)
    assert (second["sized"], second["sized_by_runs"], second["bytes"]) == ("learned", 1, first["used_bytes"])
    assert re.search(r"^lessor run: no --vram: \S+ MiB \(.*\), by its last run$", said, re.M), said

    own.kill_daemon()
    own.start_daemon()
    third, said = run_and_end(own, "nightly", 600 * MIB)
    assert (third["sized"], third["sized_by_runs"], third["bytes"]) == ("learned", 2, first["used_bytes"])
    assert ", by its last 2 runs\n" in said

    other, said = run_and_end(own, "another", 300 * MIB)
    assert (other["sized"], other["bytes"] > 2000 * MIB) == ("whole", True) and "asking for all" in said


def test_F39_run_whose_size_was_too_small_gets_what_its_last_ones_took(own):
    """And one that always asked for too much is told so."""
    place = own
    configure(place, "over_use = 16M\n")

    def plan(vram):
        return json.loads(place.lessor("plan", "--consumer", "nightly", "--vram", vram, "--json").stdout)
    seen, _ = run_and_end(place, "nightly", 600 * MIB, "--vram", "300M")
    asked = plan("200M")  # another size: with less data, as far as anybody knows
    assert (asked["sized"], asked["bytes"]) == ("asked", 200 * MIB)
    raised = plan("300M")
    assert (raised["sized"], raised["sized_by_runs"], raised["bytes"]) == ("raised", 1, seen["used_bytes"])
    assert "more than --vram: " in place.lessor("plan", "--consumer", "nightly", "--vram", "300M").stdout
    run = place.start("run", "--name", "learner", "--consumer", "nightly", "--vram", "300M", "--", "sleep", "60")
    until("it runs", lambda: (place.lease("learner") or {}).get("state") == "active")
    run.terminate()
    assert re.search(r"reserves \S+ MiB \(.*\), more than was asked for: by its last run$", run.communicate()[1], re.M)
    place.gone("learner")
    for _ in range(4):
        run_and_end(place, "nightly", 600 * MIB)
    said = place.lessor("run", "--consumer", "nightly", "--vram", "2000M", "--", "true").stderr
    assert re.search(r"its last 5 runs used at most \S+ MiB \(p95 \S+ MiB\): --vram 6\d\dM would do$", said, re.M), said


def test_F39_run_that_failed_teaches_nothing_smaller(own):
    seen, _ = run_and_end(own, "nightly", 900 * MIB)
    run = own.start("run", "--name", "learner", "--consumer", "nightly", "--", "sh", "-c",
                    '"$0" hog --alloc 300M >&2 & echo $!; wait; exit 3', SIMGPU)
    lease = until("its memory is seen", lambda: (found := own.lease("learner")) and found["used_bytes"] and found)
    assert lease["sized"] == "learned"
    os.kill(int(run.stdout.readline()), signal.SIGTERM)
    run.communicate()
    assert run.returncode == 3
    own.gone("learner")
    plan = json.loads(own.lessor("plan", "--consumer", "nightly", "--json").stdout)
    assert (plan["sized_by_runs"], plan["bytes"]) == (1, seen["used_bytes"]), plan


def test_plan_without_a_size_says_by_how_many_runs(own):
    seen, _ = run_and_end(own, "nightly", 700 * MIB)
    plan = json.loads(own.lessor("plan", "--consumer", "nightly", "--json").stdout)
    assert (plan["outcome"], plan["sized"], plan["sized_by_runs"], plan["bytes"]) == ("start", "learned", 1, seen["used_bytes"])
    assert "no --vram: " in (said := own.lessor("plan", "--consumer", "nightly").stdout) and "by its last run\n" in said
    named = json.loads(own.lessor("plan", "--consumer", "nightly", "--vram", "800M", "--json").stdout)
    assert (named["sized"], named["sized_by_runs"], named["bytes"]) == ("asked", 0, 800 * MIB)
    unknown = json.loads(own.lessor("plan", "--consumer", "unheard-of", "--json").stdout)
    assert (unknown["sized"], unknown["sized_by_runs"]) == ("whole", 0)
    assert json.loads(own.lessor("plan", "--json").stdout)["sized"] == "asked"


def test_what_may_be_ended_is_asked_for_as_it_was_said(own):
    for words, at_end, left in (([], False, False), (["--kill-left"], False, True), (["--kill-at-end", "--for", "1h"], True, False)):
        run = own.start("run", "--vram", "100M", "--name", "ending", *words, "--", "sleep", "100")
        lease = own.in_state("ending", "active")
        assert (lease["kill_at_end"], lease["kill_left"]) == (at_end, left)
        run.terminate()
        run.communicate()
        own.gone("ending")


# ---- adopt ----

def test_stranger_is_adopted_by_the_line_that_status_prints(own):
    stranger = stranger_on(own)
    line = re.search(r"yours: `lessor (adopt \d+)` gives it a lease", own.lessor("status").stdout)[1]
    assert line == f"adopt {stranger.pid}"
    done = own.lessor(*line.split())
    lease = done.stdout.strip()
    assert done.returncode == 0 and re.fullmatch(r"L\d+", lease)
    assert f"pid {stranger.pid} has lease {lease} now: 300 MiB" in done.stderr
    status = own.status()
    assert not status["strangers"] and status["leases"][0]["adopted"] is True and status["leases"][0]["used_bytes"] == 300 * MIB
    assert re.search(rf"{lease} .*  adopted$", own.lessor("status").stdout, re.M)
    assert stranger.poll() is None, "nobody touched it"

    assert own.lessor("unadopt", lease).returncode == 0
    until("it is a stranger again", lambda: [s["pid"] for s in own.strangers()] == [stranger.pid])
    assert stranger.poll() is None


def test_adopted_lease_has_the_terms_that_were_named_and_ends_with_its_process(own):
    stranger = stranger_on(own)

    def adopted():  # more than it uses is given by a young look at the card only, and an adoption never waits
        done = own.lessor("adopt", str(stranger.pid), "--vram", "1G", "--name", "mine", "--priority", "batch", "--for", "1h",
                          "--consumer", "nightly", "--json")
        assert done.returncode == 0 or "would have to wait" in done.stderr, done
        return done.stdout if done.returncode == 0 else None
    lease = json.loads(until("it is adopted", adopted))
    assert (lease["bytes"], lease["name"], lease["consumer"], lease["priority"]) == (1024 * MIB, "mine", "nightly", 4)
    assert lease["slot_left_ms"] > 3500000
    again = own.lessor("adopt", str(stranger.pid))
    assert again.returncode == 1 and lease["id"] in again.stderr
    stranger.terminate()
    own.gone("mine")


def test_adopt_of_nobody_is_refused_with_words(place):
    done = place.lessor("adopt", "4194303")
    assert done.returncode == 1 and done.stdout == "" and "4194303" in done.stderr


def test_unadopt_of_a_lease_that_was_asked_for_is_refused_and_names_the_right_verb(place):
    lease = acquire(place)
    done = place.lessor("unadopt", lease)
    assert done.returncode == 1 and f"`lessor lease release {lease}`" in done.stderr
    assert shown(place, lease)["state"] == "active"
    release(place, lease)


def fake_program(folder, name, text):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def only_path(place, folder):
    """A PATH without the real engines and systemctl."""
    for name in ("sh", "cat", "printf", "sleep"):
        if not (folder / name).exists():
            (folder / name).symlink_to(shutil.which(name))
    return {"PATH": str(folder)}


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_container_is_adopted_by_its_main_process(own, tmp_path, engine):
    """The engine is a stand-in: it is asked with words alone, and its answer is a pid."""
    stranger = stranger_on(own)
    folder = tmp_path / "bin"
    fake_program(folder, engine, f'printf "%s\\n" "$@" > {tmp_path}/words; echo {stranger.pid}')
    done = own.lessor("adopt", "--container", "comfy; rm -rf /", env=only_path(own, folder))
    words = (tmp_path / "words").read_text().splitlines()
    assert words == ["inspect", "--type", "container", "--format", "{{.State.Pid}}", "--", "comfy; rm -rf /"]
    # whatever cgroup this test itself is in decides whether it stands for a container; the pid arrived either way
    assert done.returncode == 0 or "cgroup" in done.stderr and str(stranger.pid) in done.stderr, done.stderr


@pytest.mark.parametrize("answer, said", [
    ("echo 0", "this container does not run"), ("echo 'Error: No such object: x' >&2; exit 1", "No such object: x"),
    ("echo pid", "this container does not run"), ("printf '\\033[31mred\\n' >&2; exit 1", "\\x1B[31mred")])
def test_container_that_cannot_be_found_is_told_with_the_cure(place, tmp_path, answer, said):
    folder = tmp_path / "bin"
    fake_program(folder, "docker", answer)
    done = place.lessor("adopt", "--container", "x", env=only_path(place, folder))
    assert done.returncode == 1 and said in done.stderr and "Cure:" in done.stderr and "\x1b" not in done.stderr


def test_unit_is_adopted_by_its_main_process(own, tmp_path):
    stranger = stranger_on(own)
    folder = tmp_path / "bin"
    fake_program(folder, "systemctl", f'printf "%s\\n" "$@" > {tmp_path}/words; printf "MainPID={stranger.pid}\\nLoadState=loaded\\n"')
    done = own.lessor("adopt", "--unit", "ollama.service", env=only_path(own, folder))
    words = (tmp_path / "words").read_text().splitlines()
    assert words[-2:] == ["--", "ollama.service"] and "--no-ask-password" in words and "show" in words
    assert done.returncode == 0 or "cgroup" in done.stderr and str(stranger.pid) in done.stderr, done.stderr


@pytest.mark.parametrize("answer, said", [
    ("printf 'MainPID=0\\nLoadState=not-found\\n'", "there is no such unit"),
    ("printf 'MainPID=0\\nLoadState=loaded\\n'", "no main process now"),
    ("echo 'System has not been booted with systemd' >&2; exit 1", "not been booted with systemd")])
def test_unit_that_cannot_be_found_is_told_with_the_cure(place, tmp_path, answer, said):
    folder = tmp_path / "bin"
    fake_program(folder, "systemctl", answer)
    done = place.lessor("adopt", "--unit", "x", env=only_path(place, folder))
    assert done.returncode == 1 and said in done.stderr and "Cure:" in done.stderr


@pytest.mark.parametrize("words, said", [(["--container", "x"], "neither docker nor podman"), (["--unit", "x"], "no systemctl")])
def test_without_engine_or_systemd_the_cure_is_the_pid(place, tmp_path, words, said):
    (tmp_path / "bin").mkdir()
    done = place.lessor("adopt", *words, env={"PATH": str(tmp_path / "bin")})
    assert done.returncode == 1 and said in done.stderr and "`lessor adopt PID`" in done.stderr


def test_engine_that_says_too_much_is_ended(place, tmp_path):
    folder = tmp_path / "bin"
    fake_program(folder, "docker", "while :; do printf '%01000d\\n' 1; done")
    done = place.lessor("adopt", "--container", "x", env=only_path(place, folder))
    assert done.returncode == 1 and "docker" in done.stderr


# ---- plan ----

def test_plan_says_what_run_would_get_and_changes_nothing(own):
    start = own.lessor("plan", "--vram", "1G")
    assert start.returncode == 0 and "it would start now with 1 GiB (1.07 GB) on GPU-" in start.stdout
    own.hog("holder", "2000M", "--for", "1h")
    own.in_state("holder", "active")
    before = own.lessor("events", "--json").stdout
    wait = own.lessor("plan", "--vram", "2G", "--", "python3", "train.py")
    assert wait.returncode == 124 and re.search(r"^it would wait: .*place 1 of 1.*expected start in (?:59 min|1 h)", wait.stdout), wait.stdout
    refused = own.lessor("plan", "--vram", "9G")
    assert refused.returncode == 1 and refused.stdout.startswith("it would be refused: ") and "at most 3 GiB" in refused.stdout
    as_json = own.lessor("plan", "--vram", "2G", "--json")
    assert as_json.returncode == 124 and json.loads(as_json.stdout)["outcome"] == "wait"
    assert own.lessor("events", "--json").stdout == before and len(own.leases()) == 1


def test_plan_and_run_agree(own):
    own.hog("holder", "2000M")
    own.in_state("holder", "active")
    for words in (["--vram", "500M"], ["--vram", "1500M"], ["--vram", "9G"], ["--exclusive"], ["--priority", "urgent", "--vram", "1M"]):
        planned = own.lessor("plan", *words).returncode
        ran = own.lessor("run", "--no-wait", *words, "--", "true").returncode
        assert {0: 0, 124: 124, 125: 1}[ran] == planned, words


# ---- limits ----

def test_limits_show_what_one_may_have_and_has(own):
    configure(own, "leases_per_user_max = 7\nbytes_per_user_max = 2GiB\nslot_max = 3h\n")
    lease = acquire(own, "--for", "1h")
    text = own.lessor("limits").stdout
    assert re.search(r"^  leases +7 +1$", text, re.M) and re.search(r"^  memory together +2 GiB +500 MiB$", text, re.M)
    assert re.search(r"^  longest slot \(--for\) +3 h$", text, re.M) and not re.search(r" +$", text, re.M)
    report = json.loads(own.lessor("limits", "--json").stdout)
    assert report["limits"]["leases_max"] == 7 and report["has"]["bytes"] == 500 * MIB
    assert own.lessor("limits", "--user", "nobody").stdout.startswith("nobody (uid 65534)")
    odd = own.lessor("limits", "--user", "x&y=%41 z")
    assert odd.returncode == 1 and "x&y=%41 z" in odd.stderr
    release(own, lease)


# ---- config ----

def check_config(*words, **env):
    return subprocess.run([LESSOR, "config", "check", *words], env={**os.environ, "LESSOR_SOCKET": "/nowhere/s", **env}, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def test_config_check_reads_as_lessord_does(tmp_path):
    good, bad = tmp_path / "good.conf", tmp_path / "bad.conf"
    good.write_text("# fine\npoll = 2s\n")
    bad.write_text("poll = 2s\npolll = 3s\n")
    assert check_config(str(good)).returncode == 0
    done = check_config(str(bad))
    assert done.returncode == 78 and done.stderr.startswith(f"{bad}:2: ") and "polll" in done.stderr
    assert check_config(str(tmp_path / "none.conf")).returncode == 78


def test_config_check_without_a_file_is_about_the_lessord_that_runs(own):
    path = os.path.join(own.dir, "lessord.conf")
    done = own.lessor("config", "check")
    assert done.returncode == 0 and path in done.stdout
    with open(path, "w", encoding="utf-8") as file:
        file.write("nonsense = 1\n")
    done = own.lessor("config", "check")
    assert done.returncode == 78 and f"{path}:1" in done.stderr


def test_config_check_without_lessord_to_read_it(tmp_path):
    shutil.copy(LESSOR, tmp_path / "lessor")
    done = subprocess.run([str(tmp_path / "lessor"), "config", "check", "x"], env={"PATH": "/nowhere", "LESSOR_SOCKET": "/nowhere/s"},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 69 and "no lessord" in done.stderr and "Cure:" in done.stderr


def test_config_show_prints_keys_values_and_where_they_are_from(own):
    configure(own, "margin = 2\n")
    text = own.lessor("config", "show").stdout
    assert text.startswith(f"; {own.dir}/lessord.conf (")
    assert re.search(r"^margin +\+?= 2 .*\(default: 1\)$", text, re.M) and re.search(r"^poll +\+?= 1s .*[^)]$", text, re.M)
    report = json.loads(own.lessor("config", "show", "--json").stdout)
    shell = subprocess.run([LESSORD, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout.partition("Keys of")[2]
    assert [key["key"] for key in report["keys"]] == re.findall(r"^  (\w+) ", shell, re.M)


def test_config_show_without_a_daemon_says_what_the_defaults_are():
    done = subprocess.run([LESSOR, "config", "show"], env={**os.environ, "LESSOR_SOCKET": "/nowhere/s", "XDG_RUNTIME_DIR": "/tmp"},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0 and re.search(r"^ *margin +=? *1\b", done.stdout, re.M)


# ---- status --watch ----

def test_watch_prints_blocks_when_it_is_no_terminal_and_ctrl_c_is_no_failure(own):
    watching = own.start("status", "--watch=0.1")
    seen = ""
    while "nobody" not in seen and seen.count("queue (0)") < 2:
        seen += watching.stdout.readline()
    own.hog("holder", "500M")
    while "holder" not in seen:
        seen += watching.stdout.readline()
    assert "\x1b" not in seen and len(re.findall(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", seen, re.M)) >= 2
    watching.send_signal(signal.SIGINT)
    assert watching.wait(PATIENCE_S) == 0 and watching.stderr.read() == ""


def test_watch_as_json_is_one_object_a_line(own):
    watching = own.start("status", "--watch", "0.1", "--json")
    for _ in range(3):
        assert {"devices", "leases", "queue"} <= set(json.loads(watching.stdout.readline()))
    watching.terminate()
    assert watching.wait(PATIENCE_S) == -signal.SIGTERM


def test_watch_on_a_terminal_draws_in_place_and_leaves_the_last_picture(own):
    terminal = Terminal([LESSOR, "status", "--watch", "0.1"], {**own.env, "TERM": "xterm"})
    try:
        terminal.expect(re.escape("\x1b[?1049h"))
        terminal.expect("Ctrl-C ends")
        own.hog("holder", "500M")
        terminal.expect("holder")
        terminal.expect(re.escape("\x1b[H"))
        terminal.send("\x03")
        assert terminal.wait() == 0
        after = terminal.all.split("\x1b[?1049l")
        assert len(after) == 2 and "holder" in after[1] and "\x1b[?25h" in after[0]
    finally:
        terminal.close()


def test_watch_stops_and_goes_on_as_a_job(own):
    terminal = Terminal(["bash", "--norc", "-i"], {**own.env, "TERM": "xterm", "PS1": "ready> "})
    try:
        terminal.expect("ready> ")
        terminal.send("lessor status --watch 0.1\n")
        terminal.expect("Ctrl-C ends")
        terminal.send("\x1a")
        terminal.expect(re.escape("\x1b[?1049l"))
        terminal.expect("ready> ")
        terminal.send("fg\n")
        terminal.expect(re.escape("\x1b[?1049h"))
        terminal.expect("Ctrl-C ends")
        terminal.send("\x03")
        terminal.expect("ready> ")
        terminal.send("exit $?\n")
        assert terminal.wait() == 0
    finally:
        terminal.close()


def test_watch_goes_on_over_a_restart_of_lessord(own):
    watching = own.start("status", "--watch", "0.1", "--json")
    json.loads(watching.stdout.readline())
    own.kill_daemon()
    own.start_daemon()
    lease = acquire(own, "--name", "after")
    while not any(each["name"] == "after" for each in json.loads(watching.stdout.readline())["leases"]):
        pass
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=PATIENCE_S)
    assert watching.returncode == 0
    release(own, lease)


def test_watch_without_lessord_ends_at_once():
    done = subprocess.run([LESSOR, "status", "--watch"], env={**os.environ, "LESSOR_SOCKET": "/nowhere/s"}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 69 and done.stdout == "" and "/nowhere/s" in done.stderr


# ---- who may ----

@needs_root
def test_only_ones_own_strangers_have_the_line_that_adopts_them(own, tmp_path):
    """Asked by another user, status shows root's stranger and offers nothing."""
    stranger_on(own)
    shown_status = own.lessor("status").stdout
    assert "yours: `lessor adopt" in shown_status
    foreign = {"devices": [], "leases": [], "queue": [], "gpu": "ok",
               "strangers": [{"pid": 7, "ghost": False, "uid": 4711, "user": "else", "comm": "x", "device": None, "used_bytes": 1},
                             {"pid": 8, "ghost": True, "uid": 0, "user": "root", "comm": None, "device": None, "used_bytes": 1}]}
    path = tmp_path / "s"
    code = ("import socket,sys\ns=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print(1, flush=True)\n"
            "p,_=s.accept(); p.recv(65536); b=sys.argv[2].encode()\n"
            "p.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(b) + b)\n")
    with subprocess.Popen(["/usr/bin/python3", "-c", code, path, json.dumps(foreign)], stdout=subprocess.PIPE) as server:
        server.stdout.readline()
        done = own.lessor("status", env={"LESSOR_SOCKET": str(path)})
        server.kill()
    assert "pid 7 " in done.stdout and "pid 8 " in done.stdout and "adopt" not in done.stdout
