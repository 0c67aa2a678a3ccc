#!/usr/bin/env python3
"""Writes src/text/unicode/generated/char_class_ranges.cpp: which code points are letters, numbers and white space.

    make_unicode_tables.py CLASSES.json > src/text/unicode/generated/char_class_ranges.cpp

CLASSES.json is an object with the lists `letter`, `number` and `white_space`, each of sorted ranges [first, last]
of code points: the classes \\p{L}, \\p{N} and \\s of the regular expressions that other tokenizers use. Python's
own unicodedata is not asked, because its Unicode version follows the interpreter. For the same reason the white
space is listed although it hardly ever changes.
"""

import json
import sys

CLASSES = (("letter", "Letter"), ("number", "Number"), ("white_space", "Space"))
VERSION = "16"
WIDTH = 100


def merged_ranges(content):
    """All ranges with their class, sorted; those that overlap are an error."""
    result = []
    for key, name in CLASSES:
        for first, last in content[key]:
            if not 0 <= first <= last < 0x110000:
                sys.exit(f"{key}: [{first}, {last}] is no range of code points")
            result.append((first, last, name))
    result.sort()
    for left, right in zip(result, result[1:]):
        if left[1] >= right[0]:
            sys.exit(f"the ranges from {left[0]:#x} and from {right[0]:#x} overlap")
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
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        ranges = merged_ranges(json.load(file))
    short = {"Letter": "L", "Number": "N", "Space": "S"}
    items = [f"{{0x{first:X}, 0x{last:X}, {short[name]}}}," for first, last, name in ranges]
    print("// Made by tools/make_unicode_tables.py; not for editing.")
    print(f"// Code points of \\p{{L}}, \\p{{N}} and \\s as of Unicode {VERSION}.")
    print('#include "text/unicode/generated/char_class_ranges.h"\n')
    print("#include <array>\n")
    print("namespace bev {\n\nnamespace {\n")
    print("constexpr CharClass L = CharClass::Letter, N = CharClass::Number, S = CharClass::Space;\n")
    print("// clang-format off")
    print(f"constexpr std::array<CharClassRange, {len(items)}> kRanges = {{{{")
    for line in wrapped(items):
        print(f"    {line}")
    print("}};\n// clang-format on\n")
    print("}  // namespace\n")
    print("std::span<const CharClassRange> char_class_ranges() { return kRanges; }\n")
    print("}  // namespace bev")


if __name__ == "__main__":
    main()
