#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Run one pytest file and report it as TAP, so that each pytest test is counted by name.

    pytest_tap.py FILE [pytest options]

TAP goes to the real standard output; what the tests print is captured by pytest and shown, as "# ..." lines,
below the tests that failed. Nothing is written into the source tree.
"""

import os
import signal
import sys

import pytest


class TapReporter:
    def __init__(self, stream):
        self.stream = stream
        self.count = 0
        self.outcome = {}  # nodeid -> [outcome, reason or details]

    def say(self, line):
        self.stream.write(line + "\n")
        self.stream.flush()

    def explain(self, text):
        for line in text.splitlines():
            self.say("# " + line)

    def result(self, good, name, directive=""):
        self.count += 1
        name = name.replace("#", "%23").replace("\n", " ")  # '#' begins a directive in TAP
        self.say(f"{'ok' if good else 'not ok'} {self.count} - {name}{directive}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        """Called for setup, call and teardown of each test; the verdict is given after the last."""
        seen = self.outcome.setdefault(report.nodeid, ["passed", ""])
        if report.failed:
            details = report.longreprtext
            for title, text in report.sections:
                details += f"\n--- {title}\n{text}"
            seen[0] = "failed"
            seen[1] += f"[{report.when}]\n{details}\n"
        elif report.skipped and seen[0] == "passed":
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            if hasattr(report, "wasxfail"):
                reason = "expected to fail: " + report.wasxfail
            seen[0] = "skipped"
            seen[1] = " ".join(reason.removeprefix("Skipped: ").split())
        if report.when != "teardown":
            return

        outcome, text = self.outcome.pop(report.nodeid)
        name = report.nodeid.split("::", 1)[-1].replace("::", ".")
        if outcome == "skipped":
            self.result(True, name, f" # SKIP {text}")
            return
        self.result(outcome == "passed", name)
        if outcome == "failed":
            self.explain(text)

    def pytest_addoption(self, parser):
        # without the terminal plugin nobody defines it, and explaining a comparison that failed asks for it
        parser.getgroup("tap").addoption("--verbose", action="count", default=0, dest="verbose")

    def pytest_collectreport(self, report):
        if report.failed:
            self.result(False, f"{report.nodeid or 'the file'} can be read by pytest")
            self.explain(report.longreprtext)

    def pytest_internalerror(self, excrepr):
        self.result(False, "pytest itself works")
        self.explain(str(excrepr))

    def pytest_sessionfinish(self, session, exitstatus):
        self.say(f"1..{self.count}")


def main(argv):
    if len(argv) < 2:
        sys.exit(__doc__)
    # who runs us in the background may have us ignore SIGINT, SIGQUIT or SIGHUP, and every program we test would inherit that
    for number in signal.valid_signals():
        if number != signal.SIGPIPE and signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    # our own copy of stdout, taken before pytest begins to capture
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
    root = os.path.dirname(os.path.abspath(argv[1]))
    options = ["-p", "no:terminal", "-p", "no:cacheprovider", "--rootdir", root, "-c", os.devnull]
    reporter = TapReporter(stream)
    status = pytest.main(options + argv[1:], plugins=[reporter])
    if status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return 0 if reporter.count > 0 else 1  # TAP says which failed; the exit status is for the runner alone
    if status == pytest.ExitCode.NO_TESTS_COLLECTED and reporter.count == 0:
        print("# no tests in this file", file=sys.stderr)
    return int(status) or 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
