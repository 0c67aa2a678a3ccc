#!/usr/bin/env bash
# A sweep on this machine: every batch with every optimizer and every tensor-parallel size, one run after the other, and a
# plot that compares them by samples.
#
#   recipes/large-batch/sweep.sh [flags of pretrain_bert.py or pretrain_t5.py ...]
#
# From the environment: BATCHES ("512 1024 2048 4096 8192 16384"), OPTIMIZERS ("lamb"), TENSORS ("1"), MODEL
# (bert or t5), and those of bert.sh or t5.sh. A run that has finished is not repeated: each continues from its checkpoints.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
runs=${RUNS:-runs} model=${MODEL:-bert}
for optimizer in ${OPTIMIZERS:-lamb}; do
  for tensor in ${TENSORS:-1}; do
    for batch in ${BATCHES:-512 1024 2048 4096 8192 16384}; do
      BATCH=$batch OPTIMIZER=$optimizer TENSOR=$tensor RUNS=$runs "$here/$model.sh" 127.0.0.1 1 0 "$@"
    done
  done
done
if [[ -z ${DRY:-} ]]; then
  bevatron plot "$runs"/*/ --x samples --output "$runs/sweep.html"
fi
