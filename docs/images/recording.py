"""A short recording of the command line, as an animated SVG made of what it really printed.

    python docs/images/recording.py

Writes ``docs/images/recording.svg``: breast cancer data with a tenth of the labels flipped, the
wrong labels looked for, a model, its answers to rows with clean labels, and its card.
"""

from __future__ import annotations

import csv
import html
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

OUT = Path(__file__).with_name("recording.svg")
COLUMNS, LINE, LEFT, TOP = 96, 18, 14, 40
# Seconds between lines of output, and before the next command.
PACE, PAUSE = 0.12, 1.2
COMMANDS = (
    "buttress suspects tumours.csv --target diagnosis --out suspects.csv",
    "cut -d, -f1-4 suspects.csv | head -6",
    "buttress fit tumours.csv --target diagnosis --model leaky --out model.skops",
    "buttress predict model.skops new.csv --out answers.csv",
    "buttress card model.skops --data new.csv --intended 'Second opinion.' --out CARD.md",
)
MOST = 14


def write_tables(folder: Path) -> int:
    """Training rows with flipped labels, new rows without; how many were flipped."""
    data = load_breast_cancer()
    names = [name.replace(" ", "_") for name in data.feature_names]
    labels = data.target_names[data.target].copy()
    rng = np.random.default_rng(0)
    order = rng.permutation(len(labels))
    train, new = order[:400], order[400:]
    flipped = train[:40]
    labels[flipped] = np.where(labels[flipped] == "benign", "malignant", "benign")
    for file, rows in (("tumours.csv", np.sort(train)), ("new.csv", new)):
        with open(folder / file, "w", newline="") as opened:
            writer = csv.writer(opened)
            writer.writerow([*names, "diagnosis"])
            writer.writerows([*map(repr, data.data[i].tolist()), labels[i]] for i in rows)
    return len(flipped)


def run(command: str, folder: Path) -> list[str]:
    """What a command prints."""
    # "buttress" is this interpreter's, whatever is on the path
    line = command.replace("buttress ", f"{sys.executable} -m buttress ", 1)
    environment = os.environ | {"COLUMNS": str(COLUMNS), "NO_COLOR": "1"}
    done = subprocess.run(
        line, shell=True, cwd=folder, capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    lines = (done.stdout + done.stderr).rstrip().splitlines()
    # said on a first run only, at different places
    lines = [line for line in lines if not line.startswith("compiling")]
    if len(lines) > MOST:
        lines = [*lines[: MOST - 2], "…", lines[-1]]
    return [part for line in lines for part in textwrap.wrap(line, COLUMNS) or [""]]


def draw(screen: list[tuple[float, str, bool]]) -> str:
    """Lines that appear at their times, and stay."""
    height = TOP + LINE * len(screen) + 14
    width = LEFT * 2 + round(8.05 * COLUMNS)
    end = screen[-1][0] + 6.0
    rows = []
    for number, (when, text, typed) in enumerate(screen):
        kind = "command" if typed else "output"
        delay = f"animation-delay:{when:.2f}s"
        rows.append(
            f'<text class="{kind}" style="{delay}" x="{LEFT}" y="{TOP + LINE * (number + 1)}" '
            f'xml:space="preserve">{html.escape(text)}</text>'
        )
    style = (
        "text{font:13.4px ui-monospace,Menlo,Consolas,monospace;opacity:0;"
        "animation:show .01s linear forwards}"
        ".output{fill:#c9d1d9}.command{fill:#7ee787;font-weight:600}"
        "@keyframes show{to{opacity:1}}"
        "@media (prefers-reduced-motion:reduce){text{animation:none;opacity:1}}"
    )
    dots = "".join(
        f'<circle cx="{18 + 18 * k}" cy="18" r="5.5" fill="{colour}"/>'
        for k, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="A terminal: buttress suspects, fit and card">'
        f"<title>buttress suspects, fit and card, {end:.0f} seconds</title><style>{style}</style>"
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>{dots}'
        f"{''.join(rows)}</svg>\n"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        clock, screen = 0.4, []
        for command in COMMANDS:
            screen.append((clock, f"$ {command}"[:COLUMNS], True))
            clock += PAUSE
            for line in run(command, folder):
                screen.append((clock, line, False))
                clock += PACE
            clock += PAUSE
    OUT.write_text(draw(screen), encoding="utf-8")
    print(f"{OUT.name}: {len(screen)} lines, {clock:.0f} seconds")


if __name__ == "__main__":
    main()
