#!/bin/sh
# The program must neither give nor take a name of Protobuf where libraries look for theirs:
# cmake/protobuf.cmake says what happens otherwise.
#
#   protobuf_names.sh PROGRAM       checks a program
#   protobuf_names.sh --plant CXX   plants such a name and expects the check to find it
set -eu

check() { ! nm -D "$1" | grep '6google8protobuf'; }

if [ "$1" != --plant ]; then
  # The code is there all the same.
  nm "$1" | grep -q 'bev_ZN.*6google8protobuf'
  check "$1"
  exit
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo 'namespace google::protobuf { void planted() {} } int main() {}' > "$folder/planted.cpp"
"$2" -std=c++20 "$folder/planted.cpp" -o "$folder/hidden"
check "$folder/hidden"
"$2" -std=c++20 -rdynamic "$folder/planted.cpp" -o "$folder/shown"
if check "$folder/shown"; then
  echo "the planted name was not found"
  exit 1
fi
