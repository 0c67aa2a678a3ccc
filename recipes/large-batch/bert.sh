#!/usr/bin/env bash
# One run of the large-batch study: BERT with the flags of pretrain_bert.py. Start it on every machine:
#
#   recipes/large-batch/bert.sh MASTER_ADDR NNODES NODE_RANK [LR] [flags of pretrain_bert.py ...]
#
# From the environment:
#   SHAPE      4x128 (default), 12x768, 24x1024 or 85x1024: layers x width
#   OPTIMIZER  lamb (default), mylamb, mylamb2, mylamb3, lambtp, adam, ...
#   BATCH      sequences of a step [default: 1024, 8192, 32768, 8192, by shape]
#   SAMPLES    sequences of the run [default: 16384000, 52428800, 512000000, 81920000]
#   WARMUP     fraction of the steps [default: 320 steps but at most 0.5, 0.16, 0.2, 0.1]
#   TENSOR     tensor-parallel size [default: 1]
#   NORMS      norms of LAMB if TENSOR > 1: tensor-shard (default, as in the study) or whole
#   GPUS       ranks of each machine [default: 4, 4, 8, 8]
#   MICRO      micro-batch [default: at most 32, 16, 16, 8]
#   PRECISION  fp16 (default), bf16 or f32
#   SEQUENCE   tokens of a sample [default: 512]
#   DATA, VOCAB, RUNS, PORT   [default: corpus_text_sentence, vocab.txt, runs, 6000]
#   DRY        1: print the command instead of running it
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/run.sh"
[[ $# -ge 3 ]] || {
  echo "usage: ${0##*/} MASTER_ADDR NNODES NODE_RANK [LR] [flags of pretrain_bert.py ...]" >&2
  exit 2
}
script=pretrain_bert.py shape=${SHAPE:-4x128} heads=16 recompute=()
case $shape in
  4x128) default_batch=1024 default_samples=16384000 default_gpus=4 most_micro=32 ;;
  12x768)
    heads=12 default_batch=8192 default_samples=52428800 default_gpus=4 most_micro=16
    recompute=(--recompute-activations)
    ;;
  24x1024)
    default_batch=32768 default_samples=512000000 default_gpus=8 most_micro=16
    recompute=(--recompute-activations)
    ;;
  85x1024)
    default_batch=8192 default_samples=81920000 default_gpus=8 most_micro=8
    recompute=(--recompute-granularity full --recompute-method uniform --recompute-num-layers 1)
    ;;
  *) fail "SHAPE=$shape: expected 4x128, 12x768, 24x1024 or 85x1024" ;;
esac
model=(--num-layers "${shape%x*}" --hidden-size "${shape#*x}" --num-attention-heads "$heads"
  --seq-length "${SEQUENCE:-512}" --max-position-embeddings "${SEQUENCE:-512}")

# The study recorded no rate for other batches of the larger shapes.
default_lr() {
  case $shape-$1 in
    4x128-*) if (($1 <= 2048)); then echo 0.01; elif (($1 <= 4096)); then echo 0.01414; else echo 0.02; fi ;;
    12x768-8192) echo 0.0025 ;;
    24x1024-32768) echo 0.01 ;;
  esac
}
default_warmup() {
  case $shape in
    4x128) awk "BEGIN { w = 320 / $2; print w < 0.5 ? w : 0.5 }" ;;
    12x768) echo 0.16 ;;
    24x1024) echo 0.2 ;;
    85x1024) echo 0.1 ;;
  esac
}
start_run "$@"
