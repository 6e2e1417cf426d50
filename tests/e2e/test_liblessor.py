# SPDX-License-Identifier: Apache-2.0
"""liblessor as a program uses it: compiled by lessor.pc, against a lessord on a simulated card.

drive.c has the scenes; the example is the man page's own.
"""

import json
import os
import re
import shlex
import socket
import subprocess
import threading

import pytest

from lessor_fixtures import BUILD, MIB, PATIENCE_S, bare, place, shared, until  # noqa: F401

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
LIB = os.path.join(BUILD, "src", "client")
HEADER = os.path.join(ROOT, "src", "client", "lessor.h")


def build_options():
    with open(os.path.join(BUILD, "meson-info", "intro-buildoptions.json"), encoding="utf-8") as file:
        return {option["name"]: option["value"] for option in json.load(file)}


def compile_with_pkg_config(source, output, compiler, *flags):
    """By what `pkg-config lessor` says of the library in the build folder."""
    env = {**os.environ, "PKG_CONFIG_PATH": os.path.join(BUILD, "meson-uninstalled")}
    told = subprocess.run(["pkg-config", "--cflags", "--libs", "lessor"], env=env, stdout=subprocess.PIPE, check=True, text=True)
    sanitize = build_options()["b_sanitize"]
    sanitizer = [] if sanitize == "none" else [f"-fsanitize={sanitize}"]
    subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-pedantic", *flags, *sanitizer, "-g", source, "-o", output,
                    *shlex.split(told.stdout), f"-Wl,-rpath,{LIB}"], check=True)
    return output


def c_compiler():
    """The one the library was built with: its sanitizers are not another's."""
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
        return [next(word for word in json.load(file)[0]["command"].split() if not word.endswith("ccache"))]


@pytest.fixture(scope="module", name="drive")
def fixture_drive(tmp_path_factory):
    return compile_with_pkg_config(os.path.join(HERE, "liblessor", "drive.c"), str(tmp_path_factory.mktemp("lib") / "drive"),
                                   c_compiler(), "-std=c11")


def start(p, program, *words, env=None):
    process = subprocess.Popen([program, *words], env={**p.env, "LESSOR_SOCKET": p.socket, **(env or {})}, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.started.append(process)
    return process


def finish(process):
    """The lines that are left. Nothing of it may be on stderr: the library does not speak."""
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0 and err == "", (process.returncode, out, err)
    return out.splitlines()


def play(p, program, *words, **options):
    return finish(start(p, program, *words, **options))


def line(process):
    return process.stdout.readline().split()


def is_free(p, n_bytes=3072 * MIB):
    until("the card is free", lambda: p.device()["free_bytes"] == n_bytes)


# ---- the library as a file ----

def public_names():
    with open(HEADER, encoding="utf-8") as file:
        return set(re.findall(r"LESSOR_PUBLIC [^;(]*?\b(lessor_\w+)\(", file.read()))


def test_nothing_but_the_headers_functions_is_exported():
    shown = subprocess.run(["nm", "-D", "--defined-only", os.path.join(LIB, "liblessor.so.0")], stdout=subprocess.PIPE, check=True, text=True)
    names = {row.split()[2] for row in shown.stdout.splitlines()}
    versions = {name for name in names if name.startswith("LIBLESSOR_")}
    assert {name.split("@")[0] for name in names - versions} == public_names()
    assert all(name.endswith("@@LIBLESSOR_0_1") for name in names - versions)


def test_library_needs_libc_and_jansson_and_is_called_liblessor_so_0():
    if build_options()["b_sanitize"] != "none":
        pytest.skip("a sanitizer brings libraries of its own")
    shown = subprocess.run(["readelf", "-d", os.path.join(LIB, "liblessor.so.0")], stdout=subprocess.PIPE, check=True, text=True)
    needed = set(re.findall(r"NEEDED.*\[(.+)\]", shown.stdout))
    assert needed <= {"libjansson.so.4", "libc.so.6", "ld-linux-x86-64.so.2"}, needed
    assert "SONAME" in shown.stdout and "[liblessor.so.0]" in shown.stdout


def test_library_has_no_thread_signal_handler_or_print_in_it():
    shown = subprocess.run(["nm", "-D", "--undefined-only", os.path.join(LIB, "liblessor.so.0")], stdout=subprocess.PIPE, check=True, text=True)
    wanted = {row.split()[-1].split("@")[0] for row in shown.stdout.splitlines()}
    if build_options()["b_sanitize"] == "none":
        assert not wanted & {"pthread_create", "signal", "sigaction", "printf", "puts", "fprintf", "write", "stderr", "stdout",
                             "exit", "getpwuid", "getgrgid", "strerror"}


def test_man_page_tells_of_every_function():
    with open(os.path.join(ROOT, "man", "liblessor.3.scd"), encoding="utf-8") as file:
        told = set(re.findall(r"\blessor_\w+", file.read().replace("\\", "")))
    assert public_names() <= told, public_names() - told


def test_installed_files_are_header_library_and_pkg_config(tmp_path):
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", str(tmp_path), "--tags", "devel,runtime"],
                   stdout=subprocess.DEVNULL, check=True)
    found = {name for _, _, names in os.walk(tmp_path) for name in names}
    assert {"lessor.h", "lessor.pc", "liblessor.so", "liblessor.so.0"} <= found
    assert not {name for name in found if name.startswith("libclient")}


