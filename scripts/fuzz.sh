#!/usr/bin/env bash
# Builds every target of tests/fuzz with libFuzzer and the sanitizers and runs each for a while.
#
#   scripts/fuzz.sh [seconds for each] [build jobs]
#
# Inputs that were found interesting stay in build-fuzz/corpus/<target>; tests/fuzz/corpus/<target>,
# where it exists, gives the first ones. An input that breaks something is left in build-fuzz/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly seconds=${1:-60} jobs=${2:-$(nproc)} llvm=19

shopt -s nullglob
targets=(tests/fuzz/*.cpp)
if [[ ${#targets[@]} -eq 0 ]]; then
  echo "fuzz: there is no tests/fuzz/*.cpp" >&2
  exit 1
fi

cmake -S tests/fuzz -B build-fuzz -G Ninja --log-level=WARNING \
  -DCMAKE_CXX_COMPILER="clang++-$llvm" \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache)" > /dev/null
cmake --build build-fuzz --parallel "$jobs"

symbolizer=/usr/lib/llvm-$llvm/bin/llvm-symbolizer
if [[ -x $symbolizer ]]; then export ASAN_SYMBOLIZER_PATH=$symbolizer; fi

for source in "${targets[@]}"; do
  name=$(basename "$source" .cpp)
  seeds=tests/fuzz/corpus/$name
  corpus=build-fuzz/corpus/$name
  mkdir -p "$corpus"
  folders=("$corpus")
  if [[ -d $seeds ]]; then folders+=("$seeds"); fi
  echo "fuzz: $name for $seconds s"
  UBSAN_OPTIONS=print_stacktrace=1 "build-fuzz/$name" -max_total_time="$seconds" \
    -verbosity=0 -print_final_stats=1 -rss_limit_mb=4096 -timeout=25 \
    -artifact_prefix="build-fuzz/$name-" "${folders[@]}"
done
