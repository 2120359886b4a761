"""What the papers print wrongly, and where a paper's text denies its own tables.

The contradictions are computed from the printed numbers of the experiments, not typed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from buttress.experiments._errata_list import MISPRINTS
from buttress.experiments._markup import Markdown


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
        cell.id: float(cell.printed)
        for cell in get_experiment(name).cells
        if cell.printed is not None and cell.printed != "NA"
    }


def _where(pairs: Sequence[tuple[str, float, float]]) -> tuple[str, ...]:
    """The places at which the first number is not below the second."""
    return tuple(
        f"{where}: {first:g} against {second:g}"
        for where, first, second in pairs
        if first >= second
    )


def _rejection_rates() -> list[Contradiction]:
    contradictions = []
    for number in (3, 4, 5):
        cells = _printed(f"double-ramp-table{number}")
        costs = [key.split("/")[0] for key in cells if key.endswith("double ramp/RR")]
        pairs = [
            (f"d = {d}", cells[f"{d}/double ramp/RR"], cells[f"{d}/double hinge/RR"])
            for d in costs
            if d != "0.5"
        ]
        contradictions.append(
            Contradiction(
                "Double ramp",
                "significantly lesser rejection rate for all the datasets and for all values of d",
                f"Table {number}",
                _where(pairs),
            )
        )
    return contradictions


def _risk_identity() -> list[Contradiction]:
    """Risk = (1 - RR)(1 - accuracy) + d RR in every repetition, so nearly in the means too.

    The mean of a product differs from the product of means by their covariance, at most the
    product of the two printed deviations; rounding adds less than a thousandth. Two are allowed.
    """
    from buttress.experiments import get_experiment

    contradictions = []
    for number in (3, 4, 5):
        cells = {cell.id: cell for cell in get_experiment(f"double-ramp-table{number}").cells}
        off = []
        for key, cell in cells.items():
            d, method, quantity = key.split("/")
            if quantity != "risk" or cell.printed is None:
                continue
            share, right = cells[f"{d}/{method}/RR"], cells[f"{d}/{method}/accuracy"]
            if right.printed in (None, "NA"):
                continue
            rejected = float(share.printed or "nan") / 100
            implied = (1 - rejected) * (1 - float(right.printed) / 100) + float(d) * rejected
            slack = float(share.spread or 0) * float(right.spread or 0) / 1e4 + 2e-3
            if abs(implied - float(cell.printed)) > slack:
                off.append(f"{method}, d = {d}: {cell.printed} printed, {implied:.3f} implied")
        contradictions.append(
            Contradiction(
                "Double ramp",
                "risk, rejection rate and accuracy are of the same runs (they are not where "
                "accuracies were averaged over folds)",
                f"Table {number}",
                tuple(off),
            )
        )
    return contradictions


def _support_vectors() -> list[Contradiction]:
    cells = _printed("pa-ramp-table2")
    sets = list(dict.fromkeys(key.split("/")[0] for key in cells))
    noise = ("0", "0.05", "0.1")
    fewer = [
        (
            f"{name}, noise {rate}, {rival}",
            cells[f"{name}/{rate}/PA-RAMP/SVs"],
            cells[f"{name}/{rate}/{rival}/SVs"],
        )
        for name in sets
        for rate in noise
        for rival in ("Pegasos", "NORMA")
    ]
    grows = [
        (
            f"{name}, {rival}, from 0 to 10 %",
            cells[f"{name}/0/{rival}/SVs"],
            cells[f"{name}/0.1/{rival}/SVs"],
        )
        for name in sets
        for rival in ("Perceptron", "Pegasos", "NORMA")
    ]
    better = [
        (
            f"{name}, noise {rate}, {rival}",
            cells[f"{name}/{rate}/{rival}/accuracy"],
            cells[f"{name}/{rate}/PA-RAMP/accuracy"],
        )
        for name in sets
        for rate in noise
        for rival in ("Pegasos", "NORMA")
        if cells[f"{name}/{rate}/{rival}/accuracy"] > 1 + cells[f"{name}/{rate}/PA-RAMP/accuracy"]
    ]
    return [
        Contradiction(
            "PA-RAMP",
            "PA-RAMP induces significantly less support vectors than others except perceptron",
            "Table 2",
            _where(fewer),
        ),
        Contradiction(
            "PA-RAMP",
            "as the noise increases, other methods tend to store more support vectors",
            "Table 2",
            _where(grows),
        ),
        Contradiction(
            "PA-RAMP",
            "comparable and even better performances to others (a point or more below is counted)",
            "Table 2",
            _where(better),
        ),
    ]


def _minimax() -> list[Contradiction]:
    table1, table3 = _printed("uncertainty-table1"), _printed("uncertainty-table3")
    balanced = [
        (method, table1["0.5/MPM"], table1[f"0.5/{method}"])
        for method in ("C-SVM", "unbiased MPM", "h = 0", "h = 1")
    ]
    sets = list(dict.fromkeys(key.split("/")[0] for key in table3))
    smaller = [
        (name, table3[f"{name}/h = 0"], table3[f"{name}/unbiased MPM"])
        for name in sets
        if name not in ("flare_solar_ida", "titanic_ida")
    ]
    return [
        Contradiction(
            "Uncertainty sets",
            "on the setup of the balanced data, MPM is slightly better than the other methods",
            "Table 1",
            _where(balanced),
        ),
        Contradiction(
            "Uncertainty sets",
            "our method with h = 0 achieves the smaller test errors (no duplicated covariates)",
            "Table 3",
            _where(smaller),
        ),
    ]


def _counts() -> list[Contradiction]:
    """The leaky hockey stick paper counts its wins; the counts are those of its table."""
    cells = _printed("lhs-table2")
    contradictions = []
    for kernel, quantity, claimed in (
        ("linear", "error", 10),
        ("Gaussian", "error", 6),
        ("linear", "seconds", 15),
        ("Gaussian", "seconds", 13),
    ):
        sets = {key.split("/")[0] for key in cells if key.endswith(f"{kernel}/LHS/{quantity}")}
        wins = sum(
            cells[f"{name}/{kernel}/LHS/{quantity}"] < cells[f"{name}/{kernel}/SVM/{quantity}"]
            for name in sets
        )
        what = "outperforms" if quantity == "error" else "is faster than"
        contradictions.append(
            Contradiction(
                "Leaky hockey stick",
                f"the {kernel} LHS {what} the SVM on {claimed} of 15 data sets",
                "Table 2",
                () if wins == claimed else (f"its table has {wins}",),
            )
        )
    return contradictions


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
