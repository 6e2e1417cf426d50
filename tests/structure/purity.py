#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The deciding rooms import nothing that could make the same input give another answer.

    purity.py --nm NM --base LIBBASE_PURE ARCHIVE...     one test an archive, and one for base's pure half
    purity.py --self-test --nm NM -- CC...               objects that call what is forbidden must be refused

An undefined symbol must be defined in one of these archives or stand in ALLOWED below. Whatever is not allowed fails by
its name: clocks, files, environment, random numbers, threads and allocation are no list to keep, they are simply not there.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

ALLOWED = {
    # bytes and texts that the caller owns
    "memcpy", "memmove", "memset", "memcmp", "memchr", "memrchr", "mempcpy",
    "strlen", "strnlen", "strcmp", "strncmp", "strchr", "strchrnul", "strrchr", "strstr", "strpbrk", "strspn", "strcspn",
    # texts into a caller's buffer
    "snprintf", "vsnprintf",
    # words for an error number: no locale, no shared buffer (strerror is not allowed)
    "strerrordesc_np",
    # the end of a program that found its own books wrong
    "__assert_fail",
    # the compiler's runtime
    "__stack_chk_fail", "__udivti3", "__umodti3", "__divti3", "__modti3", "__multi3", "_GLOBAL_OFFSET_TABLE_",
    "__popcountdi2",
}  # fmt: skip
# qsort is not allowed: glibc's allocates, and its order of equals is nobody's promise.

# What a sanitizer or a coverage build adds by itself.
INSTRUMENTED = re.compile(r"__(asan|ubsan|lsan|sanitizer|sancov|gcov|llvm_profile|llvm_gcov)_|__start___sancov|__stop___sancov")

# Said beside the name, so that who meets it knows what to do instead.
CURES = [
    (re.compile(r"clock|time|sleep|alarm"), "time is an input: let the caller pass now_ms"),
    (re.compile(r"alloc|free$|strdup|asprintf|^mmap$"), "no allocation per decision: use an array of a named size"),
    (re.compile(r"rand|getentropy"), "no chance in a decision: ties end with rank, arrival, id"),
    (re.compile(r"pthread|^sem_|^mtx_|^thrd_"), "no threads in here"),
    (re.compile(r"getenv|secure_getenv|environ"), "no environment: configuration is an input"),
    (re.compile(r"open|read|write|close|stat|printf|fput|put(s|char)|stderr|stdout|socket|ioctl|perror|log_"), "no I/O: return it as an action or a reason"),
    (re.compile(r"^(q|hsearch|bsearch)"), "write the loop out, in array order"),
    (re.compile(r"__errno_location|^errno$"), "return a negative errno instead of setting it"),
]  # fmt: skip


def symbols(nm, archive):
    """({member: undefined names}, all names defined) of one archive or object."""
    text = subprocess.run([nm, "--format=posix", "-A", archive], check=True, stdout=subprocess.PIPE, text=True).stdout
    undefined, defined = {}, set()
    for line in text.splitlines():
        where, _, rest = line.partition(": ")
        words = rest.split()
        if len(words) < 2:
            continue
        name, kind = words[0].split("@")[0], words[1]
        if kind in "UwvV" and (kind == "U" or len(words) == 2):
            undefined.setdefault(where.rpartition("[")[2].rstrip("]") or where, set()).add(name)
        elif kind.isupper():
            defined.add(name)
    return undefined, defined


def is_allowed(name):
    if name in ALLOWED or INSTRUMENTED.match(name):
        return True
    fortified = re.fullmatch(r"__(\w+)_chk", name)  # __snprintf_chk is snprintf under _FORTIFY_SOURCE
    return bool(fortified) and fortified[1] in ALLOWED


def cure(name):
    for pattern, words in CURES:
        if pattern.search(name):
            return f" - {words}"
    return ""


def forbidden(nm, archive, defined_elsewhere):
    undefined, defined = symbols(nm, archive)
    known = defined | defined_elsewhere
    return sorted((member, name) for member, names in undefined.items() for name in names if name not in known and not is_allowed(name))


