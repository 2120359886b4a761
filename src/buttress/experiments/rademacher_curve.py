"""The Rademacher penalty paper: the penalty against the norm for several slopes of the loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.datasets import load_dataset
from buttress.experiments._figures import line_style, panels
from buttress.experiments._grids import full_or_quick, tasks_over
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Values
from buttress.experiments._sampling import generator, standardised
from buttress.kernels import make_kernel, resolve_gamma

SETS = ("sonar", "ionosphere", "heart_ida")
SLOPES = (0.1, 0.3, 1.0)


def problem(name: str, rows: int, random: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Similarities of random rows of a set, standardised, and their labels as signs."""
    bunch = load_dataset(name)
    kept = random.permutation(len(bunch.y))[:rows]
    X, y = standardised(bunch.X[kept]), np.where(bunch.y[kept] == bunch.y.max(), 1.0, -1.0)
    return np.asarray(make_kernel("rbf", gamma=resolve_gamma("median", X, None))(X, X)), y


def _run(plan: Plan, name: str, slope: float) -> Values:
    from buttress.theory import rademacher_penalty

    K, y = problem(name, 25 if plan.quick else 100, generator(plan.seed))
    curve = rademacher_penalty(
        K,
        y,
        gamma=slope,
        n_draws=4 if plan.quick else plan.runs(20),
        n_starts=2 if plan.quick else 5,
        random_state=plan.seed,
    )
    norms = np.logspace(-2, 3, 41)
    at = curve.at(norms)
    return {
        f"{name}/W": norms,
        f"{name}/{slope:g}/penalty": at.mean,
        f"{name}/{slope:g}/error": at.standard_error,
        f"{name}/{slope:g}/bound": at.trace_bound,
    }


def _check(values: Runs) -> Iterator[Check]:
    for name in SETS:
        slopes = [slope for slope in SLOPES if f"{name}/{slope:g}/penalty" in values]
        if not slopes:
            continue
        curves = {s: np.array(values[f"{name}/{s:g}/penalty"][0], dtype=float) for s in slopes}
        errors = {s: np.array(values[f"{name}/{s:g}/error"][0], dtype=float) for s in slopes}
        bound = np.array(values[f"{name}/{slopes[0]:g}/bound"][0], dtype=float)
        # the mean of finitely many draws may exceed a bound on its expectation by noise
        over = max(float((curves[s] - bound - 3 * errors[s]).max()) for s in slopes)
        share = max(float((curves[s] / bound).max()) for s in slopes)
        yield Check(
            f"the penalty is below the trace bound ({name})",
            over <= 0,
            f"at most {share:.2f} of it",
        )
        rising = all(bool(np.all(np.diff(curve) >= -1e-9)) for curve in curves.values())
        yield Check(f"the penalty grows with the norm ({name})", rising, "every slope")
        if len(slopes) == len(SLOPES):
            ends = [float(curves[s][-1]) for s in slopes]
            text = ", ".join(f"{end:.2f}" for end in ends)
            yield Check(
                f"a steeper loss is penalised more at large norms ({name})",
                ends == sorted(ends),
                text,
            )


def _draw(figure: Figure, values: Runs) -> None:
    shown = [name for name in SETS if f"{name}/W" in values]
    for axis, name in panels(figure, shown, "penalty", loc="lower right", sharey=True):
        norms = np.array(values[f"{name}/W"][0])
        for k, slope in enumerate(SLOPES):
            if f"{name}/{slope:g}/penalty" not in values:
                continue
            mean = np.array(values[f"{name}/{slope:g}/penalty"][0], dtype=float)
            error = np.array(values[f"{name}/{slope:g}/error"][0], dtype=float)
            style = line_style(k)
            axis.plot(norms, mean, label=f"gamma = {slope:g}", **style)
            low, high = mean - 2 * error, mean + 2 * error
            axis.fill_between(norms, low, high, color=style["color"], alpha=0.2, lw=0)
            bound = values[f"{name}/{slope:g}/bound"][0]
        axis.plot(norms, bound, ":", color="black", label="trace bound")
        axis.set(xscale="log", yscale="log", title=name, xlabel="W", ylim=(1e-3, 20))


EXPERIMENT = Experiment.of(
    globals(),
    title="Rademacher penalty: the penalty against the norm",
    protocol=(
        "100 random rows each of sonar, ionosphere and heart, features standardised, Gaussian "
        "kernel with the median width, no bias.",
        "Mean of the centred penalty over 20 sign vectors for the generalised ramp with slopes "
        "0.1, 0.3 and 1; 5 starts of the concave-convex procedure per sign vector and norm "
        "weight. The values are attained, so they are lower bounds of the penalty.",
        "The trace bound is (2/n) sqrt(W tr K). Bands show two standard errors.",
        "The paper derives the penalty and prints no experiment; what it implies is checked.",
    ),
    tasks=tasks_over("{name}/{slope:g}", name=full_or_quick(SETS, SETS[:1]), slope=SLOPES),
)
