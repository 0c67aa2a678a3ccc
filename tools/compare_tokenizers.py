#!/usr/bin/env python3
"""Measures Bevatron's tokenizers against those of others, in one run on one machine.

    tools/compare_tokenizers.py train  [--bevatron PROGRAM] [--vocab 8192] [--repeat 3] TEXT ...
    tools/compare_tokenizers.py encode [--vocab-file V --merge-file M] [--repeat 3] TEXT ...
    tools/compare_tokenizers.py preprocess [--vocab-file V --merge-file M] [--repeat 3] TEXT ...

train: a byte-level BPE vocabulary, against tokenizers' BpeTrainer; also says whether both made the same merges.
encode: GPT-2's ids of each text whole and by line, of its first MB alone, and of inputs that are hard to merge,
against tiktoken and tokenizers. preprocess: jsonl to token files with two workers, against Hugging Face's
GPT2TokenizerFast in a pool of processes that encodes one document at a time.

Every timing is a process of its own. Programs take turns, and medians are printed: on a machine that does other
things, too, the turns see the same weather. Needs Python packages tokenizers, tiktoken, transformers and numpy.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

THREADS = 2
ME = [sys.executable, str(Path(__file__).resolve())]


def run(command, **more):
    """What a process prints last as JSON, and its wall-clock seconds."""
    environment = {**os.environ, "RAYON_NUM_THREADS": str(THREADS), "TOKENIZERS_PARALLELISM": "true"}
    start = time.monotonic()
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, **more)
    seconds = time.monotonic() - start
    lines = [line for line in done.stdout.splitlines() if line.startswith(("{", "["))]
    return (json.loads(lines[-1]) if lines else {}), seconds


def compare(title, programs, repeat, unit_bytes=None):
    """Runs {name: function that gives seconds} in turns; prints medians, the first program being ours."""
    seconds = {name: [] for name in programs}
    for _ in range(repeat):
        for name, measure in programs.items():
            seconds[name].append(measure())
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    ours = next(iter(medians))
    print(f"{title}")
    for name, median in medians.items():
        speed = f"{unit_bytes / 1e6 / median:8.1f} MB/s" if unit_bytes else ""
        share = "" if name == ours else f"   {median / medians[ours]:5.2f} times ours"
        print(f"  {name:<34}{median:9.3f} s {speed} (of {repeat}: {min(seconds[name]):.3f} to"
              f" {max(seconds[name]):.3f}){share}", flush=True)
    return medians


# --- Training. ---

def their_training(text, vocab, out):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=vocab, min_frequency=2, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    start = time.monotonic()
    tokenizer.train([text], trainer)
    seconds = time.monotonic() - start
    tokenizer.save(out)
    print(json.dumps({"seconds": seconds}))


def merges_of(path):
    merges = json.loads(Path(path).read_text(encoding="utf-8"))["model"]["merges"]
    return [tuple(each.split(" ")) if isinstance(each, str) else tuple(each) for each in merges]


def train(options):
    for text in options.texts:
        size = os.path.getsize(text)
        with tempfile.TemporaryDirectory() as folder:
            def ours():
                # One special token behind all others, which theirs is not asked for.
                return run([options.bevatron, "tokenizer", "train", "--vocab-size", str(options.vocab + 1),
                            "--threads", str(THREADS), "--output", folder + "/ours", text])[1]

            def theirs():
                return run(ME + ["their-training", text, str(options.vocab), folder + "/theirs.json"])[0]["seconds"]

            compare(f"{text}: {size / 1e6:.0f} MB, vocabulary {options.vocab}, {THREADS} threads",
                    {"bevatron (whole process)": ours, "tokenizers BpeTrainer (train alone)": theirs},
                    options.repeat, size)
            same = merges_of(folder + "/ours/tokenizer.json") == merges_of(folder + "/theirs.json")
            print(f"  the merges are {'the same' if same else 'DIFFERENT'}\n", flush=True)


# --- Encoding. ---

def hard_inputs(folder):
    """Inputs whose pieces are long, or never seen before."""
    draw = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    inputs = {
        "random bytes, 4 MB": draw.randbytes(4_000_000).decode("utf-8", errors="replace"),
        "one word of 10 MB": "".join(draw.choices(letters, k=10_000_000)),
        "one letter 1 MB long": "a" * 1_000_000,
        "random words, 20 MB": " ".join("".join(draw.choices(letters, k=draw.randint(2, 12)))
                                       for _ in range(2_500_000)),
    }
    for name, text in inputs.items():
        path = Path(folder) / (name.replace(" ", "_").replace(",", "") + ".txt")
        path.write_text(text, encoding="utf-8", newline="")
        yield name, path


def their_encoding(program, text, by_line, vocab, merges):
    with open(text, encoding="utf-8", newline="") as file:
        content = file.read()
    documents = [line for line in content.split("\n") if line] if by_line else [content]
    if program == "tiktoken":
        import tiktoken
        encoding = tiktoken.Encoding(
            "gpt2", special_tokens={"<|endoftext|>": 50256}, mergeable_ranks=gpt2_ranks(vocab),
            pat_str=r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""")
        start = time.monotonic()
        tokens = sum(len(encoding.encode_to_numpy(each, disallowed_special=())) for each in documents)
    else:
        from tokenizers import ByteLevelBPETokenizer
        encoding = ByteLevelBPETokenizer(vocab, merges)
        start = time.monotonic()
        if by_line:
            tokens = sum(len(each.ids) for each in encoding.encode_batch(documents))
        else:
            tokens = sum(len(encoding.encode(each).ids) for each in documents)
    print(json.dumps({"seconds": time.monotonic() - start, "tokens": tokens}))


