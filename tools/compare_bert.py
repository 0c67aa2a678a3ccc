#!/usr/bin/env python3
"""Trains the same small BERT here and with transformers, on the same batches from the same initial weights,
and compares both losses of every iteration.

    tools/compare_bert.py --data PREFIX --vocab vocab.txt [--bevatron build/bevatron] [--iterations 300]
                          [--threads 2] [--work FOLDER]

PREFIX.bin and PREFIX.idx hold sentences (`bevatron preprocess --split-sentences`). The model is Hugging Face's
BertForPreTraining with 4 layers of width 128; float32 on CPUs, AdamW, no dropout. The batches are those that
`bevatron inspect samples --json` shows. Needs torch and transformers; nothing else in the project needs Python.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

SEQUENCE, BATCH, WARMUP, LR, DECAY = 128, 16, 30, 3e-4, 0.01
MODEL = ["--model.family", "bert", "--model.norm_placement", "post", "--model.activation", "gelu-erf",
         "--num-layers", "4", "--hidden-size", "128", "--num-attention-heads", "4",
         "--seq-length", str(SEQUENCE), "--max-position-embeddings", str(SEQUENCE),
         "--micro-batch-size", str(BATCH), "--hidden-dropout", "0", "--attention-dropout", "0",
         "--norm-epsilon", "1e-12", "--make-vocab-size-divisible-by", "1"]
SCHEDULE = ["--lr-decay-style", "constant", "--adam-beta2", "0.999", "--weight-decay", str(DECAY),
            "--clip-grad", "1.0", "--split", "100,0,0", "--eval-iters", "0"]


def run_ours(args, work):
    """The losses of all iterations; the initial weights in `work`/initial/model."""
    data = ["--data-path", args.data, "--tokenizer-type", "BertWordPieceLowerCase",
            "--vocab-file", args.vocab, "--train-samples", str(args.iterations * BATCH)]
    base = [args.bevatron, "train", *MODEL, *SCHEDULE, *data, "--device", "cpu",
            "--device.threads", str(args.threads)]
    subprocess.run([*base, "--lr", "1e-30", "--exit-interval", "1",
                    "--train.output", f"{work}/initial"], check=True, capture_output=True)
    subprocess.run([*base, "--lr", str(LR), "--lr-warmup-samples", str(WARMUP * BATCH),
                    "--train.output", f"{work}/ours"], check=True, capture_output=True)
    shown = subprocess.run([args.bevatron, "inspect", "samples", *MODEL, *data, "--split", "100,0,0",
                            "--first", str(args.iterations * BATCH), "--json"],
                           check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in open(f"{work}/ours/metrics.jsonl")]
    return [x for x in lines if x["event"] == "iteration"], json.loads(shown)["samples"]


def run_transformers(args, work, samples):
    import torch
    import transformers
    torch.set_num_threads(args.threads)
    model = transformers.BertForPreTraining.from_pretrained(f"{work}/initial/model").train()
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": DECAY},
                                   {"params": others, "weight_decay": 0.0}],
                                  lr=LR, betas=(0.9, 0.999), eps=1e-8)
    cross_entropy = torch.nn.functional.cross_entropy
    losses = []
    for step in range(args.iterations):
        batch = samples[step * BATCH:(step + 1) * BATCH]
        column = lambda key: torch.tensor([x[key] for x in batch])
        lengths = column("length")
        out = model(input_ids=column("tokens"), token_type_ids=column("types"),
                    attention_mask=(torch.arange(SEQUENCE)[None] < lengths[:, None]).long())
        labels = column("labels")
        lm = cross_entropy(out.prediction_logits[labels >= 0], labels[labels >= 0])
        nsp = cross_entropy(out.seq_relationship_logits, column("is_random"))
        for group in optimizer.param_groups:
            group["lr"] = LR * min(1, step / WARMUP)
        (lm + nsp).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append((lm.item(), nsp.item()))
    return losses, f"transformers {transformers.__version__}, torch {torch.__version__}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bevatron", default="build/bevatron")
    parser.add_argument("--data", required=True)
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", default=None)
    args = parser.parse_args()
    work = pathlib.Path(args.work or tempfile.mkdtemp())
    ours, samples = run_ours(args, work)
    theirs, versions = run_transformers(args, work, samples)
    mine = [(x["lm_loss"], x["nsp_loss"]) for x in ours]
    print(f"{'iteration':>9} {'lm ours':>9} {'theirs':>9} {'nsp ours':>9} {'theirs':>9}   {versions}")
    for i in sorted({0, 1, 9, 49, *range(99, args.iterations, 100), args.iterations - 1}):
        if i < args.iterations:
            print(f"{i + 1:>9} {mine[i][0]:9.5f} {theirs[i][0]:9.5f} {mine[i][1]:9.5f} {theirs[i][1]:9.5f}")
    for k, name in enumerate(["lm loss", "nsp loss"]):
        worst = max(range(args.iterations), key=lambda i: abs(mine[i][k] - theirs[i][k]))
        print(f"{name}: largest difference {abs(mine[worst][k] - theirs[worst][k]):.2e}, at iteration {worst + 1}")


if __name__ == "__main__":
    main()
