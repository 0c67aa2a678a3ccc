#!/usr/bin/env python3
"""Writes src/text/unicode/generated/letter_case_ranges.cpp: letters, decimal digits and the case of characters.

    make_case_tables.py > src/text/unicode/generated/letter_case_ranges.cpp

NLTK's Punkt finds words with the package `regex` and asks Python for the case of a character. Both follow Unicode, but
Python's version depends on the interpreter. The table has the classes of `regex`, which knows the newer version. The
script reports on stderr the characters whose case Python sees differently. Needs the package regex.
"""

import sys
import unicodedata

import regex

WIDTH = 100
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
FLAGS = (("Letter", r"[^\W\d]"), ("Decimal", r"\d"), ("Upper", r"\p{Uppercase}"), ("Lower", r"\p{Lowercase}"),
         ("Cased", r"\p{Cased}"), ("CaseIgnorable", r"\p{Case_Ignorable}"))


def flags_of_all():
    """For each code point the sum of the bits of its FLAGS."""
    result = dict.fromkeys(POINTS, 0)
    everything = "".join(map(chr, POINTS))
    for number, (_, pattern) in enumerate(FLAGS):
        for character in regex.findall(pattern, everything):
            result[ord(character)] |= 1 << number
    for c in POINTS:
        if unicodedata.category(chr(c)) != "Cn" and (chr(c).isupper(), chr(c).islower()) != (
                bool(result[c] & 4), bool(result[c] & 8)):
            print(f"U+{c:04X}: Python and regex differ about its case", file=sys.stderr)
    return result


def ranges(value_of):
    """[first, last, value] of neighbours with the same value; those without one are left out."""
    result = []
    for c in POINTS:
        value = value_of[c]
        if not value:
            continue
        if result and result[-1][1] == c - 1 and result[-1][2] == value:
            result[-1][1] = c
        else:
            result.append([c, c, value])
    return result


def wrapped(items):
    """The items in lines of at most WIDTH characters."""
    lines, line = [], ""
    for item in items:
        if line and len(line) + 1 + len(item) > WIDTH - 4:
            lines.append(line)
            line = ""
        line = f"{line} {item}" if line else item
    return [*lines, line] if line else lines


def main():
    if len(sys.argv) != 1:
        sys.exit(__doc__)
    items = [f"{{0x{first:X}, 0x{last:X}, 0x{value:X}}}," for first, last, value in ranges(flags_of_all())]
    print("// Made by tools/make_case_tables.py; not for editing.")
    print(f"// As the Python package regex {regex.__version__} classifies characters.")
    print('#include "text/unicode/generated/letter_case_ranges.h"\n')
    print("#include <array>\n")
    print("namespace bev {\n\nnamespace {\n")
    print("// clang-format off")
    print(f"constexpr std::array<LetterCaseRange, {len(items)}> kLetterCaseRanges = {{{{")
    for line in wrapped(items):
        print(f"    {line}")
    print("}};\n// clang-format on\n")
    print("}  // namespace\n")
    print("std::span<const LetterCaseRange> letter_case_ranges() { return kLetterCaseRanges; }\n")
    print("}  // namespace bev")


if __name__ == "__main__":
    main()