def gpt2_ranks(vocab):
    """Token bytes to ids, in the order of vocab.json without the special token."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    byte_of = {chr(byte): byte for byte in kept}
    byte_of.update({chr(256 + i): byte for i, byte in enumerate(b for b in range(256) if b not in kept)})
    names = json.loads(Path(vocab).read_text(encoding="utf-8"))
    return {bytes(byte_of[c] for c in name): i for name, i in names.items() if i < 50256}


def gpt2_flags(options):
    return ["--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", options.vocab_file,
            "--merge-file", options.merge_file]


def compare_encoding(title, path, by_line, options, threads_note=""):
    counts = {}

    def ours():
        answer, _ = run([options.bevatron, "tokenize", *gpt2_flags(options), "--compat", "classic", "--format", "count",
                         "--time", "--documents", "line" if by_line else "file", str(path)])
        counts["ours"] = answer["tokens"]
        return answer["seconds"]

    def theirs(program):
        def measure():
            answer, _ = run(ME + ["their-encoding", program, str(path), str(int(by_line)), options.vocab_file,
                                  options.merge_file])
            counts[program] = answer["tokens"]
            return answer["seconds"]
        return measure

    compare(title, {"bevatron (1 thread)": ours, "tiktoken encode_to_numpy": theirs("tiktoken"),
                    "tokenizers (2 threads by line)" if by_line else "tokenizers": theirs("tokenizers")},
            options.repeat, os.path.getsize(path))
    print(f"  tokens: {counts if len(set(counts.values())) > 1 else counts['ours']}\n", flush=True)


def encode(options):
    with tempfile.TemporaryDirectory() as folder:
        for text in options.texts:
            big = repeated(text, options.megabytes, folder)
            compare_encoding(f"{text}, {options.megabytes} MB whole", big, False, options)
            compare_encoding(f"{text}, {options.megabytes} MB by line", big, True, options)
            first = Path(folder) / "first.txt"
            first.write_text(Path(text).read_text(encoding="utf-8")[:1_000_000], encoding="utf-8")
            compare_encoding(f"{text}, the first MB, cold", first, False, options)
        for name, path in hard_inputs(folder):
            compare_encoding(name, path, False, options)


def repeated(text, megabytes, folder):
    content = Path(text).read_bytes()
    path = Path(folder) / "repeated.txt"
    path.write_bytes(content * (megabytes * 1_000_000 // len(content) + 1))
    return path


# --- Preprocessing. ---

ENCODER = None


def start_worker(vocab, merges):
    global ENCODER
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from transformers import GPT2TokenizerFast
    ENCODER = GPT2TokenizerFast(vocab, merges)


def encode_document(line):
    return ENCODER(json.loads(line)["text"])["input_ids"] + [50256]


def their_preprocessing(source, prefix, vocab, merges):
    """What Megatron-LM's preprocess_data.py does: a pool of workers, documents one by one, ids to one file."""
    import multiprocessing

    import numpy
    lengths = []
    with multiprocessing.Pool(THREADS, start_worker, (vocab, merges)) as pool, open(source, encoding="utf-8") as lines, \
            open(prefix + ".bin", "wb") as out:
        for ids in pool.imap(encode_document, lines, 32):
            out.write(numpy.array(ids, dtype=numpy.uint16).tobytes())
            lengths.append(len(ids))
    numpy.array(lengths, dtype=numpy.int32).tofile(prefix + ".lengths")
    print(json.dumps({"tokens": sum(lengths)}))


def preprocess(options):
    with tempfile.TemporaryDirectory() as folder:
        for text in options.texts:
            source = Path(folder) / "input.jsonl"
            written = 0
            lines = [line for line in Path(text).read_text(encoding="utf-8").split("\n") if line.strip()]
            with open(source, "w", encoding="utf-8") as out:
                while written < options.megabytes * 1_000_000:
                    for line in lines:
                        written += out.write(json.dumps({"text": line}) + "\n")

            def ours():
                return run([options.bevatron, "preprocess", "--input", str(source), "--output-prefix", folder + "/ours",
                            *gpt2_flags(options), "--append-eod", "--workers", str(THREADS)])[1]

            def theirs():
                return run(ME + ["their-preprocessing", str(source), folder + "/theirs", options.vocab_file,
                                 options.merge_file])[1]

            compare(f"{text}: {os.path.getsize(source) / 1e6:.0f} MB of jsonl, {THREADS} workers, whole processes",
                    {"bevatron preprocess": ours, "GPT2TokenizerFast in a pool": theirs}, options.repeat,
                    os.path.getsize(source))
            sizes = [name for name in os.listdir(folder) if name.startswith("ours") and name.endswith(".bin")]
            same = Path(folder, sizes[0]).read_bytes() == Path(folder, "theirs.bin").read_bytes()
            print(f"  the ids are {'the same' if same else 'DIFFERENT'}\n", flush=True)


def main():
    inner = {"their-training": lambda text, vocab, out: their_training(text, int(vocab), out),
             "their-encoding": lambda program, text, by_line, *files: their_encoding(program, text, by_line == "1",
                                                                                    *files),
             "their-preprocessing": their_preprocessing}
    if len(sys.argv) > 1 and sys.argv[1] in inner:
        inner[sys.argv[1]](*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["train", "encode", "preprocess"])
    parser.add_argument("texts", nargs="+", metavar="TEXT")
    parser.add_argument("--bevatron", default="build/bevatron")
    parser.add_argument("--vocab", type=int, default=8192, help="train: tokens, special ones not counted")
    parser.add_argument("--vocab-file", default="vocab.json")
    parser.add_argument("--merge-file", default="merges.txt")
    parser.add_argument("--megabytes", type=int, default=100, help="texts are repeated to this size")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    {"train": train, "encode": encode, "preprocess": preprocess}[options.what](options)


if __name__ == "__main__":
    main()
