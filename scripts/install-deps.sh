#!/usr/bin/env bash
# Installs what the build and the tests need from the distribution (Debian 12, Ubuntu 24.04).
# This is the one list of system packages; people and CI use it alike.
#
#   scripts/install-deps.sh            what `make` and `make test` need
#   scripts/install-deps.sh --lint     and what `make lint` and `make format` need
#   scripts/install-deps.sh --fuzz     and what `make fuzz` needs
#   scripts/install-deps.sh --ccache   and ccache, which the Makefile uses when it is there
#   scripts/install-deps.sh --list     only say what is needed and what is missing
#
# Where a CUDA compiler is, it also fetches the headers of cuDNN's C++ frontend with pip into
# .deps/cudnn-frontend/, where `make clean` leaves them alone. They are optional: without pip or a
# network the build goes on, attention is then left to our own kernels. A failure is remembered in
# .deps/cudnn-frontend.failed; remove that file to try again.
#
# Does nothing, and does not touch the network, when nothing is missing. Installs as root or through
# sudo. Exit code 0: everything is there; 1: something could not be installed; 2: this is not a
# system with apt (what is needed is printed), or an unknown option.
set -euo pipefail

# The compiler and the tools of `make lint` and `make fuzz` are of one version on every system:
# another clang-format formats differently, and clang before 16 has no std::source_location.
readonly llvm=19
readonly cudnn_frontend=1.32.0
readonly deps="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.deps"

# package | why
wanted=(
  "g++|the C++20 compiler"
  "cmake|configures the build (3.25 or newer)"
  "ninja-build|runs the build"
  "make|the front: make help"
  "libfmt-dev|text formatting"
  "libtomlplusplus-dev|configuration files"
  "nlohmann-json3-dev|checkpoint manifests and reports"
  "libsentencepiece-dev|tokenizers in .model files"
  "zlib1g-dev|reads .gz"
  "liblzma-dev|reads .xz"
  "libzstd-dev|reads .zst"
  "libssl-dev|TLS between ranks, SHA-256, HMAC and random bytes"
  "libxxhash-dev|checksums of checkpoints"
  "libopenmpi-dev|tensors between processes by MPI"
  "openmpi-bin|mpirun, which starts the tests of that"
  "libgloo-dev|tensors between processes over TCP by Gloo"
  "libprotobuf-dev|event files for TensorBoard"
  "protobuf-compiler|makes code from their description"
  "libedit-dev|editing of what is typed in generate --interactive"
  "libgtest-dev|the tests"
)
list_only=no

for option in "$@"; do
  case "$option" in
    --lint)
      wanted+=("clang-format-$llvm|checks the format of the sources"
               "clang-tidy-$llvm|static analysis") ;;
    --fuzz)
      wanted+=("clang-$llvm|the compiler with libFuzzer"
               "libclang-rt-$llvm-dev|libFuzzer and the sanitizers"
               "llvm-$llvm|llvm-symbolizer: names in the reports of a crash") ;;
    --ccache) wanted+=("ccache|remembers compilations") ;;
    --list) list_only=yes ;;
    *)
      echo "install-deps: unknown option '$option'; there are --lint, --fuzz, --ccache, --list" >&2
      exit 2 ;;
  esac
done

fetch_cudnn_frontend() {
  local headers="$deps/cudnn-frontend" failed="$deps/cudnn-frontend.failed"
  command -v nvcc >/dev/null || [[ -x "${CUDA_HOME:-${CUDA_PATH:-/usr/local/cuda}}/bin/nvcc" ]] || return 0
  if [[ $list_only == yes ]]; then
    local state=missing
    [[ -f $headers/include/cudnn_frontend.h ]] && state=there
    printf 'install-deps: %-8s %-22s %s\n' "$state" "cudnn-frontend" "headers for attention by cuDNN (optional)"
    return 0
  fi
  [[ -f $headers/include/cudnn_frontend.h || -f $failed ]] && return 0
  echo "install-deps: fetching the headers of cuDNN's frontend $cudnn_frontend"
  local work
  work=$(mktemp -d)
  mkdir -p "$deps"
  # The headers are the same for every Python; its version is stated so that the local one does not
  # matter.
  if python3 -m pip download --quiet --disable-pip-version-check --no-input --retries 1 --timeout 15 \
       --no-deps --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 \
       --platform "manylinux_2_28_$(uname -m)" --dest "$work" \
       "nvidia-cudnn-frontend==$cudnn_frontend" 2>"$failed" &&
     python3 - "$work" "$work/unpacked" 2>>"$failed" <<'PYTHON'
import glob, sys, zipfile
wheel = zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0])
wheel.extractall(sys.argv[2], [n for n in wheel.namelist() if n.startswith("include/")])
PYTHON
  then
    rm -rf "$headers" "$failed"
    mv "$work/unpacked" "$headers"
  else
    echo "install-deps: they could not be fetched ($failed says why); the build goes on without cuDNN" >&2
  fi
  rm -rf "$work"
}
fetch_cudnn_frontend

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  {
    echo "install-deps: this system has no apt, so nothing was installed. Needed, by their Debian names:"
    for entry in "${wanted[@]}"; do
      printf '  %-22s %s\n' "${entry%%|*}" "${entry#*|}"
    done
    echo "Install these with your package manager, then say: make SKIP_DEPS=1"
  } >&2
  exit 2
fi

is_installed() {
  # Status is three words: wanted, error flag, state. "hold ok installed" is installed as well.
  [[ "$(dpkg-query --show --showformat='${Status}' "$1" 2>/dev/null)" == *" ok installed" ]]
}

missing=()
for entry in "${wanted[@]}"; do
  package=${entry%%|*}
  if is_installed "$package"; then
    state=there
  else
    state=missing
    missing+=("$package")
  fi
  if [[ $list_only == yes || $state == missing ]]; then
    printf 'install-deps: %-8s %-22s %s\n' "$state" "$package" "${entry#*|}"
  fi
done

if [[ $list_only == yes || ${#missing[@]} -eq 0 ]]; then exit 0; fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "install-deps: not root and there is no sudo; as root, run:" >&2
    echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "install-deps: apt-get update, then apt-get install ${missing[*]}"
apt_get() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q "$@"; }
# A stale index of one unreachable repository must not stop what the others can give.
apt_get update || echo "install-deps: apt-get update failed; trying with the index that is there" >&2
if ! apt_get install -y --no-install-recommends "${missing[@]}"; then
  echo "install-deps: could not install ${missing[*]}; apt's reason stands above" >&2
  exit 1
fi
