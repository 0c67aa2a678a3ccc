#!/usr/bin/env bash
# Installs from a build folder into a temporary DESTDIR, checks every part, runs the installed program
# from another folder, installs again and uninstalls.
#
#   tests/install/installed_program.sh BUILD
set -euo pipefail
[[ $# -eq 1 ]] || { echo "usage: $0 BUILD" >&2; exit 2; }
build=$(realpath "$1")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset LD_LIBRARY_PATH

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# A prefix with a blank finds what is not quoted.
export DESTDIR="$work/dest dir" PREFIX=/opt/be\ vatron
top=$DESTDIR$PREFIX
program=$top/bin/bevatron

# A umask of root's shell must not make the installation unreadable.
(umask 077 && "$root/scripts/install.sh" "$build")
for file in bin/bevatron share/bash-completion/completions/bevatron \
            share/zsh/site-functions/_bevatron share/man/man1/bevatron.1 \
            share/bevatron/configs/stories.toml share/doc/bevatron/README.md; do
  [[ -s $top/$file ]] || fail "no $file"
done
[[ $(stat -c %a "$program") == 755 ]] || fail "the mode of bin/bevatron is $(stat -c %a "$program")"
[[ $(stat -c %a "$top/share/man/man1") == 755 ]] || fail "others cannot read share/man/man1"
while IFS= read -r recipe; do
  cmp "$root/$recipe" "$top/share/bevatron/$recipe" || fail "$recipe differs"
done < <(cd "$root" && find configs recipes -type f 2> /dev/null)

# Wrappers named like Megatron-LM's scripts; the function `python` leaves other scripts alone.
(
  export PATH="$top/bin:$top/share/bevatron/bin:$PATH" BASH_ENV="$top/share/bevatron/bin/python.bash"
  flags=(--num-layers 1 --hidden-size 8 --num-attention-heads 2 --seq-length 8 --vocab-size 99
         --micro-batch-size 1 --lr 0.1 --train-iters 1 --mock-data --dry-run)
  for start in "torchrun --nproc_per_node 2 sub/pretrain_gpt.py" pretrain_gpt.py "python -u pretrain_gpt.py" \
               "python3 -m torch.distributed.launch --nproc_per_node 2 pretrain_gpt.py"; do
    bash -c "$start \"\$@\"" job "${flags[@]}" --max-position-embeddings 8 --train.output "" > "$work/job.txt" 2>&1 ||
      { cat "$work/job.txt"; fail "$start does not run"; }
  done
  function_of_python=$(bash -c 'command() { echo "command $*"; }; python other.py pretrain_gpt.py')
  [[ $function_of_python == "command python other.py pretrain_gpt.py" ]] || fail "python other.py is taken"
)

# The program runs from another folder, and finds each plug-in that the build has.
cd /
"$program" version | grep -q '^bevatron ' || fail "the installed program does not run"
bench=(bench comm --device cpu --max-bytes 1Ki --seconds 0.01)
for plugin in "$build"/libbevatron-*.so; do
  if [[ ! -f $plugin ]]; then continue; fi
  name=$(basename "$plugin")
  [[ -s $top/lib/bevatron/$name ]] || fail "no lib/bevatron/$name"
  engine=${name#libbevatron-}
  engine=${engine%.so}
  if [[ $engine == mpi ]]; then
    command -v mpirun > /dev/null || { echo "mpirun is missing: $name not loaded"; continue; }
    start=(mpirun --oversubscribe --allow-run-as-root -n 2 "$program")
  else
    start=("$program" launch --nproc_per_node 2)
  fi
  "${start[@]}" "${bench[@]}" --parallel.backend "$engine" > "$work/bench.txt" 2>&1 ||
    { cat "$work/bench.txt"; fail "the installed program does not communicate with $name"; }
done

# Completions: bash completes a verb; zsh accepts its file.
completed=$(bash --norc -c 'source "$0"; COMP_WORDS=(bevatron trai); COMP_CWORD=1; _bevatron
  echo "${COMPREPLY[*]}"' "$top/share/bash-completion/completions/bevatron")
[[ $completed == train ]] || fail "bash completes \"trai\" to \"$completed\""
[[ $(head -n 1 "$top/share/zsh/site-functions/_bevatron") == "#compdef bevatron" ]] ||
  fail "zsh does not recognise its completion file"
if command -v zsh > /dev/null; then zsh -n "$top/share/zsh/site-functions/_bevatron"; fi

# The manual page: every verb of the overview, and nothing that groff warns about.
while read -r verb; do
  grep -q "^\\\\fB$verb\\\\fR" "$top/share/man/man1/bevatron.1" || fail "bevatron.1 has no $verb"
done < <("$program" help | sed -n 's/^  \([a-z]\{1,\}\) .*/\1/p')
if command -v groff > /dev/null; then
  warnings=$(groff -man -Tascii -ww -z "$top/share/man/man1/bevatron.1" 2>&1)
  [[ -z $warnings ]] || fail "groff: $warnings"
fi

# Installing again replaces what is there and removes what the new version lacks; --uninstall leaves
# only the files of others.
echo old > "$top/share/bevatron/configs/old.toml"
echo share/bevatron/configs/old.toml >> "$top/share/bevatron/installed-files"
echo mine > "$top/share/bevatron/configs/mine.toml"
"$root/scripts/install.sh" "$build" > /dev/null
[[ ! -e $top/share/bevatron/configs/old.toml ]] || fail "a file of the earlier version is left"
"$root/scripts/install.sh" --uninstall
[[ $(cd "$top" && find . -type f) == ./share/bevatron/configs/mine.toml ]] ||
  fail "left after --uninstall: $(cd "$top" && find . -type f)"
if "$root/scripts/install.sh" --uninstall 2> /dev/null; then fail "uninstalled twice"; fi
echo passed
