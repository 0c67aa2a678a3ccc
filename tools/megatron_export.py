#!/usr/bin/env python3
"""Turns a checkpoint of Megatron-LM (format "torch") into files that `bevatron convert megatron-to-bev` reads.

    tools/megatron_export.py CHECKPOINT OUT [--vocab-size N] [--args FILE]

CHECKPOINT is a folder iter_0000100 or release, or the one above it. For each mp_rank_XX or mp_rank_XX_YYY in it OUT gets a
safetensors file of the same name with the weights of that rank, and one megatron.json with the settings of the training that
decide what the weights mean. The optimizer is left out. Needs PyTorch and safetensors; Megatron-LM itself is not needed, and
nothing that a pickle asks to be called is called: objects of unknown classes become empty shells.

--vocab-size  tokens of the vocabulary before Megatron-LM padded it, where the checkpoint does not say
--args        a JSON file with the settings, for a checkpoint that was saved without them
"""
import argparse
import json
import re
import sys
from pathlib import Path

# What decides the meaning of the weights; the rest of a training's settings is left behind.
SETTINGS = """
num_layers encoder_num_layers decoder_num_layers hidden_size num_attention_heads group_query_attention num_query_groups
kv_channels ffn_hidden_size padded_vocab_size vocab_size max_position_embeddings position_embedding_type
use_rotary_position_embeddings add_position_embedding rotary_base rotary_percent rotary_interleaved
rotary_seq_len_interpolation_factor use_rope_scaling rope_scaling_factor normalization norm_epsilon layernorm_epsilon
apply_layernorm_1p apply_residual_connection_post_layernorm swiglu squared_relu openai_gelu bias_gelu_fusion
add_bias_linear add_qkv_bias qk_layernorm untie_embeddings_and_output_weights window_size multi_latent_attention
num_experts init_method_std hidden_dropout attention_dropout
""".split()

RANK = re.compile(r"mp_rank_(\d{2,})(?:_(\d{3,}))?$")


def stop(text):
    sys.exit(f"megatron_export: {text}")


def find_folder(path):
    if any(RANK.fullmatch(entry.name) for entry in path.glob("mp_rank_*")):
        return path
    tracker = path / "latest_checkpointed_iteration.txt"
    if tracker.is_file():
        word = tracker.read_text().strip()
        return path / (word if word == "release" else f"iter_{int(word):07d}")
    stop(f"{path} has neither folders mp_rank_00 nor latest_checkpointed_iteration.txt")


def find_ranks(folder):
    ranks = {}
    for entry in sorted(folder.glob("mp_rank_*")):
        match = RANK.fullmatch(entry.name)
        if not match:
            stop(f"{entry} is not the folder of a tensor and pipeline rank; expert parallelism is not supported")
        ranks[int(match[1]), int(match[2] or 0)] = entry
    if not ranks:
        distributed = (folder / ".metadata").exists()
        stop(f"{folder} has no folders mp_rank_00" + ("; it is of the format torch_dist, which Megatron-LM converts with "
             "`--ckpt-convert-format torch`" if distributed else ""))
    tensor, pipeline = (max(key[i] for key in ranks) + 1 for i in (0, 1))
    missing = [key for t in range(tensor) for p in range(pipeline) if (key := (t, p)) not in ranks]
    if missing:
        stop(f"{folder}: of tensor rank {missing[0][0]}, pipeline rank {missing[0][1]} there is no folder")
    return ranks, tensor, pipeline


class Shell:
    """Stands for an object of a class that is not loaded."""

    def __init__(self, *values, **named):
        pass

    def __setstate__(self, state):
        pass


def load(path):
    import torch
    from torch.serialization import add_safe_globals, get_unsafe_globals_in_checkpoint

    # A shell per name: it is told apart by its type when the state of an object follows.
    unknown = [name for name in get_unsafe_globals_in_checkpoint(str(path)) if name != "argparse.Namespace"]
    add_safe_globals([argparse.Namespace] + [(type("Shell", (Shell,), {}), name) for name in unknown])
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError:  # files older than PyTorch 1.6 cannot be mapped
        return torch.load(path, map_location="cpu", weights_only=True)


def weights_in(dictionary, prefix):
    import torch

    for name, value in dictionary.items():
        name = f"{prefix}.{name}"
        if isinstance(value, dict):
            yield from weights_in(value, name)
        elif isinstance(value, torch.Tensor) and value.is_floating_point() and not name.endswith("_extra_state"):
            yield re.sub(r"\.(module\.)+", ".", name), value


def settings_of(state, path, given):
    if given is None and not isinstance(state.get("args"), argparse.Namespace):
        stop(f"{path}: the settings (args) are missing or are of a class that cannot be loaded; --args FILE gives them as JSON")
    args = given if given is not None else vars(state["args"])
    kept = {}
    for name in SETTINGS:
        value = args.get(name)
        if isinstance(value, (list, tuple)) and all(isinstance(each, int) for each in value):
            kept[name] = list(value)
        elif isinstance(value, (bool, int, float, str)):
            kept[name] = value
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--vocab-size", type=int)
    parser.add_argument("--args", type=Path)
    options = parser.parse_args()

    from safetensors.torch import save_file

    folder = find_folder(options.checkpoint)
    ranks, tensor, pipeline = find_ranks(folder)
    given = json.loads(options.args.read_text()) if options.args else None
    options.out.mkdir(parents=True, exist_ok=True)
    if any(options.out.iterdir()):
        stop(f"{options.out} is not empty")

    description, shards = None, []
    for (t, p), entry in sorted(ranks.items()):
        path = next((entry / name for name in ("model_optim_rng.pt", "model_rng.pt") if (entry / name).is_file()), None)
        if path is None:
            stop(f"{entry} has neither model_optim_rng.pt nor model_rng.pt")
        state = load(path)
        models = sorted((key for key in state if re.fullmatch(r"model\d*", key)), key=lambda key: int(key[5:] or 0))
        if not models:
            stop(f"{path} has no model; it has {', '.join(sorted(map(str, state)))}")
        weights = {name: value.clone().contiguous() for key in models for name, value in weights_in(state[key], key)}
        save_file(weights, str(options.out / f"{entry.name}.safetensors"), metadata={"format": "pt"})
        shards.append({"file": f"{entry.name}.safetensors", "tensor": t, "pipeline": p})
        print(f"{entry.name}: {len(weights)} tensors, {sum(w.nbytes for w in weights.values()):,} bytes")
        if description is None:
            args = settings_of(state, path, given)
            if options.vocab_size:
                args["vocab_size"] = options.vocab_size
            elif args.get("vocab_size", 0) > args.get("padded_vocab_size", args.get("vocab_size", 0)):
                del args["vocab_size"]
            description = {"format": 1, "args": args, "tensor": tensor, "pipeline": pipeline, "chunks": len(models),
                           "checkpoint_version": float(state.get("checkpoint_version", 0)),
                           "iteration": int(state.get("iteration", 0))}
    description["shards"] = shards
    # Last: the folder is complete when it is there.
    (options.out / "megatron.json").write_text(json.dumps(description, indent=1) + "\n")


if __name__ == "__main__":
    main()
