#!/usr/bin/env python3
"""Makes the golden files under tests/golden/models: tiny models computed by PyTorch in float64.

    tools/make_golden.py tests/golden/models

Needs torch and safetensors. The models are written out here with plain tensor operations and autograd, under
the names and layouts of Hugging Face checkpoints, so that nothing of bevatron is involved. Each folder holds

    config.json          the shape, as transformers would write it
    model.safetensors    F32 weights
    tokens.safetensors   I32 [steps, micro-batches, batch, length + 1]
    forward.safetensors  F64 for tokens[0, 0]: logits, hidden_0 .. hidden_layers, final_norm
    grads.safetensors    F64 gradients of the loss of step 0 before clipping
    adamw.json, adamw_after.safetensors, sgd.json, sgd_after.safetensors
                         ten steps: loss, norm, clip factor and rate of each, then the weights
    score.json           log probabilities of tokens[0, 0]
"""
import json
import math
import pathlib
import sys

import torch
from safetensors.torch import save_file

STEPS, MICROS, BATCH = 10, 2, 2
CLIP, DECAY = 0.5, 0.1

MODELS = {
    "gpt2": dict(family="gpt2", vocab=53, positions=12, width=24, layers=2, heads=3, kv=3, inner=96,
                 head_dim=8, eps=1e-5, tied=True, length=9),
    "llama": dict(family="llama", vocab=59, positions=16, width=24, layers=2, heads=6, kv=2, inner=40,
                  head_dim=4, eps=1e-5, theta=10000.0, tied=False, length=11),
    "mistral": dict(family="mistral", vocab=47, positions=16, width=16, layers=2, heads=4, kv=2, inner=24,
                    head_dim=4, eps=1e-6, theta=1e6, tied=False, length=10, window=4),
    "qwen2": dict(family="qwen2", vocab=43, positions=16, width=16, layers=2, heads=4, kv=4, inner=24,
                  head_dim=4, eps=1e-6, theta=1e6, tied=True, length=8),
    "qwen3": dict(family="qwen3", vocab=43, positions=16, width=16, layers=2, heads=4, kv=2, inner=24,
                  head_dim=6, eps=1e-6, theta=1e6, tied=True, length=8),
}


def config_of(m):
    if m["family"] == "gpt2":
        return {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": m["vocab"],
                "n_positions": m["positions"], "n_embd": m["width"], "n_layer": m["layers"],
                "n_head": m["heads"], "n_inner": None, "activation_function": "gelu_new",
                "layer_norm_epsilon": m["eps"], "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
                "tie_word_embeddings": m["tied"], "dtype": "float32"}
    architecture = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}[m["family"]]
    config = {"architectures": [architecture + "ForCausalLM"], "model_type": m["family"],
              "vocab_size": m["vocab"], "max_position_embeddings": m["positions"], "hidden_size": m["width"],
              "intermediate_size": m["inner"], "num_hidden_layers": m["layers"],
              "num_attention_heads": m["heads"], "num_key_value_heads": m["kv"], "head_dim": m["head_dim"],
              "hidden_act": "silu", "rms_norm_eps": m["eps"], "rope_theta": m["theta"],
              "attention_dropout": 0.0, "tie_word_embeddings": m["tied"], "dtype": "float32"}
    if m["family"] == "mistral":
        config["sliding_window"] = m["window"]
    if m["family"].startswith("qwen"):
        config["use_sliding_window"] = False
    return config


def shapes_of(m):
    """Parameter names and shapes as Hugging Face has them."""
    width, inner, q, kv = m["width"], m["inner"], m["heads"] * m["head_dim"], m["kv"] * m["head_dim"]
    shapes = {}
    if m["family"] == "gpt2":
        shapes["transformer.wte.weight"] = (m["vocab"], width)
        shapes["transformer.wpe.weight"] = (m["positions"], width)
        for i in range(m["layers"]):
            h = f"transformer.h.{i}."
            shapes |= {h + "ln_1.weight": (width,), h + "ln_1.bias": (width,),
                       h + "attn.c_attn.weight": (width, 3 * width), h + "attn.c_attn.bias": (3 * width,),
                       h + "attn.c_proj.weight": (width, width), h + "attn.c_proj.bias": (width,),
                       h + "ln_2.weight": (width,), h + "ln_2.bias": (width,),
                       h + "mlp.c_fc.weight": (width, inner), h + "mlp.c_fc.bias": (inner,),
                       h + "mlp.c_proj.weight": (inner, width), h + "mlp.c_proj.bias": (width,)}
        return shapes | {"transformer.ln_f.weight": (width,), "transformer.ln_f.bias": (width,)}
    shapes["model.embed_tokens.weight"] = (m["vocab"], width)
    for i in range(m["layers"]):
        h = f"model.layers.{i}."
        shapes |= {h + "input_layernorm.weight": (width,), h + "self_attn.q_proj.weight": (q, width),
                   h + "self_attn.k_proj.weight": (kv, width), h + "self_attn.v_proj.weight": (kv, width),
                   h + "self_attn.o_proj.weight": (width, q),
                   h + "post_attention_layernorm.weight": (width,), h + "mlp.gate_proj.weight": (inner, width),
                   h + "mlp.up_proj.weight": (inner, width), h + "mlp.down_proj.weight": (width, inner)}
        if m["family"] == "qwen2":
            shapes |= {h + f"self_attn.{x}_proj.bias": (q if x == "q" else kv,) for x in "qkv"}
        if m["family"] == "qwen3":
            shapes |= {h + f"self_attn.{x}_norm.weight": (m["head_dim"],) for x in "qk"}
    shapes["model.norm.weight"] = (width,)
    if not m["tied"]:
        shapes["lm_head.weight"] = (m["vocab"], width)
    return shapes


