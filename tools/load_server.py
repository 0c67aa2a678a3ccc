#!/usr/bin/env python3
"""Many clients at a time against a running `bevatron serve`.

    tools/load_server.py [--port 8000] [--clients 64] [--seconds 60] [--tokens 32] [--pid PID]

Every client sends one request after the other, each on a connection of its own: two of three as a stream, and one of
eight goes away in the middle. Prints requests and tokens per second, errors by kind, percentiles of the time of a
request and of its first token, and with --pid the resident memory of the server every ten seconds. Needs nothing but
Python. Exit status 1 when a request failed in another way than by being told to come later (429).
"""
import argparse
import asyncio
import collections
import json
import random
import sys
import time


class Results:
    def __init__(self):
        self.seconds, self.first = [], []
        self.tokens = self.left = 0
        self.errors = collections.Counter()


async def ask(options, results, draw):
    streams, leaves = draw.random() < 2 / 3, draw.random() < 1 / 8
    body = json.dumps({"prompt": draw.choice(["The", "A cat", "So"]), "max_tokens": options.tokens, "stream": streams,
                       "temperature": 1.0, **({"stream_options": {"include_usage": True}} if streams else {})}).encode()
    began = time.monotonic()
    reader, writer = await asyncio.open_connection(options.host, options.port)
    try:
        writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                     b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        reply = b""
        while piece := await reader.read(65536):
            if not reply:
                first = time.monotonic() - began
            reply += piece
            if leaves and b"data: " in reply:
                results.left += 1
                return
        if not reply:
            results.errors["no reply"] += 1
            return
        status = int(reply[9:12])
        if status != 200:
            results.errors[status] += 1
            if status == 429:
                await asyncio.sleep(0.2)
            return
        text = reply.decode(errors="replace")
        ends = "data: [DONE]" if streams else '"usage"'
        if ends not in text:
            results.errors["cut short"] += 1
            return
        results.tokens += int(text.rsplit('"completion_tokens":', 1)[1].split(",")[0].split("}")[0])
        results.seconds.append(time.monotonic() - began)
        if streams:
            results.first.append(first)
    finally:
        writer.close()


async def client(options, results, number, end):
    draw = random.Random(number)
    while time.monotonic() < end:
        try:
            await ask(options, results, draw)
        except OSError as error:
            results.errors[type(error).__name__] += 1
            await asyncio.sleep(0.1)


def resident_mib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


async def watch(options, results, began, end):
    while time.monotonic() < end:
        memory = f" | server {resident_mib(options.pid):.1f} MiB" if options.pid else ""
        print(f"{time.monotonic() - began:5.1f} s | requests {len(results.seconds)}{memory}", flush=True)
        await asyncio.sleep(max(0, min(10, end - time.monotonic())))


def percentiles(values):
    ordered = sorted(values)
    return " ".join(f"p{p} {1000 * ordered[min(len(ordered) - 1, len(ordered) * p // 100)]:.0f}" for p in (50, 90, 99))


async def run(options):
    results = Results()
    began = time.monotonic()
    end = began + options.seconds
    await asyncio.gather(watch(options, results, began, end),
                         *(client(options, results, i, end) for i in range(options.clients)))
    took = time.monotonic() - began
    done = len(results.seconds)
    if options.pid:
        print(f"{took:5.1f} s | requests {done} | server {resident_mib(options.pid):.1f} MiB")
    print(f"clients {options.clients} | requests/s {done / took:.1f} | tokens/s {results.tokens / took:.0f} | "
          f"left early {results.left} | errors {dict(results.errors) or 'none'}")
    if done and results.first:
        print(f"ms of a request: {percentiles(results.seconds)} | of the first token: {percentiles(results.first)}")
    return 1 if set(results.errors) - {429} or not done else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--pid", type=int)
    return asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
