#!/bin/sh
# Reads the results ctest wrote (ctest --output-junit FILE) and prints what was skipped and why, what
# failed, and as the last line "N passed, N failed, N skipped".
#
#   scripts/test-summary.sh FILE
#
# Exit code 0: at least one test passed and none failed; 1 otherwise; 2: the file cannot be read.
set -eu

if [ $# -ne 1 ] || [ ! -r "$1" ]; then
  echo "test-summary: cannot read ctest's results '${1:-}'" >&2
  exit 2
fi

# What ctest writes is regular enough for awk: one <testcase ...> per line, its <skipped .../> on the
# next, and the output of the test escaped, so that no "<" in it can be taken for an element.
awk '
function attribute(name,    text) {
  if (!match($0, " " name "=\"[^\"]*\"")) return ""
  text = substr($0, RSTART, RLENGTH)
  sub(/^[^"]*"/, "", text)
  sub(/"$/, "", text)
  return text
}
function plain(text) {
  gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text)
  gsub(/&apos;/, "\047", text); gsub(/&amp;/, "\\&", text)
  return text
}
function trimmed(text) {
  gsub(/^[ \t]+|[ \t]+$/, "", text)
  return text
}
/^[ \t]*<testcase / {
  name = plain(attribute("name")); status = attribute("status"); message = ""; reason = ""; last = ""
  in_output = 0; reason_follows = 0
  next
}
/^[ \t]*<skipped / { message = plain(attribute("message")); next }
/^[ \t]*<system-out>/ { in_output = 1; sub(/^[ \t]*<system-out>/, "") }
in_output {
  line = $0
  sub(/<\/system-out>.*/, "", line)
  line = trimmed(plain(line))
  # GoogleTest prints "file:line: Skipped" and the reason below; other tests say it last.
  if (reason_follows && line != "" && line !~ /^\[/) reason = line
  reason_follows = line ~ /: Skipped$/
  if (line != "") last = line
  if (/<\/system-out>/) in_output = 0
}
/^[ \t]*<\/testcase>/ {
  if (status == "run") {
    ++passed
  } else if (status == "disabled") {
    skipped[++skips] = name ": disabled in the sources"
  } else if (status == "notrun" && message ~ /^SKIP_RETURN_CODE|^SKIP_REGULAR_EXPRESSION/) {
    if (reason == "" && message ~ /^SKIP_RETURN_CODE/) reason = last
    skipped[++skips] = name ": " (reason == "" ? "no reason given" : reason)
  } else {
    failed[++failures] = name (message == "" ? "" : ": " message)
  }
}
END {
  if (skips > 0) print "Skipped:"
  for (i = 1; i <= skips; ++i) print "  " skipped[i]
  if (failures > 0) print "Failed:"
  for (i = 1; i <= failures; ++i) print "  " failed[i]
  if (passed + failures == 0) print "No test ran."
  printf "%d passed, %d failed, %d skipped\n", passed, failures, skips
  exit !(passed > 0 && failures == 0)
}
' "$1"
