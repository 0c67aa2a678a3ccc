#!/usr/bin/env bash
# Starts N processes of a test program by an engine's own launcher:
#
#   run.sh mpi|gloo|nccl N BEVATRON PROGRAM [ARGUMENT ...]
#
# Exit code 77, and one line that says why, where that cannot be done here.
set -euo pipefail
engine=$1 ranks=$2 bevatron=$3
shift 3

skip() {
  echo "skipped: $1"
  exit 77
}

plugin() {
  [[ -f $(dirname "$bevatron")/libbevatron-$1.so ]] || skip "this build has no $1 engine"
}

case $engine in
  mpi)
    plugin mpi
    command -v mpirun >/dev/null || skip "there is no mpirun"
    # More ranks than cores are no mistake of a test, and in a container everybody is root.
    exec mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$ranks" "$@" ;;
  gloo)
    plugin gloo
    exec "$bevatron" launch --nproc_per_node "$ranks" -- "$@" ;;
  nccl)
    # Several ranks on one GPU: NCCL takes them for hosts of a network when their host ids differ.
    export NCCL_SOCKET_IFNAME=lo
    exec "$bevatron" launch --nproc_per_node "$ranks" -- \
      "$(command -v bash)" -c 'NCCL_HOSTID=host$RANK exec "$0" "$@"' "$@" ;;
  *)
    echo "run.sh: there is no engine $engine" >&2
    exit 2 ;;
esac
