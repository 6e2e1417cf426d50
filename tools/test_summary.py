#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Close a test run with one plain line that people and machines can count.

    test_summary.py [--status N] TESTLOG.json

Reads meson's testlog.json (one JSON object a line). A test that speaks TAP counts as its subtests, any other as one.
Prints the log of each failing test, a line "skipped: NAME (reason)" for each skip, and last, alone on its line,
"N passed, N failed, N skipped". Exit status 1 when something failed, when nothing ran, or when meson's own status
(--status) says so although no test did.
"""

import argparse
import json
import re
import sys

TAP_LINE = re.compile(r"^(not ok|ok)\b *(\d+)?(?: *- *| +)?(.*)$")
TAP_PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*skip\S*\s*(.*))?$", re.IGNORECASE)
DIRECTIVE = re.compile(r"(?<!\\)#\s*(skip|todo)\S*\s*(.*)$", re.IGNORECASE)
GOOD = {"OK", "EXPECTEDFAIL"}


class Count:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []


def read_tap(name, text, count):
    """Adds the subtests of one test; returns how many lines and how many failures there were."""
    seen = failures = 0
    planned = None
    for line in text.splitlines():
        plan = TAP_PLAN.match(line)
        if plan:
            planned = int(plan[1])
            if planned == 0:
                count.skipped.append((name, plan[2] or "no reason given"))
            continue
        match = TAP_LINE.match(line)
        if not match:
            continue
        seen += 1
        title = match[3].strip()
        directive = DIRECTIVE.search(title)
        label = f"{name}: {DIRECTIVE.sub('', title).strip() or match[2] or seen}"
        if directive:
            reason = directive[2].strip() or "no reason given"
            if directive[1].lower() == "todo":
                reason = "known to fail: " + reason
            count.skipped.append((label, reason))
        elif match[1] == "ok":
            count.passed += 1
        else:
            failures += 1
            count.failed.append(label)
    if planned is not None and planned != seen:
        failures += 1
        count.failed.append(f"{name}: {seen} of {planned} announced tests reported")
    return seen, failures


def is_tap(text):
    return any(TAP_PLAN.match(line) for line in text.splitlines()) or re.search(r"^(not )?ok \d+", text, re.M)


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def read_test(entry, count):
    """One object of testlog.json; true when the test as a whole is good."""
    name, result, out = entry["name"], entry["result"], entry.get("stdout") or ""
    before = len(count.failed)
    if is_tap(out):
        seen, failures = read_tap(name, out, count)
        if failures == 0 and result not in GOOD and result != "SKIP":
            # all subtests were fine, and still: a crash after the last, a time-out, a wrong exit status
            count.failed.append(f"{name}: ended badly ({result.lower()}, status {entry.get('returncode')})")
        elif seen == 0 and failures == 0 and result in GOOD and not re.search(r"^1\.\.0", out, re.M):
            count.failed.append(f"{name}: reported no test at all")
    elif result in GOOD:
        count.passed += 1
    elif result == "SKIP":
        count.skipped.append((name, last_line(out + "\n" + (entry.get("stderr") or ""))))
    else:
        count.failed.append(f"{name}: {result.lower()}, status {entry.get('returncode')}")
    return len(count.failed) == before


def show_log(entry):
    print(f"---- {entry['name']}: {entry['result']}, status {entry.get('returncode')}")
    for part in ("stdout", "stderr"):
        text = (entry.get(part) or "").rstrip()
        if text:
            print(f"-- {part}\n{text}")
    print("----")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--status", type=int, default=0)
    parser.add_argument("testlog")
    arguments = parser.parse_args()

    count = Count()
    try:
        with open(arguments.testlog, encoding="utf-8", errors="replace") as log:
            entries = [json.loads(line) for line in log if line.strip()]
    except FileNotFoundError:
        entries = []
    for entry in entries:
        if not read_test(entry, count):
            show_log(entry)

    if arguments.status != 0 and not count.failed:
        count.failed.append(f"meson test itself (status {arguments.status})")
    if not entries:
        count.failed.append("no test ran")
    for name in count.failed:
        print(f"failed: {name}")
    for name, reason in count.skipped:
        print(f"skipped: {name} ({reason})")
    print(f"{count.passed} passed, {len(count.failed)} failed, {len(count.skipped)} skipped")
    return 1 if count.failed else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main())
