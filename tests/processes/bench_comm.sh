#!/usr/bin/env bash
# bench comm on ranks that are processes ends well and prints every exchange once per size, from one
# rank, beside the library's own rate:
#
#   bench_comm.sh mpi|gloo|nccl N BEVATRON [ARGUMENT ...]
#
# Exit code 77 where run.sh cannot start such ranks here.
set -euo pipefail
engine=$1 ranks=$2 bevatron=$3
shift 3

code=0
output=$("$(dirname "$0")/run.sh" "$engine" "$ranks" "$bevatron" "$bevatron" \
  bench comm --max-bytes 4Ki --seconds 0.001 "$@") || code=$?
echo "$output"
[[ $code == 0 ]] || exit "$code"

expect() {  # lines text
  local found
  found=$(grep -c "^$2 " <<<"$output" || true)
  [[ $found == "$1" ]] || { echo "FAILED: $found lines with $2 instead of $1"; exit 1; }
}
for exchange in all_reduce all_gather reduce_scatter all_to_all broadcast send/recv; do
  expect 2 $exchange
done
expect 1 agreement
# Seven columns: ours against the library's.
awk '$1 == "all_reduce" && NF != 7 { exit 1 }' <<<"$output" || { echo "FAILED: no library"; exit 1; }
