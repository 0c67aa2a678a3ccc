#!/bin/sh
# Makes one object of several and of what they need of an archive, in which every name of Protobuf has
# a prefix.
#
#   rename-protobuf.sh LD NM OBJCOPY OUT OBJECT... ARCHIVE
set -eu
ld=$1 nm=$2 objcopy=$3 out=$4
shift 4
"$ld" -r -o "$out.whole" "$@"
"$nm" "$out.whole" | awk '$NF ~ /6google8protobuf/ { print $NF, "bev" $NF }' | sort -u > "$out.names"
"$objcopy" --redefine-syms="$out.names" "$out.whole" "$out"
rm -f "$out.whole" "$out.names"
