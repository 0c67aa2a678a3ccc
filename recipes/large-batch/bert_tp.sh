#!/usr/bin/env bash
# bert.sh with TENSOR_PARALLEL ranks (1, 2, 4 or 8) that split each matrix; 8 need GPUS=8. Norms of
# LAMB are those of a rank's shard, as in the study, so the runs differ by more than rounding.
#
#   recipes/large-batch/bert_tp.sh MASTER_ADDR NNODES NODE_RANK TENSOR_PARALLEL [LR] [flags of pretrain_bert.py ...]
set -euo pipefail
[[ $# -ge 4 ]] || { echo "usage: ${0##*/} MASTER_ADDR NNODES NODE_RANK TENSOR_PARALLEL [LR] [flags ...]" >&2; exit 2; }
exec env TENSOR="$4" "$(dirname "$0")/bert.sh" "$1" "$2" "$3" "${@:5}"
