#!/usr/bin/env python3
"""Loads a trained byte-level vocabulary with Hugging Face's libraries and compares ids on a text.

    tools/check_trained_tokenizer.py FOLDER TEXT [--bevatron PROGRAM | --ids FILE]

FOLDER is what `bevatron tokenizer train` wrote. tokenizer.json is loaded with tokenizers and, by the name of the
folder, with transformers; vocab.json and merges.txt with both libraries' GPT-2 classes. All must give the ids that
`bevatron tokenize` gives, or those of a file (numbers between blanks), and give the text back.
"""
import argparse
import subprocess
import sys
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--bevatron", default="build/bevatron")
    parser.add_argument("--ids", type=Path)
    options = parser.parse_args()

    import tokenizers
    import transformers
    vocab, merges = str(options.folder / "vocab.json"), str(options.folder / "merges.txt")
    whole = tokenizers.Tokenizer.from_file(str(options.folder / "tokenizer.json"))
    bytes_only = tokenizers.ByteLevelBPETokenizer(vocab, merges)
    automatic = transformers.AutoTokenizer.from_pretrained(str(options.folder))
    gpt2 = transformers.GPT2TokenizerFast(vocab, merges)
    programs = {
        "tokenizers, tokenizer.json": lambda text: whole.encode(text).ids,
        "tokenizers, vocab.json and merges.txt": lambda text: bytes_only.encode(text).ids,
        "transformers AutoTokenizer": lambda text: automatic(text)["input_ids"],
        "transformers GPT2TokenizerFast": lambda text: gpt2(text)["input_ids"],
    }
    with open(options.text, encoding="utf-8", newline="") as file:
        text = file.read()
    if options.ids:
        expected = [int(word) for word in options.ids.read_text().split()]
    else:
        printed = subprocess.run(
            [options.bevatron, "tokenize", "--tokenizer-type", "gpt2", "--vocab-file", vocab, "--merge-file", merges,
             "--format", "text", str(options.text)], stdout=subprocess.PIPE, text=True, check=True).stdout
        expected = [int(word) for word in printed.split()]
    wrong = 0
    for name, encode in programs.items():
        ids = encode(text)
        same = ids == expected
        wrong += not same
        print(f"{name}: {len(ids)} ids, {'the same' if same else 'DIFFERENT'}")
    back = whole.decode(expected, skip_special_tokens=False) == text
    print(f"{len(expected)} ids decoded: {'the text' if back else 'NOT the text'}")
    sys.exit(1 if wrong or not back else 0)


if __name__ == "__main__":
    main()
