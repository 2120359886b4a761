"""Lemmas 2 to 5 and Theorem 2 of the uncertainty set paper as numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from buttress.experiments._figures import GREY, marked_line, plot_means
from buttress.experiments._grids import grid
from buttress.experiments._model import Cell, Check, Experiment, Figure, Plan, Runs, Task, Values
from buttress.experiments._sampling import generator
from buttress.experiments._world import WORLD_SENTENCE, World, world
from buttress.losses import TruncatedQuadratic

_SIZES = (50, 100, 200, 400, 800, 1600, 3200)
_RADII = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
_SAMPLES = 100
# Theorem 2 with the truncated quadratic loss allows lambda = m^a, a < 1/4 (Example 7).
_RADIUS_POWER = 0.2
_EPSILON = 0.5
_LOSS = TruncatedQuadratic()


def _radius(m: float) -> float:
    return float(m**_RADIUS_POWER)


_IN_BALL = {"least": "least risk in the ball (Lemma 3)"}
_OF_SAMPLES = {
    "excess": "R - R* (Theorem 2)",
    "size": "max(|b|, |rho|) / (2 K lambda + 2 z) (Lemma 4)",
    "deviation": "|R^ - R| at the solution (Lemma 5)",
    "uniform": "epsilon at which Lemma 5's bound is 0.05",
}


def _cells(where: dict[str, str], quantities: dict[str, str]) -> tuple[Cell, ...]:
    axes = {"where": where, "quantity": quantities}
    return grid(axes, group="bounds", unit="value", better=None)


def least_risk(small_world: World) -> float:
    """R*: the least of -2 rho + E l(rho - y f(x)) over all functions f and all rho."""
    value = _LOSS.value
    z = np.linspace(-8, 8, 4001)

    def at(rho: float) -> float:
        mixed = small_world.eta[:, None] * value(rho - z) + (1 - small_world.eta)[:, None] * value(
            rho + z
        )
        return float(-2 * rho + mixed.min(axis=1).mean())

    return float(optimize.minimize_scalar(at, bounds=(-2, 4), method="bounded").fun)


def lemma2(small_world: World) -> tuple[float, float]:
    """The best bound -2 z over epsilon, l'(z) = 1/(epsilon P(S)), and its epsilon."""
    bounds = []
    for epsilon in np.linspace(0.02, 0.45, 44):
        share = float(np.mean((small_world.eta > epsilon) & (small_world.eta < 1 - epsilon)))
        if share > 0:
            # l'(z) = 2 (1 + z) for the truncated quadratic loss
            bounds.append((-2 * (1 / (2 * epsilon * share) - 1), epsilon))
    return max(bounds)


def lemma4(small_world: World, radius: float) -> float:
    """The bound 2 K lambda + 2 z on |b| and |rho|, l'(z) = 4 / the rarer label's probability."""
    rare = min(small_world.eta.mean(), 1 - small_world.eta.mean())
    z = 4 / rare / 2 - 1
    return float(2 * radius + 2 * z)


def _log_cover(eigenvalues: NDArray[Any], radius: float, epsilon: float) -> float:
    """Log of a covering number of the ball in the supremum norm, by its leading directions.

    Functions of the other directions are below half of epsilon; those of the leading ones are
    covered in the norm of the space, which the supremum norm is below (K = 1).
    """
    # sup of the rest of f is at most radius times the root of its kernel's diagonal
    for leading in range(len(eigenvalues)):
        if radius * np.sqrt(eigenvalues[leading:].sum()) <= epsilon / 2:
            return float(leading * np.log1p(4 * radius / epsilon))
    return float(len(eigenvalues) * np.log1p(4 * radius / epsilon))


