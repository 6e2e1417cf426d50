#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whoever counts the tests is tested too: tools/test_summary.py and tools/pytest_tap.py on logs with known content.

    summary_test.py TEST_SUMMARY PYTEST_TAP
"""

import json
import os
import subprocess
import sys
import tempfile

CASES = [
    # name, log entries, --status, expected last line, expected exit status, a line that must be there
    ("TAP counts by subtest", [("a", "OK", 0, "1..2\nok 1 - x\nok 2 - y\n")], 0, "2 passed, 0 failed, 0 skipped", 0, None),
    ("a test without TAP counts as one", [("a", "OK", 0, "hello\n")], 0, "1 passed, 0 failed, 0 skipped", 0, None),
    ("a failed subtest is named", [("a", "FAIL", 1, "1..2\nok 1 - x\nnot ok 2 - y z\n# why\n")], 1,
     "1 passed, 1 failed, 0 skipped", 1, "failed: a: y z"),
    ("the log of a failed test is shown", [("a", "FAIL", 1, "1..1\nnot ok 1 - y\n# because\n")], 1,
     "0 passed, 1 failed, 0 skipped", 1, "# because"),
    ("a skipped subtest gives its reason", [("a", "OK", 0, "1..2\nok 1 - x\nok 2 - y # SKIP no card\n")], 0,
     "1 passed, 0 failed, 1 skipped", 0, "skipped: a: y (no card)"),
    ("a whole skipped TAP test gives its reason", [("a", "SKIP", 0, "1..0 # SKIP no card\n")], 0,
     "0 passed, 0 failed, 1 skipped", 0, "skipped: a (no card)"),
    ("exit status 77 gives its last line as the reason", [("a", "SKIP", 77, "x\nneeds a card\n")], 0,
     "0 passed, 0 failed, 1 skipped", 0, "skipped: a (needs a card)"),
    ("a crash after good subtests is a failure", [("a", "ERROR", -11, "1..1\nok 1 - x\n")], 1,
     "1 passed, 1 failed, 0 skipped", 1, "failed: a: ended badly (error, status -11)"),
    ("subtests that never came are a failure", [("a", "ERROR", 0, "1..3\nok 1 - x\n")], 1,
     "1 passed, 1 failed, 0 skipped", 1, "failed: a: 1 of 3 announced tests reported"),
    ("a time-out is a failure", [("a", "TIMEOUT", -15, "")], 1, "0 passed, 1 failed, 0 skipped", 1, "failed: a: timeout, status -15"),
    ("meson's own failure is one", [("a", "OK", 0, "")], 2, "1 passed, 1 failed, 0 skipped", 1, None),
    ("no test at all is a failure", [], 0, "0 passed, 1 failed, 0 skipped", 1, "failed: no test ran"),
    ("known failures are named as skips", [("a", "OK", 0, "1..1\nnot ok 1 - y # TODO later\n")], 0,
     "0 passed, 0 failed, 1 skipped", 0, "skipped: a: y (known to fail: later)"),
]  # fmt: skip

PYTEST_FILE = '''
import sys, pytest
def test_good(): print("not ok 7 - noise on stdout"); sys.stderr.write("ok 8 - noise")
def test_bad(): assert 1 == 2, "one is not two"
@pytest.mark.skip(reason="no card")
def test_skipped(): pass
@pytest.mark.parametrize("n", [1, 2])
def test_rows(n): pass
@pytest.fixture
def broken(): yield 1; raise RuntimeError("left something behind")
def test_teardown(broken): pass
@pytest.mark.xfail(reason="known")
def test_xfail(): assert False
class TestGroup:
    def test_in_group(self): pass
'''
PYTEST_LINES = [
    "ok 1 - test_good", "not ok 2 - test_bad", "ok 3 - test_skipped # SKIP no card", "ok 4 - test_rows[1]", "ok 5 - test_rows[2]",
    "not ok 6 - test_teardown", "ok 7 - test_xfail # SKIP expected to fail: known", "ok 8 - TestGroup.test_in_group", "1..8",
]  # fmt: skip


def main(argv):
    summary, pytest_tap = argv[1:]
    count = failed = 0

    def test(good, name, details):
        nonlocal count, failed
        count += 1
        failed += not good
        print(f"{'ok' if good else 'not ok'} {count} - {name}")
        if not good:
            for line in details.splitlines():
                print(f"# {line}")

    with tempfile.TemporaryDirectory(prefix="lessor-summary-") as folder:
        log = os.path.join(folder, "testlog.json")
        for name, entries, status, last, code, contains in CASES:
            with open(log, "w", encoding="utf-8") as file:
                for test_name, result, returncode, stdout in entries:
                    file.write(json.dumps({"name": test_name, "result": result, "returncode": returncode, "stdout": stdout}) + "\n")
            run = subprocess.run([sys.executable, summary, "--status", str(status), log], stdout=subprocess.PIPE, text=True)
            lines = run.stdout.splitlines()
            good = lines[-1:] == [last] and run.returncode == code and (contains is None or contains in lines)
            test(good, name, f"status {run.returncode}\n{run.stdout}")

        path = os.path.join(folder, "test_x.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PYTEST_FILE)
        run = subprocess.run([sys.executable, pytest_tap, path], stdout=subprocess.PIPE, text=True)
        lines = [line for line in run.stdout.splitlines() if not line.startswith("#")]
        test(lines == PYTEST_LINES and run.returncode == 0, "each pytest test is one line of TAP", f"status {run.returncode}\n{run.stdout}")
        test("one is not two" in run.stdout, "a failed pytest test says why", run.stdout)

        with open(path, "w", encoding="utf-8") as file:
            file.write("import nothing_of_that_name\n")
        run = subprocess.run([sys.executable, pytest_tap, path], stdout=subprocess.PIPE, text=True)
        test("not ok 1 - " in run.stdout and "nothing_of_that_name" in run.stdout, "a pytest file that cannot be read fails", run.stdout)
        with open(path, "w", encoding="utf-8") as file:
            file.write("")
        run = subprocess.run([sys.executable, pytest_tap, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        test(run.returncode != 0, "a pytest file without tests fails", run.stdout)
    print(f"1..{count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
