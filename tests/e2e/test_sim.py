# SPDX-License-Identifier: Apache-2.0
"""lessor-sim: traces in, what is in them out, and words for what is wrong."""

import csv
import html.parser
import json
import os
import re
import shutil
import subprocess

import pytest

from cli_helpers import BUILD, SOURCE

SIM = os.path.join(BUILD, "bin", "lessor-sim")


def sim(*words, code=0, given=None):
    done = subprocess.run([SIM, *map(str, words)], check=False, text=True, input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=None if given is not None else subprocess.DEVNULL)
    assert done.returncode == code, (words, done.returncode, done.stderr)
    return done.stderr if code else done.stdout


def verbs():
    return re.findall(r"^  (\w+) ", sim("help").split("Verbs (each has --help):")[1].split("\n\n")[0], re.M)


@pytest.fixture(scope="module", name="traces")
def fixture_traces(tmp_path_factory):
    """A small cluster and what wants to run on it."""
    folder = tmp_path_factory.mktemp("traces")
    made = {}
    for kind, count in (("nodes", 40), ("tasks", 300), ("jobs", 400)):
        made[kind] = folder / f"{kind}.csv"
        made[kind].write_text(sim("synth", kind, "--count", count), encoding="ascii")
    return made


def test_every_verb_has_help_a_place_in_the_manual_and_completion():
    with open(os.path.join(SOURCE, "man", "lessor-sim.1.scd"), encoding="utf-8") as file:
        page = file.read()
    bash = sim("completion", "bash")
    assert subprocess.run(["bash", "-n"], input=bash, text=True, check=False).returncode == 0
    assert "complete -F _lessor_sim lessor-sim" in bash and "_lessor " not in bash and "lessor-sim-sim" not in bash
    assert "#compdef lessor-sim" in sim("completion", "zsh")
    for verb in verbs():
        said = sim(verb, "--help")
        options = set(re.findall(r"^  --([a-z-]+)", said, re.M)) - {"help"}
        assert re.search(rf"^\*{verb}\*", page, re.M), verb
        section = page.split(f"# OPTIONS OF {verb.upper()}\n")[1].split("\n# ")[0] if options else ""
        assert set(re.findall(r"\*--([a-z-]+)\* ?", "\n".join(line for line in section.splitlines() if line.startswith("*")))) == options, verb
        for option in options:
            assert f"--{option}|" in bash, (verb, option)


def test_mistyped_words_are_answered_with_the_right_ones():
    assert "Did you mean `lessor-sim check`?" in sim("chekc", code=2)
    assert "did you mean --trace?" in sim("check", "--trac", "x", code=2)
    assert "--trace needs --nodes" in sim("check", "--trace", "x", code=2)
    assert "nodes, tasks or jobs" in sim("synth", "pods", code=2)
    assert "--count: \"-1\" is negative" in sim("synth", "nodes", "--count", "-1", code=2)


def test_made_up_trace_is_good_and_the_same_each_time(traces):
    assert traces["tasks"].read_text(encoding="ascii") == sim("synth", "tasks", "--count", 300)
    assert traces["tasks"].read_text(encoding="ascii") != sim("synth", "tasks", "--count", 300, "--seed", 2)
    facts = json.loads(sim("check", "--json", "--nodes", traces["nodes"], "--trace", traces["tasks"], "--jobs", traces["jobs"]))
    assert facts["nodes"]["rows"] == 40 and sum(facts["nodes"]["gpus_by_model"].values()) == facts["nodes"]["gpus"]
    assert facts["tasks"]["rows"] == 300 == facts["tasks"]["cpu_only"] + facts["tasks"]["sharing"] + sum(facts["tasks"]["whole_gpus"].values())
    assert facts["jobs"]["rows"] == 400


def test_bad_row_names_file_line_column_and_value(traces, tmp_path):
    bad = tmp_path / "bad.csv"
    rows = traces["tasks"].read_text(encoding="ascii").splitlines()
    bad.write_text("\n".join([*rows, "task-x,8000,16000,2,500,,0,9"]) + "\n", encoding="ascii")
    said = sim("check", "--nodes", traces["nodes"], "--trace", bad, code=1)
    assert said == (f"lessor-sim check: {bad}, line 302, column gpu_milli: \"500\" is a part of each of several GPUs; "
                    "only num_gpu 1 may have less than 1000\n")
    assert "opening /nowhere/x.csv: No such file or directory" in sim("check", "--jobs", "/nowhere/x.csv", code=1)
    assert "reading" in sim("check", "--jobs", tmp_path, code=1)