def lemma5(small_world: World, m: float, radius: float, epsilon: float) -> float:
    """Log of the right side of (36): how likely a deviation of epsilon is at most."""
    values, vectors = np.linalg.eigh(small_world.K)
    # each direction's largest contribution to the diagonal
    shares = np.sort(np.maximum(values, 0) * (vectors**2).max(axis=0))[::-1]
    constant = lemma4(small_world, radius) / radius
    lipschitz = 2 * ((1 + 2 * constant) * radius + 1)
    largest = 4 * constant * radius + ((1 + 2 * constant) * radius + 1) ** 2
    scaled = epsilon / (9 * (2 + lipschitz))
    cover = _log_cover(shares, radius, scaled)
    cover += 2 * np.log(18 * constant * radius * (2 + lipschitz) / epsilon)
    return float(np.log(2) + cover - 2 * m * epsilon**2 / (9 * largest**2))


def _uniform(small_world: World, m: int, radius: float) -> float:
    """The deviation that (36) excludes with probability 0.95 at this size."""

    def short(log_epsilon: float) -> float:
        return lemma5(small_world, m, radius, math.exp(log_epsilon)) - math.log(0.05)

    return float(np.exp(optimize.brentq(short, np.log(1e-3), np.log(1e6))))


def _tasks(plan: Plan) -> list[Task]:
    sizes = _SIZES[:2] if plan.quick else _SIZES
    tasks = [Task(f"m = {m}", "bounds", {"m": m}) for m in sizes]
    return [Task("population", "bounds", {"m": 0}), *tasks]


def _machine(radius: float) -> Any:
    from buttress.classifiers import UncertaintySetClassifier

    return UncertaintySetClassifier(
        loss="truncated_quadratic", radius=radius, bias="primal", kernel="linear"
    )


def _risk(small_world: World, f: NDArray[Any], rho: float) -> float:
    value = _LOSS.value
    mixed = small_world.eta * value(rho - f) + (1 - small_world.eta) * value(rho + f)
    return float(-2 * rho + mixed.mean())


def _run(plan: Plan, m: int) -> Values:
    small_world = world()
    if m == 0:
        bound, epsilon = lemma2(small_world)
        values: Values = {"R*": least_risk(small_world), "lemma 2": bound, "epsilon": epsilon}
        for radius in _RADII:
            model, f = small_world.fitted_linear(_machine(radius), small_world.population())
            values[f"radius/{radius:g}/least"] = _risk(small_world, f, float(model.rho_))
        # rows with which (36) excludes a deviation of epsilon = 0.5 with probability 0.95
        needed = [
            power
            for power in range(2, 80)
            if lemma5(small_world, 10.0**power, _radius(10.0**power), _EPSILON) < math.log(0.05)
        ]
        return values | {"digits for Lemma 5": min(needed, default=80)}
    radius = _radius(m)
    best, value = least_risk(small_world), _LOSS.value
    of_draws: dict[str, list[float]] = {key: [] for key in ("excess", "size", "deviation")}
    for draw in range(plan.runs(_SAMPLES, 5)):
        rows = small_world.sample(m, generator(plan.seed, draw, m, 6))
        model, f = small_world.fitted_linear(_machine(radius), rows)
        rho, b = float(model.rho_), float(model.intercept_[0])
        true = _risk(small_world, f, rho)
        seen = -2 * rho + np.average(value(rho - rows.label * f[rows.point]), weights=rows.weight)
        of_draws["excess"].append(true - best)
        of_draws["size"].append(max(abs(rho), abs(b)) / lemma4(small_world, radius))
        of_draws["deviation"].append(float(abs(seen - true)))
    values = {f"m/{m}/{key}": runs for key, runs in of_draws.items()}
    return values | {f"m/{m}/uniform": _uniform(small_world, m, radius)}


