"""Run an experiment: finished tasks are kept on disk, the rest is computed and reported."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from buttress._progress import progress
from buttress._threads import limited_threads
from buttress.experiments._model import Experiment, Plan, Task
from buttress.experiments._reports import as_json, report_of


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
    return report_of(experiment, plan, lines, failures, len(tasks))


def report_name(experiment: Experiment, plan: Plan) -> str:
    """Stem of the files of a run; a quick one never mixes with a full one."""
    return experiment.name + (".quick" if plan.quick else "")


def _selected(experiment: Experiment, plan: Plan) -> list[Task]:
    unknown = sorted(set(plan.only) - set(experiment.groups))
    if unknown:
        raise ValueError(f"only must be among {experiment.groups}, got {unknown}")
    tasks = [task for task in experiment.tasks(plan) if not plan.only or task.group in plan.only]
    if not plan.cells:
        return tasks
    fills = experiment.fills
    if fills is None:
        groups = {cell.group for cell in experiment.cells if cell.id in plan.cells}
        return [task for task in tasks if task.group in groups]
    return [task for task in tasks if any(fills(task, cell) for cell in plan.cells)]


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
    with warnings.catch_warnings(record=True) as caught, limited_threads(1):
        warnings.simplefilter("always")
        try:
            values = experiment.run(plan, **task.arguments)
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
