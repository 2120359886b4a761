"""Lemma 4 and Remark 5 of the leaky hockey stick paper: both bounds against simulation."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.experiments._figures import marked_line, plot_means
from buttress.experiments._grids import full_or_quick, grid, tasks_over
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Values
from buttress.experiments._sampling import generator
from buttress.experiments._world import WORLD_SENTENCE, World, world

_SIZES = (50, 200, 800, 3200)
_DELTAS = (0.05, 0.1, 0.2, 0.5, 1.0)
_SAMPLES = 100
_SWING = 0.49
_QUANTITIES = {"excess": "excess error", "reach": "max |f| / (B / (2 lambda)), Remark 5"}
_BOUNDS = {f"bound/{delta:g}": f"Lemma 4, delta = {delta:g}" for delta in _DELTAS}


def _penalty(n: int) -> float:
    """Admissible for Theorem 5: falls to zero, and slower than 1/n."""
    return float(0.05 / np.sqrt(n))


def _lemma4(small_world: World, f: NDArray[Any], delta: float) -> float:
    """The right side of Lemma 4 for the values f at the points."""
    from buttress.losses import LeakyHockeyStick

    loss, eta = LeakyHockeyStick(), small_world.eta
    clear = eta * (1 - eta) <= delta / 2 * (1 - delta / 2)
    best = np.where(eta > 0.5, eta / (1 - eta), -(1 - eta) / eta)
    excess = eta * (loss.value(f) - loss.value(best))
    excess += (1 - eta) * (loss.value(-f) - loss.value(-best))
    differ = (f > 0) != (eta > 0.5)
    return float((differ & clear).mean() + np.where(clear, 0.0, excess).mean())


def _run(plan: Plan, n: int) -> Values:
    from buttress.classifiers import LeakyHockeyStickClassifier

    small_world, penalty = world(swing=_SWING), _penalty(n)
    model = LeakyHockeyStickClassifier(alpha=penalty, kernel="precomputed", fit_intercept=False)
    values: Values = {}
    for draw in range(plan.runs(_SAMPLES, 5)):
        _, f = small_world.fitted(model, small_world.sample(n, generator(plan.seed, draw, n, 4)))
        of_draw = {
            "excess": small_world.error(f) - small_world.bayes_error,
            "reach": float(np.abs(f).max()) * 2 * penalty,
        }
        of_draw |= {f"bound/{delta:g}": _lemma4(small_world, f, delta) for delta in _DELTAS}
        for key, value in of_draw.items():
            values.setdefault(f"{n}/{key}", []).append(value)
    return values


def _check(values: Runs) -> list[Check]:
    sizes = [n for n in _SIZES if f"{n}/excess" in values]
    broken, ratio = 0, 0.0
    count = 0
    for n, delta in product(sizes, _DELTAS):
        excess = np.array(values[f"{n}/excess"])
        bound = np.array(values[f"{n}/bound/{delta:g}"])
        broken += int(np.sum(excess > bound + 1e-9))
        count += len(excess)
        ratio = max(ratio, float(np.max(excess / np.maximum(bound, 1e-12))))
    best = {
        n: min(_DELTAS, key=lambda d: float(np.mean(values[f"{n}/bound/{d:g}"]))) for n in sizes
    }
    tight = ", ".join(
        f"{np.mean(values[f'{n}/bound/{best[n]:g}']):.3f} (delta = {best[n]:g}) against "
        f"{np.mean(values[f'{n}/excess']):.4f} at n = {n}"
        for n in sizes
    )
    reach = max(float(np.max(values[f"{n}/reach"])) for n in sizes)
    return [
        Check(
            "the excess error is below the bound of Lemma 4 for every delta",
            broken == 0,
            f"{broken} of {count} pairs break it; the excess is at most {ratio:.2f} of the bound",
        ),
        Check(
            "the best delta's bound falls as n grows",
            bool(
                np.mean(values[f"{sizes[-1]}/bound/{best[sizes[-1]]:g}"])
                < np.mean(values[f"{sizes[0]}/bound/{best[sizes[0]]:g}"])
            ),
            tight,
        ),
        Check(
            "|f| <= B / (2 lambda) (Remark 5)",
            reach <= 1 + 1e-9,
            f"at most {reach:.3f} of the bound",
        ),
    ]


def _draw(figure: Figure, values: Runs) -> None:
    axis = figure.subplots()
    for k, (key, text) in enumerate({"excess": "excess error", **_BOUNDS}.items()):
        keys = {n: f"{n}/{key}" for n in _SIZES}
        least = 1e-6 if key == "excess" else -np.inf
        plot_means(axis, values, keys, {"label": text} | marked_line(k), least=least)
    axis.set(xscale="log", yscale="log", xlabel="n", ylabel="mean over samples")
    axis.legend()


EXPERIMENT = Experiment.of(
    globals(),
    title="Leaky hockey stick, Lemma 4 and Remark 5: bounds against simulation",
    protocol=(
        WORLD_SENTENCE.replace("a sin", "0.49 sin"),
        "Machines (13) without intercept, lambda = 0.05 / sqrt(n); 100 samples of every size.",
        "Lemma 4: the probability of a wrong sign where p (1 - p) is at most delta/2 (1 - "
        "delta/2), plus the excess leaky hockey stick risk elsewhere, both computed exactly. "
        "Remark 5 with B = 1.",
    ),
    cells=(
        *grid({"n": _SIZES, "quantity": _QUANTITIES}, group="n = {}", unit="risk"),
        *grid({"n": _SIZES, "quantity": _BOUNDS}, group="n = {}", unit="risk"),
    ),
    tasks=tasks_over("n = {n}", "n = {n}", n=full_or_quick(_SIZES, _SIZES[:2])),
)
