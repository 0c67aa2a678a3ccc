#!/usr/bin/env bash
# The op tests of the GPU under compute-sanitizer: memcheck (addresses), racecheck (shared memory),
# initcheck (memory read before it is written). The tools watch every access, so the largest cases
# are left out and the others run once, in f32 and bf16. cuDNN is kept out: its kernels synchronise in
# ways that racecheck reports.
#
#   scripts/sanitize-gpu.sh OPS_TEST [SECONDS [TOOL GROUP]...]
#       SECONDS: for each of the runs, default 600; TOOL GROUP: only these (racecheck attention ...)
#
# Exit code 0: every run ended, without a finding.
set -euo pipefail
if [[ $# -lt 1 || ! -x $1 ]]; then
  echo "usage: scripts/sanitize-gpu.sh OPS_TEST [SECONDS [TOOL GROUP]...]" >&2
  exit 2
fi
program=$(realpath "$1")
seconds=${2:-600}
only=("${@:3}")
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BEVATRON_TEST_GPU_MIB=768 BEVATRON_TEST_BRIEF=1 BEVATRON_NO_CUDNN=1

readonly large='*AroundTiles*:*ShapesOfModels*:*LongBias*:*StepOfTraining*:*Wide*:*Large*:CudnnAttention*'
readonly -A groups=(
  [attention]='Attention*Cuda*'
  [norms]='Norm*Cuda*'
  [rows]='Dropout*Cuda*:Activation*Cuda*:Rope*Cuda*'
  [loss]='CrossEntropy*Cuda*:Embedding*Cuda*:Reduce*Cuda*:Elementwise*Cuda*:Combine*Cuda*'
  [products]='Matmul*Cuda*:Update*Cuda*'
)

run() {  # tool group
  local log=$work/$1-$2 code=0
  timeout "$seconds" "$sanitizer" --tool "$1" --error-exitcode 9 "$program" \
    --gtest_filter="${groups[$2]}-$large" >"$log" 2>&1 || code=$?
  local passed
  passed=$(grep -cE '^\[ +OK' "$log" || true)
  echo "$1 $2: code $code, $passed tests passed; $(grep -E '(ERROR|RACECHECK) SUMMARY' "$log" || echo 'no summary')"
  if [[ $code -ne 0 ]]; then { grep -E '^=========' "$log" | head -20; tail -n 10 "$log"; } || true; fi
  echo "$code" >"$log.code"
}

if [[ ${#only[@]} -gt 0 ]]; then
  for ((i = 0; i < ${#only[@]}; i += 2)); do run "${only[i]}" "${only[i + 1]}" & done
  wait
else
  for tool in memcheck racecheck initcheck; do
    for group in "${!groups[@]}"; do run "$tool" "$group" & done
    wait
  done
fi
if grep -qv '^0$' "$work"/*.code; then exit 1; fi