def mutable(nm, archive):
    """Variables that live from one call to the next; constants that only need relocation (.data.rel.ro) are none."""
    text = subprocess.run([nm, "--format=sysv", archive], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = []
    for line in text.splitlines():
        columns = [column.strip() for column in line.split("|")]
        if len(columns) == 7 and re.match(r"(\.data(?!\.rel\.ro)|\.bss|\.tbss|\.tdata|\*COM\*|COMMON)", columns[6]):
            found.append(columns[0])
    return sorted(set(found))


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


def check(nm, archives):
    tap = Tap()
    everything = set()
    for archive in archives:
        everything |= symbols(nm, archive)[1]
    for archive in archives:
        found = forbidden(nm, archive, everything)
        tap.test(not found, f"{os.path.basename(archive)} imports nothing impure",
                 [f"{member} imports {name}{cure(name)}" for member, name in found])  # fmt: skip
        if not os.environ.get("LESSOR_SANITIZED"):  # sanitizers keep notes of their own in there
            kept = mutable(nm, archive)
            tap.test(not kept, f"{os.path.basename(archive)} remembers nothing between calls",
                     [f"{name} is a variable; the world is the only memory" for name in kept])  # fmt: skip
    return tap.end()


IMPURE = {
    "clock_gettime": "#include <time.h>\nlong f(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec; }",
    "time": "#include <time.h>\nlong f(void) { return (long) time(NULL); }",
    "malloc": "#include <stdlib.h>\nvoid *f(unsigned long n) { return malloc(n); }",
    "free": "#include <stdlib.h>\nvoid f(void *p) { free(p); }",
    "getenv": "#include <stdlib.h>\nchar *f(const char *n) { return getenv(n); }",
    "open": "#include <fcntl.h>\nint f(const char *n) { return open(n, O_RDONLY | O_CLOEXEC); }",
    "rand": "#include <stdlib.h>\nint f(void) { return rand(); }",
    "pthread_create": "#include <pthread.h>\nint f(pthread_t *t, void *(*g)(void *)) { return pthread_create(t, NULL, g, NULL); }",
    "qsort": "#include <stdlib.h>\nvoid f(void *a, unsigned long n, int (*c)(const void *, const void *)) { qsort(a, n, 1, c); }",
    "stderr": "#include <stdio.h>\nvoid f(const char *s) { fputs(s, stderr); }",
    "log_line": "void log_line(int, const char *, ...);\nvoid f(void) { log_line(1, \"x\"); }",
    "strerror": "#include <string.h>\nchar *f(int e) { return strerror(e); }",
}  # fmt: skip
PURE = """
#include <assert.h>
#include <stdio.h>
#include <string.h>
static int counted(const char *a) { return (int) strlen(a); }
int f(char *buf, unsigned long n, const char *a)
{
        assert(n > 1);
        memset(buf, 0, n);
        return snprintf(buf, n, "%s %d", a, counted(a)) + strcmp(buf, a);
}
"""


def self_test(nm, cc):
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="lessor-purity-") as folder:

        def compiled(source):
            path = os.path.join(folder, "x.c")
            with open(path, "w", encoding="utf-8") as file:
                file.write(source)
            subprocess.run(cc + ["-O2", "-fPIC", "-w", "-c", path, "-o", path + ".o"], check=True)
            return path + ".o"

        def refused(source):
            return [name for _, name in forbidden(nm, compiled(source), set())]

        for name, source in IMPURE.items():
            found = refused(source)
            tap.test(name in found, f"an object that uses {name} is refused by that name", [f"refused: {found}"])
        found = refused(PURE)
        tap.test(not found, "an object that only computes is accepted", [f"refused: {found}"])
        found = mutable(nm, compiled("int f(void) { static int calls; return ++calls; }"))
        tap.test(found, "an object that counts its calls is refused", [f"refused: {found}"])
        found = mutable(nm, compiled("static const char *const names[] = { \"a\", \"b\" };\nconst char *f(int i) { return names[i]; }"))
        tap.test(not found, "an object with a table of names is accepted", [f"refused: {found}"])
    return tap.end()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--base")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("rest", nargs="*")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test(arguments.nm, arguments.rest)
    return check(arguments.nm, [arguments.base] + arguments.rest)


if __name__ == "__main__":
    sys.exit(main())
