#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program itself: help, wrong use, create and destroy, run, env, show, trace, fault.
# shellcheck disable=SC2016 # the small scripts below get their words as arguments
set -u
simgpu=$SIMGPU_TEST_PROGRAM
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset SIMGPU
n=0
failed=0

# check NAME STATUS PATTERN COMMAND...: the command ends with STATUS, and its output has a line that matches PATTERN
check() {
        name=$1 status=$2 pattern=$3
        shift 3
        n=$((n + 1))
        out=$("$@" 2>&1 </dev/null)
        got=$?
        if [ "$got" -eq "$status" ] && printf '%s\n' "$out" | grep -q -e "$pattern"; then
                echo "ok $n - $name"
        else
                echo "not ok $n - $name"
                printf '%s\n' "status $got, wanted $status and /$pattern/" "$out" | sed 's/^/# /'
                failed=1
        fi
}

card=$dir/card
check "no verb" 2 "usage: simgpu" "$simgpu"
check "help" 0 "hold device memory" "$simgpu" --help
check "help of a verb" 0 "\\-\\-memory SIZE" "$simgpu" create --help
check "unknown verb" 2 "unknown verb" "$simgpu" crate
check "unknown option" 2 "unknown option --gpu" "$simgpu" create --gpu 1
check "no card named" 2 "SIMGPU" "$simgpu" show
check "a card that is not there" 1 "No such file" "$simgpu" show --file "$card"
check "a size that is none" 2 "is no size" "$simgpu" create --file "$card" --memory 3X
check "a size beyond all" 2 "is no size" "$simgpu" create --file "$card" --memory 99999999999G
check "create" 0 "^GPU-.* 3221225472 bytes$" "$simgpu" create --file "$card" --seed 5
check "create again" 1 "File exists" "$simgpu" create --file "$card"
check "the same seed, the same UUID" 0 "$("$simgpu" show --file "$card" | cut -d' ' -f1)" "$simgpu" create --file "$dir/other" --seed 5
check "show" 0 "total 3221225472 used 0 free 3221225472" "$simgpu" show --file "$card"
check "show as JSON" 0 '"free_bytes":3221225472' "$simgpu" show --file "$card" --json
check "run passes the status on" 7 "" "$simgpu" run --file "$card" -- sh -c 'exit 7'
check "run sets the environment" 0 "^$card .*simgpu" "$simgpu" run --file "$card" sh -c 'echo "$SIMGPU $LD_LIBRARY_PATH"'
check "run of nothing" 2 "which command" "$simgpu" run --file "$card"
check "run of what is not there" 127 "No such file" "$simgpu" run --file "$card" -- "$dir/nothing"
check "env" 0 "^export SIMGPU='$card'$" "$simgpu" env --file "$card"
check "hog without a size" 2 "how much" "$simgpu" hog --file "$card"
check "hog" 0 "^holding 1572864000 bytes on GPU-.* pid [0-9]*$" "$simgpu" hog --file "$card" --alloc 1500M --for 10ms
check "hog under run" 0 "^count 1$" "$simgpu" run --file "$card" -- "$simgpu" hog --alloc 1M --count --for 2s
check "hog of too much" 3 "cannot allocate 4294967296 bytes: CUDA_ERROR_OUT_OF_MEMORY" "$simgpu" hog --file "$card" --alloc 4G
check "growth ends at the card's end" 0 "growth refused at 3221225472 bytes" "$simgpu" hog --file "$card" --alloc 2G --grow 512M/1ms --for 1s
check "hog ends with TERM, status 0" 0 "holding" sh -c '"$0" hog --file "$1" --alloc 1M >"$2" & until grep -q holding "$2"; do :; done
        kill $!; wait $!; s=$?; cat "$2"; exit $s' "$simgpu" "$card" "$dir/out"
check "hog that ignores TERM" 137 "holding" sh -c '"$0" hog --file "$1" --alloc 1M --ignore-term >"$2" & until grep -q holding "$2"; do :; done
        kill $!; kill -9 $!; wait $!; s=$?; cat "$2"; exit $s' "$simgpu" "$card" "$dir/out-ignore"
check "trace" 0 "alloc pid [0-9]* device 0 bytes 1572864000 used 1572864000 rc 0" "$simgpu" trace --file "$card"
check "trace saw the deaths" 0 "death pid [0-9]* device 0 bytes 1572864000 used 0" "$simgpu" trace --file "$card"
check "trace as JSON" 0 '"kind":"oom".*"rc":2' "$simgpu" trace --file "$card" --json
check "fault list" 0 "^list-skew MS" "$simgpu" fault list
check "unknown fault" 2 "no kind" "$simgpu" fault fire --file "$card"
check "fault without its argument" 2 "wants PID BYTES" "$simgpu" fault ghost 5 --file "$card"
check "fault" 0 "" "$simgpu" fault residue 1G --file "$card"
check "residue is used" 0 "used 1073741824 free 2147483648" "$simgpu" show --file "$card"
check "residue takes room" 3 "OUT_OF_MEMORY" "$simgpu" hog --file "$card" --alloc 2500M
check "show names the fault" 0 "^fault residue 1073741824" "$simgpu" show --file "$card"
check "negative number" 0 "" "$simgpu" fault list-skew -100 --file "$card" --times 3
check "clear one kind" 0 "^cleared 1$" "$simgpu" fault clear residue --file "$card"
check "clear all" 0 "^cleared 1$" "$simgpu" fault clear --file "$card"
check "cuda-error at cuInit" 1 "cuInit: CUDA_ERROR_UNKNOWN (999)" sh -c '"$0" fault cuda-error 999 --symbol cuInit --file "$1" --times 1; "$0" hog --file "$1" --alloc 1M' "$simgpu" "$card"
check "lost card" 1 "CUDA_ERROR_UNKNOWN" sh -c '"$0" fault lost --file "$1"; "$0" hog --file "$1" --alloc 1M' "$simgpu" "$card"
check "clear lost" 0 "^cleared 1$" "$simgpu" fault clear --file "$card"
check "missing-symbol" 1 "the driver has no cuMemAlloc$" sh -c '"$0" fault missing-symbol cuMemAlloc --file "$1"; "$0" hog --file "$1" --alloc 1M' "$simgpu" "$card"
check "context and reserve" 0 "used 1073741824 free" sh -c '"$0" create --file "$1" --driver-reserve 1G --context 300M >/dev/null; "$0" show --file "$1"' "$simgpu" "$dir/life"
check "a context costs" 0 "bytes 524288000 managed" sh -c '"$0" hog --file "$1" --alloc 200M >"$2" & until grep -q holding "$2"; do :; done
        "$0" show --file "$1"; kill $!; wait $!' "$simgpu" "$dir/life" "$dir/out2"
check "destroy" 0 "" "$simgpu" destroy --file "$card"
check "destroy of what is no card" 1 "not a simgpu file" sh -c 'echo hello >"$1"; "$0" destroy --file "$1"' "$simgpu" "$dir/text"
check "old driver" 0 "holding" sh -c '"$0" create --file "$1" --abi old >/dev/null && "$0" hog --file "$1" --alloc 1M --for 1ms' "$simgpu" "$dir/old"
check "destroy removes the side folder" 0 "gone" sh -c '"$0" destroy --file "$1" && [ ! -e "$1.lib" ] && echo gone' "$simgpu" "$dir/old"
echo "1..$n"
exit $failed
