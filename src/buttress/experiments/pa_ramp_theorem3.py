"""Theorem 3 of the PA-RAMP paper by simulation: coverage, the 1/sqrt(n) rate, consistency."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from buttress.experiments._figures import GREY, marked_line, panels
from buttress.experiments._grids import full_or_quick, grid, tasks_over
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Values
from buttress.experiments._sampling import generator
from buttress.experiments._world import WORLD_SENTENCE, slope, world

_RADII = (1.0, 4.0)
_SIZES = (50, 100, 200, 400, 800, 1600, 3200, 6400)
_SAMPLES = 100
_S = -1.0
_DELTA = 0.05
_QUANTITIES = ("excess error", "excess ramp risk in the ball", "bound")


def _run(plan: Plan, radius: float, n: int) -> Values:
    from buttress.classifiers import RampClassifier
    from buttress.losses import Ramp
    from buttress.theory import generalization_bound

    small_world, loss = world(), Ramp(s=_S)
    model = RampClassifier(radius=radius, s=_S, fit_intercept=False, kernel="precomputed", tol=1e-6)
    # The least ramp risk in the ball, and over all functions (at +1 or -1 by the Bayes rule).
    _, best = small_world.fitted(model, small_world.population())
    inside = small_world.risk(loss, best)
    outside = small_world.risk(loss, np.where(small_world.eta > 0.5, 1.0, -1.0))
    bound = float(generalization_bound(n, 1.0, radius, _DELTA, _S).total) + inside - outside
    key = f"{radius:g}/{n}"
    risks: dict[str, list[float]] = {name: [] for name in _QUANTITIES}
    draws = plan.runs(_SAMPLES, 3)
    for draw in range(draws):
        rows = small_world.sample(n, generator(plan.seed, draw, n, int(10 * radius)))
        if len(np.unique(rows.label)) < 2:
            continue
        _, f = small_world.fitted(model, rows)
        risks[_QUANTITIES[0]].append(small_world.error(f) - small_world.bayes_error)
        risks[_QUANTITIES[1]].append(small_world.risk(loss, f) - inside)
    risks["bound"] = [bound] * len(risks[_QUANTITIES[0]])
    return {f"{key}/{name}": values for name, values in risks.items()}


def _sizes(values: Runs, radius: float) -> list[int]:
    return [n for n in _SIZES if f"{radius:g}/{n}/bound" in values]


def _means(values: Runs, radius: float, quantity: str) -> list[float]:
    sizes = _sizes(values, radius)
    return [float(np.mean(values[f"{radius:g}/{n}/{quantity}"])) for n in sizes]


def _check(values: Runs) -> Iterator[Check]:
    for radius in _RADII:
        sizes = _sizes(values, radius)
        pairs = [
            (np.array(values[f"{radius:g}/{n}/excess error"]), values[f"{radius:g}/{n}/bound"][0])
            for n in sizes
        ]
        covered = float(np.mean(np.concatenate([excess <= bound for excess, bound in pairs])))
        worst = max(float(excess.max() / bound) for excess, bound in pairs)
        yield Check(
            f"the bound of Theorem 3 covers with probability {1 - _DELTA:g} (radius {radius:g})",
            covered >= 1 - _DELTA,
            f"in {covered:.1%} of {sum(len(e) for e, _ in pairs)} samples; the largest excess "
            f"is {worst:.2f} of its bound",
        )
        risks = _means(values, radius, _QUANTITIES[1])
        rate, error = slope(sizes, np.maximum(risks, 1e-12))
        yield Check(
            f"the excess ramp risk in the ball falls at least like 1/sqrt(n) (radius {radius:g})",
            True if rate + 2 * error <= -0.5 else None if rate - 2 * error <= -0.5 else False,
            f"like n^{rate:.2f} (± {error:.2f}) over n = {sizes[0]} to {sizes[-1]}",
            "An upper bound on the rate: faster is no contradiction",
        )
        errors = _means(values, radius, _QUANTITIES[0])
        yield Check(
            f"the ball-constrained machine is risk consistent (radius {radius:g})",
            errors[-1] < 0.1 * errors[0],
            f"excess error {errors[0]:.4f} at n = {sizes[0]}, {errors[-1]:.5f} at n = {sizes[-1]}",
            "The ball need not hold the ramp's minimiser for that: its best function has the "
            "Bayes rule's sign here",
        )


def _draw(figure: Figure, values: Runs) -> None:
    label = "mean over samples"
    for axis, radius in panels(figure, _RADII, label, loc="lower left", sharey=True):
        sizes = _sizes(values, radius)
        for k, quantity in enumerate(_QUANTITIES):
            means = np.maximum(_means(values, radius, quantity), 1e-6)
            label = quantity if quantity != "bound" else "bound of Theorem 3, delta = 0.05"
            axis.plot(sizes, means, label=label, **marked_line(k))
        risks = _means(values, radius, _QUANTITIES[1])
        axis.plot(
            sizes,
            risks[0] * np.sqrt(sizes[0] / np.array(sizes)),
            color=GREY,
            lw=0.8,
            label="1/sqrt(n)",
        )
        axis.set(title=f"radius {radius:g}", xscale="log", yscale="log", xlabel="n")


EXPERIMENT = Experiment.of(
    globals(),
    title="PA-RAMP, Theorem 3: the bound against simulation",
    protocol=(
        WORLD_SENTENCE.replace("a sin", "0.4 sin"),
        "Ramp machines with s = -1, no bias and ||f|| <= 1 or 4, by the concave-convex procedure: "
        "it finds stationary points, so the minimiser of the theorem is approximated from above. "
        "100 samples of every size.",
        "The bound is the printed one with k = 1 and delta = 0.05, plus the approximation error of "
        "the ball. The least ramp risk in the ball is found by the same procedure on the whole "
        "distribution.",
    ),
    cells=grid(
        {"radius": _RADII, "n": _SIZES, "quantity": _QUANTITIES},
        group="radius {}",
        unit="risk",
    ),
    tasks=tasks_over(
        "{radius:g}/{n}",
        "radius {radius:g}",
        radius=_RADII,
        n=full_or_quick(_SIZES, _SIZES[:2]),
    ),
)
