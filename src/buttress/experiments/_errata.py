"""What the papers print wrongly, and where a paper's text denies its own tables.

The contradictions are computed from the printed numbers of the experiments, not typed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from buttress.experiments._errata_list import MISPRINTS
from buttress.experiments._markup import Markdown

_REJECT_TABLES = (3, 4, 5)


@dataclass(frozen=True)
class Contradiction:
    """A sentence of a paper, and the numbers of its own table that deny it."""

    paper: str
    sentence: str
    table: str
    denied_by: tuple[str, ...]


def _printed(name: str) -> dict[str, float]:
    from buttress.experiments import get_experiment

    return {
        cell.id: cell.number for cell in get_experiment(name).cells if not math.isnan(cell.number)
    }


def _where(
    cells: Mapping[str, float], sides: Mapping[str, tuple[str, str]], slack: float = 0.0
) -> tuple[str, ...]:
    """The places at which the first number is not below the second, or above it by the slack."""
    numbers = {where: (cells[first], cells[second]) for where, (first, second) in sides.items()}
    return tuple(
        f"{where}: {first:g} against {second:g}"
        for where, (first, second) in numbers.items()
        if first >= second and (not slack or first > slack + second)
    )


def _rejection_rates() -> Iterator[Contradiction]:
    for number in _REJECT_TABLES:
        cells = _printed(f"double-ramp-table{number}")
        costs = [key.split("/")[0] for key in cells if key.endswith("double ramp/RR")]
        sides = {
            f"d = {d}": (f"{d}/double ramp/RR", f"{d}/double hinge/RR") for d in costs if d != "0.5"
        }
        yield Contradiction(
            "Double ramp",
            "significantly lesser rejection rate for all the datasets and for all values of d",
            f"Table {number}",
            _where(cells, sides),
        )


def _risk_identity() -> Iterator[Contradiction]:
    """Risk = (1 - RR)(1 - accuracy) + d RR in every repetition, so nearly in the means too.

    The mean of a product differs from the product of means by their covariance, at most the
    product of the two printed deviations; rounding adds less than a thousandth. Two are allowed.
    """
    from buttress.experiments import get_experiment

    for number in _REJECT_TABLES:
        cells = {cell.id: cell for cell in get_experiment(f"double-ramp-table{number}").cells}
        off = []
        for key, cell in cells.items():
            d, method, quantity = key.split("/")
            share, right = cells[f"{d}/{method}/RR"], cells[f"{d}/{method}/accuracy"]
            if quantity != "risk" or math.isnan(cell.number + right.number):
                continue
            rejected, accuracy = share.number / 100, right.number / 100
            implied = (1 - rejected) * (1 - accuracy) + float(d) * rejected
            slack = float(share.spread or 0) * float(right.spread or 0) / 1e4 + 2e-3
            if abs(implied - cell.number) > slack:
                off.append(f"{method}, d = {d}: {cell.printed} printed, {implied:.3f} implied")
        yield Contradiction(
            "Double ramp",
            "risk, rejection rate and accuracy are of the same runs (they are not where accuracies "
            "were averaged over folds)",
            f"Table {number}",
            tuple(off),
        )


def _support_vectors() -> Iterator[Contradiction]:
    cells = _printed("pa-ramp-table2")
    sets = list(dict.fromkeys(key.split("/")[0] for key in cells))
    rivals = ("Pegasos", "NORMA")
    compared = {
        f"{name}, noise {rate}, {rival}": (f"{name}/{rate}/PA-RAMP", f"{name}/{rate}/{rival}")
        for name, rate, rival in product(sets, ("0", "0.05", "0.1"), rivals)
    }
    fewer = {where: (f"{ours}/SVs", f"{rival}/SVs") for where, (ours, rival) in compared.items()}
    better = {
        where: (f"{rival}/accuracy", f"{ours}/accuracy")
        for where, (ours, rival) in compared.items()
    }
    grows = {
        f"{name}, {rival}, from 0 to 10 %": (f"{name}/0/{rival}/SVs", f"{name}/0.1/{rival}/SVs")
        for name, rival in product(sets, ("Perceptron", *rivals))
    }
    for sentence, sides, slack in (
        (
            "PA-RAMP induces significantly less support vectors than others except perceptron",
            fewer,
            0.0,
        ),
        ("as the noise increases, other methods tend to store more support vectors", grows, 0.0),
        (
            "comparable and even better performances to others (a point or more below is counted)",
            better,
            1.0,
        ),
    ):
        yield Contradiction("PA-RAMP", sentence, "Table 2", _where(cells, sides, slack))


def _minimax() -> Iterator[Contradiction]:
    table1, table3 = _printed("uncertainty-table1"), _printed("uncertainty-table3")
    balanced = {
        method: ("0.5/MPM", f"0.5/{method}")
        for method in ("C-SVM", "unbiased MPM", "h = 0", "h = 1")
    }
    yield Contradiction(
        "Uncertainty sets",
        "on the setup of the balanced data, MPM is slightly better than the other methods",
        "Table 1",
        _where(table1, balanced),
    )
    smaller = {
        name: (f"{name}/h = 0", f"{name}/unbiased MPM")
        for name in dict.fromkeys(key.split("/")[0] for key in table3)
        if name not in ("flare_solar_ida", "titanic_ida")
    }
    yield Contradiction(
        "Uncertainty sets",
        "our method with h = 0 achieves the smaller test errors (no duplicated covariates)",
        "Table 3",
        _where(table3, smaller),
    )


def _counts() -> Iterator[Contradiction]:
    """The leaky hockey stick paper counts its wins; the counts are those of its table."""
    cells = _printed("lhs-table2")
    for kernel, quantity, what, claimed in (
        ("linear", "error", "outperforms", 10),
        ("Gaussian", "error", "outperforms", 6),
        ("linear", "seconds", "is faster than", 15),
        ("Gaussian", "seconds", "is faster than", 13),
    ):
        ending = f"{kernel}/LHS/{quantity}"
        ours = [key for key in cells if key.endswith(ending)]
        wins = sum(cells[key] < cells[key.replace("/LHS/", "/SVM/")] for key in ours)
        yield Contradiction(
            "Leaky hockey stick",
            f"the {kernel} LHS {what} the SVM on {claimed} of 15 data sets",
            "Table 2",
            () if wins == claimed else (f"its table has {wins}",),
        )


def contradictions() -> list[Contradiction]:
    """Every sentence that was held against its own table, denied or not."""
    return [*_support_vectors(), *_counts(), *_rejection_rates(), *_risk_identity(), *_minimax()]


def write_errata(page: Markdown) -> str:
    """The page of errata: contradictions first, misprints after them."""
    page.heading("Errata of the papers")
    held = contradictions()
    denied = [sentence for sentence in held if sentence.denied_by]
    page.paragraph(
        f"{len(held)} sentences of the papers were held against the numbers printed in their own "
        f"tables, without any run of ours; {len(denied)} are denied by them. Below that, formulas "
        "and descriptions that cannot be as printed, each with the evidence; the library "
        "implements the corrected form."
    )
    page.heading("A text against its own table", 2)
    page.table(
        ["paper", "sentence", "table", "denied by"],
        [
            [sentence.paper, sentence.sentence, sentence.table, _shortened(sentence.denied_by)]
            for sentence in [*denied, *(sentence for sentence in held if not sentence.denied_by)]
        ],
    )
    for paper, rows in MISPRINTS.items():
        page.heading(paper, 2)
        page.table(["where", "printed", "correct", "evidence"], [list(row) for row in rows])
    return str(page)


def _shortened(cases: tuple[str, ...], most: int = 8) -> str:
    if not cases:
        return "nothing: the numbers bear it out"
    more = f"; and {len(cases) - most} more" if len(cases) > most else ""
    return "; ".join(cases[:most]) + more
