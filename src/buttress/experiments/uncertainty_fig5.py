"""Figure 5 of the uncertainty set paper: the kernel algorithm, with its two halves of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.datasets import make_skewed_gaussians
from buttress.experiments._figures import COLOURS, lettered
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Task, Values
from buttress.experiments._sampling import generator, seed_of
from buttress.experiments.uncertainty_fig2 import scatter

_GAMMA = 0.3
_RADIUS = 10.0


def _gram(A: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.exp(-_GAMMA * ((A[:, None] - B[None]) ** 2).sum(axis=2)))


def _run(plan: Plan) -> Values:
    from buttress.classifiers import UncertaintySetClassifier
    from buttress.solvers.sets.bias import error_rate_bias

    drawn = make_skewed_gaussians(400, positive_rate=0.3, random_state=seed_of(plan.seed, 17))
    X, y = drawn.X, drawn.y
    order = generator(plan.seed, 18).permutation(len(y))
    first, second = order[:200], order[200:]
    model = UncertaintySetClassifier(gamma=_GAMMA, radius=_RADIUS, bias="primal")
    model.fit(X[first], y[first])
    # Step 1 in the dual: weights of the nearest points give the function (25)
    weights = np.asarray(model.set_weights_)
    apart = np.where(y[first] > 0, weights, -weights)
    K = _gram(X[first], X[first])
    distance = float(np.sqrt(apart @ K @ apart))
    from_sets = _RADIUS / distance * (_gram(X, X[first]) @ apart)
    bias = float(model.intercept_[0])
    scores = model.decision_function(X) - bias
    refitted = error_rate_bias(scores[second], y[second].astype(float), reference=bias)
    tries = np.linspace(scores.min() - 1, scores.max() + 1, 2001) * -1
    wrong = np.array([np.mean(y[second] * (scores[second] + b) <= 0) for b in tries])
    side = np.linspace(-4, 5, 61)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    return {
        "X": X,
        "y": y,
        "first": np.isin(np.arange(len(y)), first),
        "dual and primal": float(np.abs(from_sets - scores).max() / np.abs(scores).max()),
        "weights": [float(weights[y[first] == label].sum()) for label in (1, -1)],
        "error on T2": float(np.mean(y[second] * (scores[second] + refitted.bias) <= 0)),
        "least error": float(wrong.min()),
        "bias": float(refitted.bias),
        "primal bias": bias,
        "side": side,
        "map": (model.decision_function(grid) - bias + refitted.bias).reshape(len(side), -1),
    }


def _check(values: Runs) -> list[Check]:
    off = values["dual and primal"][0]
    sums = values["weights"][0]
    return [
        Check(
            "Step 1: the function of the nearest points (25) is that of the primal (28)",
            off < 1e-5,
            f"largest difference {off:.1e} of the largest value (Lemma 1: no duality gap)",
        ),
        Check(
            "the weights of each class are those of a point of its hull",
            max(abs(total - 1) for total in sums) < 1e-6,
            f"they sum to {sums[0]:.8f} and {sums[1]:.8f}",
        ),
        Check(
            "Step 2: no bias makes fewer errors on T2 (26)",
            values["error on T2"][0] <= values["least error"][0] + 1e-12,
            f"{values['error on T2'][0]:.3f}, the best of 2001 tried by hand "
            f"{values['least error'][0]:.3f}",
        ),
    ]


def _draw(figure: Figure, values: Runs) -> None:
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    X, y = np.array(values["X"][0]), np.array(values["y"][0])
    first = np.array(values["first"][0], dtype=bool)
    side, shown = np.array(values["side"][0]), np.array(values["map"][0])
    shift = values["bias"][0] - values["primal bias"][0]
    for axis, rows, title in zip(
        axes, (first, ~first), ("T1: the function", "T2: the bias"), strict=True
    ):
        scatter(axis, X[rows], y[rows])
        axis.contour(side, side, shown, levels=[0], colors="black", linewidths=1.2)
        axis.contour(side, side, shown - shift, levels=[0], colors=COLOURS[2], linestyles="dashed")
        axis.set(title=title)
        axis.set_aspect("equal")
    axes[0].legend(loc="upper left", frameon=True)
    axes[1].plot([], [], color="black", label="with the bias of T2")
    axes[1].plot([], [], color=COLOURS[2], ls="--", label="with the primal bias")
    axes[1].legend(loc="upper left", frameon=True)
    lettered(axes)


EXPERIMENT = Experiment.of(
    globals(),
    title="Uncertainty sets, Figure 5: the kernel algorithm",
    protocol=(
        "The figure is the algorithm as text. Here its steps are carried out on 400 rows of Table "
        "1's normal classes, 30 % positive: 200 rows for the function (Gaussian kernel with gamma "
        "= 0.3, norm bound 10, h = 0), 200 for the bias.",
    ),
    tasks=lambda plan: [Task("steps", "steps")],
)
