"""What a run leaves behind: one form of JSON, judged again whenever the rules change."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from buttress._files import replacing
from buttress._version import __version__
from buttress.experiments._model import Experiment, Plan, Runs
from buttress.experiments._statistics import (
    compare,
    compare_times,
    count_verdicts,
    expected_by_chance,
)

# Raised when the form of the JSON files changes.
SCHEMA = 3
_PART = ("command", "seed", "commit", "machine", "tasks", "seconds")
# In the order of the JSON files; one schema for old and new.
_KEYS = (
    "schema", "experiment", "title", "paper", "protocol", "quick", "version", "ours", *_PART,
    "planned", "parts", "solver_warnings", "failures", "verdicts", "expected_by_chance", "times",
    "checks", "pairs", "cells", "series",
)  # fmt: skip


def as_json(value: Any) -> Any:
    """Plain Python numbers; null where a number is not finite."""
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def collect(
    lines: list[dict[str, Any]], cells: frozenset[str] = frozenset()
) -> dict[str, list[Any]]:
    """All values of every key, in the order of the tasks; a cell's list is that many runs."""
    values: dict[str, list[Any]] = {}
    for line in lines:
        for key, value in line["values"].items():
            runs = value if key in cells and isinstance(value, list) else [value]
            values.setdefault(key, []).extend(runs)
    return values


def report_of(
    experiment: Experiment,
    plan: Plan,
    lines: list[dict[str, Any]],
    failures: list[dict[str, str]],
    planned: int,
) -> dict[str, Any]:
    known = frozenset(cell.id for cell in experiment.cells)
    values = collect(lines, known)
    whole = bool(values) and not plan.partial and len(lines) == planned
    if plan.quick and experiment.cells:
        # the smallest cases with small grids: no paper says anything about them
        whole = False
    this_run = {
        "command": command(experiment, plan),
        "seed": plan.seed,
        "commit": commit(),
        "machine": machine(),
        "tasks": len(lines),
        "seconds": round(sum(line["seconds"] for line in lines), 1),
    }
    return {
        "schema": SCHEMA,
        "experiment": experiment.name,
        "title": experiment.title,
        "paper": experiment.paper,
        "protocol": list(experiment.protocol),
        "quick": plan.quick,
        "version": experiment.version,
        "ours": experiment.ours,
        **this_run,
        "planned": planned,
        "parts": [this_run],
        "solver_warnings": sum(line["warnings"] for line in lines),
        "failures": failures,
        **_judged(experiment, values, plan.cells, whole),
        "series": {key: _rounded(value) for key, value in values.items() if key not in known},
    }


def _judged(
    experiment: Experiment, values: Runs, cells: tuple[str, ...], whole: bool
) -> dict[str, Any]:
    """Cells, verdicts and checks; of a part of an experiment nothing is said about the whole."""
    wanted = [cell for cell in experiment.cells if not cells or cell.id in cells]
    compared = [compare(cell, values.get(cell.id, [])) for cell in wanted]
    checks = experiment.check(values) if whole and experiment.check else []
    pairs = experiment.pairs(values) if experiment.pairs else []
    return {
        "verdicts": count_verdicts(compared),
        "expected_by_chance": expected_by_chance(compared),
        "times": compare_times(compared),
        "checks": [
            as_json(vars(check) | {"ours": check.ours or experiment.ours}) for check in checks
        ],
        "pairs": [vars(pair) for pair in pairs],
        "cells": compared,
    }


def values_of(report: Mapping[str, Any]) -> dict[str, list[Any]]:
    """All runs of a report by cell or series."""
    values: dict[str, list[Any]] = dict(report["series"])
    return values | {cell["id"]: cell["values"] for cell in report["cells"] if cell["values"]}


