#!/bin/sh
# Compiles a precompiled header: precompile.sh compiler arguments... GCC 12.2 fails in one of ten
# times with an internal error in gt_pch_save, which depends on where the kernel maps its memory. Such
# a failure is tried again; every other one is reported at once.
messages=$(mktemp) || exit 1
trap 'rm -f "$messages"' EXIT
for attempt in 1 2 3 4 5 6 7 8; do
  "$@" 2>"$messages"
  status=$?
  if [ $status -eq 0 ] || ! grep -q 'internal compiler error: in gt_pch_save' "$messages"; then
    break
  fi
done
cat "$messages" >&2
exit $status
