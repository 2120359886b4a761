"""Put the measured numbers of docs/benchmarks into README and the front page.

    python tools/measured.py

A benchmark that renews its table (``--docs``) calls it, so that no number stands in two versions;
a test compares.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- benchmarks/path_cv.py -->\n", "<!-- end -->"
COST = "0-d-1 risk, 10 %, share of the best peer's"
# Our goals, times scikit-learn, from the smallest to the largest set.
GOALS = {"gaussian": (60, 12, 14, 8), "linear": (40, 40, 40, 40)}


def table(name: str, root: Path = ROOT) -> list[dict[str, str]]:
    """The rows of a table that a benchmark has written, by column."""
    text = (root / "docs" / "benchmarks" / f"{name}.inc").read_text(encoding="utf-8")
    lines = re.findall(r"^   (\*| ) -(.*)$", text, re.MULTILINE)
    rows: list[list[str]] = []
    for star, cell in lines:
        if star == "*":
            rows.append([])
        rows[-1].append(cell.strip())
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def speed(rows: list[dict[str, str]]) -> str:
    """README's table of the path against a grid, and which goals it meets."""
    lines = [
        "| rows × features | kernel | Buttress | scikit-learn | ratio |",
        "|---|---|---|---|---|",
    ]
    missed, seen = [], dict.fromkeys(GOALS, 0)
    for row in rows:
        kernel, ratio = row["kernel"], float(row["ratio"])
        job = row["job"].replace("x", "×")
        ours, theirs = (f"{float(row[key]):.2g} s" for key in ("ours_s", "scikit_learn_s"))
        lines.append(f"| {job} | {kernel.capitalize()} | {ours} | {theirs} | {ratio:.3g}× |")
        if ratio < GOALS[kernel][seen[kernel]]:
            missed.append(f"{job} ({kernel.capitalize()}, {ratio:.3g}×)")
        seen[kernel] += 1
    met = f"{len(rows) - len(missed)} of {len(rows)} jobs meet theirs"
    told = (
        f"{met}; missed: {', '.join(missed)}." if missed else f"all {len(rows)} jobs meet theirs."
    )
    lines += [
        "",
        "Our goals are 60, 12, 14 and 8× with the Gaussian kernel and 40× on linear problems:",
        told,
    ]
    return "\n".join(lines) + "\n"


def renewed(root: Path = ROOT) -> dict[Path, str]:
    """Every file that shows measured numbers, with those of the present tables."""
    path = table("path_cv", root)
    first = next(row for row in table("first_run", root) if row["job"] == "fit of leaky CV")
    readme, front = root / "README.md", root / "docs" / "index.rst"
    text = readme.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    text = before + BEGIN + speed(path) + END + rest.split(END, 1)[1]
    wait = f"compilation included, takes {float(first['first, processor s']):.0f} s"
    text = _put(r"compilation included, takes \d+ s", wait, text)
    ratios = [float(row["ratio"]) for row in path]
    span = f"{min(ratios):.0f} to {max(ratios):.0f} times as fast"
    shown = _put(r"\d+ to \d+ times as fast", span, front.read_text(encoding="utf-8"))
    noise = {row["what"]: float(row["reached"]) for row in table("noise_apart_verdicts", root)}
    named = f"{noise['flips found, 10 %']:.0%}".replace("%", " % of the flips")
    shown = _put(r"\d+ % of the flips", named, shown)
    alarms = f"{noise['false share of lists that are not empty']:.0%}".replace("%", " % of a list")
    shown = _put(r"\d+ % of a list", alarms, shown)
    cost = f"to {noise[COST]:.2f} of the best peer's cost"
    return {readme: text, front: _put(r"to \d\.\d+ of the best peer's cost", cost, shown)}


def _put(pattern: str, words: str, text: str) -> str:
    changed, count = re.subn(pattern, words, text)
    if count != 1:
        raise ValueError(f"{pattern!r} stands {count} times where it should stand once")
    return changed


if __name__ == "__main__":
    for path, text in renewed().items():
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"renewed {path.relative_to(ROOT)}")
