#!/usr/bin/env bash
# A model trained on the stories approaches the floor that the grammar gives for the validation text, and never
# goes below it: a loss under the exact -log p of the text would be a wrong loss, not a good model.
#
#   stories.sh BEVATRON RECIPE ITERATIONS BOUND    fails unless floor <= loss <= BOUND x floor
set -euo pipefail
bevatron=$1 recipe=$2 iterations=$3 bound=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

"$bevatron" corpus --output stories.txt --bytes 12M --valid valid.txt --valid-bytes 100K >/dev/null
"$bevatron" tokenizer train --type bpe --vocab-size 1024 --output tokenizer stories.txt >/dev/null
"$bevatron" preprocess --input stories.txt --output-prefix stories --tokenizer tokenizer --append-eod >/dev/null
"$bevatron" preprocess --input valid.txt --output-prefix valid --tokenizer tokenizer --append-eod >/dev/null
"$bevatron" train "$recipe" --train.iterations "$iterations" --eval.interval 0 --eval.iterations 0 >train.log 2>&1 ||
  { cat train.log; exit 1; }

value() { sed -n 's/.*"'"$1"'": \([0-9.e+-]*\).*/\1/p' | tail -n 1; }
"$bevatron" eval stories-run --text valid.txt --json >eval.json
loss=$(value loss <eval.json) tokens=$(value tokens <eval.json)
# In nats for each token: the exact -log p of the text, whatever it was cut into.
floor=$("$bevatron" corpus --score valid.txt --json | value accepted_nats | awk -v t="$tokens" '{ print $1 / t }')
echo "loss $loss, floor $floor, bound $bound x floor"
awk -v l="$loss" -v f="$floor" -v b="$bound" 'BEGIN { exit !(f > 0 && l >= f && l <= b * f) }'
