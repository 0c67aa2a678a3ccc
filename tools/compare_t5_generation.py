#!/usr/bin/env python3
"""Compares what bevatron and transformers generate with the same T5, token by token.

    tools/compare_t5_generation.py [--bevatron build/bevatron] [--prompts 20] [--tokens 24] [--beam 4]
                                   [--tensor 1] [--folder DIR]

Needs torch, transformers and tokenizers; nothing else in the project needs Python. Writes two small T5s with random weights
(1.0: tied head, ReLU; 1.1: untied head, gated GELU) and a tokenizer of words to --folder or a temporary one. The weights
are larger than those of a new model, so that the outputs depend on the prompt and some of them end. Both programs compute in
float32, greedily and by beam search; bevatron takes the prompts in batches.

Prints the number of equal outputs, of distinct ones and of those that end; exit status 1 if two outputs differ.
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import tokenizers
import torch
import transformers

WORDS, SENTINELS = 60, 10


def write_tokenizer(folder):
    words = ["<pad>", "</s>", "<unk>"] + [f"\u2581w{i}" for i in range(WORDS)]
    sentinels = [f"<extra_id_{i}>" for i in reversed(range(SENTINELS))]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram([(word, -float(i)) for i, word in enumerate(words + sentinels)], 2))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.decoder = tokenizers.decoders.Metaspace()
    tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"] + sentinels)
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def write_model(folder, version, seed):
    torch.manual_seed(seed)
    is_tied = version == "1.0"
    config = transformers.T5Config(
        vocab_size=3 + WORDS + SENTINELS, d_model=32, d_kv=6, d_ff=48, num_layers=3, num_decoder_layers=2, num_heads=4,
        relative_attention_num_buckets=8, relative_attention_max_distance=20, feed_forward_proj="relu" if is_tied else "gated-gelu",
        tie_word_embeddings=is_tied, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1)
    model = transformers.T5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, weights in model.named_parameters():
            scale = 0.1 if "shared" in name else 1 if "lm_head" in name else 0.6 if "EncDec" in name else 0.5
            weights.copy_(1 + 0.3 * torch.randn_like(weights) if "layer_norm" in name else scale * torch.randn_like(weights))
        if is_tied:
            model.decoder.final_layer_norm.weight *= 8
        # Some outputs end by themselves.
        (model.shared if is_tied else model.lm_head).weight[1] *= 3 if is_tied else 1.6
    model.save_pretrained(folder)
    return model


def write_prompts(path, count):
    words = random.Random(3)
    lines = []
    for i in range(count):
        lines.append(" ".join(f"w{words.randrange(WORDS)}" if words.random() > 0.2 else f"<extra_id_{words.randrange(SENTINELS)}>"
                              for _ in range(1 + i * 7 % 23)))
    path.write_text("".join(line + "\n" for line in lines))
    return lines


def generated_here(options, folder, prompts, flags):
    out = folder / "generated.jsonl"
    command = [options.bevatron, "generate", folder, "--sample-input-file", prompts, "--json", "--tokens", options.tokens,
               "--tensor", options.tensor, "--sample-output-file", out, "--device", "cpu", *flags]
    subprocess.run([str(part) for part in command], check=True, stderr=subprocess.DEVNULL)
    return [json.loads(line) for line in out.read_text().splitlines()]


def generated_there(model, ids, options, beams):
    with torch.no_grad():
        found = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), do_sample=False,
                               num_beams=beams, max_new_tokens=options.tokens, return_dict_in_generate=True, output_scores=True)
    tokens = found.sequences[0].tolist()[1:]
    has_ended = 1 in tokens
    return tokens[:tokens.index(1)] if has_ended else tokens, has_ended, found.sequences_scores[0].item() if beams > 1 else None


def compare(options, model, tokenizer, folder, lines, beams):
    prompts = folder / "prompts.txt"
    here = generated_here(options, folder, prompts, ["--beam", beams] if beams > 1 else ["--greedy"])
    equal, ends, gap, outputs = 0, 0, 0.0, set()
    for line, ours in zip(lines, here, strict=True):
        ids = tokenizer.encode(line).ids
        if ours["prompt_ids"] != ids:
            sys.exit(f"{line!r}: tokens {ours['prompt_ids']}, not {ids}")
        tokens, has_ended, score = generated_there(model, ids, options, beams)
        if ours["ids"] == tokens and ours["finished"] == has_ended:
            equal += 1
        else:
            print(f"{line!r}: {ours['ids']} (finished: {ours['finished']}), but {tokens} (finished: {has_ended})")
        ends += has_ended
        outputs.add(tuple(tokens))
        if score is not None:
            gap = max(gap, abs(ours["score"] - score))
    how = f"beam {beams}, scores within {gap:.2g}" if beams > 1 else "greedy"
    print(f"{folder.name}, {how}: {equal} of {len(lines)} outputs are equal; {len(outputs)} are distinct, {ends} end before {options.tokens} tokens")
    return len(lines) - equal


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bevatron", default="build/bevatron")
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--tensor", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        root = options.folder or Path(temporary)
        different = 0
        for seed, version in enumerate(("1.0", "1.1")):
            folder = root / f"t5-{version}"
            folder.mkdir(parents=True, exist_ok=True)
            model, tokenizer = write_model(folder, version, seed), write_tokenizer(folder)
            lines = write_prompts(folder / "prompts.txt", options.prompts)
            for beams in (1, options.beam):
                different += compare(options, model, tokenizer, folder, lines, beams)
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
