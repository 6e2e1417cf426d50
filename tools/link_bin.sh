#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# link_bin.sh STAMP DIR PROGRAM... - put every built program side by side into DIR, as an installation would.
# Hard links, not symbolic ones: /proc/self/exe then names DIR, so that a program finds its siblings there.
set -eu

stamp=$1
dir=$2
shift 2
mkdir -p "$dir"
for program in "$@"; do
        name=$(basename "$program")
        ln -f "$program" "$dir/$name" 2>/dev/null || cp -f "$program" "$dir/$name"
done
: >"$stamp"
