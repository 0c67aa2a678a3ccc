#!/usr/bin/env python3
"""Loss curves of several runs as one SVG, for the documents.

    tools/plot_losses.py OUT.svg NAME=RUN/metrics.jsonl ...

The upper part shows the losses; the lower part the difference of each run to the first, in nats.
"""

import json
import sys

WIDTH, UPPER, LOWER, LEFT, RIGHT, TOP, GAP, BOTTOM = 860, 300, 150, 62, 130, 16, 34, 40
COLOURS = ["#1f4e9c", "#c44e1d", "#2c8a3d", "#7a3b9c"]


def losses(path):
    steps = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            entry = json.loads(line)
            if entry.get("event") == "iteration" and entry["lm_loss"] is not None and entry.get("applied", True):
                steps[entry["iteration"]] = entry["lm_loss"]
    return steps


def smooth(steps, width=1):
    return {i: sum(steps.get(j, steps[i]) for j in range(i - width, i + width + 1)) / (2 * width + 1) for i in steps}


class Panel:
    def __init__(self, top, height, last, low, high):
        self.top, self.height, self.last, self.low, self.high = top, height, last, low, high

    def x(self, step):
        return LEFT + (WIDTH - LEFT - RIGHT) * step / self.last

    def y(self, value):
        value = min(max(value, self.low), self.high)
        return self.top + self.height * (self.high - value) / (self.high - self.low)

    def frame(self, ticks, label):
        parts = [f'<rect x="{LEFT}" y="{self.top}" width="{WIDTH - LEFT - RIGHT}" height="{self.height}" '
                 'fill="none" stroke="#888"/>']
        for tick in ticks:
            parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{self.y(tick):.1f}" y2="{self.y(tick):.1f}" '
                         'stroke="#ddd"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{self.y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
        parts.append(f'<text x="14" y="{self.top + self.height / 2}" text-anchor="middle" '
                     f'transform="rotate(-90 14 {self.top + self.height / 2})">{label}</text>')
        return parts

    def line(self, steps, colour):
        points = " ".join(f"{self.x(i):.1f},{self.y(v):.1f}" for i, v in sorted(steps.items()))
        return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.4"/>'


def main(out, runs):
    named = [(name, losses(path)) for name, path in (run.split("=", 1) for run in runs)]
    last = max(max(steps) for _, steps in named)
    values = [v for _, steps in named for v in steps.values()]
    low, high = min(values), max(values)
    upper = Panel(TOP, UPPER, last, int(low), int(high) + 1)
    first = named[0][1]
    differences = [(name, smooth({i: v - first[i] for i, v in steps.items() if i in first}, 2))
                   for name, steps in named[1:]]
    reach = max([0.02] + [abs(v) for _, steps in differences for i, v in steps.items() if i > 20])
    reach = round(1.2 * reach, 3)
    lower = Panel(TOP + UPPER + GAP, LOWER, last, -reach, reach)
    height = TOP + UPPER + GAP + LOWER + BOTTOM
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
             'font-family="sans-serif" font-size="12">', f'<rect width="{WIDTH}" height="{height}" fill="white"/>']
    parts += upper.frame(range(upper.low, upper.high + 1), "loss, nats per token")
    parts += lower.frame([-reach, -reach / 2, 0, reach / 2, reach], f"minus {named[0][0]}")
    for index, (name, steps) in enumerate(named):
        colour = COLOURS[index % len(COLOURS)]
        parts.append(upper.line(steps, colour))
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 16 + 18 * index}" fill="{colour}">{name}</text>')
        if index > 0:
            parts.append(lower.line(differences[index - 1][1], colour))
    for step in range(0, last + 1, max(1, last // 6)):
        parts.append(f'<text x="{lower.x(step):.1f}" y="{height - 22}" text-anchor="middle">{step}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{height - 6}" text-anchor="middle">iteration</text>')
    parts.append("</svg>")
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(parts) + "\n")
    for name, steps in differences:
        tail = [abs(v) for i, v in steps.items() if i > 20]
        print(f"{name} - {named[0][0]}: at most {max(tail):.4f} nats after iteration 20 (mean of 5), "
              f"{tail[-1]:.4f} at the end")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
