# SPDX-License-Identifier: Apache-2.0
"""Each bench runs and says what design 9 asks of it. What it measured in so few rounds says nothing and is not looked at."""

import json
import os
import subprocess

import pytest

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "run")


def bench(*words):
    return subprocess.run([RUN, *words], capture_output=True, text=True)


@pytest.mark.parametrize("name", ["core", "grant", "idle", "sweep", "vanish"])
def test_a_bench_prints_one_object_with_its_ratio_bound_and_raw_parts(name):
    done = bench(name, "--json", "--raw", "--quick")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["name"] == name and said["ratio"] >= 0 and said["bound"] and said["samples"], said
    assert said["ok"] in (True, False, None) and said["raw"] and said["reference"]["what"], said
    assert said["commit"] and said["machine"]["cores"] and said["machine"]["file_system"], said


def test_the_help_names_every_bench():
    help_text = bench("--help").stdout
    assert all(f"\n  {name} " in help_text for name in ("core", "grant", "idle", "sweep", "vanish")), help_text


def test_an_unknown_bench_is_refused_with_the_names_there_are():
    done = bench("speed")
    assert done.returncode == 2 and "speed" in done.stderr and "sweep" in done.stderr, done.stderr
