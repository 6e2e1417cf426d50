# SPDX-License-Identifier: Apache-2.0
"""lessor-sim: traces in, what is in them out, and words for what is wrong."""

import json
import os
import re
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
    assert "did you mean --tasks?" in sim("check", "--task", "x", code=2)
    assert "--tasks needs --nodes" in sim("check", "--tasks", "x", code=2)
    assert "nodes, tasks or jobs" in sim("synth", "pods", code=2)
    assert "--count: \"-1\" is negative" in sim("synth", "nodes", "--count", "-1", code=2)


def test_made_up_trace_is_good_and_the_same_each_time(traces):
    assert traces["tasks"].read_text(encoding="ascii") == sim("synth", "tasks", "--count", 300)
    assert traces["tasks"].read_text(encoding="ascii") != sim("synth", "tasks", "--count", 300, "--seed", 2)
    facts = json.loads(sim("check", "--json", "--nodes", traces["nodes"], "--tasks", traces["tasks"], "--jobs", traces["jobs"]))
    assert facts["nodes"]["rows"] == 40 and sum(facts["nodes"]["gpus_by_model"].values()) == facts["nodes"]["gpus"]
    assert facts["tasks"]["rows"] == 300 == facts["tasks"]["cpu_only"] + facts["tasks"]["sharing"] + sum(facts["tasks"]["whole_gpus"].values())
    assert facts["jobs"]["rows"] == 400


def test_bad_row_names_file_line_column_and_value(traces, tmp_path):
    bad = tmp_path / "bad.csv"
    rows = traces["tasks"].read_text(encoding="ascii").splitlines()
    bad.write_text("\n".join([*rows, "task-x,8000,16000,2,500,,0,9"]) + "\n", encoding="ascii")
    said = sim("check", "--nodes", traces["nodes"], "--tasks", bad, code=1)
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


def test_published_traces_are_what_is_known_of_them():
    folder = os.environ.get("LESSOR_DATA", "")
    nodes = os.path.join(folder, "openb", "openb_node_list_gpu_node.csv")
    if not os.path.exists(nodes):
        assert folder == "" or not os.path.exists(os.path.join(folder, "openb"))
        return  # nothing is skipped: who has no data has the made-up ones above
    facts = json.loads(sim("check", "--json", "--nodes", nodes, "--tasks", os.path.join(folder, "openb", "openb_pod_list_default.csv"),
                           "--jobs", os.path.join(folder, "philly", "philly_jobs.csv")))
    assert facts["nodes"] == {"rows": 1213, "gpus": 6212, "cpu_milli": 107018000, "gpus_without_model": 0, "gpus_by_model": {
        "G2": 4392, "T4": 842, "G3": 312, "P100": 265, "V100M32": 204, "V100M16": 195, "A10": 2}}
    assert facts["tasks"] == {"rows": 8152, "cpu_only": 1088, "sharing": 3078, "whole_gpus": {"1": 3911, "2": 16, "4": 15, "8": 44},
                              "naming_models": 0, "cpu_milli": 85436012, "gpu_milli": 6086800}
    assert facts["jobs"]["rows"] == 82247 and facts["jobs"]["gpu_seconds"] // 3600 == 978078 and facts["jobs"]["widest_gpus"] == 128
