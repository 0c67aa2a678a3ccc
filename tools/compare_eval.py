#!/usr/bin/env python3
"""Compares `bevatron eval` with transformers in float64: two random models, every task.

    tools/compare_eval.py --tokenizer DIR --text FILE [--bevatron build/bevatron] [--words 1000]
                          [--ranks 2x2] [--folder DIR]

DIR has vocab.json and merges.txt of GPT-2, FILE is a corpus of WikiText, whose first words are used.
Needs torch, transformers and tokenizers; nothing else in the project needs Python. A GPT-2 and a Llama,
each of two layers with random weights, are stored in Hugging Face's format. transformers computes every
loss in float64 by the rules of docs/evaluation.md, written down here once more; bevatron does so on its
reference device, and once more on several ranks. What differs by more than 1e-9, relative, is an error.
"""
import argparse
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tokenizers
import torch
import transformers
from transformers.models.llama import modeling_llama

BOUND = 1e-9
LENGTH, STRIDE, OVERLAP, EOD = 256, 32, 128, 50256


# ------------------------------------------------------------------------------------------ models

def exact_norm(self, x):
    scale = (x * x).mean(dim=-1, keepdim=True) + self.variance_epsilon
    return x / scale.sqrt() * self.weight


def exact_rotation(self, x, position_ids):
    dim = self.config.hidden_size // self.config.num_attention_heads
    theta = self.config.rope_parameters["rope_theta"]
    exponents = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    angles = position_ids.double().unsqueeze(-1) / theta ** exponents
    angles = angles.repeat(1, 1, 2)
    return torch.cos(angles), torch.sin(angles)


def exact_attention(module, query, key, value, attention_mask, scaling, dropout=0.0, **kwargs):
    groups = module.num_key_value_groups
    keys, values = (t.repeat_interleave(groups, dim=1) for t in (key, value))
    scores = torch.einsum("bhqd,bhkd->bhqk", query, keys) * scaling
    length = scores.shape[-1]
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    chances = scores.masked_fill(later, -math.inf).softmax(dim=-1)
    return torch.einsum("bhqk,bhkd->bqhd", chances, values).contiguous(), chances


def use_float64_in_llama():
    """transformers rounds these three to float32 in every model."""
    modeling_llama.LlamaRMSNorm.forward = exact_norm
    modeling_llama.LlamaRotaryEmbedding.forward = exact_rotation
    modeling_llama.eager_attention_forward = exact_attention


def make_model(kind, folder, tokenizer):
    torch.manual_seed(20240 + len(kind))
    shape = dict(vocab_size=50257, bos_token_id=None, eos_token_id=None)
    if kind == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_positions=LENGTH, n_embd=32, n_layer=2, n_head=4, **shape))
    else:
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            hidden_size=32, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=LENGTH, tie_word_embeddings=False, **shape))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.2)
            else:
                parameter.add_(torch.randn_like(parameter) / 10)
    model.save_pretrained(folder)
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(tokenizer / name, folder / name)
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float64, attn_implementation="eager").eval()


@torch.no_grad()
def scores_of(model, ids, first):
    """(loss, is the likeliest) of ids[first:], each from all before it."""
    logits = model(torch.tensor([ids[:-1]])).logits[0, first - 1:]
    assert logits.dtype == torch.float64
    chosen = logits.argmax(dim=-1).tolist()
    losses = torch.logsumexp(logits, dim=-1) - logits.gather(
        1, torch.tensor(ids[first:]).unsqueeze(1)).squeeze(1)
    return [(loss, chosen[i] == ids[first + i]) for i, loss in enumerate(losses.tolist())]


def windows_of(ids, length, overlap):
    """(where the first scored id stands, ids, first) of windows, each id but the first scored once."""
    begin, first = 0, 1
    while begin + first < len(ids):
        yield begin + first, ids[begin:begin + length + 1], first
        begin, first = begin + length - overlap, overlap + 1


# ------------------------------------------------------------------------------------------- tasks

