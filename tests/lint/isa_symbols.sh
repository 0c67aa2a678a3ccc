#!/bin/sh
# Objects built for more than the baseline CPU (*_avx2.cpp, *_avx512.cpp) must not hold an inline
# function under a name that other objects may hold too: the linker keeps one copy of it for the whole
# program, and if it keeps this one, a CPU without those instructions dies of it. A name that contains
# the instruction set cannot be shared.
#
#   isa_symbols.sh ARCHIVE          checks the objects of an archive
#   isa_symbols.sh --plant CXX      plants such a function and expects the check to find it
set -eu

# Prints the names that could be shared; fails when there are any, or no such object to look at.
check() {
  nm -A "$1" | awk '
    $1 !~ /_(avx2|avx512)\.cpp\.o/ { next }
    { ++seen }
    $(NF - 1) ~ /^[WVu]$/ && $NF !~ /avx/ { print; ++found }
    END {
      if (!seen) print "no object for more than the baseline CPU"
      exit found > 0 || seen == 0
    }'
}

if [ "$1" != --plant ]; then
  check "$1"
  exit
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
build() {  # code: compiles it as scale_avx2.cpp and archives it
  echo "$1" > "$folder/scale_avx2.cpp"
  "$cxx" -O0 -c "$folder/scale_avx2.cpp" -o "$folder/scale_avx2.cpp.o"
  rm -f "$folder/planted.a"
  ar rc "$folder/planted.a" "$folder/scale_avx2.cpp.o"
}
cxx=$2
build 'namespace avx2 { inline float twice(float x) { return 2 * x; } }
       float scale(float x) { return avx2::twice(x); }'
check "$folder/planted.a"
build 'inline float twice(float x) { return 2 * x; }
       float scale(float x) { return twice(x); }'
if check "$folder/planted.a"; then
  echo "the planted inline function was not found"
  exit 1
fi
