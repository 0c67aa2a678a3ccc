#!/usr/bin/env bash
# The same run with TENSOR_PARALLEL ranks (1, 2, 4 or 8) dividing each matrix; 8 need GPUS=8.
#
#   recipes/large-batch/bert4_tp.sh MASTER_ADDR NNODES NODE_RANK TENSOR_PARALLEL [flags of pretrain_bert.py ...]
set -euo pipefail
[[ $# -ge 4 ]] || { echo "usage: ${0##*/} MASTER_ADDR NNODES NODE_RANK TENSOR_PARALLEL [flags ...]" >&2; exit 2; }
tensor=$4
exec env TENSOR="$tensor" "$(dirname "$0")/bert4.sh" "$1" "$2" "$3" "${@:5}"
