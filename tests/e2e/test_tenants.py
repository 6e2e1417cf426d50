# SPDX-License-Identifier: Apache-2.0
"""`lessor tenants`: files of tenants are judged, listed and shown, and processes are recognised by them. Only files of the
test's own and those of the build count."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from cli_helpers import LESSOR
from lessor_fixtures import Place


@pytest.fixture(name="files")
def files_fixture(tmp_path):
    (tmp_path / "tenants.d").mkdir()
    return tmp_path


def write(path, tenants):
    path.write_text(json.dumps({"tenants": tenants}), encoding="utf-8")


def lessor(files, *words):
    env = {**os.environ, "LESSOR_SOCKET": str(files / "none.sock"), "NO_COLOR": "1"}
    return subprocess.run([LESSOR, "tenants", *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)


@pytest.fixture(name="process")
def process_fixture():
    """A process that can be told from others: by its program, an argument, and its parent."""
    child = subprocess.Popen([sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", "/srv/words/serve.py"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    yield child
    child.stdin.close()
    assert child.wait(60) == 0


def test_check_takes_good_files_and_says_what_is_wrong_with_others(files):
    good, bad = files / "good.json", files / "bad.json"
    write(good, {"mine": {"match": [{"unit": "mine.service"}]}})
    bad.write_text('{"tenants": {"mine": {\n"match": [{"unit": "x"}],\n"priorty": 1}}}', encoding="utf-8")
    done = lessor(files, "check", str(good))
    assert (done.returncode, done.stdout, done.stderr) == (0, "good: 1 tenants\n", "")
    done = lessor(files, "check", str(good), str(bad))
    assert done.returncode == 78 and done.stdout == ""
    assert f"{bad}:3: tenants/mine/priorty: given: 1; allowed: title, match, priority" in done.stderr
    told = json.loads(lessor(files, "check", "--json", str(bad)).stdout)
    assert not told["good"] and told["tenants"] == [] and "priorty" in told["error"]
    assert lessor(files, "check", str(files / "none.json")).returncode == 78
    assert lessor(files, "check").returncode == 2


def test_list_has_what_was_shipped_under_what_the_files_say(files):
    shipped = {one["name"]: one for one in json.loads(lessor(files, "list", "--json", "--files", str(files)).stdout)["tenants"]}
    assert len(shipped) >= 30 and all(one["shipped"] for one in shipped.values())
    name = next(name for name, one in shipped.items() if one["definition"]["priority"] == "normal")
    write(files / "tenants.d" / "10-mine.json", {"mine": {"match": [{"unit": "x"}]}, name: {"priority": "batch"}})
    write(files / "tenants.json", {name: {"priority": "filler"}})
    body = json.loads(lessor(files, "list", "--json", "--files", str(files)).stdout)
    tenants = {one["name"]: one for one in body["tenants"]}
    assert tenants["mine"]["definition"] == {"match": [{"unit": "x"}]} and not tenants["mine"]["shipped"]
    assert tenants[name]["definition"] == {**shipped[name]["definition"], "priority": "filler"}
    assert tenants[name]["from"]["priority"] == str(files / "tenants.json") and not tenants[name]["shipped"]
    assert [file["path"] for file in body["files"] if not file["shipped"]] == [str(files / "tenants.d" / "10-mine.json"), str(files / "tenants.json")]
    assert f"\n{name} " in lessor(files, "list", "--files", str(files)).stdout


def test_faulty_file_takes_none(files):
    (files / "tenants.json").write_text("{", encoding="utf-8")
    for words in (["list"], ["show", "x"], ["match", str(os.getpid())]):
        done = lessor(files, *words, "--files", str(files))
        assert done.returncode == 78 and done.stdout == ""
        assert f"{files}/tenants.json:1: no JSON" in done.stderr


def test_show_prints_one_and_where_each_key_is_from(files):
    write(files / "tenants.json", {"mine": {"match": [{"unit": "x"}], "title": "Mine"}})
    done = lessor(files, "show", "mine", "--files", str(files))
    assert done.returncode == 0 and f"title              from {files}/tenants.json" in done.stdout
    assert json.loads(lessor(files, "show", "--json", "mine", "--files", str(files)).stdout)["title"] == "Mine"
    done = lessor(files, "show", "yours", "--files", str(files))
    assert done.returncode == 1 and "there is no tenant yours; `lessor tenants list` names them" in done.stderr


def test_match_tells_whose_a_process_is_line_by_line(files, process):
    program = os.path.basename(os.path.realpath(sys.executable))
    write(files / "tenants.json", {
        "words": {"match": [{"unit": "words-*.service"}, {"role": "server", "program": program, "arguments": ["*/words/serve.py"]}]},
        "other": {"match": [{"program": program, "arguments": ["*/other.py"]}]},
        "child": {"match": [{"ancestor": {"program": program}}]},
        "away": {"disabled": True, "match": [{"program": program}]}})
    done = lessor(files, "match", str(process.pid), "--files", str(files))
    assert done.returncode == 0, done.stderr
    assert f"process {process.pid} is words's, as server, by what it is, which is its own word\n" in done.stdout
    assert "words: yes\n  rule 2, server: yes\n" in done.stdout and "other: no\n  rule 1, main: no\n" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["yes", "arguments", "*/words/serve.py", "/srv/words/serve.py"] in lines and ["no", "arguments", "*/other.py"] in lines
    told = json.loads(lessor(files, "match", "--json", str(process.pid), "--files", str(files)).stdout)
    assert (told["tenant"], told["role"], told["by"], told["pid"]) == ("words", "server", "process", process.pid)
    assert told["others"] >= 1  # its parent, this test, is run by the same program
    verdicts = {one["name"]: one["verdict"] for one in told["tenants"]}
    assert verdicts["words"] == verdicts["child"] == verdicts["away"] == "yes" and verdicts["other"] == "no"
    done = lessor(files, "match", str(process.pid), "other", "--files", str(files))
    assert done.returncode == 0 and "words: " not in done.stdout and "other: no" in done.stdout


def test_match_of_nobodys_process_and_of_none(files, process):
    done = lessor(files, "match", str(process.pid), "--files", str(files))
    assert done.returncode == 1 and f"process {process.pid} is no tenant's\n" in done.stdout
    assert lessor(files, "match", "4194304", "--files", str(files)).returncode == 1
    assert "no process has the pid 4194304" in lessor(files, "match", "4194304", "--files", str(files)).stderr
    assert lessor(files, "match", "x", "--files", str(files)).returncode == 2
    assert lessor(files, "match", "--files", str(files)).returncode == 2
    done = lessor(files, "match", str(process.pid), "nobody", "--files", str(files))
    assert done.returncode == 1 and "there is no tenant nobody" in done.stderr


@pytest.fixture(name="place")
def place_fixture():
    place = Place()
    yield place
    place.close()


MINE = {"mine": {"match": [{"unit": "x"}], "title": "Mine"}}


def known(place):
    answer = place.get("/api/tenants")
    assert answer.status == 200, answer
    return {one["name"]: one for one in answer.json["tenants"]}, answer.json["error"]


def test_lessord_takes_all_files_or_none_when_it_reads_them_again(place):
    os.makedirs(os.path.join(place.home, "tenants.d"), mode=0o700)
    file = pathlib.Path(place.home, "tenants.json")
    write(file, MINE)
    place.start()
    tenants, error = known(place)
    assert len(tenants) > 30 and tenants["mine"]["definition"] == MINE["mine"] and error is None
    file.write_text('{"tenants": {"mine": {"titel": 1}}}', encoding="utf-8")
    pathlib.Path(place.home, "tenants.d", "1.json").write_text('{"tenants": {"b": {"match": [{"unit": "b"}]}}}', encoding="utf-8")
    refused = place.request("POST", "/api/reload")
    assert refused.status == 422 and refused.problem == "bad-config", refused
    assert f"{file}:1: tenants/mine/titel" in refused.json["detail"] and "nothing was changed" in refused.json["detail"]
    assert set(known(place)[0]) == set(tenants)
    write(file, {"mine": {"title": "Other", "match": [{"unit": "x"}]}})
    assert place.request("POST", "/api/reload").status == 200
    now, error = known(place)
    assert now["mine"]["title"] == "Other" and "b" in now and error is None


def test_lessord_that_starts_with_a_faulty_file_goes_by_what_it_took_last(place):
    os.makedirs(place.home, mode=0o700, exist_ok=True)
    file = pathlib.Path(place.home, "tenants.json")
    write(file, MINE)
    place.start()
    place.stop()
    file.write_text("{", encoding="utf-8")
    place.start()
    tenants, error = known(place)
    assert tenants["mine"]["title"] == "Mine" and f"{file}:1: no JSON" in error
    assert f"{file}:1: no JSON" in place.get("/api/status").json["config_error"]
    write(file, {})
    assert place.request("POST", "/api/reload").status == 200
    tenants, error = known(place)
    assert "mine" not in tenants and error is None and place.get("/api/status").json["config_error"] is None
