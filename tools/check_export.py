#!/usr/bin/env python3
"""Loads a model that bevatron wrote in Hugging Face's format with transformers and compares its logits.

    tools/check_export.py EXPORTED ORIGINAL [--tokens FILE] [--tolerance 0]

EXPORTED is a folder that `bevatron convert bev-to-hf` or `bevatron train` wrote. ORIGINAL is the model it should be: a folder
that transformers loads, or a safetensors file with the array `logits` [sequences, length, vocabulary], whose input ids then are
in the file of --tokens (array `tokens`; of more than two dimensions the first, and of each sequence as many ids as logits).
Both are computed in float64. Prints the largest difference; exit status 1 when it exceeds the tolerance or a weight differs.
"""
import argparse
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM


def logits_of(folder, ids):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager")
    with torch.no_grad():
        return model.eval()(ids).logits


def weights_of(folder):
    return {name: tensor for file in sorted(folder.glob("model*.safetensors")) for name, tensor in load_file(file).items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exported", type=Path)
    parser.add_argument("original", type=Path)
    parser.add_argument("--tokens", type=Path)
    parser.add_argument("--tolerance", type=float, default=0.0)
    options = parser.parse_args()

    problems = 0
    if options.original.is_dir():
        model = AutoModelForCausalLM.from_pretrained(options.original)
        length = min(64, model.config.max_position_embeddings)
        ids = torch.randint(model.config.vocab_size, (2, length), generator=torch.Generator().manual_seed(7))
        expected = logits_of(options.original, ids)
        theirs, ours = weights_of(options.original), weights_of(options.exported)
        plain = lambda name: name.removeprefix("transformer.").removeprefix("model.")
        ours = {plain(name): tensor for name, tensor in ours.items()}
        same = sum(1 for name, tensor in theirs.items() if plain(name) in ours and tensor.dtype == ours[plain(name)].dtype
                   and torch.equal(tensor.view(torch.uint8), ours[plain(name)].view(torch.uint8)))
        print(f"{same} of {len(theirs)} stored tensors are equal bit for bit; the export has {len(ours)}")
        problems += same != len(theirs)
    else:
        if not options.tokens:
            parser.error("a file of logits needs --tokens")
        expected = load_file(options.original)["logits"].double()
        tokens = load_file(options.tokens)["tokens"].long()
        while tokens.dim() > 2:
            tokens = tokens[0]
        ids = tokens[:expected.shape[0], :expected.shape[1]]
    found = logits_of(options.exported, ids)
    difference = (found - expected).abs().max().item()
    print(f"logits {list(found.shape)}: largest difference {difference:.3g}, largest value {expected.abs().max().item():.3g}")
    problems += not difference <= options.tolerance
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
