#!/usr/bin/env bash
# Draws what a command prints, with the command above it, as a picture of a terminal.
# Usage: scripts/draw-terminal.sh OUTPUT.svg "words of the command" < text
set -euo pipefail
{ printf '$ %s\n' "$2"; cat; } | awk '
  { gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); gsub(/>/, "\\&gt;")
    line[NR] = $0; plain = $0; gsub(/&[a-z]+;/, "x", plain)
    if (length(plain) > widest) widest = length(plain) }
  END {
    width = widest * 7.85 + 32; height = NR * 18 + 30
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n", width, height, width, height
    print "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1d2127\"/>"
    print "<g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace\" font-size=\"13\" fill=\"#d7dce2\" xml:space=\"preserve\">"
    for (i = 1; i <= NR; i++)
      printf "<text x=\"16\" y=\"%d\"%s>%s</text>\n", i * 18 + 12, i == 1 ? " fill=\"#8fd18f\"" : "", line[i]
    print "</g>\n</svg>"
  }' > "$1"
