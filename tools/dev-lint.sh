# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# The verbs lint and format of ./dev (which sources this file: $root, $out, say, configure and compile come from there).
# shellcheck disable=SC2030,SC2031 # CC is meant to change in its own process only
: "${root:?} ${out:?}"

# The files of the clone, one a line: git's when there is a git, else what lies there. Names with blanks are not ours.
clone_files() {
        if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
                git ls-files --cached --others --exclude-standard | while IFS= read -r file; do
                        [ ! -f "$file" ] || printf '%s\n' "$file"
                done
        else
                find . -name .git -prune -o -name 'build*' -type d -prune -o -name .venv -prune -o -type f -print | sed 's|^\./||'
        fi | LC_ALL=C sort -u
}

c_files() {
        clone_files | grep -E '\.[ch]$'
}

script_files() {
        clone_files | while IFS= read -r file; do
                case $file in
                *.c | *.h | *.py | *.md | *.json | *.build) continue ;;
                *.sh) printf '%s\n' "$file" ;;
                *) head -c 40 "$file" | head -n 1 | tr -d '\0' | grep -qE '^#! ?/(usr/)?bin/(env )?(ba|da)?sh' && printf '%s\n' "$file" ;;
                esac
        done || :
}

python_files() {
        clone_files | while IFS= read -r file; do
                case $file in
                *.py) printf '%s\n' "$file" ;;
                *.*) ;;
                *) head -c 60 "$file" | head -n 1 | tr -d '\0' | grep -qE '^#!.*python3' && printf '%s\n' "$file" ;;
                esac
        done || :
}

clang_format() {
        if command -v clang-format-14 >/dev/null; then
                clang-format-14 "$@"
        else
                clang-format "$@"
        fi
}

format() {
        # shellcheck disable=SC2046 # our file names have no blanks
        clang_format -i --style=file $(c_files)
}

check_format() {
        good=0
        for file in $(c_files); do
                if ! clang_format --style=file "$file" | cmp -s - "$file"; then
                        printf '%s: not in the format of .clang-format; ./dev format puts it right\n' "$file"
                        good=1
                fi
        done
        return $good
}

check_scripts() {
        # shellcheck disable=SC2046
        shellcheck --external-sources --severity=style $(script_files)
}

check_python() {
        # shellcheck disable=SC2046
        /usr/bin/python3 tools/lint_python.py $(python_files)
}

check_gates() {
        # shellcheck disable=SC2046
        /usr/bin/python3 tools/lint_gates.py $(clone_files)
}

check_gates_can_fail() {
        /usr/bin/python3 tools/lint_gates.py --self-test
}

check_gcc() {
        (
                export CC=gcc
                configure "$out/build-lint/gcc" -Dwerror=true
                compile "$out/build-lint/gcc"
        )
}

check_clang() {
        (
                export CC=clang
                configure "$out/build-lint/clang" -Dwerror=true
                compile "$out/build-lint/clang"
        )
}

lint() {
        lint_passed=0
        lint_failed=0
        for check in format scripts python gates gates_can_fail gcc clang; do
                log=$(mktemp)
                # in a process of its own: a check that gives up must not take the others with it
                if (set -e; "check_$check") >"$log" 2>&1; then
                        printf 'ok lint %s\n' "$check"
                        lint_passed=$((lint_passed + 1))
                else
                        cat "$log"
                        printf 'failed: lint %s\n' "$check"
                        lint_failed=$((lint_failed + 1))
                fi
                rm -f "$log"
        done
        printf '%d passed, %d failed, 0 skipped\n' "$lint_passed" "$lint_failed"
        [ "$lint_failed" -eq 0 ]
}
