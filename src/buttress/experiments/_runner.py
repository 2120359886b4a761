"""Run an experiment: finished tasks are kept on disk, the rest is computed and reported."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from buttress._files import replacing
from buttress._progress import progress
from buttress._version import __version__
from buttress.experiments._model import Experiment, Plan, Task
from buttress.experiments._statistics import (
    compare,
    compare_times,
    count_verdicts,
    expected_by_chance,
)

# Raised when the form of the JSON files changes.
SCHEMA = 2


def run_experiment(experiment: Experiment, plan: Plan) -> dict[str, Any]:
    """Do what is not done yet and report on all that is.

    Parameters
    ----------
    experiment : Experiment
    plan : Plan

    Returns
    -------
    dict
        The report, as in the JSON file.
    """
    tasks = _selected(experiment, plan)
    plan.out.mkdir(parents=True, exist_ok=True)
    path = plan.out / f"{report_name(experiment, plan)}.runs.jsonl"
    done = _finished(path, experiment, plan)
    todo = [] if plan.finished else [task for task in tasks if task.key not in done]
    failures: list[dict[str, str]] = []
    with progress(experiment.name, len(tasks), plan.verbose) as advance:
        advance(len(done.keys() & {task.key for task in tasks}))
        for task, line in _computed(experiment, plan, todo):
            if "failure" in line:
                failures.append({"task": task.key, "reason": line["failure"]})
            else:
                _append(path, line)
                done[task.key] = line
            advance(1)
    lines = [done[task.key] for task in tasks if task.key in done]
    return _report(experiment, plan, lines, failures) | {"planned": len(tasks)}


def report_name(experiment: Experiment, plan: Plan) -> str:
    """Stem of the files of a run; a quick one never mixes with a full one."""
    return experiment.name + (".quick" if plan.quick else "")


def _selected(experiment: Experiment, plan: Plan) -> list[Task]:
    unknown = sorted(set(plan.only) - set(experiment.groups))
    if unknown:
        raise ValueError(f"only must be among {experiment.groups}, got {unknown}")
    tasks = experiment.tasks(plan)
    return [task for task in tasks if not plan.only or task.group in plan.only]


def _finished(path: Path, experiment: Experiment, plan: Plan) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    done = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue  # the last line of an interrupted run
        if (line["version"], line["seed"]) == (experiment.version, plan.seed):
            done[line["task"]] = line
    return done


def _append(path: Path, line: Mapping[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _computed(
    experiment: Experiment, plan: Plan, todo: list[Task]
) -> Iterator[tuple[Task, dict[str, Any]]]:
    if plan.jobs == 1 or len(todo) < 2:
        for task in todo:
            yield task, _run_task(experiment.name, task, plan, experiment)
        return
    # A worker finds the experiment by its name: functions need not be sent.
    results = Parallel(n_jobs=plan.jobs, return_as="generator")(
        delayed(_run_task)(experiment.name, task, plan) for task in todo
    )
    yield from zip(todo, results, strict=True)


def _run_task(
    name: str, task: Task, plan: Plan, experiment: Experiment | None = None
) -> dict[str, Any]:
    if experiment is None:
        from buttress.experiments import get_experiment

        experiment = get_experiment(name)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        try:
            values = experiment.run(task.arguments, plan)
        except Exception as error:  # one broken cell must not end an hour of others
            return {"failure": f"{type(error).__name__}: {error}"}
    return {
        "task": task.key,
        "version": experiment.version,
        "seed": plan.seed,
        "seconds": round(time.perf_counter() - start, 3),
        "warnings": sum(w.category.__name__ == "ConvergenceWarning" for w in caught),
        "values": as_json(values),
    }


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


def collect(lines: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """All values of every key, in the order of the tasks."""
    values: dict[str, list[Any]] = {}
    for line in lines:
        for key, value in line["values"].items():
            values.setdefault(key, []).append(value)
    return values


def _report(
    experiment: Experiment,
    plan: Plan,
    lines: list[dict[str, Any]],
    failures: list[dict[str, str]],
) -> dict[str, Any]:
    values = collect(lines)
    known = {cell.id for cell in experiment.cells}
    return {
        "schema": SCHEMA,
        "experiment": experiment.name,
        "title": experiment.title,
        "paper": experiment.paper,
        "protocol": list(experiment.protocol),
        "command": command(experiment, plan),
        "quick": plan.quick,
        "seed": plan.seed,
        "version": experiment.version,
        "commit": commit(),
        "machine": machine(),
        "seconds": round(sum(line["seconds"] for line in lines), 1),
        "tasks": len(lines),
        "solver_warnings": sum(line["warnings"] for line in lines),
        "failures": failures,
        **_judged(experiment, values, plan),
        "series": {key: _rounded(value) for key, value in values.items() if key not in known},
    }


def _judged(experiment: Experiment, values: Mapping[str, list[Any]], plan: Plan) -> dict[str, Any]:
    """Cells, verdicts and checks; of a part of an experiment nothing is said about the whole."""
    wanted = [cell for cell in experiment.cells if not plan.cells or cell.id in plan.cells]
    compared = [compare(cell, values.get(cell.id, [])) for cell in wanted]
    whole = experiment.check is not None and bool(values) and not plan.partial
    checks = experiment.check(values) if whole and experiment.check else []
    return {
        "verdicts": count_verdicts(compared),
        "expected_by_chance": expected_by_chance(compared),
        "times": compare_times(compared),
        "checks": [vars(check) for check in checks],
        "cells": compared,
    }


def rejudged(experiment: Experiment, report: Mapping[str, Any]) -> dict[str, Any]:
    """A stored report under the present rules: the runs stay, verdicts and claims are new."""
    values: dict[str, list[Any]] = dict(report["series"])
    values |= {cell["id"]: cell["values"] for cell in report["cells"] if cell["values"]}
    kept = {"seed": 0, "version": experiment.version, "commit": None} | dict(report)
    return kept | {
        "schema": SCHEMA,
        "title": experiment.title,
        "paper": experiment.paper,
        "protocol": list(experiment.protocol),
        **_judged(experiment, values, Plan()),
    }


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
    for cell in plan.cells:
        words += ["--cell", f'"{cell.replace("/", ", ")}"']
    if plan.repeats is not None:
        words += ["--repeats", str(plan.repeats)]
    if plan.seed:
        words += ["--seed", str(plan.seed)]
    return " ".join(words)


def commit() -> str | None:
    """The commit of the sources that ran, where they are a checkout."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None


def machine() -> dict[str, Any]:
    """What the numbers, and above all the times, depend on."""
    return {
        "buttress": __version__,
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "cpus": os.cpu_count(),
        "processor": platform.machine(),
    }


def write_report(report: Mapping[str, Any], path: Path) -> None:
    """Write a report as JSON, one line per cell, replacing the old one at once."""
    parts = []
    for key, value in as_json(report).items():
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        if key == "cells":
            cells = (json.dumps(cell, allow_nan=False, ensure_ascii=False) for cell in value)
            text = "[\n  " + ",\n  ".join(cells) + "\n ]" if value else "[]"
        parts.append(f" {json.dumps(key)}: {text}")
    with replacing(path, "w") as file:
        file.write("{\n" + ",\n".join(parts) + "\n}\n")
