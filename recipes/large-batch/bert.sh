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
usage="usage: ${0##*/} MASTER_ADDR NNODES NODE_RANK [LR] [flags of pretrain_bert.py ...]"
fail() {
  echo "${0##*/}: $1" >&2
  exit 2
}
[[ $# -ge 3 ]] || { echo "$usage" >&2; exit 2; }
master=$1 nodes=$2 node=$3
shift 3
shape=${SHAPE:-4x128} optimizer=${OPTIMIZER:-lamb} tensor=${TENSOR:-1}
recompute=()
case $shape in
  4x128) heads=16 batch=${BATCH:-1024} samples=${SAMPLES:-16384000} gpus=${GPUS:-4} most=32 ;;
  12x768)
    heads=12 batch=${BATCH:-8192} samples=${SAMPLES:-52428800} gpus=${GPUS:-4} most=16
    recompute=(--recompute-activations)
    ;;
  24x1024)
    heads=16 batch=${BATCH:-32768} samples=${SAMPLES:-512000000} gpus=${GPUS:-8} most=16
    recompute=(--recompute-activations)
    ;;
  85x1024)
    heads=16 batch=${BATCH:-8192} samples=${SAMPLES:-81920000} gpus=${GPUS:-8} most=8
    recompute=(--recompute-granularity full --recompute-method uniform --recompute-num-layers 1)
    ;;
  *) fail "SHAPE=$shape: expected 4x128, 12x768, 24x1024 or 85x1024" ;;
esac
[[ $tensor =~ ^[1-9][0-9]*$ ]] || fail "TENSOR=$tensor: expected a number from 1"
((gpus % tensor == 0)) || fail "TENSOR=$tensor does not divide GPUS=$gpus; set GPUS to a multiple of $tensor"
ranks=$((gpus * nodes / tensor))
share=$((batch / ranks))
((share >= 1)) || fail "a batch of $batch is too small for $ranks data-parallel ranks"
micro=${MICRO:-$((share < most ? share : most))}
steps=$((samples / batch))
((steps >= 1)) || fail "SAMPLES=$samples are less than a batch of $batch"

# The rates of the study, which are those of LAMB; AdamW takes a tenth. The study recorded none for
# other batches of the larger shapes.
case $shape-$batch in
  4x128-*) if ((batch <= 2048)); then lr=0.01; elif ((batch <= 4096)); then lr=0.01414; else lr=0.02; fi ;;
  12x768-8192) lr=0.0025 ;;
  24x1024-32768) lr=0.01 ;;
  *) lr= ;;
esac
[[ $optimizer == *lamb* || -z $lr ]] || lr=$(awk "BEGIN { print $lr / 10 }")
if [[ $# -gt 0 && $1 != --* ]]; then
  lr=$1
  shift
fi
[[ -n $lr ]] || fail "no rate is known for $shape with batches of $batch: give LR after NODE_RANK"

case $shape in
  4x128) warmup=$(awk "BEGIN { w = 320 / $steps; print w < 0.5 ? w : 0.5 }") ;;
  12x768) warmup=0.16 ;;
  24x1024) warmup=0.2 ;;
  85x1024) warmup=0.1 ;;
esac
case ${PRECISION:-fp16} in
  f32) precision=(--device.precision f32) ;;
  fp16 | bf16) precision=("--${PRECISION:-fp16}") ;;
  *) fail "PRECISION=$PRECISION: expected fp16, bf16 or f32" ;;
esac

name=$shape-$optimizer-b$batch-lr$lr-t$tensor
rule=()
[[ $optimizer != *lamb* ]] || rule=(--adam-eps 1e-6)
# --optim.lambtp_solution chooses the norms of lambtp.
if [[ $tensor -gt 1 && $optimizer == *lamb* && $optimizer != lambtp ]]; then
  rule+=(--optim.lamb_norms "${NORMS:-tensor-shard}")
  [[ ${NORMS:-tensor-shard} == tensor-shard ]] || name+=-$NORMS
fi
run=${RUNS:-runs}/$name
sequence=${SEQUENCE:-512}

command=(
  bevatron launch --nproc_per_node "$gpus" --nnodes "$nodes" --node_rank "$node"
  --master_addr "$master" --master_port "${PORT:-6000}"
  pretrain_bert.py
  --tensor-model-parallel-size "$tensor"
  --num-layers "${shape%x*}" --hidden-size "${shape#*x}" --num-attention-heads "$heads"
  --seq-length "$sequence" --max-position-embeddings "$sequence"
  --micro-batch-size "$micro" --global-batch-size "$batch" --train-iters "$steps"
  --data-path "${DATA:-corpus_text_sentence}" --vocab-file "${VOCAB:-vocab.txt}" --split 949,50,1
  --optimizer "$optimizer" "${rule[@]}" --lr "$lr" --min-lr 1e-5
  --lr-decay-style linear --lr-decay-iters $(((steps * 99 + 50) / 100))
  --lr-warmup-fraction "${WARMUP:-$warmup}"
  --weight-decay 1e-2 --clip-grad 1.0 "${precision[@]}" "${recompute[@]}"
  --log-interval 100 --eval-interval 1000 --eval-iters 10
  --save "$run/checkpoints" --save-interval 1000 --load "$run/checkpoints"
  --train.output "$run" "$@")
if [[ -n ${DRY:-} ]]; then
  printf '%s\n' "${command[*]}"
else
  exec "${command[@]}"
fi
