#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What is installed is built so that a bug is hard to make use of (security S26).

    hardened.py [--not-fortified] ELF...     one test a file; --not-fortified: a build without optimisation or with sanitizers
    hardened.py --self-test -- CC...         a program that lacks one thing is found to lack it

Each file: position independent, relocations read-only before main (full RELRO), no executable stack, nothing writable and
executable, stack protector, fortified libc calls, branch targets marked (x86), no path of the build machine to load from.
"""

import os
import re
import subprocess
import sys
import tempfile

ENDBR64 = b"\xf3\x0f\x1e\xfa"
# The start files of libc bring two marked functions of their own; our smallest program has 17.
MARKED_AT_LEAST = 10


def readelf(path):
    return subprocess.run(["readelf", "--wide", "--file-header", "--program-headers", "--section-headers", "--dynamic",
                           "--dyn-syms", path], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def n_marked(path, text):
    """How many functions of .text begin with ENDBR64 (an upper bound: the bytes may stand elsewhere, by chance)."""
    section = re.search(r"\] \.text\s+PROGBITS\s+[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", text)
    with open(path, "rb") as file:
        file.seek(int(section[1], 16))
        return file.read(int(section[2], 16)).count(ENDBR64)


def lacks(path, fortified=True):
    """What this file lacks, in words; empty = nothing."""
    text = readelf(path)
    imports = set(re.findall(r" UND (\w+)", text))
    segments = re.findall(r"^  (\w+)\s+0x\w+ 0x\w+ 0x\w+ 0x\w+ 0x\w+ ([R ][W ][E ])", text, re.MULTILINE)
    flags = " ".join(re.findall(r"\((?:FLAGS|FLAGS_1)\)\s+(.*)", text))
    is_program = "INTERP" in (kind for kind, _ in segments)
    found = []
    if not re.search(r"Type:\s+DYN", text) or (is_program and "PIE" not in flags):
        found.append("not position independent (-fPIE -pie)")
    if "GNU_RELRO" not in (kind for kind, _ in segments) or not ("BIND_NOW" in flags or "NOW" in flags.split()):
        found.append("relocations stay writable (-z relro -z now)")
    if ("GNU_STACK", "RW ") not in segments:
        found.append("the stack is executable (-z noexecstack)")
    if any(kind == "LOAD" and "W" in rights and "E" in rights for kind, rights in segments):
        found.append("a segment is writable and executable")
    if "(TEXTREL)" in text or "TEXTREL" in flags:
        found.append("code is relocated (-fPIC)")
    if re.search(r"\((?:RPATH|RUNPATH)\).*\[(?!\$ORIGIN)", text):
        found.append("libraries are looked for where it was built (RPATH)")
    if "__stack_chk_fail" not in imports:
        found.append("no stack protector (-fstack-protector-strong)")
    if fortified and not any(re.fullmatch(r"__\w+_chk", name) for name in imports):
        found.append("libc calls are not fortified (-D_FORTIFY_SOURCE)")
    if "X86-64" in text and n_marked(path, text) < MARKED_AT_LEAST:
        found.append("branch targets are not marked (-fcf-protection)")
    return found


def report(tests):
    failed = 0
    for count, (good, name, details) in enumerate(tests, 1):
        failed += not good
        print(f"{'ok' if good else 'not ok'} {count} - {name}")
        for line in details:
            print(f"# {line}")
    print(f"1..{len(tests)}")
    return 1 if failed else 0


GOOD = ["-O2", "-fPIE", "-pie", "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-fcf-protection",
        "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack"]
PROGRAM = """
#include <stdio.h>
#include <string.h>
char *volatile from = "words";
#define F(n) int f##n(int); int f##n(int x) { char room[40]; strcpy(room, from); return puts(room) + x; }
#define F5(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4)
F5(1) F5(2) F5(3) F5(4) F5(5)
int main(void) { return f10(0); }
"""
# name, what is left out or put in, the word that must be in what is found; None = nothing may be found
CASES = [
    ("all of it", [], [], None),
    ("a fixed address", ["-fPIE", "-pie"], ["-no-pie"], "position independent"),
    ("lazy binding", ["-Wl,-z,now"], ["-Wl,-z,lazy"], "relocations"),
    ("no relro", ["-Wl,-z,relro"], ["-Wl,-z,norelro"], "relocations"),
    ("an executable stack", ["-Wl,-z,noexecstack"], ["-Wl,-z,execstack"], "the stack is executable"),
    ("no stack protector", ["-fstack-protector-strong"], ["-fno-stack-protector"], "stack protector"),
    ("no fortification", ["-D_FORTIFY_SOURCE=2"], [], "fortified"),
    ("no marked branch targets", ["-fcf-protection"], ["-fcf-protection=none"], "branch targets"),
    ("a run path", [], ["-Wl,-rpath,/home/somebody/lib"], "where it was built"),
    ("a run path beside itself", [], ["-Wl,-rpath,$ORIGIN/../lib"], None),
]  # fmt: skip


def self_test(cc):
    tests = []
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "p.c"), os.path.join(folder, "p")
        with open(source, "w", encoding="ascii") as file:
            file.write(PROGRAM)
        for name, without, extra, word in CASES:
            flags = [flag for flag in GOOD if flag not in without] + extra
            subprocess.run([*cc, *flags, "-o", program, source], check=True)
            found = lacks(program)
            good = found == [] if word is None else len(found) == 1 and word in found[0]
            tests.append((good, f"a program with {name} is told from others", [] if good else [f"found: {found}"]))
    return report(tests)


def main(words):
    if words[:2] == ["--self-test", "--"]:
        return self_test(words[2:])
    fortified = "--not-fortified" not in words
    files = [word for word in words if not word.startswith("--")]
    if not files:
        return report([(False, "there are programs to look at", [])])
    tests = []
    for path in files:
        found = lacks(path, fortified)
        tests.append((not found, f"S26 {os.path.basename(path)} is hardened", found))
    return report(tests)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
