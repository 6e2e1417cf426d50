#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""No application's name stands in C code (design 4.5): what is known of one is a file in data/tenants.d.

    names.py SRC DATA       one test a word: names and patterns of the shipped files must not be in the code of SRC
    names.py --self-test    code with such a word must be found, a comment must not
"""

import glob
import json
import os
import re
import sys

# A token that is no comment: strings and characters whole, so that "//" in a string begins none.
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
WORD = re.compile(r"[a-z][a-z0-9]{4,}")
# What programs of all kinds are called, and words of the kernel, of service managers and of ours.
COMMON = {"server", "service", "python", "serve", "model", "main", "containers", "games", "compositors", "desktop", "launch", "runner", "encoding",
          "launcher", "kernel", "machine", "learning", "manager", "scope", "stable", "diffusion", "transcoding", "router", "webui", "local", "generation",
          "inference", "server0", "whisper", "steam"}  # fmt: skip


def code_of(text):
    return TOKEN.sub(lambda m: m[0] if m[0][0] in "\"'" else " ", text).lower()


def words_of(data):
    """The words that mean one application: of its file's name and of its own name."""
    words = set()
    for path in glob.glob(os.path.join(data, "*.json")):
        with open(path, encoding="utf-8") as file:
            names = [name for name in json.load(file)["tenants"] if not name.startswith("_")]
        for name in names:
            words.update(WORD.findall(name.lower()))
    return sorted(words - COMMON)


def hits(word, sources):
    pattern = re.compile(r"(?<![a-z0-9])" + re.escape(word) + r"(?![a-z])")
    for path, code in sources:
        for match in pattern.finditer(code):
            yield f"{path}: {code[max(0, match.start() - 30):match.end() + 30].strip()!r}"


def sources_of(src):
    for path in sorted(glob.glob(os.path.join(src, "**", "*.[ch]"), recursive=True)):
        with open(path, encoding="utf-8") as file:
            yield os.path.relpath(path, src), code_of(file.read())


def self_test():
    cases = [('if (strcmp(name, "ollama") == 0)', True), ("/* as ollama does */ int x;", False), ("// ollama\nint x;", False),
             ('puts("// ollama");', True), ("int ollama_port;", True), ("int xollama;", False), ('"a\\"b"; /* ollama */', False)]  # fmt: skip
    failed = 0
    for i, (text, wanted) in enumerate(cases, 1):
        good = bool(list(hits("ollama", [("x.c", code_of(text))]))) == wanted
        failed += not good
        print(f"{'ok' if good else 'not ok'} {i} - {text!r} is {'refused' if wanted else 'accepted'}")
    print(f"1..{len(cases)}")
    return 1 if failed else 0


def main(argv):
    if argv[1:] == ["--self-test"]:
        return self_test()
    sources, words, failed = list(sources_of(argv[1])), words_of(argv[2]), 0
    for i, word in enumerate(words, 1):
        found = list(hits(word, sources))
        failed += bool(found)
        print(f"{'not ok' if found else 'ok'} {i} - {word} is no word of the code")
        for line in found:
            print(f"# {line}")
    print(f"1..{len(words)}" if words else "1..1\nnot ok 1 - there is no shipped file to take names from")
    return 1 if failed or not words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
