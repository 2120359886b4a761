"""Tables of `noise.py`, and every line of what must hold as pass or miss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from _noise_sets import KINDS

Cell = tuple[dict[str, Any], dict[str, float]]
Cells = Mapping[tuple[str, int, str], Cell]

PEERS = ("svc", "forest", "boosting", "cleanlab svc", "cleanlab forest", "cleanlab boosting")
# What was tried, on the development sets only, for the lines that may miss.
TRIED = {
    "AP, one class": "averaging both kinds of noise, a second round on corrected labels, boosting "
    "and one witness less; the peer is cleanlab's adjusted forest, plain margins reach half of it",
    "false share of lists": "more caution (shorter lists, fewer flips found), a flat prior, rows "
    "that count in full, a cubic curve",
    "accuracy, 30 %": "a second round on corrected labels (more accurate here, less on clean "
    "labels), pruned forests, candidates chosen by corrected labels, larger leaves",
    "accuracy, one class": "averaging both kinds of noise, a second round on corrected labels, "
    "weights of the classes",
}
RANKERS = (*PEERS, "margin")
REFUSERS = ("svc", "margin band")


def of_kind(cells: Cells, kind: str) -> list[tuple[str, Cell]]:
    return [(key[0], cell) for key, cell in cells.items() if key[2] == kind]


def compared(
    chosen: list[tuple[str, Cell]], ours: str, peers: tuple[str, ...], what: str, best: Any = max
) -> dict[str, Any]:
    """Our mean, the best single peer's mean, and the mean when every set has its best peer."""
    names = [p for p in peers if all(f"{what} {p}" in theirs for _, (_, theirs) in chosen)]
    table = {p: np.array([theirs[f"{what} {p}"] for _, (_, theirs) in chosen]) for p in names}
    means = {p: float(values.mean()) for p, values in table.items()}
    leader = best(means, key=lambda p: means[p])
    sets = sorted({name for name, _ in chosen})
    rows = {name: [k for k, (own, _) in enumerate(chosen) if own == name] for name in sets}
    per_set = [best(float(values[rows[name]].mean()) for values in table.values()) for name in sets]
    sizes = [len(rows[name]) for name in sets]
    return {
        "ours": float(np.mean([mine[ours] for _, (mine, _) in chosen])),
        "best peer": means[leader],
        "which": leader,
        "oracle": float(np.average(per_set, weights=sizes)),
    }


def accuracy_rows(cells: Cells) -> list[dict[str, Any]]:
    rows = []
    for kind in KINDS:
        chosen = of_kind(cells, kind)
        if chosen:
            risk = compared(chosen, "risk", REFUSERS, "risk", min)
            rows.append(
                {"noise": kind, "cells": len(chosen)}
                | compared(chosen, "accuracy", PEERS, "accuracy")
                | {f"risk {key}": value for key, value in risk.items() if key != "oracle"}
            )
    return rows


def finding_rows(cells: Cells) -> list[dict[str, Any]]:
    rows = []
    for kind in KINDS:
        chosen = of_kind(cells, kind)
        if not chosen:
            continue
        mine = [ours for _, (ours, _) in chosen]
        row: dict[str, Any] = {"noise": kind, "cells": len(chosen)}
        if kind != "clean":
            row |= {f"AP {k}": v for k, v in compared(chosen, "AP", RANKERS, "AP").items()}
        lists = [c["false"] / c["named"] for c in mine if c["named"]]
        row |= {
            "named": float(np.mean([c["named"] for c in mine])),
            "lists": len(lists),
            "false share": float(np.mean(lists)) if lists else None,
            "flips found": float(np.mean([c["found"] / c["wrong"] for c in mine if c["wrong"]]))
            if kind != "clean"
            else None,
            "rate 0": float(np.mean([c["rate 0"] for c in mine])),
            "rate 1": float(np.mean([c["rate 1"] for c in mine])),
        }
        if "rate error" in mine[0]:
            row["rate error"] = float(np.mean([c["rate error"] for c in mine]))
            row["covered"] = float(np.mean([c["rates covered"] for c in mine]))
        rows.append(row)
    return rows


def verdicts(cells: Cells) -> list[dict[str, Any]]:
    """Every line of what must hold, with the number reached."""
    kinds = {kind: of_kind(cells, kind) for kind in KINDS}
    lines: list[dict[str, Any]] = []

    def line(what: str, reached: float, bound: float, larger: bool = True) -> None:
        good = reached >= bound - 1e-9 if larger else reached <= bound + 1e-9
        sign = "≥" if larger else "≤"
        lines.append(
            {
                "what": what,
                "reached": round(reached, 4),
                "wanted": f"{sign} {bound:.4g}",
                "verdict": "pass" if good else "miss",
                "tried": "" if good else _tried(what),
            }
        )

    _finding(kinds, line)
    _lists(cells, kinds, line)
    _rates(kinds, line)
    _answers(kinds, line)
    return lines


