#!/usr/bin/env bash
# One run of the large-batch study: T5-small (6 + 6 layers x 512) with the flags of pretrain_t5.py. Start it on every
# machine:
#
#   recipes/large-batch/t5.sh MASTER_ADDR NNODES NODE_RANK [LR] [flags of pretrain_t5.py ...]
#
# From the environment:
#   OPTIMIZER  lamb (default), mylamb, mylamb2, mylamb3, lambtp, adam, ...
#   BATCH      samples of a step [default: 512]
#   SAMPLES    samples of the run [default: 52428800]
#   WARMUP     fraction of the steps [default: 1024 steps]
#   TENSOR     tensor-parallel size [default: 1]
#   NORMS      norms of LAMB if TENSOR > 1: tensor-shard (default, as in the study) or whole
#   GPUS       ranks of each machine [default: 4]
#   MICRO      micro-batch [default: at most 64]
#   PRECISION  fp16 (default), bf16 or f32
#   SEQUENCE, DECODER_SEQUENCE   tokens of the encoder and the decoder [default: 512, 128]
#   DATA, VOCAB, RUNS, PORT   [default: corpus_text_sentence, vocab.txt, runs, 6000]
#   DRY        1: print the command instead of running it
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/run.sh"
[[ $# -ge 3 ]] || {
  echo "usage: ${0##*/} MASTER_ADDR NNODES NODE_RANK [LR] [flags of pretrain_t5.py ...]" >&2
  exit 2
}
script=pretrain_t5.py shape=t5-small default_batch=512 default_samples=52428800 default_gpus=4 most_micro=64 recompute=()
model=(--num-layers 6 --hidden-size 512 --num-attention-heads 8 --kv-channels 64 --ffn-hidden-size 2048
  --encoder-seq-length "${SEQUENCE:-512}" --decoder-seq-length "${DECODER_SEQUENCE:-128}"
  --max-position-embeddings "${SEQUENCE:-512}" --vocab-extra-ids 100)

# The study recorded two rates.
default_lr() {
  case $1 in
    512) echo 0.00283 ;;
    16384) echo 0.0113 ;;
  esac
}
default_warmup() { awk "BEGIN { w = 1024 / $2; print w < 0.5 ? w : 0.5 }"; }
start_run "$@"
