#!/usr/bin/env bash
# Converts a model that is larger than the memory it may use, both ways, and compares every byte.
#
#   tests/convert/large.sh BEVATRON MAKE_SYNTHETIC_MODEL [LIMIT_KIB]
#
# A model of 3 GB in shards of 1 GB; the program may have LIMIT_KIB of addresses (1 GiB unless told).
set -euo pipefail
bevatron=$(realpath "$1") make=$(realpath "$2")
readonly bevatron make limit=${3:-1048576} shard=1000000000
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

"$make" hf 16 2560 100000 "$shard"
echo "model: $(du -sh --apparent-size hf | cut -f1) in $(ls hf/*.safetensors | wc -l) files"

# Runs the program under the limit and says how much memory it had at most.
limited() {
  (ulimit -v "$limit" && exec "$bevatron" "$@") &
  local pid=$! peak=0 now
  while now=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status" 2> /dev/null) && [[ -n $now ]]; do
    peak=$now
    sleep 0.05
  done
  wait "$pid"
  echo "$1 $2: at most $((peak / 1024)) MiB of memory, $((limit / 1024)) MiB of addresses allowed"
}

limited convert hf-to-bev hf bev
limited convert bev-to-hf bev back --max-shard-size "$shard"
for file in hf/*; do cmp "$file" "back/$(basename "$file")"; done
[[ $(ls hf | wc -l) == $(ls back | wc -l) ]]
echo "all files are equal"
