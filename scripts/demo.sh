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
step corpus --output stories.txt --bytes 12M --valid valid.txt --valid-bytes 100K
head -n 1 stories.txt

say "2. A tokenizer that knows their words"
step tokenizer train --type bpe --vocab-size 1024 --output tokenizer stories.txt

say "3. Text to token files: a line is a document"
step preprocess --input stories.txt --output-prefix stories --tokenizer tokenizer --append-eod
step preprocess --input valid.txt --output-prefix valid --tokenizer tokenizer --append-eod

say "4. Train, with a checkpoint now and then; something ends the run on its way"
cp "$root/configs/stories.toml" .
# An earlier demo in this folder gives way.
rm -rf stories-run
step train stories.toml --save-interval 1000 --exit-interval 1500

say "5. Continue where it ended: the same command, and --load"
step train stories.toml --save-interval 1000 --load stories-run
step checkpoint list stories-run

say "6. Evaluate on stories it has never seen"
"$bevatron" eval stories-run --text valid.txt --json >eval.json
step eval stories-run --text valid.txt

say "7. Let it tell stories"
printf "%s$ bevatron generate stories-run --samples 10 --seed 7 > generated.txt%s\n" "$bold" "$plain"
"$bevatron" generate stories-run --samples 10 --seed 7 >generated.txt
cat generated.txt
step corpus --score generated.txt

say "8. Look at the whole training, its end and its continuation"
step plot stories-run

# The grammar gives the exact -log p of the validation text; no model can do better, whatever its tokens.
value() { sed -n 's/.*"'"$1"'": \([0-9.e+-]*\).*/\1/p' "$2" | tail -n 1; }
"$bevatron" corpus --score valid.txt --json >floor.json
say "$(awk -v l="$(value loss eval.json)" -v t="$(value tokens eval.json)" -v b="$(value bytes eval.json)" \
  -v n="$(value accepted_nats floor.json)" 'BEGIN {
  printf "loss %.4f nats/token, %.4f nats/byte; no model can do better than %.4f nats/token, %.4f nats/byte on this text: %.1f %% above the floor",
    l, l * t / b, n / t, n / b, 100 * (l * t / n - 1) }')"

say "Write with it: an empty line starts a story, \"Tom had\" continues one, /help says more, Ctrl-D leaves"
printf '%s$ cd %s && %s generate stories-run --interactive%s\n' "$bold" "$folder" "$bevatron" "$plain"
