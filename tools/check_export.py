#!/usr/bin/env python3
"""Loads a model that bevatron wrote in Hugging Face's format with transformers and compares its logits.

    tools/check_export.py EXPORTED ORIGINAL [--tokens FILE] [--tolerance 0]
    bevatron generate EXPORTED --sample-input-file PROMPTS --json --top-k N --sample-output-file MASKS
    tools/check_export.py EXPORTED MASKS [--tolerance 1e-5]
    bevatron eval EXPORTED --text FILE --scores SCORES
    tools/check_export.py EXPORTED SCORES [--tolerance 1e-5]

EXPORTED is a folder that `bevatron convert bev-to-hf` or `bevatron train` wrote: a causal model, BertForPreTraining,
BertForMaskedLM or T5ForConditionalGeneration. ORIGINAL is the model it should be: a folder that transformers loads, or a safetensors file with the array
`logits` [sequences, length, vocabulary], whose input ids then are in the file of --tokens (array `tokens`; of more than two
dimensions the first, and of each sequence as many ids as logits). Both are computed in float64.

MASKS, which ends with .json or .jsonl, holds bevatron's own predictions of a BERT: log-probabilities, which are logits less the
logarithm of their sum, are compared in float32 with those of transformers. N is the vocabulary size. SCORES holds bevatron's own
losses of samples of a T5, which are compared in the same way.

Prints the largest difference; exit status 1 when it exceeds the tolerance or a weight differs.
"""
import argparse
import json
import math
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file


def load_model(folder, dtype):
    architecture = json.loads((folder / "config.json").read_text())["architectures"][0]
    known = getattr(transformers, architecture) if architecture.startswith(("Bert", "T5")) else transformers.AutoModelForCausalLM
    return known.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()


def logits_of(folder, ids):
    """The logits of every head. The last sequence of a BERT, or of a T5's encoder, ends with padding. A BERT gets two segments, the
    decoder of a T5 the first half of the ids in reverse."""
    model = load_model(folder, torch.float64)
    kind = model.config.model_type
    if kind not in ("bert", "t5"):
        with torch.no_grad():
            return {"logits": model(ids).logits}
    length = ids.shape[1]
    mask = torch.ones_like(ids)
    mask[-1, length - length // 4:] = 0
    if kind == "t5":
        with torch.no_grad():
            return {"logits": model(ids, attention_mask=mask, decoder_input_ids=ids[:, :length // 2].flip(1)).logits}
    types = (torch.arange(length) >= length // 2).long().expand_as(ids)
    with torch.no_grad():
        found = model(ids, attention_mask=mask, token_type_ids=types)
    if hasattr(found, "logits"):
        return {"logits": found.logits[mask.bool()]}
    return {"logits": found.prediction_logits[mask.bool()], "binary logits": found.seq_relationship_logits}


def weights_of(folder):
    return {name: tensor for file in sorted(folder.glob("model*.safetensors")) for name, tensor in load_file(file).items()}


def plain(name):
    for prefix in ("transformer.", "model.", "bert."):
        name = name.removeprefix(prefix)
    return name


def count_different_weights(exported, original):
    theirs = weights_of(original)
    ours = {plain(name): tensor for name, tensor in weights_of(exported).items()}
    same = sum(1 for name, tensor in theirs.items() if plain(name) in ours and tensor.dtype == ours[plain(name)].dtype
               and torch.equal(tensor.view(torch.uint8), ours[plain(name)].view(torch.uint8)))
    print(f"{same} of {len(theirs)} stored tensors are equal bit for bit; the export has {len(ours)}")
    return len(theirs) - same


def print_difference(name, found, expected):
    difference = (found - expected).abs().max().item()
    print(f"{name} {list(found.shape)}: largest difference {difference:.3g}, largest value {expected.abs().max().item():.3g}")
    return difference


def compare_masks(exported, masks):
    model = load_model(exported, torch.float32)
    tokenizer = transformers.BertTokenizer.from_pretrained(exported)
    ours, theirs = [], []
    for line in masks.read_text().splitlines():
        shown = json.loads(line)
        batch = tokenizer(shown["prompt"], return_tensors="pt")
        with torch.no_grad():
            found = model(**batch)
        logits = found.logits if hasattr(found, "logits") else found.prediction_logits
        for mask in shown["masks"]:
            if batch["input_ids"][0, mask["position"]] != tokenizer.mask_token_id:
                sys.exit(f"{shown['prompt']!r}: no mask at position {mask['position']}")
            expected = torch.log_softmax(logits[0, mask["position"]].double(), -1)
            theirs.append(torch.stack([expected[each["id"]] for each in mask["candidates"]]))
            ours.append(torch.tensor([math.log(each["probability"]) for each in mask["candidates"]], dtype=torch.float64))
    return print_difference(f"log-probabilities of {len(ours)} masks", torch.cat(ours), torch.cat(theirs))


def compare_losses(exported, scores):
    model = load_model(exported, torch.float32)
    ours, theirs = [], []
    for line in scores.read_text().splitlines():
        sample = json.loads(line)
        encoder, decoder, labels = (torch.tensor([sample[name]]) for name in ("tokens", "decoder_tokens", "labels"))
        with torch.no_grad():
            theirs.append(model(encoder, decoder_input_ids=decoder, labels=labels).loss.double())
        ours.append(torch.tensor(sample["lm_loss"], dtype=torch.float64))
    return print_difference(f"losses of {len(ours)} samples", torch.stack(ours), torch.stack(theirs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exported", type=Path)
    parser.add_argument("original", type=Path)
    parser.add_argument("--tokens", type=Path)
    parser.add_argument("--tolerance", type=float)
    options = parser.parse_args()

    if options.original.suffix in (".json", ".jsonl"):
        tolerance = 1e-5 if options.tolerance is None else options.tolerance
        is_t5 = json.loads((options.exported / "config.json").read_text())["model_type"] == "t5"
        compare = compare_losses if is_t5 else compare_masks
        sys.exit(0 if compare(options.exported, options.original) <= tolerance else 1)
    problems = 0
    if options.original.is_dir():
        config = load_model(options.original, torch.float64).config
        length = min(64, getattr(config, "max_position_embeddings", 64))
        ids = torch.randint(config.vocab_size, (2, length), generator=torch.Generator().manual_seed(7))
        expected = logits_of(options.original, ids)
        problems += count_different_weights(options.exported, options.original)
    else:
        if not options.tokens:
            parser.error("a file of logits needs --tokens")
        expected = {"logits": load_file(options.original)["logits"].double()}
        tokens = load_file(options.tokens)["tokens"].long()
        while tokens.dim() > 2:
            tokens = tokens[0]
        ids = tokens[:expected["logits"].shape[0], :expected["logits"].shape[1]]
    found = logits_of(options.exported, ids)
    for name, values in expected.items():
        problems += not print_difference(name, found[name], values) <= (options.tolerance or 0)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