def _check(values: Runs) -> list[Check]:
    best, bound = values["R*"][0], values["lemma 2"][0]
    least = [values[f"radius/{radius:g}/least"][0] for radius in _RADII]
    sizes = [m for m in _SIZES if f"m/{m}/excess" in values]
    ratio = max(float(np.max(values[f"m/{m}/size"])) for m in sizes)
    pairs = [(np.array(values[f"m/{m}/deviation"]), values[f"m/{m}/uniform"][0]) for m in sizes]
    broken = sum(int(np.sum(seen > uniform)) for seen, uniform in pairs)
    excess = [float(np.mean(values[f"m/{m}/excess"])) for m in sizes]
    return [
        Check(
            "R* > -infinity (Lemma 2)",
            best >= bound,
            f"R* = {best:.3f}, the proof's bound is {bound:.2f} at epsilon = "
            f"{values['epsilon'][0]:.2f}",
        ),
        Check(
            "the least risk in the ball tends to R* as lambda grows (Lemma 3)",
            bool(np.all(np.diff(least) <= 1e-6) and abs(least[-1] - best) < 1e-3),
            ", ".join(f"{v - best:+.4f} at {r:g}" for r, v in zip(_RADII, least, strict=True)),
        ),
        Check(
            "|b| and |rho| are at most C lambda (Lemma 4)",
            ratio <= 1,
            f"at most {ratio:.2f} of the proof's bound 2 K lambda + 2 z, "
            f"{sum(len(values[f'm/{m}/size']) for m in sizes)} samples",
        ),
        Check(
            "deviations stay below what Lemma 5 excludes with probability 0.95",
            broken == 0,
            f"{broken} above; at m = {sizes[-1]} the deviation is "
            f"{np.quantile(pairs[-1][0], 0.95):.3f} (95 % of the samples), the lemma excludes "
            f"{pairs[-1][1]:.0f}. It needs some 10^{values['digits for Lemma 5'][0]:.0f} rows to "
            f"exclude {_EPSILON:g}",
            "True, and without use at any real size: the constant of Lemma 4 enters squared",
        ),
        Check(
            "R of the estimate tends to R* (Theorem 2, lambda = m^0.2)",
            bool(excess[-1] < 0.25 * excess[0]),
            ", ".join(f"{e:.3f} at m = {m}" for m, e in zip(sizes, excess, strict=True)),
        ),
    ]


def _draw(figure: Figure, values: Runs) -> None:
    left, right = figure.subplots(1, 2)
    best = values["R*"][0]
    least = [values[f"radius/{radius:g}/least"][0] - best for radius in _RADII]
    left.plot(_RADII, np.maximum(least, 1e-6), **marked_line(0))
    left.set(
        xscale="log", yscale="log", xlabel="lambda", ylabel="least risk in the ball - R*",
        title="Lemma 3",
    )  # fmt: skip
    shown = {
        "excess": _OF_SAMPLES["excess"],
        "deviation": "deviation at the solution",
        "uniform": "excluded by Lemma 5",
    }
    for k, (key, text) in enumerate(shown.items()):
        keys = {m: f"m/{m}/{key}" for m in _SIZES}
        plot_means(right, values, keys, {"label": text} | marked_line(k))
    right.axhline(1, color=GREY, lw=0.6)
    right.set(xscale="log", yscale="log", xlabel="m", title="Theorem 2 and Lemma 5")
    right.legend()


EXPERIMENT = Experiment.of(
    globals(),
    title="Uncertainty sets, Lemmas 2 to 5 and Theorem 2: bounds against simulation",
    protocol=(
        WORLD_SENTENCE.replace("a sin", "0.4 sin"),
        "Truncated quadratic loss; problem (29) with lambda = m^0.2, which Example 7 admits; 100 "
        "samples of every size.",
        "The constants are those of the proofs: z of Lemma 2 over the best epsilon, C of Lemma 4 "
        "from the rarer label, in Lemma 5 the covering number by the leading directions of the "
        "kernel. The deviation in Lemma 5 is measured at the solution, which is one member of the "
        "class, so the supremum of the lemma is at least that.",
    ),
    cells=(
        *_cells({f"radius/{radius:g}": f"lambda = {radius:g}" for radius in _RADII}, _IN_BALL),
        *_cells({f"m/{m}": f"m = {m}" for m in _SIZES}, _OF_SAMPLES),
    ),
)
