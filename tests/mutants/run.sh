#!/usr/bin/env bash
# Applies each fault of list.txt to a copy of the tree, builds the test it names and expects it to fail.
# Usage: tests/mutants/run.sh [folder for the copy [expression]]; slow: one rebuild per fault.
#   expression: only faults whose line in list.txt matches it
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=${1:-$root/build-mutants}
only=${2:-.}
mkdir -p "$work"
tar -C "$root" --exclude=./build --exclude='./build-*' --exclude=./.git -cf - . | tar -C "$work" -xf -
cmake -S "$work" -B "$work/out" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBEV_WERROR=OFF >"$work/configure.log"
targets="ops_test gradcheck_test equivalence_test checkpoint_test unit_test cli_test ranks_test process_test bevatron_golden"
ninja -C "$work/out" $targets >"$work/build.log"

run_test() {  # program argument
  case "$1 $2" in
    "ranks_test "*) "$work/out/$1" $2 ;;
    *" --"*) "$work/out/$1" --gtest_brief=1 "$2" ;;
    *) "$work/out/$1" "$work/$2" ;;
  esac >"$work/test.log" 2>&1
}

# Faults of the GPU are for machines that have one.
gpu=no
if "$work/out/ops_test" --gtest_brief=1 --gtest_filter='Update.CudaDecides' 2>&1 | grep -q PASSED.*1; then gpu=yes; fi

caught=0 missed=0
while IFS='|' read -r name file old new program argument; do
  case "$name" in '#'* | '') continue ;; esac
  trim() { sed 's/^ *//; s/ *$//'; }
  name=$(printf %s "$name" | trim) file=$(printf %s "$file" | trim)
  program=$(printf %s "$program" | trim) argument=$(printf %s "$argument" | trim)
  old=$(printf %s "$old" | trim) new=$(printf %s "$new" | trim)
  case "$argument" in *Cuda*) if [ $gpu = no ]; then echo "skipped $name: no GPU"; continue; fi ;; esac
  if ! run_test "$program" "$argument"; then
    echo "BROKEN  $name: $program $argument fails without the fault"
    missed=$((missed + 1))
    continue
  fi
  cp "$work/$file" "$work/original"
  OLD=$old NEW=$new perl -0pi -e '
    my ($o, $n) = ($ENV{OLD}, $ENV{NEW}); s/\\n/\n/g for ($o, $n);
    s/\Q$o\E/$n/ or die "the text of the fault is not in the file\n"' "$work/$file"
  ninja -C "$work/out" "${program/bevatron-golden/bevatron_golden}" >"$work/build.log"
  if run_test "$program" "$argument"; then
    echo "MISSED  $name: $program $argument still passes"
    missed=$((missed + 1))
  else
    echo "caught  $name: $program $argument"
    caught=$((caught + 1))
  fi
  cp "$work/original" "$work/$file"
  ninja -C "$work/out" "${program/bevatron-golden/bevatron_golden}" >"$work/build.log"
done < <(grep -E -- "$only" "$root/tests/mutants/list.txt")
echo "$caught passed, $missed failed"
[ "$missed" -eq 0 ]