def peak_kib(count):
    """The most memory that reading so many jobs from a pipe took."""
    with subprocess.Popen([SIM, "synth", "jobs", "--count", str(count)], stdout=subprocess.PIPE) as source, \
            subprocess.Popen([SIM, "check", "--jobs", "-"], stdin=source.stdout, stdout=subprocess.DEVNULL) as reader:
        _, status, usage = os.wait4(reader.pid, 0)
        reader.returncode = os.waitstatus_to_exitcode(status)
        source.stdout.close()
        assert source.wait() == 0 and reader.returncode == 0
    return usage.ru_maxrss


@pytest.mark.skipif(os.environ.get("LESSOR_SANITIZED") == "1", reason="a sanitizer keeps memory of its own")
def test_long_trace_is_read_in_the_memory_of_a_short_one():
    assert peak_kib(400000) < peak_kib(100) + 1024  # of 7 MiB


def test_run_prints_the_same_bytes_whatever_the_number_of_threads(traces):
    words = ["run", "--nodes", traces["nodes"], "--trace", traces["tasks"], "--seeds", "4-6"]
    for form in ([], ["--json"], ["--csv"]):
        one, many = (sim(*words, *form, "--threads", n) for n in (1, 7))
        assert one == many != ""
        assert one == sim(*words, *form)


def test_run_compares_seed_by_seed_and_says_whose_seeds_they_are(traces):
    words = ["run", "--nodes", traces["nodes"], "--trace", traces["tasks"], "--policy", "fgd", "--policy", "random", "--points", "80,100"]
    said = json.loads(sim(*words, "--json"))
    assert "not the seeds of the published runs" in said["note"] and (said["first_seed"], said["seeds"], said["tasks"]) == (1, 10, 300)
    rows = list(csv.DictReader(sim(*words, "--csv").splitlines()))
    fgd, random = said["policies"]
    assert [point["arrived_pct"] for point in fgd["points"]] == [80, 100]
    for k, percent in enumerate(("80", "100")):
        used = {(row["policy"], row["seed"]): float(row["alloc_pct"]) for row in rows if row["arrived_pct"] == percent}
        differences = [used["random", str(seed)] - used["fgd", str(seed)] for seed in range(1, 11)]
        above = random["points"][k]["above"]
        assert above["policy"] == "fgd" and above["low"] < above["mean"] < above["high"]
        assert abs(above["mean"] - sum(differences) / 10) < 0.001
        assert abs(fgd["points"][k]["alloc_pct"]["mean"] - sum(used["fgd", str(seed)] for seed in range(1, 11)) / 10) < 0.001
        assert "above" not in fgd["points"][k]
    for policy in said["policies"]:
        assert all(run["placed"] + run["failed"] > 300 and run["stranded_milli"]["8"] <= run["free_milli"] for run in policy["runs"])
    assert "not the seeds of the published runs" in sim(*words)


def test_run_answers_wrong_words_with_the_right_ones(traces):
    words = ["run", "--nodes", traces["nodes"], "--trace", traces["tasks"]]
    assert "there is no policy \"bestfit\"; did you mean best-fit?" in sim(*words, "--policy", "bestfit", code=2)
    assert "--against fgd: it takes no part" in sim(*words, "--policy", "random", "--against", "fgd", code=2)
    assert "--seeds, the last: \"3\" is too small" in sim(*words, "--seeds", "5-3", code=2)
    assert "--points: \"201\" is too large" in sim(*words, "--points", "100,201", code=2)
    assert "--csv or --json, not both" in sim(*words, "--csv", "--json", code=2)
    assert "on what? --nodes FILE --trace FILE" in sim("run", code=2)
    assert sim("policies").count("\n") >= 8