def draw_weights(m, generator):
    weights = {}
    for name, shape in shapes_of(m).items():
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        is_norm = "norm" in name or "ln_" in name
        value = 1 + 0.1 * noise if is_norm and name.endswith("weight") else 0.1 * noise
        weights[name] = value.to(torch.float32)
    return weights


def rms_norm(x, weight, eps):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * weight


def rotate(x, theta):
    """x [batch, heads, length, head_dim]; the first half of a head turns with the second."""
    length, dim = x.shape[-2:]
    frequency = theta ** (-2.0 * torch.arange(dim // 2, dtype=torch.float64) / dim)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency[None, :]
    a, b = x[..., : dim // 2], x[..., dim // 2:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def attend(q, k, v, window):
    """Causal attention of [batch, heads, length, head_dim], keys and values shared by groups of heads."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    length = q.shape[2]
    i, j = torch.arange(length)[:, None], torch.arange(length)[None, :]
    visible = (j <= i) & (j > i - window) if window else j <= i
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return torch.softmax(scores.masked_fill(~visible, -math.inf), -1) @ v


def split_heads(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x):
    return x.transpose(1, 2).flatten(-2)


def gpt2(p, m, ids):
    x = p["transformer.wte.weight"][ids] + p["transformer.wpe.weight"][: ids.shape[1]]
    hidden = [x]
    norm = lambda t, name: torch.nn.functional.layer_norm(t, (m["width"],), p[name + ".weight"],
                                                          p[name + ".bias"], m["eps"])
    for i in range(m["layers"]):
        h = f"transformer.h.{i}."
        fused = norm(x, h + "ln_1") @ p[h + "attn.c_attn.weight"] + p[h + "attn.c_attn.bias"]
        q, k, v = (split_heads(t, m["heads"]) for t in fused.chunk(3, -1))
        x = x + join_heads(attend(q, k, v, 0)) @ p[h + "attn.c_proj.weight"] + p[h + "attn.c_proj.bias"]
        up = norm(x, h + "ln_2") @ p[h + "mlp.c_fc.weight"] + p[h + "mlp.c_fc.bias"]
        act = torch.nn.functional.gelu(up, approximate="tanh")
        x = x + act @ p[h + "mlp.c_proj.weight"] + p[h + "mlp.c_proj.bias"]
        hidden.append(x)
    final = norm(x, "transformer.ln_f")
    return hidden, final, final @ p["transformer.wte.weight"].T


def llama(p, m, ids):
    x = p["model.embed_tokens.weight"][ids]
    hidden = [x]
    for i in range(m["layers"]):
        h = f"model.layers.{i}."
        n = rms_norm(x, p[h + "input_layernorm.weight"], m["eps"])
        heads = {}
        for part, count in (("q", m["heads"]), ("k", m["kv"]), ("v", m["kv"])):
            t = n @ p[h + f"self_attn.{part}_proj.weight"].T
            if m["family"] == "qwen2":
                t = t + p[h + f"self_attn.{part}_proj.bias"]
            t = split_heads(t, count)
            if m["family"] == "qwen3" and part != "v":
                t = rms_norm(t, p[h + f"self_attn.{part}_norm.weight"], m["eps"])
            heads[part] = rotate(t, m["theta"]) if part != "v" else t
        out = attend(heads["q"], heads["k"], heads["v"], m.get("window", 0))
        x = x + join_heads(out) @ p[h + "self_attn.o_proj.weight"].T
        n = rms_norm(x, p[h + "post_attention_layernorm.weight"], m["eps"])
        gate, up = n @ p[h + "mlp.gate_proj.weight"].T, n @ p[h + "mlp.up_proj.weight"].T
        x = x + (torch.nn.functional.silu(gate) * up) @ p[h + "mlp.down_proj.weight"].T
        hidden.append(x)
    final = rms_norm(x, p["model.norm.weight"], m["eps"])
    head = p["model.embed_tokens.weight"] if m["tied"] else p["lm_head.weight"]
    return hidden, final, final @ head.T


def run(p, m, ids):
    return (gpt2 if m["family"] == "gpt2" else llama)(p, m, ids)


def step_loss(p, m, tokens):
    """The mean over micro-batches of the mean token loss; tokens [micros, batch, length + 1]."""
    losses = []
    for micro in tokens:
        logits = run(p, m, micro[:, :-1])[2]
        losses.append(torch.nn.functional.cross_entropy(logits.flatten(0, 1), micro[:, 1:].flatten()))
    return torch.stack(losses).mean()


def adamw_rate(n):
    if n <= 3:
        return 0.02 * n / 3
    return 0.002 + 0.018 * (math.cos(math.pi * (n - 3) / 7) + 1) / 2


def train(weights, m, tokens, kind):
    p = {name: w.to(torch.float64).requires_grad_() for name, w in weights.items()}
    decayed = [n for n in p if p[n].dim() > 1]
    other = [n for n in p if p[n].dim() == 1]
    groups = [{"params": [p[n] for n in decayed], "weight_decay": DECAY},
              {"params": [p[n] for n in other], "weight_decay": 0.0}]
    if kind == "adamw":
        optimizer = torch.optim.AdamW(groups, lr=1.0, betas=(0.9, 0.95), eps=1e-8)
        hyper = {"max_lr": 0.02, "min_lr": 0.002, "init_lr": 0.0, "warmup_steps": 3, "decay_steps": 10,
                 "decay_style": "cosine", "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": DECAY,
                 "clip_grad": CLIP}
    else:
        optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.9)
        hyper = {"lr": 0.05, "momentum": 0.9, "dampening": 0.0, "nesterov": False, "weight_decay": DECAY,
                 "clip_grad": CLIP}
    log = {"hyper": hyper, "decayed": decayed, "not_decayed": other, "loss": [], "grad_norm": [],
           "clip_coefficient": [], "lr": []}
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = step_loss(p, m, tokens[step])
        loss.backward()
        norm = math.sqrt(sum(float((t.grad ** 2).sum()) for t in p.values()))
        factor = CLIP / (norm + 1e-6)
        if factor < 1:
            for t in p.values():
                t.grad *= factor
        rate = adamw_rate(step) if kind == "adamw" else 0.05
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        for key, value in (("loss", float(loss)), ("grad_norm", norm), ("clip_coefficient", factor),
                           ("lr", rate)):
            log[key].append(value)
    log["loss_after_on_step_0"] = float(step_loss(p, m, tokens[0]))
    after = {name: t.detach() for name, t in p.items()}
    if kind == "sgd":
        log["after_sum"] = {n: float(t.sum()) for n, t in after.items()}
        log["after_sum_of_squares"] = {n: float((t * t).sum()) for n, t in after.items()}
        after = {n: t if t.dim() == 1 else t[:4].clone() for n, t in after.items()}
    return log, after


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def make(name, m, folder, seed):
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(seed)
    weights = draw_weights(m, generator)
    tokens = torch.randint(0, m["vocab"], (STEPS, MICROS, BATCH, m["length"] + 1), generator=generator)
    write_json(folder / "config.json", config_of(m))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    save_file({"tokens": tokens.to(torch.int32)}, folder / "tokens.safetensors")

    p = {n: w.to(torch.float64).requires_grad_() for n, w in weights.items()}
    hidden, final, logits = run(p, m, tokens[0, 0][:, :-1])
    forward = {f"hidden_{i}": h.detach().contiguous() for i, h in enumerate(hidden)}
    save_file(forward | {"final_norm": final.detach().contiguous(), "logits": logits.detach().contiguous()},
              folder / "forward.safetensors")
    step_loss(p, m, tokens[0]).backward()
    save_file({n: t.grad.contiguous() for n, t in p.items()}, folder / "grads.safetensors")

    logp = torch.log_softmax(logits, -1).gather(-1, tokens[0, 0][:, 1:, None])[..., 0].detach()
    write_json(folder / "score.json", {
        "sum_logprob": [float(r.sum()) for r in logp], "num_tokens": [len(r) for r in logp],
        "token_logprob": logp.tolist(), "mean_loss": float(-logp.mean())})
    for kind in ("adamw", "sgd"):
        log, after = train(weights, m, tokens, kind)
        write_json(folder / f"{kind}.json", log)
        save_file({n: t.contiguous() for n, t in after.items()}, folder / f"{kind}_after.safetensors")
    print(f"{name}: loss {log['loss'][0]:.4f}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.use_deterministic_algorithms(True)
    for index, (name, m) in enumerate(MODELS.items()):
        make(name, m, pathlib.Path(sys.argv[1]) / name, 1000 + index)


if __name__ == "__main__":
    main()
