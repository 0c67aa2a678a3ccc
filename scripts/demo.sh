#!/usr/bin/env bash
# From nothing to a model that tells stories, each step as the command a user would type.
# Usage: scripts/demo.sh BEVATRON [folder, default demo]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bevatron=$(realpath "$1")
folder=${2:-demo}
mkdir -p "$folder"
cd "$folder"

bold='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then bold=$'\e[1m' plain=$'\e[0m'; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
# Shows a command and runs it.
step() {
  printf '%s$ bevatron %s%s\n' "$bold" "$*" "$plain"
  "$bevatron" "$@"
}

say "1. Stories from a grammar whose entropy is known exactly"
step corpus --output stories.txt --bytes 4M --valid valid.txt --valid-bytes 100K
head -n 1 stories.txt

say "2. Text to token files: a byte is a token, a line is a document"
step preprocess --input stories.txt --output-prefix stories --tokenizer-type byte --append-eod
step preprocess --input valid.txt --output-prefix valid --tokenizer-type byte --append-eod

say "3. Train"
cp "$root/configs/stories.toml" .
step train stories.toml

say "4. Evaluate on stories it has never seen"
"$bevatron" eval stories-run --text valid.txt --json >eval.json
step eval stories-run --text valid.txt

say "5. Let it tell stories"
printf "%s$ bevatron generate stories-run --samples 10 --tokens 400 --seed 7 > generated.txt%s\n" "$bold" "$plain"
"$bevatron" generate stories-run --samples 10 --tokens 400 --seed 7 >generated.txt
cat generated.txt
step corpus --score generated.txt

loss=$(sed -n 's/.*"loss": \([0-9.]*\).*/\1/p' eval.json)
floor=$("$bevatron" corpus --score valid.txt --json | sed -n 's/.*"nats_per_token": \([0-9.]*\).*/\1/p' | tail -n 1)
say "$(awk -v l="$loss" -v f="$floor" 'BEGIN {
  printf "loss %.4f nats/token; no model can do better than %.4f on this text: %.1f %% above the floor", l, f, 100 * (l / f - 1) }')"
