#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# reproducible.sh [COMMIT] - the same commit, built twice in different folders, times and languages, installs equal files
# (security S26). Needs what `./dev build` needs; works below $TMPDIR, a few minutes. Exit status 0: equal, 1: not.
# shellcheck disable=SC2030,SC2031 # each build has an environment of its own
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
commit=$(git -C "$root" rev-parse --verify "${1:-HEAD}^{commit}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# The date that manual pages carry is the commit's, as packagers set it.
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH

# build FOLDER: source and build in it, what would be installed in FOLDER/installed.
build() {
        mkdir -p "$1/source"
        git -C "$root" archive "$commit" | tar -x -C "$1/source"
        (
                cd "$1/source"
                meson setup --prefix=/usr build >"$1/log" 2>&1 && ninja -C build >>"$1/log" 2>&1 &&
                        DESTDIR=$1/installed meson install -C build --no-rebuild >>"$1/log" 2>&1
        ) || {
                tail -n 20 "$1/log" >&2
                echo "reproducible.sh: the build in $1 failed" >&2
                exit 1
        }
}

(
        umask 022
        export TZ=UTC LC_ALL=C
        build "$work/a"
)
(
        umask 077
        export TZ=Pacific/Kiritimati LC_ALL=C.UTF-8
        build "$work/another/place with a longer name"
)

n=$(find "$work/a/installed" -type f | wc -l)
if diff -r --brief "$work/a/installed" "$work/another/place with a longer name/installed"; then
        echo "$n installed files of $commit are equal"
else
        echo "reproducible.sh: two builds of $commit differ" >&2
        exit 1
fi
