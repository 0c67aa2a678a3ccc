#!/usr/bin/env bash
# One run of the large-batch study: a BERT of 4 layers x 128 (16 heads, sequence 512). Start it on every machine:
#
#   recipes/large-batch/bert4.sh MASTER_ADDR NNODES NODE_RANK [LR] [flags of pretrain_bert.py ...]
#
# Without LR the rate follows the batch. From the environment: BATCH (1024), OPTIMIZER (lamb), TENSOR (1: ranks that
# divide each matrix), GPUS (4 of each machine), SAMPLES (16384000), WARMUP (part of the steps; BATCH / 51200), MICRO
# (32, or what a rank gets of the batch), DATA (corpus_text_sentence), VOCAB (vocab.txt), RUNS (runs), PORT (6000),
# DRY=1 (prints the command only).
set -euo pipefail
usage="usage: ${0##*/} MASTER_ADDR NNODES NODE_RANK [LR] [flags of pretrain_bert.py ...]"
[[ $# -ge 3 ]] || { echo "$usage" >&2; exit 2; }
master=$1 nodes=$2 node=$3
shift 3
batch=${BATCH:-1024} tensor=${TENSOR:-1} gpus=${GPUS:-4} samples=${SAMPLES:-16384000}

# Constant up to 2,048 sequences, then with the root of the batch, and doubled from 8,192 on.
if ((batch <= 2048)); then lr=0.01; elif ((batch <= 4096)); then lr=0.01414; else lr=0.02; fi
if [[ $# -gt 0 && $1 != --* ]]; then
  lr=$1
  shift
fi

steps=$((samples / batch))
share=$((batch * tensor / (gpus * nodes)))
((share >= 1)) || {
  echo "$0: a batch of $batch is too small for $((gpus * nodes / tensor)) data-parallel ranks" >&2
  exit 2
}
micro=${MICRO:-$((share < 32 ? share : 32))}
warmup=${WARMUP:-$(awk "BEGIN { w = $batch / 51200; print w < 0.5 ? w : 0.5 }")}
name=${OPTIMIZER:-lamb}-b$batch-lr$lr-t$tensor
run=${RUNS:-runs}/$name

command=(
  bevatron launch --nproc_per_node "$gpus" --nnodes "$nodes" --node_rank "$node"
  --master_addr "$master" --master_port "${PORT:-6000}"
  pretrain_bert.py
  --tensor-model-parallel-size "$tensor"
  --num-layers 4 --hidden-size 128 --num-attention-heads 16
  --seq-length 512 --max-position-embeddings 512
  --micro-batch-size "$micro" --global-batch-size "$batch" --train-iters "$steps"
  --data-path "${DATA:-corpus_text_sentence}" --vocab-file "${VOCAB:-vocab.txt}" --split 949,50,1
  --optimizer "${OPTIMIZER:-lamb}" --lr "$lr" --min-lr 1e-5
  --lr-decay-style linear --lr-decay-iters $((steps * 99 / 100)) --lr-warmup-fraction "$warmup"
  --weight-decay 1e-2 --clip-grad 1.0 --fp16
  --log-interval 100 --eval-interval 1000 --eval-iters 10
  --save "$run/checkpoints" --save-interval 1000 --load "$run/checkpoints"
  --train.output "$run" "$@")
if [[ -n ${DRY:-} ]]; then
  printf '%s\n' "${command[*]}"
else
  exec "${command[@]}"
fi
