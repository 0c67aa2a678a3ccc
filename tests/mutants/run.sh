#!/usr/bin/env bash
# Plants each fault of list.txt in a copy of the tree, builds the test it names and expects the test to
# fail. Slow: one rebuild per fault. The copy is built with -O1, and without CUDA where there is no GPU.
#
#   tests/mutants/run.sh [folder for the copy [expression]]
#     expression: only faults whose line in list.txt matches it
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=${1:-$root/build-mutants}
only=${2:-.}
mkdir -p "$work"
tar -C "$root" --exclude=./build --exclude='./build-*' --exclude=./.git -cf - . | tar -C "$work" -xf -
rm -rf "$work/original"
cp -r "$work/src" "$work/original"

# Faults in CUDA code need a GPU.
gpu=OFF
if nvidia-smi >/dev/null 2>&1; then gpu=ON; fi
cmake -S "$work" -B "$work/out" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBEV_WERROR=OFF -DBEV_CUDA=$gpu \
  -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" >"$work/configure.log"
targets="ops_test gradcheck_test equivalence_test checkpoint_test unit_test cli_test ranks_test process_test bevatron_golden"
ninja -C "$work/out" bevatron_lint $targets >"$work/build.log"

run_test() {  # program argument
  case "$1 $2" in
    "ranks_test "*) "$work/out/$1" $2 ;;
    *" --"*) "$work/out/$1" --gtest_brief=1 "$2" ;;
    *) "$work/out/$1" "$work/$2" ;;
  esac >"$work/test.log" 2>&1
}

# Undoes the planted fault, also when the script is interrupted.
planted=
restore() {
  if [ -n "$planted" ]; then cp "$work/original/${planted#src/}" "$work/$planted"; fi
  planted=
}
trap restore EXIT

# Each test passes without a fault: asked once per test, before the first fault is planted.
trim() { sed 's/^ *//; s/ *$//'; }
declare -A passes
selected=$(grep -E -- "$only" "$root/tests/mutants/list.txt" | grep -v -e '^#' -e '^ *$' || true)
if [ $gpu = OFF ]; then
  echo "$(grep -c Cuda <<<"$selected" || true) faults skipped: no GPU"
  selected=$(grep -v Cuda <<<"$selected" || true)
fi
while IFS='|' read -r name function statement replacement program argument; do
  program=$(printf %s "$program" | trim) argument=$(printf %s "$argument" | trim)
  [ -n "${passes[$program $argument]:-}" ] && continue
  if run_test "$program" "$argument"; then passes[$program $argument]=yes; else passes[$program $argument]=no; fi
done <<<"$selected"

caught=0 missed=0
while IFS='|' read -r name function statement replacement program argument; do
  name=$(printf %s "$name" | trim)
  program=$(printf %s "$program" | trim) argument=$(printf %s "$argument" | trim)
  if [ "${passes[$program $argument]}" = no ]; then
    echo "BROKEN  $name: $program $argument fails without the fault"
    missed=$((missed + 1))
    continue
  fi
  restore
  planted=$("$work/out/bevatron-lint" plant "$work" "$name")
  if ! ninja -C "$work/out" "${program/bevatron-golden/bevatron_golden}" >"$work/build.log"; then
    echo "BROKEN  $name: the fault does not compile"
    missed=$((missed + 1))
  elif run_test "$program" "$argument"; then
    echo "MISSED  $name: $program $argument still passes"
    missed=$((missed + 1))
  else
    echo "caught  $name: $program $argument"
    caught=$((caught + 1))
  fi
done <<<"$selected"
echo "$caught passed, $missed failed"
[ "$missed" -eq 0 ]
