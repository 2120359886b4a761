"""What the pages beyond the papers share: the library's defaults on the papers' own splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from buttress.experiments._claims import gap, verdict
from buttress.experiments._figures import COLOURS, GREY, MARKERS
from buttress.experiments._model import Cell, Check, Experiment, Pair, Plan, Task, Values

NOISE_AWARE = "NoiseAwareClassifier"
PURPOSE = (
    "Not a reproduction: what a reader would get today. Default parameters, nothing tuned to these "
    "sets; the printed numbers are shown for orientation and no verdict is given."
)


def beyond(
    name: str,
    title: str,
    paper: str,
    protocol: Sequence[str],
    names: Mapping[str, str],
    default_model: str,
    printed: Mapping[str, str],
    columns: str,
    tasks: Callable[[Plan], list[Task]],
    run: Callable[[Mapping[str, Any], Plan], Values],
) -> Experiment:
    """The page of a table of errors: the family's own default, and the noise-aware classifier."""
    models = (default_model, NOISE_AWARE)
    return Experiment(
        name=name,
        title=f"{title}, beyond the paper: the library's defaults",
        paper=paper,
        protocol=(PURPOSE, *protocol),
        cells=_cells_of(names, models, printed, "best printed"),
        tasks=tasks,
        run=run,
        draw=_drawn(names, models, printed, f"best of {columns}"),
        check=_judged(names, models, printed, "the best printed column"),
        pairs=_pairs_of(names, NOISE_AWARE, default_model),
        ours=True,
    )


def noise_aware() -> Any:
    """The noise-aware classifier as it comes, with a seed."""
    from buttress.noise import NoiseAwareClassifier

    return NoiseAwareClassifier(random_state=0)


def _cells_of(
    names: Mapping[str, str], models: Sequence[str], printed: Mapping[str, str], column: str
) -> tuple[Cell, ...]:
    """One cell per data set and model, the printed number beside it as a label."""
    return tuple(
        Cell(
            f"{name}/{model}",
            name,
            {"data": title, column: printed[name], "model": model},
            unit="error (%)",
            scale=100.0,
        )
        for name, title in names.items()
        for model in models
    )


def _pairs_of(
    names: Mapping[str, str], model: str, rival: str
) -> Callable[[Mapping[str, list[Any]]], list[Pair]]:
    """The difference of two models on every set, in points."""

    def pairs(values: Mapping[str, list[Any]]) -> list[Pair]:
        pairs_found = []
        for name, title in names.items():
            if values.get(f"{name}/{model}") and values.get(f"{name}/{rival}"):
                difference, error = gap(values[f"{name}/{model}"], values[f"{name}/{rival}"])
                what = f"{model} - {rival} (points)"
                pairs_found.append(Pair(title, what, 100 * difference, 100 * error))
        return pairs_found

    return pairs


def _judged(
    names: Mapping[str, str],
    models: Sequence[str],
    printed: Mapping[str, str],
    whose: str,
) -> Callable[[Mapping[str, list[Any]]], list[Check]]:
    """Whether each model errs less than the printed numbers on most sets."""

    def check(values: Mapping[str, list[Any]]) -> list[Check]:
        checks = []
        for model in models:
            below, above, gaps, failed = 0, 0, [], []
            for name, title in names.items():
                runs = values.get(f"{name}/{model}")
                if not runs:
                    continue
                theirs = float(printed[name]) / 100
                difference, error = gap(runs, [theirs] * len(runs))
                gaps.append(difference)
                below += verdict(difference, error) < 0
                above += verdict(difference, error) > 0
                if difference > 0.1:
                    failed.append(f"{title} ({100 * difference:+.0f})")
            if not gaps:
                continue
            checks.append(
                Check(
                    f"{model} with its defaults errs less than {whose} on more than half of the "
                    "sets",
                    True if below > len(gaps) / 2 else False if above >= len(gaps) / 2 else None,
                    f"clearly less on {below} of {len(gaps)}, clearly more on {above}; mean "
                    f"difference {100 * np.mean(gaps):+.2f} points",
                    f"It fails, more than ten points above the printed number, on "
                    f"{' and '.join(failed)}"
                    if failed
                    else "",
                )
            )
        return checks

    return check


def _drawn(
    names: Mapping[str, str], models: Sequence[str], printed: Mapping[str, str], whose: str
) -> Callable[[Any, Mapping[str, list[Any]]], None]:
    """Every model's error on every set beside the printed one."""

    def draw(figure: Any, values: Mapping[str, list[Any]]) -> None:
        figure.set_size_inches(8, 1.5 + 0.32 * len(names))
        axis = figure.subplots()
        shown = [name for name in names if values.get(f"{name}/{models[0]}")]
        heights = np.arange(len(shown))[::-1]
        axis.plot(
            [float(printed[name]) for name in shown], heights, "x", color=GREY, ms=7,
            label=f"printed: {whose}",
        )  # fmt: skip
        for k, model in enumerate(models):
            runs = [100 * np.array(values[f"{name}/{model}"], dtype=float) for name in shown]
            axis.errorbar(
                [r.mean() for r in runs],
                heights + 0.15 * (k + 1) - 0.15,
                xerr=[2 * r.std(ddof=1) / np.sqrt(len(r)) if len(r) > 1 else 0 for r in runs],
                fmt=MARKERS[k],
                ms=5,
                color=COLOURS[k],
                label=model,
            )
        axis.set_yticks(heights, [names[name] for name in shown])
        axis.set(xlabel="error (%), with two standard errors", xlim=(0, None))
        axis.legend(loc="upper right")

    return draw
