#!/usr/bin/env bash
# Kills trainings that save, every few seconds and at random moments, and lets them go on, for a
# long time: each must end as one that nobody disturbed, in every bit of its weights, its optimizer
# and its loss curve. Prints a table.
#
#   scripts/soak.sh [SECONDS [PROGRAM [SEED]]]    default: 3600 build/bevatron 1
#
# Nothing is killed after SECONDS; the round that goes on then is finished. Exit code 0: all rounds
# ended alike; 1: some did not, and its folder is kept.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly seconds=${1:-3600}
program=$(realpath "${2:-build/bevatron}")
RANDOM=${3:-1}
readonly iterations=400 interval=4

work=$(mktemp -d)
job=''
stop_all() {
  if [[ -n $job ]]; then kill -9 -- "-$job" 2> /dev/null || true; fi
}
trap stop_all EXIT

training=(--data.mock true --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64
  --micro-batch-size 2 --global-batch-size 32 --device cpu --model.vocab 100 --lr 1e-3
  --lr-warmup-iters 20 --hidden-dropout 0.1 --attention-dropout 0.1 --train-iters "$iterations"
  --log-interval 50 --eval-interval 50 --eval-iters 2 --checkpoint.keep 3)

# What stands before and behind `train` for the ranks of a round.
start_of() {
  case $1 in
    threads_tp2_zero1) echo "--threads 4 --tensor-model-parallel-size 2 --use-distributed-optimizer" ;;
    threads_pp2) echo "--threads 4 --pipeline-model-parallel-size 2" ;;
    launch_zero3) echo "launch 2 --parallel.zero 3" ;;
    launch_dp) echo "launch 3 --global-batch-size 36" ;;
  esac
}
readonly layouts=(threads_tp2_zero1 launch_zero3 threads_pp2 launch_dp)

# start LAYOUT FOLDER INTERVAL: in the background, as a process group of its own, whose number is $job.
start() {
  local words
  read -ra words <<< "$(start_of "$1")"
  local command=("$program")
  if [[ ${words[0]} == launch ]]; then
    command+=(launch --nproc-per-node "${words[1]}" train "${training[@]}" "${words[@]:2}")
  else
    command+=(train "${training[@]}" "${words[@]}")
  fi
  setsid "${command[@]}" --train.output "$2/run" --save "$2/saved" --load "$2/saved" \
    --save-interval "$3" >> "$2/out" 2>> "$2/err" < /dev/null &
  job=$!
}

# The newest checkpoint of a folder; 0: there is none.
newest() {
  local last
  last=$(find "$1/saved" -maxdepth 1 -name 'iter_*' 2> /dev/null | sort | tail -1)
  last=${last##*iter_}
  echo $((10#${last:-0}))
}

# The last iteration that a run reported; 0: none.
reported() {
  local last
  last=$(grep -o '"event":"iteration".*"iteration":[0-9]*' "$1/run/metrics.jsonl" 2> /dev/null | tail -1 || true)
  last=${last##*:}
  echo $((10#${last:-0}))
}

reported_bytes() { cksum "$1/run/metrics.jsonl" 2> /dev/null || true; }

# What must not depend on disturbances.
curve() {
  grep '"event":"iteration"' "$1/run/metrics.jsonl" |
    sed -E 's/,"(seconds|tokens_per_second)":[^,}]*//g'
}
position() {
  sed -n '/^ "update": {/,/^ }/p; /^ "\(consumed_samples\|data_position\|iteration\|loss\|scheduled_samples\|seed\)":/p' "$1"
}
same_end() {  # folder, undisturbed folder
  local place
  place=saved/$(printf 'iter_%07d' "$iterations")
  cmp <(curve "$1") <(curve "$2") || return 1
  cmp <(position "$1/$place/manifest.json") <(position "$2/$place/manifest.json") || return 1
  cmp "$1/run/model/model.safetensors" "$2/run/model/model.safetensors" || return 1
  local file
  for file in "$2/$place"/*.safetensors; do
    cmp "$1/$place/$(basename "$file")" "$file" || return 1
  done
  # Nothing half is left.
  [[ -z $(find "$1/saved" -name '.*' -o -name '*.partial.*') ]]
}

readonly end=$((EPOCHSECONDS + seconds)) begin=$EPOCHSECONDS

failed=0 all_kills=0 all_lost=0 round=0
table=$(printf '%-5s %-18s %10s %6s %10s %s' round ranks iterations kills "lost steps" end)
while [[ $EPOCHSECONDS -lt $end ]]; do
  layout=${layouts[$((round % ${#layouts[@]}))]}
  round=$((round + 1))
  whole=$work/$layout
  if [[ ! -d $whole ]]; then
    mkdir "$whole"
    start "$layout" "$whole" 0
    wait "$job" || { cat "$whole/err"; exit 1; }
  fi
  folder=$work/round-$round
  mkdir "$folder"
  kills=0 lost=0 result=differs
  while :; do
    before=$(reported_bytes "$folder")
    start "$layout" "$folder" "$interval"
    # Between 0 and 4 seconds, the start of the program among them.
    until=$((${EPOCHREALTIME/[.,]/} + RANDOM % 4000 * 1000))
    while kill -0 "$job" 2> /dev/null && [[ $EPOCHSECONDS -ge $end || ${EPOCHREALTIME/[.,]/} -lt $until ]]; do
      sleep 0.02
    done
    if kill -0 "$job" 2> /dev/null; then
      mapfile -t ranks < <(pgrep -P "$job" || true)
      if [[ ${#ranks[@]} -gt 0 && $((RANDOM % 2)) == 0 ]]; then
        kill -9 "${ranks[$((RANDOM % ${#ranks[@]}))]}" 2> /dev/null || true
      else
        kill -9 -- "-$job" 2> /dev/null || true
      fi
    fi
    code=0
    { wait "$job" || code=$?; } 2> /dev/null  # the shell says who was killed
    # Whoever is left of it ends by itself; nobody else may write into the folder meanwhile.
    while kill -0 -- "-$job" 2> /dev/null; do sleep 0.02; done
    job=''
    if [[ $code == 0 ]]; then break; fi
    if [[ $code != 137 && $code != 5 ]]; then
      echo "soak: exit code $code" >&2
      tail -5 "$folder/err" >&2
      break
    fi
    kills=$((kills + 1))
    gone=$(($(reported "$folder") - $(newest "$folder")))
    # Killed before its first step it lost nothing more.
    if [[ $gone -gt 0 && $(reported_bytes "$folder") != "$before" ]]; then lost=$((lost + gone)); fi
  done
  if [[ $code == 0 ]] && same_end "$folder" "$whole"; then
    result=same
    rm -rf "$folder"
  else
    failed=$((failed + 1))
  fi
  all_kills=$((all_kills + kills)) all_lost=$((all_lost + lost))
  line=$(printf '%5d %-18s %10d %6d %10d %s' "$round" "$layout" "$iterations" "$kills" "$lost" "$result")
  echo "$line"
  table+=$'\n'$line
done
printf '\n%s\n' "$table"
echo "$round rounds in $((EPOCHSECONDS - begin)) s, $all_kills kills, $all_lost steps lost, $failed rounds ended otherwise"
if [[ $failed -gt 0 ]]; then
  echo "what they left is in $work" >&2
  exit 1
fi
rm -rf "$work"
