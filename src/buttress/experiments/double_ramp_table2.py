"""Table 2 of the double ramp paper: which dual variables a converged machine has where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.datasets import make_noisy_band, make_reject_synthetic
from buttress.experiments._figures import COLOURS, GREY, MARKERS
from buttress.experiments._grids import repeats, tasks_over
from buttress.experiments._model import Cell, Check, Experiment, Figure, Plan, Runs, Values
from buttress.experiments._sampling import seed_of

# region of y f(x), what the paper says of gamma' and gamma'' there
_REGIONS = (
    ("above rho + mu", "0", "0"),
    ("at rho + mu", "between", "0"),
    ("rho - mu^2 to rho + mu", "Cd/mu", "0"),
    ("-rho + mu to rho - mu^2", "0", "0"),
    ("at -rho + mu", "0", "between"),
    ("-rho - mu^2 to -rho + mu", "0", "C(1-d)/mu"),
    ("below -rho - mu^2", "0", "0"),
)
_SETS = ("noisy band", "synthetic")
_RUNS = 10
_AT_END = 1e-5


def _cells() -> tuple[Cell, ...]:
    return tuple(
        Cell(
            f"{name}/{region}",
            name,
            {"data": name, "y f(x)": region, "gamma'": first, "gamma''": second},
            unit="rows as stated (%)",
            scale=100.0,
            better=None,
        )
        for name in _SETS
        for region, first, second in _REGIONS
    )


def _regions(margin: NDArray[Any], rho: float, mu: float) -> NDArray[Any]:
    """The row of Table 2 every margin belongs to, the earliest where bands overlap."""
    region = np.full(len(margin), len(_REGIONS) - 1)
    region[margin >= -rho - mu**2 - _AT_END] = 5
    region[np.abs(margin - (mu - rho)) <= _AT_END] = 4
    region[(margin > mu - rho + _AT_END) & (margin < rho - mu**2 - _AT_END)] = 3
    region[(margin >= rho - mu**2 - _AT_END) & (margin < rho + mu - _AT_END)] = 2
    region[np.abs(margin - rho - mu) <= _AT_END] = 1
    region[margin > rho + mu + _AT_END] = 0
    return region


def _run(plan: Plan, name: str, repeat: int) -> Values:
    from buttress.solvers.hinge.reject import DoubleRampTerms, solve_double_ramp

    seed = seed_of(plan.seed, repeat, 12)
    make, n, C = (
        (make_noisy_band, 400, 100.0) if name == "noisy band" else (make_reject_synthetic, 300, 2.0)
    )
    sample = make(n, random_state=seed)
    d, mu = 0.2, 1.0
    y = sample.y.astype(float)
    terms = DoubleRampTerms(d=d, mu=mu)
    solution = solve_double_ramp(sample.X @ sample.X.T, y, terms, C=C, tol=1e-9)
    margin = y * (solution.g + solution.b)
    # gamma' + gamma'' as shares of C/mu: what a machine reveals of both
    share = y * solution.c * mu / C
    region = _regions(margin, solution.rho, mu)
    # the sum of the two, as the row of the table says: at most one is not zero
    stated = np.array([0, np.nan, d, 0, np.nan, 1 - d, 0])[region]
    top = np.array([0, d, d, 0, 1 - d, 1 - d, 0])[region]
    as_stated = np.where(
        np.isnan(stated),
        (share >= -1e-6) & (share <= top + 1e-6),
        np.abs(share - np.nan_to_num(stated)) <= 1e-6,
    )
    values: Values = {
        f"{name}/{text}": float(as_stated[region == k].mean())
        for k, (text, _, _) in enumerate(_REGIONS)
        if np.any(region == k)
    }
    values[f"{name}/apart"] = bool(2 * solution.rho >= mu + mu**2)
    values[f"{name}/as stated"] = float(as_stated.mean())
    if repeat == 0:
        values |= {
            f"{name}/margin": margin,
            f"{name}/share": share,
            f"{name}/rho": solution.rho,
        }
    return values


def _check(values: Runs) -> Iterator[Check]:
    for name in _SETS:
        if f"{name}/apart" not in values:
            continue
        apart = np.array(values[f"{name}/apart"], dtype=bool)
        stated = np.array(values[f"{name}/as stated"], dtype=float)
        text = f"2 rho >= mu + mu^2 in {apart.sum()} of {len(apart)} sets"
        if apart.any():
            text += f"; {stated[apart].mean():.1%} of the rows as stated there"
        if not apart.all():
            text += f"; {stated[~apart].mean():.1%} where the bands overlap"
        yield Check(
            f"every row of Table 2 holds where the two bands are apart ({name})",
            bool(stated[apart].min() > 0.999) if apart.any() else None,
            text,
        )


def _draw(figure: Figure, values: Runs) -> None:
    shown = [name for name in _SETS if f"{name}/margin" in values]
    axes = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for axis, name in zip(axes, shown, strict=True):
        margin = np.array(values[f"{name}/margin"][0])
        share = np.array(values[f"{name}/share"][0])
        rho = values[f"{name}/rho"][0]
        axis.plot(margin, share, MARKERS[0], ms=3, color=COLOURS[0])
        for end in (rho + 1, rho - 1, 1 - rho, -rho - 1):
            axis.axvline(end, color=GREY, lw=0.8, ls=":")
        axis.set(title=f"{name} (rho = {rho:.2f})", xlabel="y f(x)", xlim=(-rho - 4, rho + 4))
    axes[0].set_ylabel("(gamma' + gamma'') mu / C")


EXPERIMENT = Experiment.of(
    globals(),
    title="Double ramp, Table 2: dual variables at convergence",
    protocol=(
        "Machines with mu = 1 and d = 0.2 on 10 draws each of the noisy band (C = 100) and the "
        "synthetic set (C = 2), linear kernel, solved to 1e-9.",
        "For every region of y f(x) that Table 2 names: the share of its rows whose gamma' + "
        "gamma'' is what the table says (0, Cd/mu, C(1-d)/mu, or between), to 1e-6. Where bands "
        "overlap a row counts with the earlier one. Dotted: the ends of the bands.",
        "The paper's table assumes that the bands do not overlap, which is 2 rho >= mu + mu^2.",
    ),
    cells=_cells(),
    tasks=tasks_over("{name}/{repeat}", repeat=repeats(_RUNS, 2), name=_SETS),
)
