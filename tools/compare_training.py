#!/usr/bin/env python3
"""Trains the same small GPT here and in PyTorch on the same samples from the same initial weights, and
compares the loss of every iteration, the validation loss at the end and the time of an iteration.

    tools/compare_training.py --train PREFIX --valid PREFIX [--bevatron build/bevatron] [--iterations 2000]
                              [--threads 2] [--work FOLDER]

PREFIX.bin and PREFIX.idx are token files of bytes (`bevatron preprocess --tokenizer-type byte`). The shape and
the schedule are those of nanoGPT's recipe for a CPU: 4 layers, 4 heads, width 128, context 64, batch 12.
Needs torch and transformers; nothing else in the project needs Python.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np

SEQUENCE, BATCH, WARMUP, LR, MIN_LR, SEED = 64, 12, 100, 1e-3, 1e-4, 1234
SHAPE = ["--num-layers", "4", "--hidden-size", "128", "--num-attention-heads", "4",
         "--seq-length", str(SEQUENCE), "--max-position-embeddings", str(SEQUENCE),
         "--micro-batch-size", str(BATCH), "--hidden-dropout", "0", "--attention-dropout", "0",
         "--tokenizer-type", "byte", "--make-vocab-size-divisible-by", "1", "--seed", str(SEED)]
SCHEDULE = ["--min-lr", str(MIN_LR), "--lr-decay-style", "cosine", "--lr-warmup-iters", str(WARMUP),
            "--adam-beta2", "0.99", "--weight-decay", "0.1", "--clip-grad", "1.0"]
MASK64 = (1 << 64) - 1


def mix(key, word):
    if isinstance(word, str):
        for c in word.encode():
            key = mix(key, c)
        return mix(key, len(word.encode()))
    z = (key + 0x9E3779B97F4A7C15 * (word + 1)) & MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


def window_of(index, windows, seed):
    """src/data/sample_order.h, once more."""
    key = mix(mix(seed, "sample order"), index // windows)
    half = 1
    while (1 << (2 * half)) < windows:
        half += 1
    mask = (1 << half) - 1
    value = index % windows
    while True:
        left, right = value >> half, value & mask
        for r in range(6):
            left, right = right, left ^ (mix(mix(key, r), right) & mask)
        value = (left << half) | right
        if value < windows:
            return value


def learning_rate(x, samples):
    """The rate after x samples."""
    warmup = WARMUP * BATCH
    if x <= warmup:
        return LR * x / warmup
    r = (x - warmup) / (samples - warmup)
    return MIN_LR + (LR - MIN_LR) * 0.5 * (math.cos(math.pi * r) + 1)


def run_ours(args, work):
    base = [args.bevatron, "train", *SHAPE, *SCHEDULE, "--device.threads", str(args.threads),
            "--train-data-path", args.train, "--valid-data-path", args.valid]
    subprocess.run([*base, "--lr", "1e-30", "--min-lr", "0", "--train-iters", "1", "--lr-warmup-iters", "0",
                    "--eval-iters", "0", "--train.output", f"{work}/initial"], check=True,
                   capture_output=True)
    subprocess.run([*base, "--lr", str(LR), "--train-iters", str(args.iterations), "--eval-interval", "250",
                    "--eval-iters", "1000", "--train.output", f"{work}/ours"], check=True,
                   capture_output=True)
    lines = [json.loads(line) for line in open(f"{work}/ours/metrics.jsonl")]
    return ([x for x in lines if x["event"] == "iteration"],
            [x for x in lines if x["event"] == "validation"])


def run_torch(args, work):
    import torch
    import transformers
    torch.set_num_threads(args.threads)
    model = transformers.GPT2LMHeadModel.from_pretrained(f"{work}/initial/model").train()
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                                   {"params": others, "weight_decay": 0.0}],
                                  lr=LR, betas=(0.9, 0.99), eps=1e-8, fused=True)
    tokens = np.fromfile(args.train + ".bin", dtype=np.uint16).astype(np.int64)
    windows = (len(tokens) - 1) // SEQUENCE

    def loss_of(starts, data):
        rows = torch.from_numpy(np.stack([data[s:s + SEQUENCE + 1] for s in starts]))
        logits = model(input_ids=rows[:, :-1]).logits
        return torch.nn.functional.cross_entropy(logits.view(-1, logits.size(-1)), rows[:, 1:].reshape(-1))

    losses, seconds = [], []
    for step in range(args.iterations):
        begin = time.perf_counter()
        first = step * BATCH
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(first, args.iterations * BATCH)
        loss = loss_of([window_of(first + i, windows, SEED) * SEQUENCE for i in range(BATCH)], tokens)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    valid = np.fromfile(args.valid + ".bin", dtype=np.uint16).astype(np.int64)
    model.eval()
    sums = []
    with torch.no_grad():
        starts = [w * SEQUENCE for w in range((len(valid) - 1) // SEQUENCE)]
        for i in range(0, len(starts) - BATCH + 1, BATCH):
            sums.append(loss_of(starts[i:i + BATCH], valid).item())
    return losses, seconds, statistics.mean(sums), torch.__version__


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bevatron", default="build/bevatron")
    parser.add_argument("--train", required=True)
    parser.add_argument("--valid", required=True)
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", default=None)
    args = parser.parse_args()
    work = pathlib.Path(args.work or tempfile.mkdtemp())
    ours, validations = run_ours(args, work)
    losses, seconds, valid, version = run_torch(args, work)
    print(f"{'iteration':>9} {'ours':>9} {'torch':>9} {'difference':>11}")
    for i in sorted({0, 1, 9, 99, *range(249, args.iterations, 250), args.iterations - 1}):
        if i < args.iterations:
            print(f"{i + 1:>9} {ours[i]['lm_loss']:9.5f} {losses[i]:9.5f} {ours[i]['lm_loss'] - losses[i]:11.2e}")
    tail = slice(-100, None)
    print(f"mean of the last 100: ours {statistics.mean(x['lm_loss'] for x in ours[tail]):.4f}, "
          f"torch {statistics.mean(losses[tail]):.4f}")
    print(f"validation: ours {validations[-1]['lm_loss']:.4f}, torch {valid:.4f}")
    mine = statistics.median(x["seconds"] for x in ours[5:])
    theirs = statistics.median(seconds[5:])
    print(f"median iteration: ours {1e3 * mine:.2f} ms, torch {version} {1e3 * theirs:.2f} ms, "
          f"ratio {theirs / mine:.2f}")


if __name__ == "__main__":
    main()