def test_strict_c_plus_plus_compiles_and_gets_a_lease(shared, tmp_path):
    compiler = ["clang++" if "clang" in c_compiler()[0] else "g++"]
    program = compile_with_pkg_config(os.path.join(HERE, "liblessor", "plus.cc"), str(tmp_path / "plus"), compiler, "-std=c++11",
                                      "-Wold-style-cast", "-Wshadow")
    r, lease, _ = play(shared, program)[0].split()
    assert r == "0" and lease.startswith("L")
    is_free(shared)


def example():
    """The program in the man page."""
    with open(os.path.join(ROOT, "man", "liblessor.3.scd"), encoding="utf-8") as file:
        blocks = re.findall(r"^```\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if "int main" in block)


def test_example_of_the_man_page_waits_by_its_own_loop(place, tmp_path):
    source = tmp_path / "example.c"
    source.write_text(example(), encoding="utf-8")
    program = compile_with_pkg_config(str(source), str(tmp_path / "example"), c_compiler(), "-std=c11")
    first = place.ask("3G")
    assert first.status == 201
    waiting = start(place, program, "1G")
    assert "place 1 of 1" in waiting.stdout.readline()
    assert place.release(first.json["id"]).status == 200
    rest = finish(waiting)
    assert any("GPU-" in row for row in rest), rest
    is_free(place)


# ---- asking ----

def test_sync_acquire_gives_a_lease_that_release_gives_back(shared, drive):
    process = start(shared, drive, "sync", "1G")
    word, lease, state, device, n_bytes = line(process)
    assert (word, state, n_bytes) == ("granted", "3", str(1024 * MIB))
    seen = shared.lease(lease).json
    assert (seen["state"], seen["device"], seen["binding"]["pid"]) == ("active", device, process.pid)
    assert finish(process) == ["released 0", "again 1"]
    is_free(shared)


def test_freeing_gives_nothing_back_and_the_end_of_the_process_does(shared, drive):
    process = start(shared, drive, "keep", "1G")
    lease = line(process)[1]
    assert line(process) == ["freed"]
    assert shared.lease(lease).json["state"] == "active"
    assert finish(process) == []
    is_free(shared)


def test_lease_bound_to_the_connection_ends_when_it_is_freed(shared, drive):
    process = start(shared, drive, "connection", "1G")
    lease = line(process)[1]
    assert shared.lease(lease).json["binding"]["to"] == "connection"
    assert shared.lease(lease).json["state"] == "active"
    process.stdin.close()
    assert line(process) == ["freed"]
    assert shared.ended(lease) == "connection-closed"
    assert process.poll() is None


def test_async_wait_tells_its_news_and_is_granted(place, drive):
    first = place.ask("3G").json["id"]
    process = start(place, drive, "poll", "1G")
    word, lease = line(process)
    assert word == "queued"
    assert place.lease(lease).json["state"] == "queued"
    place.release(first)
    while word == "queued":
        word, same = line(process)
    assert (word, same) == ("granted", lease)
    process.stdin.write("r")
    process.stdin.close()
    rest = [row for row in process.stdout.read().splitlines() if not row.startswith("changed")]
    assert rest[0] == "released 0", rest
    is_free(place)


def test_release_while_it_waits_gives_up_the_place(place, drive):
    place.ask("3G")
    process = start(place, drive, "poll", "1G")
    assert line(process)[0] == "queued"
    process.stdin.write("r")
    process.stdin.flush()
    word = line(process)
    while word[0] == "queued":
        word = line(process)
    assert word == ["released", "0"]
    assert place.queue() == []
    assert finish(process) == []


def test_progress_function_ends_the_wait(place, drive):
    place.ask("3G")
    process = start(place, drive, "cancel", "1G")
    assert line(process)[0] == "queued"
    process.send_signal(10)
    assert finish(process)[-1] == "canceled 1 1"
    assert place.queue() == []


@pytest.mark.parametrize(("wait_ms", "errno", "kind"), [("0", "Resource temporarily unavailable", "would-wait"),
                                                        ("50", "Connection timed out", "wait-over")])
def test_wait_that_is_over_is_refused_with_its_kind(place, drive, wait_ms, errno, kind):
    place.ask("3G")
    process = start(place, drive, "poll", "1G", wait_ms)
    row = process.stdout.readline().strip()
    while row.startswith("queued"):
        row = process.stdout.readline().strip()
    assert row.startswith("refused") and errno in row and row.endswith("urn:lessor:problem:" + kind), row
    assert finish(process) == []
    assert place.queue() == []


def test_never_fits_is_told_with_type_and_words(shared, drive):
    process = start(shared, drive, "sync", "100G")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 3 and err == ""
    assert "failed acquire Argument list too long 422 urn:lessor:problem:never-fits" in out
    assert "text " in out and "ask for less" in out


# ---- lessord goes away ----

def test_wait_goes_on_over_a_kill_of_lessord_in_its_place(place, drive):
    first = place.ask("3G").json["id"]
    process = start(place, drive, "poll", "1G")
    lease = line(process)[1]
    place.kill()
    word = line(process)
    while word[0] == "queued":
        word = line(process)
    assert word[0] == "away"
    place.start()
    while word[0] in ("away", "queued"):
        word = line(process)
    assert word[0] == "back"
    until("it waits again", lambda: [e["lease"] for e in place.queue()] == [lease])
    place.release(first)
    while word[0] in ("back", "queued"):
        word = line(process)
    assert word == ["granted", lease]
    assert [entry["id"] for entry in place.leases()] == [lease]
    assert all(row.startswith("changed") for row in finish(process))


def test_question_before_lessord_is_there_waits_for_it(bare, drive):
    process = start(bare, drive, "poll", "1G")
    assert line(process)[0] == "away"
    bare.start()
    word = line(process)
    while word[0] in ("back", "queued"):
        word = line(process)
    assert word[0] == "granted"
    finish(process)


def test_if_down_run_goes_on_without_and_fail_fails(bare, drive):
    assert play(bare, drive, "sync", "1G", env={"LESSOR_IF_DOWN": "run"})[0].split()[:2] == ["granted", "14"]
    failed = start(bare, drive, "sync", "1G", env={"LESSOR_IF_DOWN": "fail"})
    out, _ = failed.communicate(timeout=PATIENCE_S)
    assert failed.returncode == 3 and "Host is down" in out and "systemctl start lessord" in out
    wrong = start(bare, drive, "sync", "1G", env={"LESSOR_IF_DOWN": "perhaps"})
    out, _ = wrong.communicate(timeout=PATIENCE_S)
    assert wrong.returncode == 3 and "failed open" in out


class Forgetful(threading.Thread):
    """Stands between a client and lessord and keeps back the answer to the first question it was told to."""

    def __init__(self, path, target, lose):
        super().__init__(daemon=True)
        self.target, self.lose, self.lost = target, lose, []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(16)
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        with client, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            question = b""
            while b"\r\n\r\n" not in question:
                question += client.recv(65536)
            head, _, body = question.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            while length and len(body) < int(length[1]):
                body += client.recv(65536)
            server.connect(self.target)
            server.sendall(head + b"\r\n\r\n" + body)
            lose = head.startswith(self.lose) and not self.lost
            answer = server.recv(65536)
            if lose:
                self.lost.append(answer)
                return
            while answer:
                client.sendall(answer)
                answer = server.recv(65536)

    def close(self):
        self.listener.close()


@pytest.mark.parametrize("lose", [b"POST /api/leases ", b"POST /api/leases/", b"DELETE /api/leases/"])
def test_answer_that_is_lost_makes_no_second_lease(place, drive, lose):
    between = os.path.join(place.dir, "between")
    proxy = Forgetful(between, place.socket, lose)
    process = start(place, drive, "sync", "1G", env={"LESSOR_SOCKET": between})
    lease = line(process)[1]
    if not lose.startswith(b"DELETE"):
        assert proxy.lost
    assert [entry["id"] for entry in place.leases()] == [lease]
    assert place.lease(lease).json["state"] == "active"
    assert finish(process) == ["released 0", "again 1"]
    proxy.close()
    assert proxy.lost and place.leases() == []
    assert {event["lease"] for event in place.events() if event["lease"]} == {lease}


# ---- in a process ----

def test_child_of_a_fork_can_only_let_go(place, drive):
    process = start(place, drive, "fork", "1G")
    assert [line(process) for _ in range(3)] == [["child", "0"], ["same", "fd", "1"], ["refresh", "0"]]
    lease = line(process)[1]
    assert place.lease(lease).json["state"] == "active"
    place.release(lease)
    assert finish(process)[0].startswith(f"ended {lease}")


def test_two_handles_do_not_know_each_other(shared, drive):
    lines = [row.split() for row in play(shared, drive, "two", "1G")]
    assert [row[0] for row in lines] == ["granted", "granted", "released", "second", "refresh", "released"]
    assert lines[0][1] != lines[1][1] and lines[3][1:3] == [lines[1][1], "3"]
    assert [lines[i][1] for i in (2, 4, 5)] == ["0", "0", "0"]
    is_free(shared)


def test_no_descriptor_is_left_behind(shared, drive):
    assert play(shared, drive, "fds", "100M") == ["leaked 0"]
    is_free(shared)


def test_closed_standard_descriptors_stay_closed(shared, drive):
    assert play(shared, drive, "closed", "100M") == ["free 3 fd 1"]
    is_free(shared)


# ---- changes ----

def test_changes_are_seen_at_once(shared, drive):
    rows = play(shared, drive, "changes", "1G")
    plan = rows[0].split(" ", 2)
    assert plan[:2] == ["plan", "0"] and json.loads(plan[2])["outcome"] == "start", rows
    renice, extend, pin, unpin, slot, bad = (row.split(" ", 4) for row in rows[1:7])
    assert renice[1:3] == ["0", "4"], rows
    assert extend[1] == "0" and 3600000 < int(extend[3]) <= 4200000, rows
    assert pin[1] == unpin[1] == slot[1] == "0" and 0 < int(slot[3]) <= 300000, rows
    assert bad[1] != "0" and "priority" in bad[4], rows
    is_free(shared)


def test_running_process_is_adopted_and_let_go(place, drive):
    hog = place.hog("1G")
    until("it is a stranger", place.strangers)
    pid = place.strangers()[0]["pid"]
    process = start(place, drive, "adopt", str(pid))
    word, lease, _, _, n_bytes = line(process)
    assert word == "adopted" and int(n_bytes) >= 1024 * MIB
    assert place.lease(lease).json["state"] == "active"
    assert finish(process) == ["released 0"]
    assert hog.poll() is None
