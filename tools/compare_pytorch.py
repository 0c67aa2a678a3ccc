#!/usr/bin/env python3
"""Times one training step of the same model here and in PyTorch, alternately, and prints the ratios.

    tools/compare_pytorch.py [--bevatron build/bevatron] [--model gpt2|llama] [--batch 4] [--sequence 64]
                             [--threads 2] [--rounds 5] [--steps 5] [--compile]

Needs torch and transformers; nothing else in the project needs Python. Each round starts a fresh process
of each program; a program's number is the median over all steps of all rounds. One step is forward,
backward, clipping to norm 1 and AdamW (torch: fused), in float32, without dropout.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time

GPT2 = ["--model.preset", "gpt2-124m", "--model.hidden_dropout", "0", "--model.attention_dropout", "0"]
LLAMA = ["--model.layers", "12", "--model.width", "768", "--model.heads", "12", "--model.ffn", "2048",
         "--model.vocab", "50304", "--model.positions", "1024", "--model.norm", "rmsnorm",
         "--model.activation", "swiglu", "--model.position", "rope", "--model.bias", "none",
         "--model.hidden_dropout", "0", "--model.attention_dropout", "0"]


def torch_model(kind):
    import transformers
    if kind == "gpt2":
        config = transformers.GPT2Config(vocab_size=50304, resid_pdrop=0.0, embd_pdrop=0.0,
                                         attn_pdrop=0.0, use_cache=False)
        return transformers.GPT2LMHeadModel(config)
    config = transformers.LlamaConfig(
        vocab_size=50304, hidden_size=768, intermediate_size=2048, num_hidden_layers=12,
        num_attention_heads=12, max_position_embeddings=1024, tie_word_embeddings=True,
        use_cache=False)
    return transformers.LlamaForCausalLM(config)


def torch_steps(args):
    """Runs in a process of its own; prints the seconds of each step as JSON."""
    import torch
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = torch_model(args.model)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    run = torch.compile(model) if args.compile else model
    ids = torch.randint(0, 50257, (args.batch, args.sequence + 1))
    seconds = []
    for _ in range(args.steps + 2):
        begin = time.perf_counter()
        logits = run(input_ids=ids[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.view(-1, logits.size(-1)),
                                                 ids[:, 1:].reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": seconds[2:], "torch": torch.__version__}))


def bevatron_steps(args):
    command = [args.bevatron, "bench", "step", "--json", "--seconds", "0", "--steps", str(args.steps),
               "--train.micro_batch", str(args.batch), "--train.sequence", str(args.sequence),
               "--device.threads", str(args.threads)]
    command += GPT2 if args.model == "gpt2" else LLAMA
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bevatron", default="build/bevatron")
    parser.add_argument("--model", choices=["gpt2", "llama"], default="gpt2")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--compile", action="store_true", help="compare with torch.compile too")
    parser.add_argument("--torch-only", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.torch_only:
        torch_steps(args)
        return

    def torch_round(compiled):
        command = [sys.executable, __file__, "--torch-only", "--model", args.model, "--batch",
                   str(args.batch), "--sequence", str(args.sequence), "--threads",
                   str(args.threads), "--steps", str(args.steps)]
        command += ["--compile"] if compiled else []
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE,
                                         text=True).stdout.splitlines()[-1])

    ours, eager, compiled, version = [], [], [], ""
    for round_number in range(args.rounds):
        mine = bevatron_steps(args)
        ours.append(mine["step_seconds"]["median"])
        result = torch_round(False)
        version = result["torch"]
        eager += result["seconds"]
        line = f"round {round_number + 1}: bevatron {ours[-1]:.3f} s, eager {statistics.median(result['seconds']):.3f} s"
        if args.compile:
            result = torch_round(True)
            compiled += result["seconds"]
            line += f", compiled {statistics.median(result['seconds']):.3f} s"
        print(line, flush=True)

    tokens = args.batch * args.sequence
    mine = statistics.median(ours)
    print(f"{args.model}, {args.batch} x {args.sequence} tokens, {args.threads} threads, "
          f"PyTorch {version}")
    print(f"bevatron          {mine:.4f} s/step  {tokens / mine:8.1f} tokens/s")
    for name, times in (("PyTorch eager", eager), ("PyTorch compiled", compiled)):
        if times:
            median = statistics.median(times)
            print(f"{name:<17} {median:.4f} s/step  {tokens / median:8.1f} tokens/s   "
                  f"ratio of medians {median / mine:.3f}")


if __name__ == "__main__":
    main()
