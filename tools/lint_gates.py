#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Things that must not stand in the tree, found in code (comments and texts do not count unless said so).

    lint_gates.py FILE...
    lint_gates.py --self-test
"""

import os
import re
import sys

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>"(?:\\.|[^"\\\n])*")|(?P<char>'(?:\\.|[^'\\\n])*')""", re.DOTALL | re.VERBOSE
)

# name, why, pattern on code without comments and texts, files
CALLS = [
    ("S08", "kill(2) names a pid that may be somebody else's by now; use pidfd_send_signal", r"\b(?:kill|killpg|tkill|tgkill) *\(|\bSYS_t?g?kill\b"),
    ("shell", "runs a shell; use posix_spawn or uv_spawn with an argument list", r"(?<![_\w.>])(?:system|popen) *\("),
    ("bounds", "writes without a bound; use snprintf or a strbuf", r"\b(?:strcpy|strcat|stpcpy|sprintf|vsprintf|gets) *\("),
    ("scan", "reads numbers without seeing overflow or garbage; use parse_u64, size_parse or duration_parse", r"\b(?:atoi|atol|atoll|atof|sscanf) *\("),
    ("tmp", "a name that somebody else can take first; use mkstemp or O_TMPFILE", r"\b(?:tmpnam|tempnam|mktemp) *\("),
]  # fmt: skip
SQL_BUILDERS = re.compile(r"\bsqlite3_v?m?s?n?printf *\(")
SQL_TEXT = re.compile(r"\b(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER|ATTACH|PRAGMA|VACUUM)\b[^\"]*%[-+ #0-9.*]*(?:[a-zA-Z]|$)")
# SQLite takes no parameters in a PRAGMA: there a whole number may be printed, and nothing else.
SQL_PRAGMA = re.compile(r"^(?:\s*(?:PRAGMA \w+ = (?:%(?:d|u|l*[du])|[^%;]*)|COMMIT|);?)*$")
MACHINE_PATH = re.compile(r"(?<![\w.])/" + r"(?:work/(?:main|shared)|root/[.\w]|tmp/(?:clone|skel))")


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def code_only(text):
    """Comments become blanks and texts become "" of the same length, so that lines stay where they were."""
    return TOKEN.sub(lambda m: blank(m) if m["comment"] else m[0][0] + blank(m)[1:-1] + m[0][-1], text)


def joined_texts(text):
    """(line, content) of each text in the code; neighbours are one, as for the compiler."""
    current, start, end = "", None, 0
    for match in TOKEN.finditer(text):
        if match["text"] is None:
            continue
        between = TOKEN.sub(blank, text[end : match.start()]) if start is not None else ""
        between = re.sub(r"\bPRI\w+\b", "%d", between) if start is not None else ""
        if start is not None and re.fullmatch(r"(?:\s|%d)*", between):
            current += between.strip() + match["text"][1:-1]
        else:
            if start is not None:
                yield line_of(text, start), current
            current, start = match["text"][1:-1], match.start()
        end = match.end()
    if start is not None:
        yield line_of(text, start), current


def faults(path, text):
    for match in MACHINE_PATH.finditer(text):
        yield f"{path}:{line_of(text, match.start())}: a path of somebody's machine: {match[0]}"
    if not path.startswith("src/") or not path.endswith((".c", ".h")):
        return
    code = code_only(text)
    for name, why, pattern in CALLS:
        for match in re.finditer(pattern, code):
            yield f"{path}:{line_of(text, match.start())}: [{name}] {match[0].strip()} {why}"
    for match in SQL_BUILDERS.finditer(code):
        yield f"{path}:{line_of(text, match.start())}: [S14] {match[0]} builds SQL from text; bind parameters"
    for line, content in joined_texts(text):
        if SQL_TEXT.search(content) and not SQL_PRAGMA.match(content):
            yield f"{path}:{line}: [S14] SQL with a conversion in it; bind parameters"


SELF_TESTS = [
    ("src/a/x.c", "f(); kill(pid, SIGTERM);", "S08"),
    ("src/a/x.c", "return kill (pid, 9);", "S08"),
    ("src/a/x.c", "syscall(SYS_tgkill, a, b, 9);", "S08"),
    ("src/a/x.c", "/* kill(2) is not used */ char *s = \"kill(1)\"; // kill(3)", None),
    ("src/a/x.c", "plan_kill(x); x->no_kill = way_out_kill(y); int kill = 1;", None),
    ("tests/x.c", "kill(pid, 9);", None),
    ("src/a/x.c", "system(\"ls\");", "shell"),
    ("src/a/x.c", "file_system(x); a->system (x);", None),
    ("src/a/x.c", "strcpy(a, b);", "bounds"),
    ("src/a/x.c", "snprintf(a, 3, b); vsnprintf(a, 3, b, c);", None),
    ("src/a/x.c", "n = atoi(text);", "scan"),
    ("src/store/x.c", "strbuf_printf(&sb, \"SELECT * FROM t WHERE id = %d\", id);", "S14"),
    ("src/store/x.c", "strbuf_printf(&sb, \"DELETE FROM t \"\n \"WHERE name = '%s'\", n);", "S14"),
    ("src/store/x.c", "f(\"SELECT * FROM t WHERE id = %\" PRIu64, id);", "S14"),
    ("src/store/x.c", "sqlite3_mprintf(q, a);", "S14"),
    ("src/store/x.c", "prepare(db, \"SELECT a FROM t WHERE id = ?1\"); error_set(err, 1, \"reading %s\", path);", None),
    ("src/store/x.c", "snprintf(s, n, \"PRAGMA a = %d; PRAGMA b = %llu; COMMIT;\", 1, 2);", None),
    ("src/store/x.c", "snprintf(s, n, \"PRAGMA a = %s\", text);", "S14"),
    ("src/store/x.c", "snprintf(s, n, \"PRAGMA a = %d; DELETE FROM t WHERE b = %d\", 1, 2);", "S14"),
    ("src/store/x.c", "f(\"UPDATE t SET a = ?1\"); g(\"%s\");", None),
    ("docs/x.md", "see /work" + "/main/dev", "a path of somebody's machine"),
    ("docs/x.md", "in /home/you/lessor or https://example.org/work" + "/main", None),
]  # fmt: skip


def self_test():
    bad = 0
    for path, text, want in SELF_TESTS:
        found = list(faults(path, text))
        if (want is None and found) or (want is not None and not any(want in fault for fault in found)):
            print(f"{path}: {text!r}: wanted {want}, found {found}")
            bad += 1
    return 1 if bad else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    bad = 0
    for path in arguments:
        if os.path.getsize(path) > 4 << 20 or path.startswith("fuzz/corpus/"):
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            for fault in faults(path, file.read()):
                print(fault)
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
