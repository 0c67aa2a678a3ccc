#!/usr/bin/env bash
# Runs GoogleTest programs, each in several processes that share its tests. The processes have the
# settings for sanitizers. Tests that need a GPU and tests labelled slow are left out.
#
#   scripts/run-sharded.sh PROGRAM...
#
# JOBS=n      number of processes [default: number of CPUs]
# EXCLUDE=f   more tests to leave out, as a GoogleTest filter: 'Suite.*:Other.Test'
#
# Prints one line per program, and the log of a process that fails. Exit code 0: at least one test ran
# in every program and none failed; 1 otherwise.
set -euo pipefail
if [[ $# -eq 0 ]]; then
  echo "usage: scripts/run-sharded.sh PROGRAM..." >&2
  exit 2
fi
jobs=${JOBS:-$(nproc)}
filter="-*Cuda*:Slow/*${EXCLUDE:+:$EXCLUDE}"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# The sum of "[  PASSED  ] N tests" and the like over the logs of a program.
count() {  # word program
  awk -v word="$1" '$1 == "[" && $2 == word && $4 ~ /^[0-9]+$/ { sum += $4 } END { print sum + 0 }' "$logs/$2".*
}

status=0
for program in "$@"; do
  name=$(basename "$program")
  start=$SECONDS
  pids=()
  for ((shard = 0; shard < jobs; ++shard)); do
    GTEST_TOTAL_SHARDS=$jobs GTEST_SHARD_INDEX=$shard \
      "$program" --gtest_brief=1 --gtest_filter="$filter" >"$logs/$name.$shard" 2>&1 &
    pids+=($!)
  done
  failed=0
  for ((shard = 0; shard < jobs; ++shard)); do
    if wait "${pids[$shard]}"; then continue; fi
    failed=1
    tail -n 200 "$logs/$name.$shard"
  done
  passed=$(count PASSED "$name")
  if [[ $failed -ne 0 ]]; then
    echo "$name: FAILED after $((SECONDS - start)) s"
    status=1
  elif [[ $passed -eq 0 ]]; then
    echo "$name: no test ran"
    status=1
  else
    echo "$name: $passed tests passed, $(count SKIPPED "$name") skipped, $((SECONDS - start)) s"
  fi
done
exit $status