def plain_wikitext(text):
    text = text.replace("s '", "s'")
    text = re.sub(r"/' [0-9]/", "/'[0-9]/", text)
    for mark in "-,.":
        text = text.replace(f" @{mark}@ ", mark)
    for mark in ":;.!?,":
        text = text.replace(f" {mark} ", mark + " ")
    for opening, closing in ("()", "[]", "{}", '""', "''"):
        o, c = re.escape(opening), re.escape(closing)
        text = re.sub(f"{o}([^{c}]*){c}", lambda m: opening + m.group(1).strip() + closing, text)
    for count in (4, 3, 2):
        text = text.replace(" ".join("=" * count), "=" * count)
    for before, after in ((" \u00b0 ", "\u00b0"), (" \n", "\n"), ("\n ", "\n"), (" N ", " 1 "), (" 's", "'s")):
        text = text.replace(before, after)
    return text


def expected_wikitext(model, encode, text):
    ids = encode(plain_wikitext(text))
    nats = sum(s[0] for _, part, first in windows_of(ids, LENGTH, LENGTH - STRIDE)
               for s in scores_of(model, part, first))
    words = len(text.strip().split(" "))
    loss, ratio = nats / (len(ids) - 1), (len(ids) - 1) / (words - 1)
    return dict(tokens=len(ids) - 1, nats=nats, loss=loss, perplexity=math.exp(min(20, loss)),
                word_perplexity=math.exp(min(20, loss * ratio)), token_ratio=ratio)


def expected_documents(model, encode, text):
    documents = [line for line in text.split("\n") if line.strip()]
    stream, owner = [EOD], [-1]
    for number, document in enumerate(documents):
        ids = encode(document) + [EOD]
        stream += ids
        owner += [number] * len(ids)
    nats = [0.0] * len(documents)
    for place, part, first in windows_of(stream, LENGTH, OVERLAP):
        for i, (loss, _) in enumerate(scores_of(model, part, first)):
            nats[owner[place + i]] += loss
    return nats, len(stream) - 1, sum(len(d.encode()) for d in documents), sum(len(d.split()) for d in documents)


def make_passages(model, encode, decode, text):
    """Half end with the word that the model finds the likeliest, where it is one, half as the text does."""
    words, passages = plain_wikitext(text).split(), []
    for begin in range(0, len(words) - 40, 40):
        context = " ".join(words[begin:begin + 30])
        ids = encode(context)
        with torch.no_grad():
            word = decode([int(model(torch.tensor([ids])).logits[0, -1].argmax())])
        is_word = re.fullmatch(" [A-Za-z]+", word) and encode(context + word) == ids + encode(word)
        passages.append(context + (word if is_word and len(passages) % 2 == 0 else " " + words[begin + 30]))
    return passages


def scores_of_ending(model, encode, context, ending):
    """Of the tokens behind those that the context alone begins with too."""
    ids, alone = encode(context + ending), encode(context)
    first = 0
    while first < min(len(ids), len(alone)) and ids[first] == alone[first]:
        first += 1
    return scores_of(model, ids, first)


def expected_passage(model, encode, passage, strict):
    if strict:
        word = passage.split()[-1]
        scores = scores_of_ending(model, encode, passage[:passage.rindex(word)].strip(), " " + word)
    else:
        ids = encode(passage)
        scores = scores_of(model, ids, len(ids) - 1)
    return sum(s[0] for s in scores), all(s[1] for s in scores)


def make_questions(text):
    words = plain_wikitext(text).split()
    return [{"ctx": " ".join(words[b:b + 12]), "label": b // 20 % 3,
             "endings": [" ".join(words[b + 12 + 2 * e:b + 14 + 4 * e]) for e in range(3)]}
            for b in range(0, min(len(words) - 40, 400), 20)]


def expected_endings(model, encode, question):
    return [sum(s[0] for s in scores_of_ending(model, encode, question["ctx"].strip(), " " + ending))
            for ending in question["endings"]]


# -------------------------------------------------------------------------------------- comparison

