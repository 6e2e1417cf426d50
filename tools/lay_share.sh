#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lay_share.sh STAMP DIR FILE... - lay data files out below DIR as an installation would; what is not among them any more goes.
set -eu

stamp=$1
dir=$2
shift 2
rm -rf "$dir/tenants.d"
mkdir -p "$dir/tenants.d"
for file in "$@"; do
        case $file in
        */tenants.d/*) cp -f "$file" "$dir/tenants.d/" ;;
        *) cp -f "$file" "$dir/" ;;
        esac
done
: >"$stamp"
