#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which numbered case is tested where: failures (F17), security rules (S02), worked examples (A1, B12), invariants (I3); the
worked examples of cluster scheduling, which have numbers alone, as P1, P2 ... (functions called example_8_..., examples_5_6_...).

    list_cases.py FOLDER...
    list_cases.py --check PAGE FOLDER...     what a page's tables say of cases and their tests is so

A case counts as tested where its number stands in a test file.
"""

import os
import re
import sys

# F17 and S02 are words of their own; A1 or I3 could be anything (a key, a control code), so these count only as the first
# word of a row's name ("B12 ..."), after "example", "invariant" or "case", or as the head of a function's name (b12_...).
PLAIN = re.compile(r"(?<![A-Za-z0-9])([FS]\d{2}|F1\d{2})(?![A-Za-z0-9])")
NAMED = re.compile(r"(?:\"|\b(?:[Ee]xamples?|[Ii]nvariants?|[Cc]ases?)[ _:]+)((?:[A-I]\d{1,2}(?:[,/ ]+|(?![A-Za-z0-9])))+)")
CLUSTER = re.compile(r"\bexamples?_((?:\d{1,2}_)+)[a-z]")
HEAD = re.compile(r"\b(?:test_|case_|example_)?((?:[A-Ia-iSs]\d{1,3}_)+)[a-zP]")


def cases_in(text):
    found = set(PLAIN.findall(text))
    for head in HEAD.findall(text):
        found.update(head.upper().strip("_").split("_"))
    for head in CLUSTER.findall(text):
        found.update(f"P{number}" for number in head.strip("_").split("_"))
    for group in NAMED.findall(text):
        found.update(re.findall(r"[A-I]\d{1,2}", group))
    return found


SUFFIXES = (".c", ".h", ".py", ".sh", ".scn")


def files_by_case(folders):
    where = {}
    for folder in folders:
        for path, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                if not name.endswith(SUFFIXES):
                    continue
                full = os.path.join(path, name)
                with open(full, encoding="utf-8", errors="replace") as file:
                    text = file.read()
                for case in cases_in(text):
                    where.setdefault(case, []).append(full)
    return where


ROW = re.compile(r"^\| ([FS]\d{2,3}) \|[^|]*\|([^|]*)\|([^|]*)\|$", re.MULTILINE)
FILE = re.compile(r"\b((?:test_|fuzz_)\w+\.\w+|hardened\.py)")


def wrong_rows(text, where):
    """What a page says that is not so, in words."""
    rows = ROW.findall(text)
    for case in sorted({case for case, _, _ in rows if [row[0] for row in rows].count(case) > 1}):
        yield f"{case} has two rows"
    for case, shown_by, not_yet in rows:
        there = {os.path.basename(full) for full in where.get(case, [])}
        named = FILE.findall(shown_by)
        for name in named:
            if name not in there:
                yield f"{case}: {name} does not have it"
        if not named and not not_yet.strip():
            yield f"{case}: neither a test nor what it comes with"
        if not named and there:
            yield f"{case}: {' '.join(sorted(there))} has it, the page does not say so"


def check(page, folders):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    where = files_by_case(folders)
    wrong = list(wrong_rows(text, where))
    n_rows = len(ROW.findall(text))
    checks = [
        ("every row is so", not wrong and n_rows > 40),
        ("a file without the number is found", bool(list(wrong_rows("| F17 | x | test_size.c | |\n", where)))),
        ("a row without anything is found", bool(list(wrong_rows("| F99 | x | | |\n", where)))),
        ("a test that is not told of is found", bool(list(wrong_rows("| F17 | x | | with y |\n", where)))),
    ]
    print(f"1..{len(checks)}")
    for n, (name, good) in enumerate(checks, 1):
        print(f"{'ok' if good else 'not ok'} {n} - {os.path.basename(page)}: {name}")
    for words in wrong:
        print(f"# {words}")
    return 0 if all(good for _, good in checks) else 1


def main(arguments):
    if arguments[:1] == ["--check"]:
        return check(arguments[1], arguments[2:])
    where = files_by_case(arguments)
    for case in sorted(where, key=lambda c: (c[0], int(c[1:]))):
        print(f"{case}\t{' '.join(where[case])}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