def _tried(what: str) -> str:
    return next((text for start, text in TRIED.items() if what.startswith(start)), "")


def _finding(kinds: Any, line: Any) -> None:
    for kind, gain in (("10 %", 0.015), ("20 %", 0.005), ("boundary 20 %", 0.0)):
        if kinds[kind]:
            ap = compared(kinds[kind], "AP", RANKERS, "AP")
            line(f"AP, {kind}, over the best peer", ap["ours"] - ap["best peer"], gain)
    if kinds["one class 30 %"]:
        ap = compared(kinds["one class 30 %"], "AP", RANKERS, "AP")
        line("AP, one class 30 %, times the best peer", ap["ours"] / ap["best peer"], 1.3)


def _lists(cells: Cells, kinds: Any, line: Any) -> None:
    mine = [(key, ours) for key, (ours, _) in cells.items() if key[2] != "clean"]
    shares = [c["false"] / c["named"] if c["named"] else 0.0 for _, c in mine]
    lists = [share for share, (_, c) in zip(shares, mine, strict=True) if c["named"]]
    if lists:
        line("false share of lists that are not empty", float(np.mean(lists)), 0.12, False)
    line("false share of all lists", float(np.mean(shares)), 0.10, False)
    easy = {
        name
        for name in {key[0] for key in cells}
        if (
            clean := [
                c["accuracy"]
                for key, (c, _) in cells.items()
                if key[0] == name and key[2] == "clean"
            ]
        )
        and np.mean(clean) > 0.95
    }
    for kind, wanted in (("10 %", 1 / 3), ("20 %", 1 / 3)):
        found = [(name, c["found"] / c["wrong"]) for name, (c, _) in kinds[kind] if c["wrong"]]
        if found:
            line(f"flips found, {kind}", float(np.mean([f for _, f in found])), wanted)
        if kind == "10 %" and (few := [f for name, f in found if name in easy]):
            line("flips found, 10 %, clean error below 5 %", float(np.mean(few)), 0.5)
    bins: dict[int, np.ndarray] = {}
    for c, _ in cells.values():
        for k in range(10):
            if f"bin {k}" in c:
                bins[k] = bins.get(k, np.zeros(3)) + np.array(c[f"bin {k}"], dtype=float)
    total = sum(b[0] for b in bins.values())
    error = sum(abs(b[1] - b[2]) for b in bins.values()) / total
    line("calibration error of P(wrong), pooled", float(error), 0.05, False)


def _rates(kinds: Any, line: Any) -> None:
    for kind, bound in (("10 %", 0.03), ("20 %", 0.03), ("30 %", 0.05)):
        if kinds[kind]:
            error = float(np.mean([c["rate error"] for _, (c, _) in kinds[kind]]))
            line(f"error of the rates, {kind}", error, bound, False)
    noisy = [c for kind in ("10 %", "20 %", "30 %", "one class 30 %") for _, (c, _) in kinds[kind]]
    if noisy:
        line(
            "90 % intervals of the rates cover",
            float(np.mean([c["rates covered"] for c in noisy])),
            0.85,
        )
    if kinds["clean"]:
        clean = [c for _, (c, _) in kinds["clean"]]
        line("empty lists on clean labels", float(np.mean([c["named"] == 0 for c in clean])), 0.95)
        rates = float(np.mean([(c["rate 0"] + c["rate 1"]) / 2 for c in clean]))
        line("rates on clean labels", rates, 0.03, False)


def _answers(kinds: Any, line: Any) -> None:
    wanted = (
        ("clean", 0.0),
        ("10 %", 0.0),
        ("boundary 20 %", 0.0),
        ("20 %", -0.003),
        ("30 %", -0.003),
        ("one class 30 %", 0.025),
    )
    for kind, gain in wanted:
        if kinds[kind]:
            reached = compared(kinds[kind], "accuracy", PEERS, "accuracy")
            line(
                f"accuracy, {kind}, over the best peer",
                reached["ours"] - reached["best peer"],
                gain,
            )
    for kind, share in (("clean", 0.97), ("10 %", 0.95)):
        if kinds[kind]:
            risk = compared(kinds[kind], "risk", REFUSERS, "risk", min)
            line(
                f"0-d-1 risk, {kind}, share of the best peer's",
                risk["ours"] / risk["best peer"],
                share,
                False,
            )
