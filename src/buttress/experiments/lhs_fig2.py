"""Figure 2 of the leaky hockey stick paper: two margins on separable data, and the Bayes rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.experiments._figures import COLOURS, DASHES, MARKERS, lettered
from buttress.experiments._grids import repeats, tasks_over
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Values
from buttress.experiments._sampling import generator

_ANGLES = np.linspace(0, 2 * np.pi, 36_001)
_DIRECTIONS = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])


def _separable(random: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows, labels and the six centres of a draw that a line through the origin separates."""
    while True:
        shift = np.array([1.8, -1.8])
        centres = np.stack(
            [shift + random.standard_normal((3, 2)), -shift + random.standard_normal((3, 2))]
        )
        y = np.repeat([-1, 1], 10)
        X = np.concatenate([block[random.integers(3, size=10)] for block in centres])
        X = X + np.sqrt(0.6) * random.standard_normal(X.shape)
        if ((y[:, None] * (X @ _DIRECTIONS)).min(axis=0) > 0).any():
            return X, y, centres


def _best(margins: NDArray[Any], score: NDArray[Any]) -> float:
    return float(_ANGLES[np.argmax(np.where(margins.min(axis=0) > 0, score, -np.inf))])


def _run(plan: Plan, repeat: int) -> Values:
    from buttress.classifiers import LeakyHockeyStickClassifier

    X, y, centres = _separable(generator(plan.seed, repeat, 5))
    margins = y[:, None] * (X @ _DIRECTIONS)
    smallest = _best(margins, margins.min(axis=0))
    product = _best(margins, np.log(np.maximum(margins, 1e-300)).sum(axis=0))
    model = LeakyHockeyStickClassifier(
        kernel="linear", alpha=1e-6, fit_intercept=False, tol=1e-10
    ).fit(X, y)
    fitted = float(np.arctan2(*model.coef_[0][::-1]) % (2 * np.pi))
    return {
        "X": X,
        "y": y,
        "centres": centres,
        "smallest margin": smallest,
        "product of margins": product,
        "LHS": fitted,
    }


def _turn(first: float, second: float) -> float:
    gap = abs(first - second) % (2 * np.pi)
    return float(np.degrees(min(gap, 2 * np.pi - gap)))


def _check(values: Runs) -> list[Check]:
    off, apart = (
        [_turn(a, b) for a, b in zip(values[key], values["product of margins"], strict=True)]
        for key in ("LHS", "smallest margin")
    )
    return [
        Check(
            "at small lambda the LHS direction maximises the product of margins",
            max(off) < 0.05,
            f"largest angle {max(off):.3f} degrees",
        ),
        Check(
            "the two margins differ, sometimes noticeably",
            max(apart) > 1,
            "angles " + ", ".join(f"{angle:.1f}" for angle in apart) + " degrees",
        ),
    ]


def _draw(figure: Figure, values: Runs) -> None:
    count = len(values["X"])
    figure.set_size_inches(8, 8)
    axes = figure.subplots((count + 1) // 2, 2, squeeze=False, sharex=True, sharey=True).ravel()
    line = np.linspace(-6, 6, 2)
    side = np.linspace(-6, 6, 201)
    grid = np.stack(np.meshgrid(side, side), axis=-1)
    for k, axis in enumerate(axes[:count]):
        X, y = np.array(values["X"][k]), np.array(values["y"][k])
        negative, positive = np.array(values["centres"][k])
        density = [
            sum(np.exp(-((grid - c) ** 2).sum(axis=-1) / 1.2) for c in block)
            for block in (negative, positive)
        ]
        axis.contour(
            side, side, density[1] - density[0], levels=[0], colors="black", linewidths=0.8
        )
        for j, label in enumerate((-1, 1)):
            axis.scatter(
                *X[y == label].T,
                s=16,
                marker=MARKERS[j],
                color=COLOURS[j],
                label=f"y = {label:+d}",
            )
        for j, name in enumerate(("smallest margin", "product of margins"), start=2):
            angle = values[name][k]
            text = "SVM margin (6)" if name == "smallest margin" else "LHS margin (7)"
            axis.plot(
                -np.sin(angle) * line,
                np.cos(angle) * line,
                ls=DASHES[j - 1],
                color=COLOURS[j],
                label=text,
            )
        axis.plot([], [], color="black", lw=0.8, label="Bayes rule")
        apart = _turn(values["smallest margin"][k], values["product of margins"][k])
        axis.set(title=f"{apart:.1f} degrees apart", xlim=(-6, 6), ylim=(-6, 6))
        axis.set_aspect("equal")
    lettered(axes[:count])
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)


EXPERIMENT = Experiment.of(
    globals(),
    title="Leaky hockey stick, Figure 2: two kinds of margin",
    protocol=(
        "Three normal distributions of variance 0.6 per class, centres N((1.8, -1.8), I) and "
        "N((-1.8, 1.8), I), ten rows per class, redrawn until a line through the origin "
        "separates them; four panels.",
        "Both margins by search over 36,000 directions: (6), the largest smallest margin, and (7), "
        "the largest product of margins.",
    ),
    tasks=tasks_over("panel {repeat}", "panels", repeat=repeats(4, 2)),
)
