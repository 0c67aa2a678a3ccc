#!/usr/bin/env python3
"""Writes a checkpoint as Megatron-LM lays it out, of a model in Hugging Face's format, to try tools/megatron_export.py on.

    tools/make_megatron_checkpoint.py HF_DIR OUT [--tensor 2] [--pipeline 2] [--chunks 1] [--version 3.0] [--names mcore]

HF_DIR is a gpt2 or llama model. --names chooses the names of tensors: mcore (fused norms), legacy, or old (before 2022).
The model that comes back through the export and `bevatron convert` must be the one in HF_DIR.
"""
import argparse
import enum
import json
import random
import sys
import types
from pathlib import Path

import numpy
import torch
from safetensors.torch import load_file

NAMES = {
    "mcore": dict(stack="decoder", norm1="self_attention.linear_qkv.layer_norm_{}", qkv="self_attention.linear_qkv.{}",
                  out="self_attention.linear_proj.{}", norm2="mlp.linear_fc1.layer_norm_{}", up="mlp.linear_fc1.{}",
                  down="mlp.linear_fc2.{}", final="final_layernorm.{}"),
    "legacy": dict(stack="encoder", norm1="input_norm.{}", qkv="self_attention.query_key_value.{}",
                   out="self_attention.dense.{}", norm2="post_attention_norm.{}", up="mlp.dense_h_to_4h.{}",
                   down="mlp.dense_4h_to_h.{}", final="final_norm.{}"),
    "old": dict(stack="transformer", norm1="input_layernorm.{}", qkv="attention.query_key_value.{}",
                out="attention.dense.{}", norm2="post_attention_layernorm.{}", up="mlp.dense_h_to_4h.{}",
                down="mlp.dense_4h_to_h.{}", final="final_layernorm.{}"),
}


def foreign_object():
    """Of a class that is only there where Megatron-LM is, as its settings hold some."""
    for name in ("megatron", "megatron.core", "megatron.core.enums"):
        sys.modules.setdefault(name, types.ModuleType(name))
    kind = enum.Enum("ModelType", {"encoder_or_decoder": 1}, module="megatron.core.enums")
    sys.modules["megatron.core.enums"].ModelType = kind
    return kind.encoder_or_decoder


def read_model(folder):
    """The settings and the tensors as {name: whole tensor [out, in]}, q, k and v and gate and up apart."""
    config = json.loads((folder / "config.json").read_text())
    files = sorted(folder.glob("*.safetensors"))
    stored = {name: tensor for file in files if file.name.startswith("model") for name, tensor in load_file(file).items()}
    is_gpt2 = config["model_type"] == "gpt2"
    stored = {name.removeprefix("transformer.").removeprefix("model."): tensor for name, tensor in stored.items()}
    model = {}
    layers = config["n_layer" if is_gpt2 else "num_hidden_layers"]
    if is_gpt2:
        model["table"], model["positions"] = stored["wte.weight"], stored["wpe.weight"]
        for i in range(layers):
            for word in ("weight", "bias"):
                def get(name):
                    tensor = stored[f"h.{i}.{name}.{word}"]
                    return tensor.T.contiguous() if tensor.dim() == 2 else tensor
                model[i, "norm1", word], model[i, "norm2", word] = get("ln_1"), get("ln_2")
                model[i, "qkv", word] = get("attn.c_attn").chunk(3)
                model[i, "out", word] = get("attn.c_proj")
                model[i, "up", word], model[i, "down", word] = (get("mlp.c_fc"),), get("mlp.c_proj")
        model["final", "weight"], model["final", "bias"] = stored["ln_f.weight"], stored["ln_f.bias"]
        args = dict(num_layers=layers, hidden_size=config["n_embd"], num_attention_heads=config["n_head"],
                    max_position_embeddings=config["n_positions"], ffn_hidden_size=config.get("n_inner") or 4 * config["n_embd"],
                    position_embedding_type="learned_absolute", normalization="LayerNorm", swiglu=False,
                    norm_epsilon=config["layer_norm_epsilon"], add_bias_linear=True, bias_gelu_fusion=True,
                    untie_embeddings_and_output_weights=not config.get("tie_word_embeddings", True),
                    group_query_attention=False, num_query_groups=1)
    else:
        model["table"] = stored["embed_tokens.weight"]
        for i in range(layers):
            get = lambda name: stored[f"layers.{i}.{name}.weight"]
            model[i, "norm1", "weight"], model[i, "norm2", "weight"] = get("input_layernorm"), get("post_attention_layernorm")
            model[i, "qkv", "weight"] = tuple(get(f"self_attn.{part}_proj") for part in "qkv")
            model[i, "out", "weight"], model[i, "down", "weight"] = get("self_attn.o_proj"), get("mlp.down_proj")
            model[i, "up", "weight"] = get("mlp.gate_proj"), get("mlp.up_proj")
        model["final", "weight"] = stored["norm.weight"]
        rope = config.get("rope_parameters") or {}
        args = dict(num_layers=layers, hidden_size=config["hidden_size"], num_attention_heads=config["num_attention_heads"],
                    max_position_embeddings=config["max_position_embeddings"], ffn_hidden_size=config["intermediate_size"],
                    position_embedding_type="rope", rotary_base=rope.get("rope_theta", config.get("rope_theta", 10000.0)),
                    normalization="RMSNorm", norm_epsilon=config["rms_norm_eps"], swiglu=True, add_bias_linear=False,
                    untie_embeddings_and_output_weights=not config.get("tie_word_embeddings", False),
                    group_query_attention=True, num_query_groups=config["num_key_value_heads"])
    if args["untie_embeddings_and_output_weights"]:
        model["head"] = stored["lm_head.weight"]
    heads = args["num_attention_heads"]
    args["kv_channels"] = model[0, "qkv", "weight"][0].shape[0] // heads
    args["vocab_size"] = config["vocab_size"]
    args["params_dtype"] = model["table"].dtype
    return args, model


