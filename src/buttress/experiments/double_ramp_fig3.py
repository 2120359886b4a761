"""Figure 3 of the double ramp paper: labels are wrong near the boundary, and rejected there."""

from __future__ import annotations

import numpy as np

from buttress.datasets import make_noisy_band
from buttress.experiments._figures import COLOURS, lettered
from buttress.experiments._grids import repeats, tasks_over
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Values
from buttress.experiments._sampling import seed_of


def _run(plan: Plan, repeat: int) -> Values:
    from buttress.classifiers import DoubleRampClassifier

    sample = make_noisy_band(400, random_state=seed_of(plan.seed, repeat, 4))
    model = DoubleRampClassifier(kernel="linear", d=0.2, mu=1.0, C=100.0).fit(sample.X, sample.y)
    w = model.coef_[0]
    size = float(np.linalg.norm(w))
    rho = float(model.rho_)
    margin = sample.y * model.decision_function(sample.X)
    used = np.zeros(len(margin), dtype=bool)
    used[model.support_] = True
    near = np.minimum(np.abs(margin - rho), np.abs(margin + rho)) <= 1 + 1e-6
    values: Values = {
        "direction": np.append(w, model.intercept_[0]) / size,
        "half width": rho / size,
        "support share": used.mean(),
        "support near": near[used].mean(),
        "steps": model.n_iter_,
    }
    if repeat == 0:
        values |= {"X": sample.X, "y": sample.y, "wrong": sample.y != sample.y_clean, "used": used}
    return values


def _check(values: Runs) -> list[Check]:
    angles = [
        np.degrees(np.arccos(np.clip((d[1] - d[0]) / np.sqrt(2), -1, 1)))
        for d in values["direction"]
    ]
    half, near = np.array(values["half width"]), np.array(values["support near"])
    return [
        Check(
            "the boundary is the diagonal",
            float(np.mean(angles)) < 5,
            f"mean angle {np.mean(angles):.2f} degrees, largest {np.max(angles):.2f}, "
            f"{len(angles)} sets",
        ),
        Check(
            "the rejection region is the band (half width 0.1125)",
            bool(0.5 * 0.1125 < half.mean() < 2 * 0.1125),
            f"half width {half.mean():.3f} (sd {half.std(ddof=1) if len(half) > 1 else 0:.3f})",
        ),
        Check(
            "all support vectors are near one of the two hyperplanes",
            bool(np.mean(near == 1) > 0.5),
            f"within margin 1 of one in {np.sum(near == 1)} of {len(near)} sets, at least "
            f"{near.min():.1%} elsewhere; {np.mean(values['support share']):.0%} of the rows are "
            "support vectors",
        ),
    ]


def _draw(figure: Figure, values: Runs) -> None:
    X, y = np.array(values["X"][0]), np.array(values["y"][0])
    axes = figure.subplots(1, 2, sharey=True)
    for axis, filled in zip(axes, (values["wrong"][0], values["used"][0]), strict=True):
        filled = np.array(filled, dtype=bool)
        for label, marker, colour in ((-1, "o", COLOURS[0]), (1, "^", COLOURS[1])):
            for full in (True, False):
                rows = (y == label) & (filled == full)
                axis.scatter(
                    X[rows, 0],
                    X[rows, 1],
                    s=12,
                    marker=marker,
                    edgecolors=colour,
                    facecolors=colour if full else "none",
                    lw=0.6,
                    label=f"y = {label:+d}" if full else None,
                )
        axis.set_aspect("equal")
    a, b, c = values["direction"][0]
    ends = np.array([0.0, 1.0])
    for shift, style in (
        (0, "-"),
        (values["half width"][0], "--"),
        (-values["half width"][0], "--"),
    ):
        axes[1].plot(ends, (shift - c - a * ends) / b, style, color="black", lw=0.8)
    axes[0].set(title="wrong labels filled", ylim=(0, 1))
    axes[1].set(title="support vectors filled")
    axes[0].legend(loc="lower right", frameon=True)
    lettered(axes)


EXPERIMENT = Experiment.of(
    globals(),
    title="Double ramp, Figure 3: the noisy band",
    protocol=(
        "400 points in the unit square, labels by the diagonal, 80 flipped inside a band of "
        "width 0.225 around it; C = 100, mu = 1, d = 0.2, linear kernel, as printed.",
        "20 sets instead of one; the first is drawn.",
        "The paper prints no numbers here; its statements are checked.",
    ),
    tasks=tasks_over("repeat {repeat}", "band", repeat=repeats(20, 2)),
)
