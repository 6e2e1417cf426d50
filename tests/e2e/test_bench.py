# SPDX-License-Identifier: Apache-2.0
"""Each bench runs and says what design 9 asks of it. What it measured in so few rounds says nothing and is not looked at."""

import json
import os
import subprocess

import pytest

# The program on the card is Python, which is not built with a sanitizer: those want to be the first library of a process.
SANITIZED = os.environ.get("LESSOR_SANITIZED") == "1"
needs_plain = pytest.mark.skipif(SANITIZED, reason="built with sanitizers, which are to be the first library")
RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "run")


def bench(*words):
    return subprocess.run([RUN, *words], capture_output=True, text=True)


@pytest.mark.parametrize("name", [
    "core", "grant", pytest.param("handover", marks=needs_plain), "idle", "placement", "stranger", "sweep",
    pytest.param("thaw", marks=needs_plain), "vanish"])
def test_a_bench_prints_one_object_with_its_ratio_bound_and_raw_parts(name):
    done = bench(name, "--json", "--raw", "--quick")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["name"] == name and said["ratio"] >= 0 and said["bound"] and said["samples"], said
    assert said["ok"] in (True, False, None) and said["raw"] and said["reference"]["what"], said
    assert said["commit"] and said["machine"]["cores"] and said["machine"]["file_system"], said


@needs_plain
@pytest.mark.parametrize("name, way, calls", [("handover", "out", ("lock", "checkpoint")), ("thaw", "back", ("restore", "unlock"))])
def test_each_row_of_a_hand_over_is_joined_with_the_trace_of_the_card(name, way, calls, tmp_path):
    raw = tmp_path / "rows"
    done = bench(name, "--json", "--quick", "--raw", str(raw))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    rows = [json.loads(line) for line in raw.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == said["raw"]["rows"] > 0 and "samples" not in said
    assert said["raw"]["p50_added_ms"] <= said["raw"]["p99_added_ms"] == pytest.approx(said["ratio"] * 10, abs=0.01), said
    for row in rows:
        begin, end = (row["request_ns"], row["granted_ns"]) if way == "out" else (row["release_ns"], row["active_ns"])
        moments = [begin, *(row[way][f"{call}_{edge}_ns"] for call in calls for edge in ("begin", "end")), end]
        assert moments == sorted(moments), row
        card = sum(row[way][f"{call}_end_ns"] - row[way][f"{call}_begin_ns"] for call in calls) / 1e6
        parts = [row[way][f"before_{call}_ms"] for call in calls] + [row[way][f"behind_{calls[-1]}_ms"]]
        assert row[way]["card_ms"] == pytest.approx(card) and row[way]["added_ms"] == pytest.approx(sum(parts)), row
        assert row[way]["added_ms"] == pytest.approx((end - begin) / 1e6 - card), row


def test_the_help_names_every_bench():
    help_text = bench("--help").stdout
    assert all(f"\n  {name} " in help_text for name in ("core", "grant", "handover", "idle", "placement", "stranger", "sweep", "thaw", "vanish")), help_text


def test_an_unknown_bench_is_refused_with_the_names_there_are():
    done = bench("speed")
    assert done.returncode == 2 and "speed" in done.stderr and "sweep" in done.stderr, done.stderr
