#!/usr/bin/env bash
# Format and static analysis of the C++ sources.
#
#   scripts/lint.sh all       clang-format on every source, clang-tidy on every .cpp of src/
#   scripts/lint.sh changed   clang-format on every source, clang-tidy on what differs from HEAD
#   scripts/lint.sh format    only format every source in place
#
# REQUIRES for clang-tidy: build/compile_commands.json (cmake --preset cpu-release).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly what=${1:-all} llvm=19
jobs=${JOBS:-$(nproc)}

mapfile -t sources < <(find src tests -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' | sort)

# The .cpp files of src/ that differ from the last commit, or that stand beside a header that does.
changed_units() {
  { git diff --name-only HEAD -- src; git ls-files --others --exclude-standard -- src; } |
    sed -n 's/\.\(h\|cpp\)$/.cpp/p' | sort -u | while read -r unit; do
      if [[ -f $unit ]]; then echo "$unit"; fi
    done
}

case "$what" in
  format)
    "clang-format-$llvm" -i "${sources[@]}"
    exit 0 ;;
  all) mapfile -t units < <(find src -name '*.cpp' | sort) ;;
  changed) mapfile -t units < <(changed_units) ;;
  *)
    echo "lint: '$what' is not one of all, changed, format" >&2
    exit 2 ;;
esac

status=0
echo "clang-format: ${#sources[@]} files"
"clang-format-$llvm" --dry-run -Werror "${sources[@]}" || status=1

# libstdc++ 12 itself uses what it has deprecated, inside std::stable_sort.
echo "clang-tidy: ${#units[@]} files, $jobs at a time"
if [[ ${#units[@]} -gt 0 ]]; then
  printf '%s\0' "${units[@]}" |
    xargs -0 -n 1 -P "$jobs" "clang-tidy-$llvm" -p build --quiet \
      --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-deprecated-declarations 2> >(grep -v ' warnings\? generated' >&2) || status=1
fi

if [[ $status -ne 0 ]]; then echo "lint: findings above; make format repairs the format" >&2; fi
exit $status