def rejudged(experiment: Experiment, report: Mapping[str, Any]) -> dict[str, Any]:
    """A stored report under the present rules: the runs stay, verdicts and claims are new.

    What an older report did not record (its commit, versions of libraries) is null in it. A report
    of another protocol is refused.
    """
    if report.get("version", experiment.version) != experiment.version:
        raise ValueError(
            f"the report of {experiment.name} is of version {report['version']} of its protocol, "
            f"the experiment of version {experiment.version}: run it again"
        )
    values = values_of(report)
    this_run = {key: report.get(key) for key in _PART}
    this_run["machine"] = dict.fromkeys(machine()) | dict(report["machine"])
    kept = {"version": experiment.version} | dict(report) | this_run
    whole = bool(values) and not report["quick"] and report["tasks"] >= report["planned"]
    known = {cell.id for cell in experiment.cells}
    judged = {
        "schema": SCHEMA,
        "title": experiment.title,
        "paper": experiment.paper,
        "protocol": list(experiment.protocol),
        "ours": experiment.ours,
        "parts": [_completed(run) for run in report.get("parts", [this_run])],
        **_judged(experiment, values, (), whole),
        "series": {key: value for key, value in values.items() if key not in known},
    }
    return {key: (kept | judged)[key] for key in _KEYS}


def _completed(run: Mapping[str, Any]) -> dict[str, Any]:
    return dict(run) | {"machine": dict.fromkeys(machine()) | dict(run["machine"])}


def merged(
    experiment: Experiment, old: Mapping[str, Any], new: Mapping[str, Any]
) -> dict[str, Any]:
    """An older report with the cells that a new run has filled; both runs are named in it."""
    values = values_of(old) | values_of(new)
    known = {cell.id for cell in experiment.cells}
    before = rejudged(experiment, old)
    runs = [run for run in before["parts"] if run["command"] != new["command"]]
    runs += new["parts"]
    done = sum(run["tasks"] for run in runs)
    missing = sum(max(0, report["planned"] - report["tasks"]) for report in (old, new))
    together = before | {
        "tasks": done,
        "planned": done + missing,
        "seconds": round(sum(run["seconds"] for run in runs), 1),
        "solver_warnings": old["solver_warnings"] + new["solver_warnings"],
        "failures": [*old["failures"], *new["failures"]],
        "parts": runs,
        "cells": [{"id": name, "values": values.get(name, [])} for name in sorted(known)],
        "series": {key: value for key, value in values.items() if key not in known},
    }
    return rejudged(experiment, together)


def _rounded(value: Any) -> Any:
    """Six digits are enough for a picture."""
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def command(experiment: Experiment, plan: Plan) -> str:
    """The command line that makes the same run."""
    words = ["buttress", "reproduce", experiment.name]
    if plan.quick:
        words.append("--quick")
    if plan.only:
        words += ["--only", ",".join(plan.only)]
    asked = [plan.words] if plan.words else [cell.replace("/", ", ") for cell in plan.cells]
    for cell in asked:
        words += ["--cell", f'"{cell}"']
    if plan.repeats is not None:
        words += ["--repeats", str(plan.repeats)]
    if plan.seed:
        words += ["--seed", str(plan.seed)]
    return " ".join(words)


def commit() -> str | None:
    """The commit of the sources that ran, where they are a checkout."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip() or None


def machine() -> dict[str, Any]:
    """What the numbers, and above all the times, depend on."""
    return {
        "buttress": __version__,
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "scipy": metadata.version("scipy"),
        "scikit-learn": metadata.version("scikit-learn"),
        "numba": metadata.version("numba"),
        "cpus": os.cpu_count(),
        "processor": platform.machine(),
    }


def write_report(report: Mapping[str, Any], path: Path) -> None:
    """Write a report as JSON, one line per cell, replacing the old one at once."""
    entries = []
    for key, value in as_json(report).items():
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        if key == "cells":
            cells = (json.dumps(cell, allow_nan=False, ensure_ascii=False) for cell in value)
            text = "[\n  " + ",\n  ".join(cells) + "\n ]" if value else "[]"
        entries.append(f" {json.dumps(key)}: {text}")
    with replacing(path, "w") as file:
        file.write("{\n" + ",\n".join(entries) + "\n}\n")
