# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# The verb fuzz of ./dev (which sources this file: $root, $out, say, die, configure and compile come from there).
: "${root:?} ${out:?}"

# fuzz_one NAME SECONDS: what is new goes into a copy of the corpus, what breaks is kept under fuzz/finds/NAME/.
fuzz_one() {
        name=$1
        seconds=$2
        finds=$out/fuzz/finds/$name
        corpus=$(mktemp -d)
        log=$(mktemp)
        mkdir -p "$finds"
        for seeds in "$root/fuzz/corpus/$name" "$finds"; do
                [ ! -d "$seeds" ] || find "$seeds" -type f -exec cp {} "$corpus/" \;
        done
        options="-max_total_time=$seconds -timeout=10 -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1"
        dictionary=$root/fuzz/corpus/$name.dict
        [ ! -f "$dictionary" ] || options="$options -dict=$dictionary"
        before=$(find "$finds" -type f | wc -l)
        # shellcheck disable=SC2086 # $options is a list of words
        if ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
                "$out/build-fuzz/fuzz/fuzz_$name" $options -artifact_prefix="$finds/" "$corpus" >"$log" 2>&1 </dev/null; then
                runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
                printf 'ok fuzz %s (%s inputs in %s s)\n' "$name" "${runs:-?}" "$seconds"
                good=0
        else
                tail -n 60 "$log"
                printf 'failed: fuzz %s\n' "$name"
                [ "$(find "$finds" -type f | wc -l)" = "$before" ] || printf 'the input that did it is kept in %s\n' "$finds"
                good=1
        fi
        rm -rf "$corpus" "$log"
        rmdir "$finds" "$out/fuzz/finds" 2>/dev/null || :
        return $good
}

fuzz() {
        seconds=10
        only=
        while [ $# -gt 0 ]; do
                case $1 in
                --seconds)
                        [ $# -ge 2 ] || die "fuzz: --seconds needs a number"
                        seconds=$2
                        shift
                        ;;
                --seconds=*) seconds=${1#*=} ;;
                -*) die "fuzz: there is no option \"$1\"; it is ./dev fuzz [NAME] [--seconds N]" ;;
                *) only=${1#fuzz_} ;;
                esac
                shift
        done
        case $seconds in
        '' | *[!0-9]* | 0) die "fuzz: --seconds \"$seconds\" is not a whole number of seconds, 1 or more" ;;
        esac

        (
                export CC=clang
                configure "$out/build-fuzz" -Dfuzz_engine=true -Db_sanitize=address,undefined -Db_lundef=false
                compile "$out/build-fuzz" fuzz
        )
        fuzz_passed=0
        fuzz_failed=0
        for program in "$out"/build-fuzz/fuzz/fuzz_*; do
                name=${program##*/fuzz_}
                [ -f "$program" ] || continue
                [ -f "$root/fuzz/fuzz_$name.c" ] || continue # libFuzzer's leftovers, and targets that are no more
                [ -z "$only" ] || [ "$only" = "$name" ] || continue
                if fuzz_one "$name" "$seconds"; then
                        fuzz_passed=$((fuzz_passed + 1))
                else
                        fuzz_failed=$((fuzz_failed + 1))
                fi
        done
        [ $((fuzz_passed + fuzz_failed)) -gt 0 ] || die "fuzz: there is no target \"$only\"; they are: $(fuzz_names)"
        printf '%d passed, %d failed, 0 skipped\n' "$fuzz_passed" "$fuzz_failed"
        [ "$fuzz_failed" -eq 0 ]
}

fuzz_names() {
        for source in "$root"/fuzz/fuzz_*.c; do
                name=${source##*/fuzz_}
                printf '%s ' "${name%.c}"
        done
}
