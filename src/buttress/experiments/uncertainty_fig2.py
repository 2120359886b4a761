"""Figure 2 of the uncertainty set paper: its algorithm for linear rules, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.experiments._figures import COLOURS, MARKERS, lettered
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Task, Values
from buttress.experiments._sampling import generator


def two_classes(
    random: np.random.Generator, sizes: tuple[int, int], centres: Any, width: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Two normal classes in the plane, the first turned, the second narrower in one direction."""
    positive = random.standard_normal((sizes[0], 2)) @ np.array([[1.0, 0.5], [0.0, 0.6]])
    negative = random.standard_normal((sizes[1], 2)) * [width, 1.0]
    return np.concatenate([positive + centres[0], negative - centres[1]]), np.repeat([1, -1], sizes)


def _run(plan: Plan) -> Values:
    from buttress.classifiers import UncertaintySetClassifier

    X, y = two_classes(generator(plan.seed, 16), (60, 40), ([1.2, 0.8], [1.0, 0.7]), 0.7)
    radius = 3.0
    model = UncertaintySetClassifier(kernel="linear", bias="error_rate", radius=radius).fit(X, y)
    weights = np.asarray(model.set_weights_)
    nearest = np.stack([weights[y == label] @ X[y == label] for label in (1, -1)])
    scores = X @ model.coef_[0]
    # Step 3 by hand: the error of every bias between two neighbouring scores
    between = np.sort(-scores)
    tries = np.concatenate([[between[0] - 1], (between[1:] + between[:-1]) / 2, [between[-1] + 1]])
    wrong = np.array([np.mean(y * (scores + b) <= 0) for b in tries])
    return {
        "X": X,
        "y": y,
        "w": model.coef_[0],
        "b": float(model.intercept_[0]),
        "radius": radius,
        "nearest": nearest,
        "positive set": model.uncertainty_sets_[0].boundary(120),
        "negative set": model.uncertainty_sets_[1].boundary(120),
        "biases": tries,
        "errors": wrong,
        "error": float(np.mean(y * (scores + model.intercept_[0]) <= 0)),
    }


def _check(values: Runs) -> list[Check]:
    from scipy.spatial import ConvexHull

    X, y, w = (np.array(values[key][0]) for key in ("X", "y", "w"))
    apart = np.subtract(*np.array(values["nearest"][0]))
    cosine = float(w @ apart / np.linalg.norm(w) / np.linalg.norm(apart))
    outside = []
    for label, name in ((1, "positive set"), (-1, "negative set")):
        planes = ConvexHull(X[y == label]).equations
        outside.append(float((np.array(values[name][0]) @ planes[:, :2].T + planes[:, 2]).max()))
    size = float(np.linalg.norm(w))
    best = min(values["errors"][0])
    return [
        Check(
            "Step 1: each set lies in the hull of its class", max(outside) < 1e-6,
            f"outside by at most {max(outside):.1e}",
        ),
        Check(
            "Step 2: w points from one nearest point to the other, with norm lambda (12)",
            bool(cosine > 1 - 1e-6 and abs(size - values["radius"][0]) < 1e-6),
            f"cosine {cosine:.8f}, norm {size:.6f} of {values['radius'][0]:g}",
        ),
        Check(
            "Step 3: no bias makes fewer errors on the sample (13)",
            values["error"][0] <= best + 1e-12,
            f"{values['error'][0]:.3f}; the best of {len(values['errors'][0])} tried by hand "
            f"{best:.3f}",
        ),
    ]  # fmt: skip


def scatter(axis: Any, X: NDArray[Any], y: NDArray[Any], **style: Any) -> None:
    """The two classes by colour and marker."""
    for k, (label, name) in enumerate(((1, "positive"), (-1, "negative"))):
        axis.scatter(
            *X[y == label].T, s=10, marker=MARKERS[k], color=COLOURS[1 - k], label=name,
            **style,
        )  # fmt: skip


def _draw(figure: Figure, values: Runs) -> None:
    figure.set_size_inches(10, 3.6)
    axes = figure.subplots(1, 3)
    X, y = np.array(values["X"][0]), np.array(values["y"][0])
    for axis in axes[:2]:
        scatter(axis, X, y)
        for name, colour in (("positive set", COLOURS[1]), ("negative set", COLOURS[0])):
            axis.fill(*np.array(values[name][0]).T, color=colour, alpha=0.25)
        axis.set_aspect("equal")
    axes[0].set(title="Step 1: the sets")
    axes[0].legend(loc="upper left")
    w, b = np.array(values["w"][0]), values["b"][0]
    axes[1].plot(*np.array(values["nearest"][0]).T, "o-", color="black", ms=4, lw=1)
    height = np.array([X[:, 1].min(), X[:, 1].max()])
    axes[1].plot((-b - w[1] * height) / w[0], height, "--", color="black")
    limits = (X[:, 0].min() - 0.3, X[:, 0].max() + 0.3)
    axes[1].set(title="Step 2: nearest points", xlim=limits)
    axes[0].set_xlim(limits)
    axes[2].step(values["biases"][0], 100 * np.array(values["errors"][0]), color=COLOURS[0])
    axes[2].axvline(b, color="black", ls="--")
    axes[2].set(title="Step 3: the bias", xlabel="b", ylabel="training error (%)")
    lettered(axes)


EXPERIMENT = Experiment.of(
    globals(),
    title="Uncertainty sets, Figure 2: the algorithm for linear rules",
    protocol=(
        "The figure is the algorithm as text. Here its three steps are carried out on two normal "
        "samples of 60 and 40 rows: sets of the ellipsoid loss (h = 0), nearest points with norm "
        "bound 3, bias by the error rate.",
    ),
    tasks=lambda plan: [Task("steps", "steps")],
)
