"""What the pages beyond the papers share: the library's defaults on the papers' own splits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress.experiments._claims import gap, in_most, in_points, verdict
from buttress.experiments._figures import COLOURS, GREY, MARKERS, two_errors
from buttress.experiments._model import (
    Cell,
    Check,
    Experiment,
    Figure,
    Pair,
    Plan,
    Runs,
    Task,
    Values,
)
from buttress.experiments._sampling import TrainTest

NOISE_AWARE = "NoiseAwareClassifier"
PURPOSE = (
    "Not a reproduction: what a reader would get today. Default parameters, nothing tuned to these "
    "sets; the printed numbers are shown for orientation and no verdict is given."
)


@dataclass(frozen=True)
class DefaultsBesidePrinted:
    """Errors of a family's default and of the noise-aware classifier, beside printed ones.

    Attributes
    ----------
    default_model : str
        What the family's own classifier is called.
    names : mapping
        Data set -> its title.
    printed : mapping
        Data set -> the lowest printed error.
    columns : str
        Of how many columns it is the lowest, in words.
    """

    default_model: str
    names: Mapping[str, str]
    printed: Mapping[str, str]
    columns: str

    @property
    def models(self) -> tuple[str, str]:
        return self.default_model, NOISE_AWARE

    def cells(self) -> tuple[Cell, ...]:
        """One per data set and model, the printed number beside it as a label."""
        return tuple(
            Cell(
                f"{name}/{model}",
                name,
                {"data": title, "best printed": self.printed[name], "model": model},
                unit="error (%)",
                scale=100.0,
            )
            for name, title in self.names.items()
            for model in self.models
        )

    def pairs(self, values: Runs) -> list[Pair]:
        """The noise-aware classifier minus the default on every set."""
        keys = {
            title: (f"{name}/{NOISE_AWARE}", f"{name}/{self.default_model}")
            for name, title in self.names.items()
        }
        return in_points(values, f"{NOISE_AWARE} - {self.default_model}", keys)

    def check(self, values: Runs) -> list[Check]:
        """Whether each model errs less than the printed numbers on most sets."""
        checks = (self._check(model, values) for model in self.models)
        return [check for check in checks if check is not None]

    def _check(self, model: str, values: Runs) -> Check | None:
        gaps = {
            title: gap(runs, [float(self.printed[name]) / 100] * len(runs))
            for name, title in self.names.items()
            if (runs := values.get(f"{name}/{model}"))
        }
        if not gaps:
            return None
        verdicts = [verdict(*difference) for difference in gaps.values()]
        below, above, count = verdicts.count(-1), verdicts.count(1), len(gaps)
        mean = np.mean([difference for difference, _ in gaps.values()])
        failed = [f"{title} ({100 * d:+.0f})" for title, (d, _) in gaps.items() if d > 0.1]
        return Check(
            f"{model} with its defaults errs less than the best printed column on more than half "
            "of the sets",
            in_most(below, above, count),
            f"clearly less on {below} of {count}, clearly more on {above}; mean difference "
            f"{100 * mean:+.2f} points",
            f"It fails, more than ten points above the printed number, on {' and '.join(failed)}"
            if failed
            else "",
        )

    def draw(self, figure: Figure, values: Runs) -> None:
        """Every model's error on every set beside the printed one."""
        figure.set_size_inches(8, 1.5 + 0.32 * len(self.names))
        axis = figure.subplots()
        shown = [name for name in self.names if values.get(f"{name}/{self.default_model}")]
        heights = np.arange(len(shown))[::-1]
        printed = [float(self.printed[name]) for name in shown]
        label = f"printed: best of {self.columns}"
        axis.plot(printed, heights, "x", color=GREY, ms=7, label=label)
        for k, model in enumerate(self.models):
            runs = [100 * np.array(values[f"{name}/{model}"], dtype=float) for name in shown]
            axis.errorbar(
                [r.mean() for r in runs],
                heights + 0.15 * k,
                xerr=two_errors(runs),
                fmt=MARKERS[k],
                ms=5,
                color=COLOURS[k],
                label=model,
            )
        axis.set_yticks(heights, [self.names[name] for name in shown])
        axis.set(xlabel="error (%), with two standard errors", xlim=(0, None))
        axis.legend(loc="upper right")


def beyond(
    module: Mapping[str, Any],
    title: str,
    protocol: Sequence[str],
    beside: DefaultsBesidePrinted,
    tasks: Callable[[Plan], list[Task]],
) -> Experiment:
    """The page of a table of errors: the family's own default, and the noise-aware classifier."""
    return Experiment.of(
        module,
        title=f"{title}, beyond the paper: the library's defaults",
        protocol=(PURPOSE, *protocol),
        cells=beside.cells(),
        tasks=tasks,
        draw=beside.draw,
        check=beside.check,
        pairs=beside.pairs,
        ours=True,
    )


def lowest(cells: Iterable[Cell]) -> str:
    """The lowest of the numbers that the cells print."""
    return min((cell.printed for cell in cells if cell.printed), key=float)


def both_errors(key: str, data: TrainTest, name: str, model: Any) -> Values:
    """Test errors of a family's default and of the noise-aware classifier."""
    models = {name: model, NOISE_AWARE: noise_aware()}
    return {f"{key}/{each}": data.error(one.fit(data.X, data.y)) for each, one in models.items()}


def noise_aware() -> Any:
    """The noise-aware classifier as it comes, with a seed."""
    from buttress.noise import NoiseAwareClassifier

    return NoiseAwareClassifier(random_state=0)
