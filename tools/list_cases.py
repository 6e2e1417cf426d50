#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which numbered case is tested where: failures (F17), security rules (S02), worked examples (A1, B12), invariants (I3).

    list_cases.py FOLDER...

A case counts as tested where its number stands in a test file.
"""

import os
import re
import sys

# F17 and S02 are words of their own; A1 or I3 could be anything (a key, a control code), so these count only as the first
# word of a row's name ("B12 ..."), after "example", "invariant" or "case", or as the head of a function's name (b12_...).
PLAIN = re.compile(r"(?<![A-Za-z0-9])([FS]\d{2}|F1\d{2})(?![A-Za-z0-9])")
NAMED = re.compile(r"(?:\"|\b(?:[Ee]xamples?|[Ii]nvariants?|[Cc]ases?)[ _:]+)((?:[A-I]\d{1,2}(?:[,/ ]+|(?![A-Za-z0-9])))+)")
HEAD = re.compile(r"\b(?:test_|case_|example_)?((?:[A-Ia-iSs]\d{1,3}_)+)[a-zP]")


def cases_in(text):
    found = set(PLAIN.findall(text))
    for head in HEAD.findall(text):
        found.update(head.upper().strip("_").split("_"))
    for group in NAMED.findall(text):
        found.update(re.findall(r"[A-I]\d{1,2}", group))
    return found


SUFFIXES = (".c", ".h", ".py", ".sh", ".scn")


def main(folders):
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
    for case in sorted(where, key=lambda c: (c[0], int(c[1:]))):
        print(f"{case}\t{' '.join(where[case])}")


if __name__ == "__main__":
    main(sys.argv[1:])
