#!/usr/bin/env python3
"""Times training steps of the same model here and in PyTorch, alternately, and prints the ratios.

    tools/compare_pytorch.py [--bevatron build/bevatron] [--model gpt2|llama|bert-base|bert-large]
                             [--batch 4] [--sequence 64] [--device cpu|cuda] [--dropout 0]
                             [--threads 2] [--rounds 5] [--steps 5] [--compile] [--compiled-only]

Needs torch and transformers; nothing else in the project needs Python. Each round starts a fresh process
of each program; a program's number is the median over all steps of all rounds. One step is forward,
backward, clipping to norm 1 and AdamW (torch: fused). On CPUs both compute in float32; on a GPU in bf16 with
float32 weights (torch: autocast). PyTorch gets sequences without padding and no attention mask, which is
its fastest case; Bevatron's BERT samples are padded by up to a quarter.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time

FLAGS = {
    "gpt2": ["--model.preset", "gpt2-124m"],
    "llama": ["--model.layers", "12", "--model.width", "768", "--model.heads", "12", "--model.ffn", "2048",
              "--model.vocab", "50304", "--model.positions", "1024", "--model.norm", "rmsnorm",
              "--model.activation", "swiglu", "--model.position", "rope", "--model.bias", "none"],
    "bert-base": ["--model.family", "bert", "--model.layers", "12", "--model.width", "768",
                  "--model.heads", "12", "--model.vocab", "30592", "--model.positions", "512",
                  "--model.norm_placement", "post", "--model.activation", "gelu-erf"],
    "bert-large": ["--model.family", "bert", "--model.layers", "24", "--model.width", "1024",
                   "--model.heads", "16", "--model.vocab", "30592", "--model.positions", "512",
                   "--model.norm_placement", "post", "--model.activation", "gelu-erf"],
}


def torch_model(kind, dropout):
    import transformers
    if kind == "gpt2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=50304, resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout, use_cache=False))
    if kind == "llama":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=50304, hidden_size=768, intermediate_size=2048, num_hidden_layers=12,
            num_attention_heads=12, max_position_embeddings=1024, tie_word_embeddings=True,
            use_cache=False))
    layers, width, heads = (12, 768, 12) if kind == "bert-base" else (24, 1024, 16)
    return transformers.BertForPreTraining(transformers.BertConfig(
        vocab_size=30592, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=4 * width, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout))


def torch_steps(args):
    """Runs in a process of its own; prints the seconds of each step as JSON."""
    import contextlib
    import torch
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    cuda = args.device == "cuda"
    model = torch_model(args.model, args.dropout).to(args.device)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    run = torch.compile(model) if args.compile else model
    ids = torch.randint(0, 30522, (args.batch, args.sequence + 1), device=args.device)
    cross_entropy = torch.nn.functional.cross_entropy
    if args.model.startswith("bert"):
        # As Bevatron does, 15 % of the tokens are predicted.
        labels = torch.where(torch.rand(ids[:, 1:].shape, device=args.device) < 0.15, ids[:, 1:], -100)
        pairs = torch.randint(0, 2, (args.batch,), device=args.device)

        def loss_of_batch():
            return run(input_ids=ids[:, :-1], labels=labels, next_sentence_label=pairs).loss
    else:
        def loss_of_batch():
            logits = run(input_ids=ids[:, :-1]).logits
            return cross_entropy(logits.view(-1, logits.size(-1)), ids[:, 1:].reshape(-1))
    precision = torch.autocast("cuda", torch.bfloat16) if cuda else contextlib.nullcontext()

    def step():
        with precision:
            loss = loss_of_batch()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    seconds = []
    for _ in range(args.steps + (5 if cuda else 2)):
        begin = time.perf_counter()
        step()
        if cuda:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    peak = torch.cuda.max_memory_allocated() if cuda else 0
    print(json.dumps({"seconds": seconds[-args.steps:], "torch": torch.__version__, "bytes": peak}))


def bevatron_steps(args):
    command = [args.bevatron, "bench", "step", "--json", "--seconds", "0", "--steps", str(args.steps),
               "--train.micro_batch", str(args.batch), "--train.sequence", str(args.sequence),
               "--model.hidden_dropout", str(args.dropout), "--model.attention_dropout", str(args.dropout),
               "--device", args.device, *FLAGS[args.model]]
    if args.device == "cpu":
        command += ["--device.threads", str(args.threads)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bevatron", default="build/bevatron")
    parser.add_argument("--model", choices=sorted(FLAGS), default="gpt2")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=64)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--threads", type=int, default=2, help="of both programs on CPUs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--compile", action="store_true", help="compare with torch.compile too")
    parser.add_argument("--compiled-only", action="store_true", help="compare with torch.compile alone")
    parser.add_argument("--torch-only", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.torch_only:
        torch_steps(args)
        return
    kinds = ["compiled"] if args.compiled_only else ["eager"] + (["compiled"] if args.compile else [])

    def torch_round(kind):
        command = [sys.executable, __file__, "--torch-only"]
        for name in ("model", "batch", "sequence", "device", "dropout", "threads", "steps"):
            command += ["--" + name, str(getattr(args, name))]
        command += ["--compile"] if kind == "compiled" else []
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE,
                                         text=True).stdout.splitlines()[-1])

    ours, theirs, result = [], {kind: [] for kind in kinds}, {}
    for round_number in range(args.rounds):
        ours.append(bevatron_steps(args)["step_seconds"]["median"])
        line = f"round {round_number + 1}: bevatron {ours[-1]:.4f} s"
        for kind in kinds:
            result = torch_round(kind)
            theirs[kind] += result["seconds"]
            line += f", {kind} {statistics.median(result['seconds']):.4f} s"
        print(line, flush=True)

    tokens = args.batch * args.sequence
    mine = statistics.median(ours)
    print(f"{args.model}, {args.batch} x {args.sequence} tokens, {args.device}, dropout {args.dropout}, "
          f"PyTorch {result['torch']}")
    print(f"bevatron          {mine:.4f} s/step  {tokens / mine:8.1f} tokens/s")
    for kind, times in theirs.items():
        median = statistics.median(times)
        print(f"PyTorch {kind:<9} {median:.4f} s/step  {tokens / median:8.1f} tokens/s   "
              f"ratio of medians {median / mine:.3f}")


if __name__ == "__main__":
    main()