def test_replay_of_jobs_and_of_tasks_is_the_same_each_time(traces):
    jobs = ["replay", "--jobs", traces["jobs"], "--cluster", "4x8", "--policy", "fgd", "--policy", "spread", "--fail-each", "2d"]
    for form in ([], ["--json"], ["--csv"]):
        assert sim(*jobs, *form, "--threads", 1) == sim(*jobs, *form, "--threads", 5) != ""
    runs = json.loads(sim(*jobs, "--json"))["runs"]
    assert [run["policy"] for run in runs] == ["fgd", "spread"]
    for run in runs:
        assert run["ended"] + run["never"] + run["given_up"] == 400 == run["jobs"] and run["node_failures"] > 0 and 0 < run["occupancy_pct"] <= 100
        assert run["wait_s"]["jobs"] == sum(size["jobs"] for size in run["wait_s_by_size"]) == run["ended"] + run["given_up"]
    rows = list(csv.DictReader(sim(*jobs, "--csv").splitlines()))
    assert len(rows) == 800 and {row["fate"] for row in rows} <= {"ended", "never", "given-up"}
    assert all(int(row["wait_s"]) >= 0 and int(row["end_s"]) > int(row["start_s"]) for row in rows if row["fate"] == "ended")
    waits = {run["policy"]: run["wait_s"]["mean"] for run in json.loads(sim(
        "replay", "--jobs", traces["jobs"], "--cluster", "3x8", "--order", "fcfs", "--order", "easy", "--order", "3", "--json"))["runs"]}
    assert list(waits) == ["fcfs", "easy", "3"] and waits["easy"] < waits["fcfs"] > waits["3"]
    tasks = json.loads(sim("replay", "--nodes", traces["nodes"], "--trace", traces["tasks"], "--policy", "fgd", "--json"))["runs"][0]
    assert tasks["ended"] + tasks["never"] == 300 == tasks["jobs"]


def test_replay_answers_wrong_words_with_the_right_ones(traces, tmp_path):
    words = ["replay", "--jobs", traces["jobs"]]
    assert "on what? --nodes FILE, or --cluster NxG" in sim(*words, code=2)
    assert "--order: fcfs, easy, conservative, or how many" in sim(*words, "--cluster", "4x8", "--order", "quick", code=2)
    assert "--estimates: exact or rough" in sim(*words, "--cluster", "4x8", "--estimates", "good", code=2)
    assert "--cluster: NxG, as in 64x8" in sim(*words, "--cluster", "64", code=2)
    assert "--cluster, the GPUs: \"17\" is too large" in sim(*words, "--cluster", "64x17", code=2)
    assert "--fail-each: it takes a second at least" in sim(*words, "--cluster", "4x8", "--fail-each", "5ms", code=2)
    assert "--trace needs --nodes" in sim("replay", "--trace", traces["tasks"], "--cluster", "4x8", code=2)
    timeless = tmp_path / "tasks.csv"
    timeless.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,1000\n", encoding="ascii")
    assert "line 2: there is no deletion_time" in sim("replay", "--nodes", traces["nodes"], "--trace", timeless, code=1)


def test_fetch_says_where_the_trace_is_and_gives_git_its_words_one_by_one(tmp_path):
    said = sim("fetch", "openb")
    assert "https://github.com/alibaba/clusterdata.git" in said and re.search(r"^  [0-9a-f]{64}  openb_pod_list_default.csv$", said, re.M)
    git = tmp_path / "git"  # no test goes out to a network
    git.write_text(f'#!/bin/sh\nfor word; do printf "%s|" "$word"; done >>{tmp_path}/words; echo >>{tmp_path}/words\n', encoding="ascii")
    git.chmod(0o755)
    into = f"{tmp_path}/a b; c"
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([SIM, "fetch", "openb", "--into", into], env=env, stdout=subprocess.PIPE, text=True, check=True)
    assert f"the trace is in {into}/cluster-trace-gpu-v2023/csv" in done.stdout
    assert (tmp_path / "words").read_text(encoding="ascii").splitlines() == [
        f"clone|--|https://github.com/alibaba/clusterdata.git|{into}|", f"-C|{into}|checkout|--quiet|--detach|7a6c496e4f4b|"]
    git.write_text("#!/bin/sh\nexit 1\n", encoding="ascii")
    failed = subprocess.run([SIM, "fetch", "openb", "--into", into], env=env, stderr=subprocess.PIPE, text=True, check=False)
    assert failed.returncode == 1 and "git clone did not end well" in failed.stderr
    assert "is there already" in sim("fetch", "openb", "--into", tmp_path, code=1)
    assert "does not begin with -" in sim("fetch", "openb", "--into", "--upload-pack=x", code=2)
    assert "which? openb" in sim("fetch", code=2)