class Comparison:
    def __init__(self, bevatron, folder, model):
        self.bevatron, self.folder, self.model = bevatron, folder, model
        self.is_good = True

    def run(self, *flags):
        scores = self.folder / "scores.jsonl"
        command = [self.bevatron, "eval", str(self.folder / self.model), "--device", "reference", "--json",
                   "--length", str(LENGTH), "--scores", str(scores), *map(str, flags)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout), [json.loads(line) for line in scores.read_text().splitlines()]

    def check(self, what, got, expected):
        assert len(got) == len(expected), f"{what}: {len(got)} numbers, {len(expected)} expected"
        worst = max(abs(g - e) / max(abs(e), 1e-300) for g, e in zip(got, expected))
        good = worst <= BOUND
        self.is_good &= good
        print(f"{self.model:6} {what:58} {len(got):5} numbers, worst {worst:.1e}{'' if good else '  DIFFERS'}")


def compare(args, kind, folder, encode, decode):
    model = make_model(kind, folder / kind, args.tokenizer)
    words = args.text.read_text(encoding="utf-8").split(" ")[:args.words]
    text = " ".join(words)
    c = Comparison(args.bevatron, folder, kind)
    corpus = folder / "wikitext.txt"
    corpus.write_text(text, encoding="utf-8")
    tensor, pipeline = args.ranks.split("x")
    ranks = ("--tensor", tensor, "--pipeline", pipeline)

    expected = expected_wikitext(model, encode, text)
    for name, more in (("one rank", ()), (f"{args.ranks} ranks", ranks)):
        found, _ = c.run("--task", "wikitext", "--text", corpus, "--overlapping-eval", STRIDE, *more)
        c.check(f"wikitext, {name}: {', '.join(expected)}", [found[key] for key in expected],
                list(expected.values()))
        print(found["megatron"])

    nats, tokens, size, count = expected_documents(model, encode, text)
    found, scores = c.run("--text", corpus, "--overlap", OVERLAP, "--batch", 3)
    c.check("perplexity: nats of documents", [s["nats"] for s in scores], nats)
    c.check("perplexity: tokens, by token, word and byte",
            [found[k] for k in ("tokens", "loss", "word_perplexity", "bits_per_byte")],
            [tokens, sum(nats) / tokens, math.exp(sum(nats) / count), sum(nats) / size / math.log(2)])

    passages = make_passages(model, encode, decode, text)
    lines = folder / "lambada.jsonl"
    lines.write_text("".join(json.dumps({"text": p}) + "\n" for p in passages))
    for strict in (False, True):
        found, scores = c.run("--task", "lambada", "--text", lines, *(["--strict-lambada"] if strict else []))
        golden = [expected_passage(model, encode, p, strict) for p in passages]
        name = "lambada, strict" if strict else "lambada"
        c.check(f"{name}: nats of last words", [s["nats"] for s in scores], [g[0] for g in golden])
        c.check(f"{name}: which of them are foreseen", [1 + s["correct"] for s in scores], [1 + g[1] for g in golden])
        print(found["megatron"])

    questions = make_questions(text)
    lines = folder / "choice.jsonl"
    lines.write_text("".join(json.dumps(q) + "\n" for q in questions))
    _, scores = c.run("--task", "choice", "--text", lines)
    c.check("choice: nats of endings", [n for s in scores for n in s["nats"]],
            [n for q in questions for n in expected_endings(model, encode, q)])
    return c.is_good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True)
    parser.add_argument("--text", type=pathlib.Path, required=True)
    parser.add_argument("--bevatron", default="build/bevatron")
    parser.add_argument("--words", type=int, default=1000)
    parser.add_argument("--ranks", default="2x2", help="tensor x pipeline")
    parser.add_argument("--folder", type=pathlib.Path)
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    use_float64_in_llama()
    bpe = tokenizers.ByteLevelBPETokenizer(str(args.tokenizer / "vocab.json"), str(args.tokenizer / "merges.txt"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        good = [compare(args, kind, folder, lambda text: bpe.encode(text).ids, bpe.decode)
                for kind in ("gpt2", "llama")]
    print("all agree" if all(good) else "NOT ALL AGREE")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
