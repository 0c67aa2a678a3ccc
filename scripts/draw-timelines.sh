#!/usr/bin/env bash
# Draws the timelines of docs/parallelism.md: 8 micro-batches on 4 pipeline ranks, each schedule.
#
#   scripts/draw-timelines.sh PROGRAM FOLDER           writes FOLDER/SCHEDULE.svg
#   scripts/draw-timelines.sh PROGRAM FOLDER --check   fails, and says how, where those differ
set -euo pipefail
if [[ $# -lt 2 || $# -gt 3 || ${3:---check} != --check ]]; then
  echo "usage: scripts/draw-timelines.sh PROGRAM FOLDER [--check]" >&2
  exit 2
fi
program=$1 folder=$2

draw() {  # schedule, chunks, folder
  "$program" plan --world-size 4 --pipeline-model-parallel-size 4 --parallel.schedule "$1" \
    --parallel.chunks "$2" --num-layers 8 --hidden-size 64 --num-attention-heads 4 --vocab-size 512 \
    --seq-length 64 --micro-batch-size 1 --global-batch-size 8 --timeline "$3/$1.svg" >/dev/null 2>&1
}
draw_all() {  # folder
  draw gpipe 1 "$1"
  draw 1f1b 1 "$1"
  draw interleaved 2 "$1"
  draw zero-bubble 1 "$1"
}

if [[ $# -eq 2 ]]; then
  mkdir -p "$folder"
  draw_all "$folder"
  exit
fi
fresh=$(mktemp -d)
trap 'rm -r "$fresh"' EXIT
draw_all "$fresh"
diff -r "$folder" "$fresh" || { echo 'make docs draws them anew'; exit 1; }
