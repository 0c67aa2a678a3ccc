#!/usr/bin/env bash
# Plants each fault of list.txt in a copy of the tree, builds the test it names and expects the test to
# fail. Slow: one rebuild per fault.
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
cmake -S "$work" -B "$work/out" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBEV_WERROR=OFF >"$work/configure.log"
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

# Faults in CUDA code need a GPU.
gpu=no
if "$work/out/ops_test" --gtest_brief=1 --gtest_filter='Update.CudaDecides' 2>&1 | grep -q PASSED.*1; then gpu=yes; fi

caught=0 missed=0
while IFS='|' read -r name function statement replacement program argument; do
  case "$name" in '#'* | '') continue ;; esac
  trim() { sed 's/^ *//; s/ *$//'; }
  name=$(printf %s "$name" | trim)
  program=$(printf %s "$program" | trim) argument=$(printf %s "$argument" | trim)
  case "$argument" in *Cuda*) if [ $gpu = no ]; then echo "skipped $name: no GPU"; continue; fi ;; esac
  if ! run_test "$program" "$argument"; then
    echo "BROKEN  $name: $program $argument fails without the fault"
    missed=$((missed + 1))
    continue
  fi
  planted=$("$work/out/bevatron-lint" plant "$work" "$name")
  ninja -C "$work/out" "${program/bevatron-golden/bevatron_golden}" >"$work/build.log"
  if run_test "$program" "$argument"; then
    echo "MISSED  $name: $program $argument still passes"
    missed=$((missed + 1))
  else
    echo "caught  $name: $program $argument"
    caught=$((caught + 1))
  fi
  restore
  ninja -C "$work/out" "${program/bevatron-golden/bevatron_golden}" >"$work/build.log"
done < <(grep -E -- "$only" "$root/tests/mutants/list.txt")
echo "$caught passed, $missed failed"
[ "$missed" -eq 0 ]