class Page(html.parser.HTMLParser):
    """Every element is closed, and nothing comes from elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        assert not {"src", "href", "onload", "onclick"} & {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_reports_are_pages_that_need_nothing_but_themselves(traces, tmp_path):
    for words in (["run", "--nodes", traces["nodes"], "--trace", traces["tasks"], "--seeds", "2", "--policy", "fgd", "--policy", "random"],
                  ["replay", "--jobs", traces["jobs"], "--cluster", "4x8"]):
        path = tmp_path / f"{words[0]}.html"
        sim(*words, "--html", path)
        text = path.read_text(encoding="utf-8")
        page = Page(text)
        assert page.seen.count("svg") == 3 + (words[0] == "replay") and "script" not in page.seen and "http:" not in text and "nan" not in text
        assert page.seen.count("polyline") >= 3
        assert not os.path.exists(f"{path}.new")
        first = path.read_bytes()
        sim(*words, "--html", path)
        assert path.read_bytes() == first
    assert "No such file or directory" in sim("replay", "--jobs", traces["jobs"], "--cluster", "4x8", "--html", "/nowhere/x.html", code=1)


def reproduction(folder, *words, code=0):
    done = subprocess.run([SIM, "reproduce", "--data", folder, "--json", *words], check=False, text=True, stdout=subprocess.PIPE)
    assert done.returncode == code, done.stdout
    return json.loads(done.stdout)


def test_reproduce_tells_by_its_exit_status_whether_every_mean_is_met(traces, tmp_path):
    shutil.copy(traces["nodes"], tmp_path / "openb_node_list_gpu_node.csv")
    shutil.copy(traces["tasks"], tmp_path / "openb_pod_list_mine.csv")
    assert "there is no published_mean.csv" in sim("reproduce", "--data", tmp_path, code=1)

    def publish(rows):
        (tmp_path / "published_mean.csv").write_text("\n".join(["trace,policy,arrived_pct,alloc_mean", *rows, ""]), encoding="ascii")

    publish(f"mine,{policy},{at},0" for policy in ("FGD", "Random", "Unheard") for at in (100, 130))
    cells = {(cell["trace"], cell["policy"], cell["arrived_pct"]): cell for cell in reproduction(tmp_path, "--seeds", "3", code=1)["cells"]}
    assert set(cells) == {("mine", policy, at) for policy in ("FGD", "Random") for at in (100, 130)}
    ours = {(policy, at): cell["mean"] for (_, policy, at), cell in cells.items()}
    for off, code in ((0.49, 0), (0.51, 1)):
        publish(f"mine,{policy},{at},{mean - (off if policy == 'FGD' else 2 * off):.6f}" for (policy, at), mean in ours.items())
        said = reproduction(tmp_path, "--seeds", "3", code=code)
        assert said["met"] == (4 if code == 0 else 0) and abs(said["cells"][0]["difference"] - 2 * off) < 0.001
    assert "nothing was published for a trace \"other\"" in sim("reproduce", "--data", tmp_path, "--only", "other", code=1)


DATA = os.environ.get("LESSOR_DATA", "")
needs_data = pytest.mark.skipif(not os.path.exists(os.path.join(DATA, "openb", "published_mean.csv")),
                                reason="no published traces: LESSOR_DATA names no folder with them")


@needs_data
def test_published_means_are_met_on_the_published_trace():
    said = reproduction(DATA, "--only", "default", "--seeds", "42-43")
    assert said["n"] == said["met"] == 12 and {cell["trace"] for cell in said["cells"]} == {"default"}


@needs_data
def test_published_traces_are_what_is_known_of_them():
    folder = DATA
    nodes = os.path.join(folder, "openb", "openb_node_list_gpu_node.csv")
    facts = json.loads(sim("check", "--json", "--nodes", nodes, "--trace", os.path.join(folder, "openb", "openb_pod_list_default.csv"),
                           "--jobs", os.path.join(folder, "philly", "philly_jobs.csv")))
    assert facts["nodes"] == {"rows": 1213, "gpus": 6212, "cpu_milli": 107018000, "gpus_without_model": 0, "gpus_by_model": {
        "G2": 4392, "T4": 842, "G3": 312, "P100": 265, "V100M32": 204, "V100M16": 195, "A10": 2}}
    assert facts["tasks"] == {"rows": 8152, "cpu_only": 1088, "sharing": 3078, "whole_gpus": {"1": 3911, "2": 16, "4": 15, "8": 44},
                              "naming_models": 0, "cpu_milli": 85436012, "gpu_milli": 6086800}
    assert facts["jobs"]["rows"] == 82247 and facts["jobs"]["gpu_seconds"] // 3600 == 978078 and facts["jobs"]["widest_gpus"] == 128
