#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# peer.sh FILE [create options] - run one judge on a card of its own; what it prints is TAP.
set -eu

if [ "${LESSOR_PEERS:-}" = off ]; then
        echo "1..0 # SKIP LESSOR_PEERS=off: other people's programs are not asked"
        exit 0 # the line above is what makes it a skip: meson takes no 77 from TAP
fi
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
file=$1
shift
venv=$("$here/setup" "$SIMGPU_TEST_VENV_DIR") || {
        echo "1..1"
        echo "not ok 1 - the judges could not be installed (LESSOR_PEERS=off skips them)"
        exit 1
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$SIMGPU_TEST_PROGRAM" create --file "$dir/card" "$@" >/dev/null
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$here" PEER_VENV="$venv"
unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER
status=0
"$SIMGPU_TEST_PROGRAM" run --file "$dir/card" -- "$venv/bin/python" "$here/$file" || status=$?
exit $status
