#!/usr/bin/env bash
# Format and static analysis of the C++ sources.
#
#   scripts/lint.sh all             clang-format on every source, clang-tidy on every .cpp of src/
#   scripts/lint.sh changed         clang-format on every source, clang-tidy on changed files
#   scripts/lint.sh check-format    only clang-format on every source
#   scripts/lint.sh tidy-changed    only clang-tidy on changed files
#   scripts/lint.sh format          format every source in place
#
# Changed files are those that differ from the merge base with origin/main. If there is no such branch,
# or HEAD is part of it, they are those of the last commit and of the working tree.
#
# JOBS=n           clang-tidy processes [default: number of CPUs]
# LINT_SECONDS=n   start no clang-tidy process after n seconds, and report the files that were left out
#
# clang-tidy reads build-lint/compile_commands.json, which is written without precompiled headers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly what=${1:-all} llvm=19
jobs=${JOBS:-$(nproc)}
status=0

mapfile -t sources < <(find src tests -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' | sort)

# The commit that changed files are compared with. Empty in a clone that holds one commit.
base_commit() {
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [[ -z $base || $base == $(git rev-parse HEAD) ]]; then
    base=$(git rev-parse --verify --quiet HEAD~1 || true)
  fi
  echo "$base"
}

# The .cpp files of src/ that changed, or whose header did.
changed_units() {
  local base
  base=$(base_commit)
  { git diff --name-only "${base:-HEAD}" -- src; git ls-files --others --exclude-standard -- src; } |
    sed -n 's/\.\(h\|cpp\)$/.cpp/p' | sort -u | while read -r unit; do
      if [[ -f $unit ]]; then echo "$unit"; fi
    done
}

check_format() {
  echo "clang-format: ${#sources[@]} files"
  "clang-format-$llvm" --dry-run -Werror "${sources[@]}" || status=1
}

# One file; nothing after the deadline but a note in $left_out.
tidy_one() {
  if [[ -n $deadline && $(date +%s) -ge $deadline ]]; then
    echo "$1" >>"$left_out"
    return 0
  fi
  # libstdc++ 12 itself uses what it has deprecated, inside std::stable_sort.
  "clang-tidy-$llvm" -p build-lint --quiet --extra-arg=-Wno-unknown-warning-option \
    --extra-arg=-Wno-deprecated-declarations "$1"
}

tidy() {  # file...
  # Sources of CUDA are not in the database of this preset.
  cmake --preset dev -B build-lint -DBEV_PCH=OFF --no-warn-unused-cli --log-level=WARNING >/dev/null
  local units=() unit
  for unit in "$@"; do
    if grep -qF "\"file\": \"$PWD/$unit\"" build-lint/compile_commands.json; then units+=("$unit"); fi
  done
  echo "clang-tidy: ${#units[@]} files, $jobs at a time"
  if [[ ${#units[@]} -eq 0 ]]; then return 0; fi
  ninja -C build-lint src/tensorboard_event/tensorboard_event.pb.h >/dev/null
  left_out=$(mktemp)
  deadline=${LINT_SECONDS:+$(($(date +%s) + LINT_SECONDS))}
  export -f tidy_one
  export left_out deadline llvm
  printf '%s\0' "${units[@]}" | xargs -0 -n 1 -P "$jobs" bash -c 'tidy_one "$1"' tidy_one \
    2> >(grep -v ' warnings\? generated' >&2) || status=1
  if [[ -s $left_out ]]; then
    echo "clang-tidy: $(wc -l <"$left_out") files were left out after $LINT_SECONDS s"
  fi
  rm -f "$left_out"
}

case "$what" in
  format)
    "clang-format-$llvm" -i "${sources[@]}"
    exit 0 ;;
  check-format) check_format ;;
  all)
    check_format
    mapfile -t all_units < <(find src -name '*.cpp' | sort)
    tidy "${all_units[@]}" ;;
  changed | tidy-changed)
    if [[ $what == changed ]]; then check_format; fi
    mapfile -t units_changed < <(changed_units)
    tidy "${units_changed[@]}" ;;
  *)
    echo "lint: '$what' is not one of all, changed, check-format, tidy-changed, format" >&2
    exit 2 ;;
esac

if [[ $status -ne 0 ]]; then echo "lint: findings above; make format repairs the format" >&2; fi
exit $status
