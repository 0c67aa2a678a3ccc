# Sourced by bert.sh and t5.sh: one run of the large-batch study on this machine.
#
# They set, before calling start_run: script, shape, model (flags), default_batch, default_samples, default_gpus,
# most_micro, default_lr (a function of the batch), default_warmup (a function of batch and steps), recompute (flags).
# From the environment: OPTIMIZER BATCH SAMPLES WARMUP TENSOR NORMS GPUS MICRO PRECISION DATA VOCAB RUNS PORT DRY.
fail() {
  echo "${0##*/}: $1" >&2
  exit 2
}

# start_run MASTER_ADDR NNODES NODE_RANK [LR] [flags ...]
start_run() {
  local master=$1 nodes=$2 node=$3
  shift 3
  local optimizer=${OPTIMIZER:-lamb} tensor=${TENSOR:-1} gpus=${GPUS:-$default_gpus}
  local batch=${BATCH:-$default_batch} samples=${SAMPLES:-$default_samples}
  [[ $tensor =~ ^[1-9][0-9]*$ ]] || fail "TENSOR=$tensor: expected a number from 1"
  ((gpus % tensor == 0)) || fail "TENSOR=$tensor does not divide GPUS=$gpus; set GPUS to a multiple of $tensor"
  local ranks=$((gpus * nodes / tensor))
  local share=$((batch / ranks))
  ((share >= 1)) || fail "a batch of $batch is too small for $ranks data-parallel ranks"
  local micro=${MICRO:-$((share < most_micro ? share : most_micro))} steps=$((samples / batch))
  ((steps >= 1)) || fail "SAMPLES=$samples are less than a batch of $batch"

  # The rates of the study are those of LAMB; AdamW takes a tenth.
  local lr
  lr=$(default_lr "$batch")
  [[ $optimizer == *lamb* || -z $lr ]] || lr=$(awk "BEGIN { print $lr / 10 }")
  if [[ $# -gt 0 && $1 != --* ]]; then
    lr=$1
    shift
  fi
  [[ -n $lr ]] || fail "no rate is known for $shape with batches of $batch: give LR after NODE_RANK"

  local precision
  case ${PRECISION:-fp16} in
    f32) precision=(--device.precision f32) ;;
    fp16 | bf16) precision=("--${PRECISION:-fp16}") ;;
    *) fail "PRECISION=$PRECISION: expected fp16, bf16 or f32" ;;
  esac

  local name=$shape-$optimizer-b$batch-lr$lr-t$tensor rule=()
  [[ $optimizer != *lamb* ]] || rule=(--adam-eps 1e-6)
  # --optim.lambtp_solution chooses the norms of lambtp.
  if [[ $tensor -gt 1 && $optimizer == *lamb* && $optimizer != lambtp ]]; then
    rule+=(--optim.lamb_norms "${NORMS:-tensor-shard}")
    [[ ${NORMS:-tensor-shard} == tensor-shard ]] || name+=-$NORMS
  fi
  local run=${RUNS:-runs}/$name
  local command=(
    bevatron launch --nproc_per_node "$gpus" --nnodes "$nodes" --node_rank "$node"
    --master_addr "$master" --master_port "${PORT:-6000}"
    "$script" --tensor-model-parallel-size "$tensor" "${model[@]}"
    --micro-batch-size "$micro" --global-batch-size "$batch" --train-iters "$steps"
    --data-path "${DATA:-corpus_text_sentence}" --vocab-file "${VOCAB:-vocab.txt}" --split 949,50,1
    --optimizer "$optimizer" "${rule[@]}" --lr "$lr" --min-lr 1e-5
    --lr-decay-style linear --lr-decay-iters $(((steps * 99 + 50) / 100))
    --lr-warmup-fraction "${WARMUP:-$(default_warmup "$batch" "$steps")}"
    --weight-decay 1e-2 --clip-grad 1.0 "${precision[@]}" "${recompute[@]}"
    --log-interval 100 --eval-interval 1000 --eval-iters 10
    --save "$run/checkpoints" --save-interval 1000 --load "$run/checkpoints"
    --train.output "$run" "$@")
  if [[ -n ${DRY:-} ]]; then
    printf '%s\n' "${command[*]}"
  else
    exec "${command[@]}"
  fi
}
