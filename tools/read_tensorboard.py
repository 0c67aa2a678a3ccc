#!/usr/bin/env python3
"""Reads event files with TensorBoard's own code and says what is in them.

    tools/read_tensorboard.py FOLDER [--compare RUN/metrics.jsonl] [--loader python|server|fast]

Needs the package: python3 -m venv /opt/tb && /opt/tb/bin/pip install tensorboard

Prints for every tag how many points there are, the first and the last of them. Three loaders of the
package can read: `python` (EventAccumulator, which scripts use), `server` (that of TensorBoard's
server without its fast loader) and `fast` (the fast loader, which the server uses where it can).
--compare looks up every point in metrics.jsonl, with the rounding of a float, and exits with 1 when
one differs, is missing there, or is missing here (with an interval of 1).
"""

import argparse
import json
import math
import struct
import sys
import time

SUFFIX = " vs samples"


def by_python(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    loaded = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0}).Reload()
    tags = loaded.Tags()
    texts = {tag: loaded.Tensors(tag)[-1].tensor_proto.string_val[0].decode() for tag in tags["tensors"]}
    return {tag: [(e.step, e.value) for e in loaded.Scalars(tag)] for tag in tags["scalars"]}, texts


def by_server(folder):
    from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
    from tensorboard.util import tensor_util

    loaded = EventAccumulator(folder, size_guidance={"tensors": 0}).Reload()
    curves, texts = {}, {}
    for tag in loaded.Tags()["tensors"]:
        values = [(e.step, tensor_util.make_ndarray(e.tensor_proto)) for e in loaded.Tensors(tag)]
        if loaded.SummaryMetadata(tag).plugin_data.plugin_name == "text":
            texts[tag] = values[-1][1].item().decode()
        else:
            curves[tag] = [(step, value.item()) for step, value in values]
    return curves, texts


def by_fast(folder):
    from tensorboard import context
    from tensorboard.data import server_ingester
    from tensorboard.util import grpc_util

    many = {"scalars": 0, "text": 0}
    server = server_ingester.SubprocessServerDataIngester(
        server_ingester.get_server_binary(), folder, reload_interval=0,
        channel_creds_type=grpc_util.ChannelCredsType.LOCAL, samples_per_plugin=many)
    server.start()
    asked = dict(experiment_id="", downsample=10**9)
    seen = None
    while True:  # it loads in the background, until the answer stays the same
        curves = server.data_provider.read_scalars(context.RequestContext(), plugin_name="scalars", **asked).get(".", {})
        curves = {tag: [(p.step, p.value) for p in points] for tag, points in curves.items()}
        if curves and repr(curves) == seen:
            break
        seen = repr(curves)
        time.sleep(0.5)
    texts = server.data_provider.read_tensors(context.RequestContext(), plugin_name="text", **asked).get(".", {})
    return curves, {tag: points[-1].numpy.item().decode() for tag, points in texts.items()}


def as_float(value):
    """What a float keeps of a number."""
    return math.nan if value is None else struct.unpack("f", struct.pack("f", value))[0]


def expected(path):
    """Curves as metrics.jsonl has them: the last word on each iteration, and nothing behind a restart."""
    iterations, held = {}, {"validation": {}, "test": {}}
    with open(path, encoding="utf-8") as file:
        for line in file:
            entry = json.loads(line)
            if entry["event"] == "iteration":
                iterations[entry["iteration"]] = entry
            elif entry["event"] in held:
                held[entry["event"]][entry["iteration"]] = entry["lm_loss"]
    curves = {}

    def add(tag, i, value, on_samples=True):
        curves.setdefault(tag, {})[i] = as_float(value)
        if on_samples and i in iterations:
            curves.setdefault(tag + SUFFIX, {})[iterations[i]["consumed_samples"]] = as_float(value)

    for i, entry in iterations.items():
        add("batch-size", i, entry["global_batch"])
        add("lm loss", i, entry["lm_loss"])
        add("loss-scale", i, entry["loss_scale"])
        if entry["grad_norm"] is not None:
            add("grad-norm", i, entry["grad_norm"])
        add("iteration-time", i, entry["seconds"], False)
        add("throughput", i, entry["tokens_per_second"], False)
        if i + 1 in iterations:  # the rate after the update, which is that of the next one
            add("learning-rate", i, iterations[i + 1]["learning_rate"])
    for split, losses in held.items():
        for i, loss in losses.items():
            add(f"lm loss {split}", i, loss)
            add(f"lm loss {split} ppl", i, None if loss is None else math.exp(min(20, loss)))
    return curves, iterations


def is_same(a, b):
    if math.isnan(a) or math.isnan(b):
        return not math.isfinite(a) and not math.isfinite(b)  # JSON has one word for all of them
    return abs(a - b) <= 2e-7 * abs(b)


def compare(curves, path):
    wanted, iterations = expected(path)
    faults, compared = [], 0
    for tag, points in sorted(curves.items()):
        base = tag.removesuffix(SUFFIX)
        if base in ("world-size", "skipped-iterations"):
            continue
        if len({x for x, _ in points}) < len(points) or points != sorted(points, key=lambda p: p[0]):
            faults.append(f"{tag}: goes back or has two points at one x")
        for x, y in points:
            there = wanted.get(tag, {}).get(x)
            if there is None:
                # The last rate is that of an iteration that is still to come.
                if base == "learning-rate" and x in (max(iterations), iterations[max(iterations)]["consumed_samples"]):
                    continue
                faults.append(f"{tag}: metrics.jsonl has nothing at {x}")
            elif not is_same(y, there):
                faults.append(f"{tag}: {y!r} at {x}, metrics.jsonl has {there!r}")
            compared += 1
    if len(curves.get("world-size", [])) >= len(iterations):
        for tag, points in sorted(wanted.items()):
            missing = points.keys() - {x for x, _ in curves.get(tag, [])}
            if missing:
                faults.append(f"{tag}: no point at {sorted(missing)[:5]}")
    for fault in faults[:20]:
        print(f"differs: {fault}")
    print(f"compared {compared} points with {path}: {len(faults)} differences")
    return bool(faults) or compared == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--compare", metavar="METRICS")
    parser.add_argument("--loader", choices=("python", "server", "fast"), default="python")
    arguments = parser.parse_args()
    curves, texts = {"python": by_python, "server": by_server, "fast": by_fast}[arguments.loader](arguments.folder)
    for tag, text in sorted(texts.items()):
        print(f"{tag}: text of {len(text.splitlines())} lines")
    for tag, points in sorted(curves.items()):
        (x0, y0), (x1, y1) = points[0], points[-1]
        print(f"{tag:36} {len(points):6} points  {x0:8} {y0:<14.7g} ... {x1:8} {y1:.7g}")
    return compare(curves, arguments.compare) if arguments.compare else 0


if __name__ == "__main__":
    sys.exit(main())
