#!/usr/bin/env bash
# Runs the tests whose name contains Cuda, from the test programs of a build folder or of a bundle
# with tests (scripts/bundle.sh --tests). Prints what failed in full, and as the last line
# "N passed, N failed, N skipped".
#
#   scripts/test-gpu.sh FOLDER [TEXT]    TEXT: only tests whose name also matches this expression
#
# A test that crashes, hangs (SECONDS_EACH, default 300, for the tests of one program) or leaves the
# GPU unusable for its process counts as failed; the tests behind it run in a new process.
# Exit code 0: at least one test passed and none failed; 1 otherwise; 2: wrong arguments.
set -euo pipefail
if [[ $# -lt 1 || $# -gt 2 || ! -d $1 ]]; then
  echo "usage: scripts/test-gpu.sh FOLDER [TEXT]: a build folder, or a bundle with tests" >&2
  exit 2
fi
folder=$(realpath "$1")
text=${2:-.}
limit=${SECONDS_EACH:-300}
if [[ -d $folder/tests && ! -e $folder/CMakeCache.txt ]]; then folder=$folder/tests; fi

# After one of these, every call of the process fails.
readonly sticky='cudaError(IllegalAddress|MisalignedAddress|LaunchFailure|LaunchTimeout|Assert|IllegalInstruction|InvalidPc|InvalidAddressSpace|HardwareStackError|ECCUncorrectable|Unknown)'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0 no_gpu=''

# The tests of a program, one full name per line.
tests_of() {
  "$1" --gtest_list_tests --gtest_filter='*Cuda*' | sed 's/ *#.*//' |
    awk '/^[^ ]/ { suite = $1; next } /^  / { print suite $1 }' | { grep -E "$text" || true; }
}

# From the output of a program: a line "NAME RESULT" for each test up to the last one whose result
# can be trusted, into the file `results`; the output of those that failed, to stdout.
digest() {
  awk -v sticky="$sticky" -v results="$work/results" -v code="$1" '
  function close_test(result) {
    print name, result > results
    if (result == "failed") printf "%s", output
    name = ""
  }
  /^\[ RUN      \] / { name = substr($0, 14); output = ""; broken = 0 }
  name != "" { output = output $0 "\n"; if ($0 ~ sticky) broken = 1 }
  name != "" && /^\[       OK \] / { close_test("passed") }
  name != "" && /^\[  SKIPPED \] / { close_test("skipped") }
  name != "" && /^\[  FAILED  \] / { close_test("failed"); if (broken) exit }
  END {
    if (name != "" && !broken) {
      printf "%s%s", output, (code == 124 || code == 137 ? "ran over time" : "ended with code " code) "\n"
      print name, "failed" > results
    }
  }' "$work/output"
}

shopt -s nullglob
for program in "$folder"/*_test; do
  if [[ $program == */ranks_test ]]; then continue; fi  # not a GoogleTest program
  tests_of "$program" > "$work/left"
  while [[ -s $work/left ]]; do
    code=0
    timeout --kill-after=10 "$limit" "$program" --gtest_color=no \
      --gtest_filter="$(paste -sd : "$work/left")" > "$work/output" 2>&1 || code=$?
    : > "$work/results"
    digest "$code"
    if [[ ! -s $work/results ]]; then
      cat "$work/output"
      echo "$(basename "$program") ended with code $code before its first test"
      failed=$((failed + $(wc -l < "$work/left")))
      break
    fi
    if [[ $code -ne 0 ]] && ! grep -q ' failed$' "$work/results"; then
      echo "$(basename "$program") ended with code $code after its tests"
      failed=$((failed + 1))
    fi
    passed=$((passed + $(grep -c ' passed$' "$work/results" || true)))
    failed=$((failed + $(grep -c ' failed$' "$work/results" || true)))
    skipped=$((skipped + $(grep -c ' skipped$' "$work/results" || true)))
    if [[ -z $no_gpu ]]; then
      no_gpu=$(awk '/: Skipped$/ { getline; if ($0 !~ /^\[/) { print; exit } }' "$work/output")
    fi
    cut -d ' ' -f 1 "$work/results" | { grep -vxF -f - "$work/left" || true; } > "$work/next"
    mv "$work/next" "$work/left"
  done
done

if [[ -n $no_gpu ]]; then echo "Skipped: $no_gpu"; fi
if [[ $((passed + failed)) -eq 0 ]]; then echo "No test ran."; fi
echo "$passed passed, $failed failed, $skipped skipped"
[[ $passed -gt 0 && $failed -eq 0 ]]
