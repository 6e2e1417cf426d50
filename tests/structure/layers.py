#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A room includes itself and rooms of lower floors only; nothing in src/ knows the simulated card.

    layers.py SRC           one test a room
    layers.py --self-test   small houses with one fault each must be refused
"""

import os
import re
import sys
import tempfile

FLOORS = {
    "base": 1,
    "model": 2, "wire": 2,
    "placement": 3, "estimate": 3,
    "arbiter": 4, "senses": 4, "hands": 4, "store": 4, "tenants": 4,
    "gate": 5, "api": 5, "client": 5,
    "programs": 6,
    "trial": 7,  # the core in a world of numbers: judges, is never installed
}  # fmt: skip

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)
SIMULATED = re.compile("simgpu", re.IGNORECASE)
SUFFIXES = (".c", ".h", ".inc", ".S", "meson.build")


def faults_of_file(room, path, text):
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        where = f"{path}:{line}"
        quote, target = match[1], match[2]
        head = target.split("/")[0]
        if quote == "<":
            if head in FLOORS and "/" in target:
                yield f'{where}: <{target}> is one of our rooms; include it with quotes'
            continue
        if "/" not in target or head in (".", ".."):
            yield f'{where}: "{target}" does not name its room; write "{room}/{os.path.basename(target)}"'
        elif head not in FLOORS:
            yield f'{where}: "{target}": there is no room {head} (rooms: {", ".join(FLOORS)})'
        elif head != room and FLOORS[head] >= FLOORS[room]:
            yield (f"{where}: {room} (floor {FLOORS[room]}) includes {target} of floor {FLOORS[head]}; "
                   "a room includes itself and lower floors only")  # fmt: skip
    for match in SIMULATED.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{path}:{line}: names the simulated card; the product must not know it"


def faults(src):
    """{room: [fault, ...]} for every folder under src."""
    result = {}
    for room in sorted(os.listdir(src)):
        folder = os.path.join(src, room)
        if not os.path.isdir(folder):
            continue
        found = result.setdefault(room, [])
        if room not in FLOORS:
            found.append(f"{room}/ is on no floor; the table is in tests/structure/layers.py and in the design")
            continue
        for path, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                if not name.endswith(SUFFIXES):
                    continue
                full = os.path.join(path, name)
                with open(full, encoding="utf-8", errors="replace") as file:
                    found.extend(faults_of_file(room, os.path.relpath(full, src), file.read()))
    return result


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def test(self, good, name, details=()):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}")
        for line in details:
            print(f"# {line}")

    def end(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0


HOUSES = [
    # name, files, what the one fault must say (None: no fault)
    ("a good house", {"base/a.c": '#include "base/a.h"\n#include <stdio.h>', "model/m.c": '#include "base/a.h"\n#include "model/m.h"',
                      "programs/x/main.c": '#include "api/a.h"\n#include "programs/x/y.h"'}, None),
    ("base that looks up", {"base/a.c": '#include "model/m.h"'}, "includes model/m.h of floor 2"),
    ("neighbours on one floor", {"model/m.c": '#include "wire/w.h"'}, "includes wire/w.h of floor 2"),
    ("the arbiter with a hand", {"arbiter/a.c": '  #  include "hands/h.h"'}, "includes hands/h.h of floor 4"),
    ("a hand with the store", {"hands/h.h": '#include "store/s.h"'}, "includes store/s.h"),
    ("a way around with ..", {"model/m.c": '#include "../api/a.h"'}, "does not name its room"),
    ("an include without a room", {"model/m.c": '#include "m.h"'}, 'write "model/m.h"'),
    ("our own room in angle brackets", {"model/m.c": "#include <api/a.h>"}, "include it with quotes"),
    ("a room nobody knows", {"cellar/c.c": ""}, "is on no floor"),
    ("an include of a room nobody knows", {"base/a.c": '#include "cellar/c.h"'}, "there is no room cellar"),
    ("an include of the simulated card", {"senses/n.c": '#include "simgpu/card.h"'}, "simgpu"),
    ("a word for the simulated card", {"senses/n.c": 'const char *f = "SIMGPU";'}, "names the simulated card"),
    ("the simulated card in a meson.build", {"senses/meson.build": "link_with: simgpu_lib"}, "names the simulated card"),
]  # fmt: skip


def self_test():
    tap = Tap()
    for name, files, says in HOUSES:
        with tempfile.TemporaryDirectory(prefix="lessor-layers-") as src:
            for path, text in files.items():
                full = os.path.join(src, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as file:
                    file.write(text + "\n")
            found = [fault for room in faults(src).values() for fault in room]
        if says is None:
            tap.test(not found, f"{name} is accepted", found)
        else:
            tap.test(any(says in fault for fault in found), f"{name} is refused", found)
    return tap.end()


def main(argv):
    if argv[1:] == ["--self-test"]:
        return self_test()
    tap = Tap()
    for room, found in faults(argv[1]).items():
        tap.test(not found, f"{room} includes lower floors only", found)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
