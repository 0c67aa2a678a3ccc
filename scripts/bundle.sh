#!/usr/bin/env bash
# Makes a folder with the program and the shared libraries it needs, which runs wherever it is put,
# also on another distribution with the same or a newer glibc and libstdc++. NVIDIA's libraries are
# not in it: the program loads them when it uses a GPU. Neither is MPI, which is the cluster's; the
# plug-in for it is, and needs Open MPI 4 there.
#
#   scripts/bundle.sh BUILD            BUILD/bundle/bevatron and BUILD/bundle/bevatron.tar.gz
#   scripts/bundle.sh BUILD --tests    and the test programs, in tests/ (scripts/test-gpu.sh runs
#                                      them); bevatron.tar.xz is the same, much smaller
#
# The result is checked: its libraries come from itself or are the system's, and it runs from
# another place. BARE=folder names a bare system in which it is tried too, through chroot.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
with_tests=no
case "$#,${2:-}" in
  1,) ;;
  2,--tests) with_tests=yes ;;
  *)
    echo "usage: scripts/bundle.sh BUILD [--tests]" >&2
    exit 2 ;;
esac
build=$(realpath "$1")
bundle=$build/bundle/bevatron
bare=${BARE:-/tmp/bare}

# What every system with glibc and a C++ program on it has, at least as new as where this was built.
readonly system='^(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.so'
readonly test_programs=(ops_test unit_test equivalence_test gradcheck_test ranks_test bevatron-golden)
# What moves tensors between processes: loaded when wanted, from lib/.
readonly plugins=(mpi gloo)

fail() {
  echo "bundle: $*" >&2
  exit 1
}

# Puts a program into a folder of the bundle, without its debugging information.
place() {
  [[ -x $1 ]] || fail "there is no $1; build it first"
  strip --strip-unneeded -o "$2/$(basename "$1")" "$1"
}

# Name and place of every shared library of a program: "libz.so.1 /lib/x86_64-linux-gnu/libz.so.1".
libraries() {
  ldd "$1" | awk '$2 == "=>" { print $1, ($3 == "not" ? "not-found" : $3) }'
}

rm -rf "$bundle" "$bundle".tar.?z
mkdir -p "$bundle/lib"
place "$build/bevatron" "$bundle"
programs=("$bundle/bevatron")
cp "$root/README.md" "$bundle/"
cp -r "$root/configs" "$root/docs" "$bundle/"

if [[ $with_tests == yes ]]; then
  mkdir "$bundle/tests"
  for name in "${test_programs[@]}"; do
    if [[ -x $build/$name ]]; then
      place "$build/$name" "$bundle/tests"
      programs+=("$bundle/tests/$name")
    fi
  done
  cp "$root/scripts/test-gpu.sh" "$bundle/"
  # bevatron-golden reads these and runs the program that lies beside it.
  cp -r "$root/tests/golden" "$bundle/tests/"
  ln -s ../bevatron "$bundle/tests/bevatron"
fi

placed=()
for engine in "${plugins[@]}"; do
  name=libbevatron-$engine.so
  if [[ ! -e $build/$name ]]; then continue; fi
  strip --strip-unneeded -o "$bundle/lib/$name" "$build/$name"
  placed+=("$name")
  # Those of MPI stay where they are.
  if [[ $engine != mpi ]]; then programs+=("$bundle/lib/$name"); fi
done

for program in "${programs[@]}"; do
  while read -r name path; do
    if [[ $name =~ $system ]]; then continue; fi
    [[ $path != not-found ]] || fail "$(basename "$program") needs $name, which is not on this machine"
    if [[ ! -e $bundle/lib/$name ]]; then install -m 644 "$path" "$bundle/lib/$name"; fi
  done < <(libraries "$program")
done
tar -czf "$bundle.tar.gz" -C "$(dirname "$bundle")" "$(basename "$bundle")"
# The programs have most of their bytes in common, which only a long window sees.
if [[ $with_tests == yes ]] && command -v xz > /dev/null; then
  tar -c -C "$(dirname "$bundle")" "$(basename "$bundle")" |
    xz --lzma2=preset=3,dict=256MiB > "$bundle.tar.xz"
fi

# The proof, on a copy that was unpacked elsewhere.
readonly plan_flags=(--model.preset gpt2-124m --train.micro_batch 1)
moved=$(mktemp -d)
trap 'rm -rf "$moved"' EXIT
tar -xzf "$bundle.tar.gz" -C "$moved"
cd /
unset LD_LIBRARY_PATH
for program in "${programs[@]}"; do
  copy=$moved/bevatron/${program#"$bundle/"}
  while read -r name path; do
    if [[ ! $name =~ $system && $(realpath "$path") != "$moved/bevatron/lib/"* ]]; then
      fail "${program#"$bundle/"} takes $name from $path, not from lib/"
    fi
  done < <(libraries "$copy")
  rpath=$(readelf -d "$copy" | sed -n 's/.*(R\(UN\)\?PATH).*\[\(.*\)\]/\2/p')
  [[ $rpath == '$ORIGIN'* && $rpath != *:* ]] || fail "${program#"$bundle/"} looks for libraries in '$rpath'"
done
"$moved/bevatron/bevatron" version > /dev/null || fail "the moved program does not run"
"$moved/bevatron/bevatron" plan "${plan_flags[@]}" > /dev/null || fail "the moved program does not plan"
if [[ $with_tests == yes ]]; then
  for program in "$moved"/bevatron/tests/*_test; do
    if [[ $program == */ranks_test ]]; then continue; fi
    "$program" --gtest_list_tests > /dev/null || fail "the moved $(basename "$program") does not start"
  done
fi

tried="moved"
if [[ -x $bare/bin/sh && $(id -u) -eq 0 ]]; then
  place_there=$(mktemp -d "$bare/tmp/bundle.XXXXXX")
  trap 'rm -rf "$moved" "$place_there"' EXIT
  cp -r "$moved/bevatron" "$place_there/"
  inside=${place_there#"$bare"}/bevatron/bevatron
  if chroot "$bare" /bin/sh -c 'ls /usr/lib/*/libstdc++.so.6' > /dev/null 2>&1; then
    chroot "$bare" "$inside" version > /dev/null || fail "the program does not run in $bare"
    chroot "$bare" "$inside" plan "${plan_flags[@]}" > /dev/null || fail "the program does not plan in $bare"
    tried="moved, and in $bare"
  else
    tried="moved (not in $bare: it has no libstdc++)"
  fi
fi

echo "bundle: $bundle.tar.gz, $(du -h "$bundle.tar.gz" | cut -f 1): $(find "$bundle/lib" -type f | wc -l) libraries," \
  "$(find "$bundle/tests" -maxdepth 1 -type f 2> /dev/null | wc -l) test programs," \
  "plug-ins: ${placed[*]:-none}; it runs $tried"