def fuse_qkv(q, k, v, args, version):
    """The rows of one rank in the order of the version."""
    size = args["kv_channels"]
    q, k, v = (part.reshape(-1, size, *part.shape[1:]) for part in (q, k, v))
    if version >= 2:
        per_group = q.shape[0] // k.shape[0]
        rows = torch.cat([torch.cat([q[g * per_group:(g + 1) * per_group].flatten(0, 1), k[g], v[g]]) for g in range(k.shape[0])])
    elif version >= 1:
        rows = torch.stack([q, k, v], dim=2).flatten(0, 2)
    else:
        rows = torch.cat([q, k, v]).flatten(0, 1)
    return rows


def rank_model(model, args, names, t, p, chunk, options):
    stages = options.pipeline * options.chunks
    stage, layers = chunk * options.pipeline + p, args["num_layers"] // stages
    cut = lambda tensor, dim=0: tensor.chunk(options.tensor, dim)[t]
    padded = lambda table: torch.cat([table, table.new_zeros(args["padded_vocab_size"] - table.shape[0], table.shape[1])])
    inside, stack = {}, {}
    if stage == 0:
        inside["embedding"] = {"word_embeddings": {"weight": cut(padded(model["table"]))}}
        if "positions" in model:
            inside["embedding"]["position_embeddings"] = {"weight": model["positions"]}
    for local in range(layers):
        i = stage * layers + local
        for word in ("weight", "bias"):
            if (i, "norm1", word) in model:
                stack[f"layers.{local}.{names['norm1'].format(word)}"] = model[i, "norm1", word]
                stack[f"layers.{local}.{names['norm2'].format(word)}"] = model[i, "norm2", word]
            if (i, "qkv", word) not in model:
                continue
            q, k, v = (cut(part) for part in model[i, "qkv", word])
            stack[f"layers.{local}.{names['qkv'].format(word)}"] = fuse_qkv(q, k, v, args, options.version)
            stack[f"layers.{local}.{names['up'].format(word)}"] = torch.cat([cut(part) for part in model[i, "up", word]])
            for part in ("out", "down"):
                value = model[i, part, word]
                stack[f"layers.{local}.{names[part].format(word)}"] = cut(value, 1) if word == "weight" else value
    is_last = stage == stages - 1
    if is_last:
        for word in ("weight", "bias"):
            if ("final", word) in model:
                stack[names["final"].format(word)] = model["final", word]
    result = {}
    if options.names == "mcore":
        for group, value in inside.get("embedding", {}).items():
            result[f"embedding.{group}.weight"] = value["weight"]
        result |= {f"decoder.{name}": value for name, value in stack.items()}
        if is_last and ("head" in model or stages > 1):
            result["output_layer.weight"] = cut(padded(model.get("head", model["table"])))
        return result
    inside[names["stack"]] = stack
    if is_last and "head" in model:
        inside["output_layer"] = {"weight": cut(padded(model["head"]))}
    result["language_model"] = inside
    if is_last and "head" not in model and stages > 1:
        result["word_embeddings_for_head"] = {"weight": cut(padded(model["table"]))}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tensor", type=int, default=2)
    parser.add_argument("--pipeline", type=int, default=2)
    parser.add_argument("--chunks", type=int, default=1)
    parser.add_argument("--version", type=float, default=3.0)
    parser.add_argument("--names", choices=sorted(NAMES), default="mcore")
    options = parser.parse_args()

    args, model = read_model(options.model)
    if args["num_layers"] % (options.pipeline * options.chunks):
        parser.error(f"{args['num_layers']} layers do not divide over {options.pipeline * options.chunks} stages")
    multiple = 128 * options.tensor
    args["padded_vocab_size"] = -(-args["vocab_size"] // multiple) * multiple
    args |= dict(tensor_model_parallel_size=options.tensor, pipeline_model_parallel_size=options.pipeline,
                 model_type=foreign_object())
    folder = options.out / "iter_0000042"
    for t in range(options.tensor):
        for p in range(options.pipeline):
            state = {"args": argparse.Namespace(**args), "checkpoint_version": options.version, "iteration": 42,
                     "rng_state": [{"random_rng_state": random.getstate(), "np_rng_state": numpy.random.get_state(),
                                    "torch_rng_state": torch.get_rng_state()}],
                     "opt_param_scheduler": {"max_lr": 1e-4}}
            for chunk in range(options.chunks):
                key = "model" if options.chunks == 1 else f"model{chunk}"
                state[key] = rank_model(model, args, NAMES[options.names], t, p, chunk, options)
            place = folder / (f"mp_rank_{t:02d}" if options.pipeline == 1 else f"mp_rank_{t:02d}_{p:03d}")
            place.mkdir(parents=True, exist_ok=True)
            torch.save(state, place / "model_optim_rng.pt")
    (options.out / "latest_checkpointed_iteration.txt").write_text("42")


if __name__ == "__main__":
    main()
