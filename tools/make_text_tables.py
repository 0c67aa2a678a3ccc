#!/usr/bin/env python3
"""Writes src/text/unicode/generated/char_flag_ranges.cpp: what the normalizers and splitters of tokenizer.json need to know of characters.

    make_text_tables.py > src/text/unicode/generated/char_flag_ranges.cpp

The library `tokenizers` is asked what it does with each code point, because its parts know different versions of
Unicode (its marks and punctuation are those of Unicode 8, its lower case is that of its compiler) and files were
trained with exactly these. Two tables have no question that would answer them: one step of a decomposition and the
combining classes are Python's own where the library agrees, and the properties of grapheme clusters those of the
package `regex`. Needs both packages.
"""

import sys
import unicodedata

import regex
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

WIDTH = 100
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
FLAGS = ("Removed", "Blank", "Mark", "Punctuation", "Word", "Joins", "Spacing", "Prepends", "Control", "Pictograph",
         "Combining", "Numeric")


def flags_of_all():
    """For each code point the set of FLAGS that it has."""
    clean = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False,
                                       lowercase=False)
    bert_strip = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True,
                                            lowercase=False)
    strip = normalizers.StripAccents()
    split = pre_tokenizers.BertPreTokenizer()
    digits = pre_tokenizers.Digits(individual_digits=True)
    whole = Tokenizer(models.WordLevel({"x": 0, "?": 1}, unk_token="?"))
    whole.add_tokens([AddedToken("x", single_word=True)])
    result = {}
    for c in POINTS:
        character, flags = chr(c), set()
        cleaned = clean.normalize_str(character)
        if cleaned == "":
            flags.add("Removed")
        elif cleaned == " ":
            flags.add("Blank")
        if bert_strip.normalize_str(character) == "":
            flags.add("Mark")
        if strip.normalize_str(character) == "":
            flags.add("Combining")
        pieces = [piece for piece, _ in split.pre_tokenize_str(f"a{character}b")]
        if len(pieces) == 3:
            flags.add("Punctuation")
        if len(digits.pre_tokenize_str(f"a{character}b")) == 3:
            flags.add("Numeric")
        assert (len(pieces) == 2) == character.isspace() or c in range(0x1C, 0x20), hex(c)
        if 0 not in whole.encode(f"x{character}").ids and c != ord("x"):
            flags.add("Word")
        result[c] = flags
    result[ord("x")].add("Word")
    everything = "".join(map(chr, POINTS))
    for flag, pattern in (("Joins", r"[\p{GCB=Extend}\p{GCB=ZWJ}]"), ("Spacing", r"\p{GCB=SpacingMark}"),
                          ("Prepends", r"\p{GCB=Prepend}"), ("Control", r"[\p{GCB=Control}\p{GCB=CR}\p{GCB=LF}]"),
                          ("Pictograph", r"\p{Extended_Pictographic}")):
        for character in regex.findall(pattern, everything):
            result[ord(character)].add(flag)
    return result


def ranges(value_of):
    """[first, last, value] of neighbours with the same value; those without one are left out."""
    result = []
    for c in POINTS:
        value = value_of(c)
        if not value:
            continue
        if result and result[-1][1] == c - 1 and result[-1][2] == value:
            result[-1][1] = c
        else:
            result.append([c, c, value])
    return result


def decompositions():
    """(code, first, second or 0, composes): one step of the canonical decompositions; Hangul is arithmetic."""
    nfd, nfc = normalizers.NFD(), normalizers.NFC()
    result = []
    for c in POINTS:
        character = chr(c)
        full = nfd.normalize_str(character)
        if full == character or 0xAC00 <= c <= 0xD7A3:
            continue
        assert full == unicodedata.normalize("NFD", character), hex(c)
        parts = [int(part, 16) for part in unicodedata.decomposition(character).split()]
        assert 1 <= len(parts) <= 2
        result.append((c, parts[0], parts[1] if len(parts) == 2 else 0,
                       len(parts) == 2 and nfc.normalize_str(full) == character))
    return result


def combining_classes():
    """Python's class where the library moves the character as that class demands."""
    nfd = normalizers.NFD()

    def known(c):
        value = unicodedata.combining(chr(c))
        if value == 0:
            return 0
        low, high = "a\u0334" + chr(c), "a" + chr(c) + "\u0334"
        if value > 1:
            return value if nfd.normalize_str(high) == nfd.normalize_str(low) else 0
        return value if nfd.normalize_str("a\u0345" + chr(c)) == "a" + chr(c) + "\u0345" else 0

    return ranges(known)


def lower_cases():
    """(first, last, stride, difference), and (code, characters) of those that become more than one."""
    lower = normalizers.Lowercase()
    single, several = [], []
    for c in POINTS:
        mapped = lower.normalize_str(chr(c))
        if mapped == chr(c):
            continue
        if len(mapped) > 1:
            several.append((c, mapped))
            continue
        difference = ord(mapped) - c
        if single and single[-1][3] == difference:
            first, last, stride, _ = single[-1]
            if c - last in (1, 2) and (first == last or c - last == stride):
                single[-1] = [first, c, c - last, difference]
                continue
        single.append([c, c, 1, difference])
    assert [c for c, _ in several] == [0x130], several
    return single


def wrapped(items):
    """The items in lines of at most WIDTH characters."""
    lines, line = [], ""
    for item in items:
        if line and len(line) + 1 + len(item) > WIDTH - 4:
            lines.append(line)
            line = ""
        line = f"{line} {item}" if line else item
    return [*lines, line] if line else lines


def print_array(kind, name, items):
    print(f"constexpr std::array<{kind}, {len(items)}> {name} = {{{{")
    for line in wrapped(items):
        print(f"    {line}")
    print("}};\n")


def main():
    if len(sys.argv) != 1:
        sys.exit(__doc__)
    flags = flags_of_all()
    bits = {flag: 1 << i for i, flag in enumerate(FLAGS)}
    print("// Made by tools/make_text_tables.py; not for editing.")
    print(f"// As tokenizers {tokenizers.__version__} treats characters.")
    print('#include "text/unicode/generated/char_flag_ranges.h"\n')
    print("#include <array>\n")
    print("namespace bev {\n\nnamespace {\n")
    print("// clang-format off")
    print_array("CharFlagRange", "kFlagRanges", [f"{{0x{first:X}, 0x{last:X}, 0x{value:X}}}," for first, last, value in
                                            ranges(lambda c: sum(bits[flag] for flag in flags[c]))])
    print_array("CombiningRange", "kCombiningRanges", [f"{{0x{first:X}, 0x{last:X}, {value}}}," for first, last, value in
                                                 combining_classes()])
    print_array("Decomposition", "kDecompositions",
                [f"{{0x{c:X}, 0x{first:X}, 0x{second:X}, {'true' if composes else 'false'}}}," for
                 c, first, second, composes in decompositions()])
    print_array("LowerCaseRange", "kLowerCase", [f"{{0x{first:X}, 0x{last:X}, {stride}, {difference}}}," for
                                                 first, last, stride, difference in lower_cases()])
    print("// clang-format on\n")
    print("}  // namespace\n")
    print("std::span<const CharFlagRange> char_flag_ranges() { return kFlagRanges; }")
    print("std::span<const CombiningRange> combining_ranges() { return kCombiningRanges; }")
    print("std::span<const Decomposition> decompositions() { return kDecompositions; }")
    print("std::span<const LowerCaseRange> lower_case_ranges() { return kLowerCase; }\n")
    print("}  // namespace bev")


if __name__ == "__main__":
    main()
