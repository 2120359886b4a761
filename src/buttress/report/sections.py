"""What a report says, as plain data; how it looks is in `rendering`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, BoolArray
from buttress.metrics import risk_coverage_curve

# A value and the ends of its interval.
Interval = tuple[float, float, float]

# More levels than this are thinned in the file; the screen has no more pixels.
_MOST_LEVELS = 1500


@dataclass(frozen=True, eq=False)
class Health:
    """What is odd about the data; made by `data_health`.

    Attributes
    ----------
    n_rows, n_numeric, n_text : int
        Rows, and columns of either kind.
    classes : dict of str to int
        Rows of every class.
    missing : dict of str to int
        Missing values of the columns that have some.
    constant : list of str
        Columns with one value only.
    n_duplicates : int
        Rows whose features are those of an earlier row.
    n_conflicts : int
        Rows that share their features with a row of another class: the labels of some are
        wrong, or the features do not tell the classes apart.
    conflicts : list of int
        The first few of those rows, counted from 1 as the file's data rows are.
    """

    n_rows: int
    n_numeric: int
    n_text: int
    classes: dict[str, int]
    missing: dict[str, int]
    constant: list[str]
    n_duplicates: int
    n_conflicts: int
    conflicts: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Comparison:
    """Several models on the same held-out rows.

    Attributes
    ----------
    measure : str
        What is compared, smaller is better: "error" or "0-d-1 risk".
    names : sequence of str
        The models.
    values, lows, highs : sequence of float
        The measure with the ends of its 95 % confidence interval.
    extra : mapping of str to sequence of str
        Further columns of the table, ready to print.
    chosen : str, optional
        The model to mark.
    badge : str
        What the mark says.
    how : str
        On what rows it was measured, and how the interval was made.
    meaning : str
        What the measure is, in words.
    notes : mapping of str to str
        What the other columns mean.
    """

    measure: str
    names: Sequence[str]
    values: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    chosen: str | None = None
    badge: str = "chosen"
    how: str = ""
    meaning: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NoiseComparison:
    """Several models as more and more training labels are flipped.

    Attributes
    ----------
    measure : str
        What is compared, smaller is better.
    rates : sequence of float
        Shares of flipped training labels.
    names : sequence of str
        The models.
    values, lows, highs : sequence (one per model) of sequences (one per rate) of float
    how : str
        The protocol.
    """

    measure: str
    rates: Sequence[float]
    names: Sequence[str]
    values: Sequence[Sequence[float]]
    lows: Sequence[Sequence[float]]
    highs: Sequence[Sequence[float]]
    how: str = ""


@dataclass(frozen=True)
class ClassTable:
    """What became of the held-out rows of every class.

    Attributes
    ----------
    names : sequence of str
        The classes.
    rows, right, wrong, rejected : sequence of int
        Rows of each class, and how many of them were answered rightly, wrongly, not at all.
    precision : sequence of float
        Share of right ones among the answers that name the class; NaN where there are none.
    model : str
        Whose answers these are.
    where : str
        What rows these are.
    """

    names: Sequence[str]
    rows: Sequence[int]
    right: Sequence[int]
    wrong: Sequence[int]
    rejected: Sequence[int]
    precision: Sequence[float]
    model: str
    where: str = "rows it had not seen"

    @property
    def recall(self) -> list[float]:
        """Share of each class's rows that were answered, and rightly."""
        return [right / rows for right, rows in zip(self.right, self.rows, strict=True)]


@dataclass(frozen=True)
class TrueLabels:
    """A loss on the labels as given beside its estimate on true labels.

    Attributes
    ----------
    measure : str
        What was measured.
    given, estimated : tuple of float
        Value and the ends of its 95 % interval.
    rates : mapping of str to tuple of float
        For every true class the share of its rows with a wrong label, with its interval.
    model : str
        Whose answers these are.
    """

    measure: str
    given: tuple[float, float, float]
    estimated: tuple[float, float, float]
    rates: Mapping[str, tuple[float, float, float]]
    model: str


@dataclass(frozen=True)
class RegularizationPath:
    """Cross-validated score against the penalty.

    Attributes
    ----------
    penalties : sequence of float
    errors, deviations : sequence of float
        Mean error over the folds, and its standard error.
    best, one_se : float
        The penalty of the smallest error, and the largest within one standard error of it.
    name : str
        Of the penalty.
    """

    penalties: Sequence[float]
    errors: Sequence[float]
    deviations: Sequence[float]
    best: float
    one_se: float | None = None
    name: str = "alpha"


@dataclass(frozen=True, eq=False)
class Coverage:
    """What giving no answer to the least certain rows would buy.

    Attributes
    ----------
    n_rows : int
        Rows judged.
    accepted, errors : array
        For every level, how many rows are answered and how many of the answers are wrong;
        the first level answers nothing.
    thresholds : array
        The smallest confidence answered.
    d : float
        Cost of no answer that the slider starts at.
    how : str
        Where confidences and labels come from.
    """

    n_rows: int
    accepted: NDArray[np.int64]
    errors: NDArray[np.int64]
    thresholds: Array
    d: float
    how: str = ""

    @classmethod
    def from_answers(cls, y: Any, pred: Any, confidence: Any, d: float, how: str = "") -> Coverage:
        """Make it from labels, answers and confidences of rows the model has not seen."""
        coverage, risk, thresholds = risk_coverage_curve(y, pred, confidence)
        n = len(np.asarray(y))
        accepted = np.rint(coverage * n).astype(np.int64)
        errors = np.rint(risk * coverage * n).astype(np.int64)
        if len(accepted) > _MOST_LEVELS:
            kept = np.unique(np.linspace(0, len(accepted) - 1, _MOST_LEVELS).astype(int))
            accepted, errors, thresholds = accepted[kept], errors[kept], thresholds[kept]
        return cls(
            n,
            np.concatenate([[0], accepted]),
            np.concatenate([[0], errors]),
            np.concatenate([[np.inf], thresholds]),
            d,
            how,
        )

    def best_level(self, d: float) -> int:
        """The level of the smallest 0-d-1 risk; of equal ones the one that answers most."""
        cost = self.errors + d * (self.n_rows - self.accepted)
        return int(np.flatnonzero(cost <= cost.min() + 1e-9)[-1])


@dataclass(frozen=True)
class Refusals:
    """Who gets no answer, and why.

    Attributes
    ----------
    groups : sequence of (column, value, rows, refused, error, comparison)
        For every group its number of rows, the share refused and the error among the answers
        (each with the ends of its 95 % interval), and how both stand to those of the other rows.
    reasons : mapping of str to int
        How many refused rows there are for every reason.
    examples : sequence of (row, reason, nearest)
        Numbers of refused rows, why, and the nearest rows of each class, as text.
    n_refused, n_rows : int
    how : str
        By what rule they were refused.
    """

    groups: Sequence[tuple[str, str, int, Interval, Interval, str]]
    reasons: Mapping[str, int]
    examples: Sequence[tuple[int, str, str]]
    n_refused: int
    n_rows: int
    how: str = ""


@dataclass(frozen=True)
class Suspects:
    """Rows whose label looks wrong.

    Attributes
    ----------
    columns : sequence of str
        Of the table; the first is the row's number.
    rows : sequence of sequences
        Cells; numbers stay numbers, so that they sort as such.
    n_rows : int
        How many rows were looked at.
    how : str
        How they were found, and with what error rate.
    truth : str
        What is known of the truth, for the demonstration.
    percent : sequence of str
        Columns of shares, shown as percentages.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    n_rows: int
    how: str = ""
    truth: str = ""
    percent: Sequence[str] = ("chance wrong",)


@dataclass(frozen=True, eq=False)
class Picture:
    """The rows as points of a plane.

    Attributes
    ----------
    x, y : array of shape (n,)
        Positions.
    codes : array of int
        The class of each point.
    classes : sequence of str
        Their names.
    axes : tuple of str
        Names of the axes.
    suspects : array of bool, optional
        Points to ring.
    confidence : array, optional
        The slider marks points of a confidence below its threshold.
    regions : array of int of shape (rows, columns), optional
        Class of the model on a grid over ``extent``, -1 where it abstains.
    extent : tuple of float
        (x low, x high, y low, y high) of the grid.
    how : str
        What the axes are.
    """

    x: Array
    y: Array
    codes: NDArray[np.int64]
    classes: Sequence[str]
    axes: tuple[str, str]
    suspects: BoolArray | None = None
    confidence: Array | None = None
    regions: NDArray[np.int64] | None = None
    extent: tuple[float, float, float, float] = (0.0, 1.0, 0.0, 1.0)
    how: str = ""


@dataclass(frozen=True, eq=False)
class CardSection:
    """One section of a model card.

    Attributes
    ----------
    title : str
        With slashes between the levels: "Evaluation results/By group".
    text : str
        A paragraph; may be empty.
    columns, rows
        A table; none when there are no columns.
    """

    title: str
    text: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """A whole report; a section that is None is left out.

    Attributes
    ----------
    title : str
    summary : sequence of str
        The findings, one sentence each.
    health, comparison, noise, classes, truth, path, coverage, refusals, suspects, picture
        The sections.
    card : sequence of CardSection
        The model card.
    settings : mapping of str to str
        What was asked for, and the versions.
    """

    title: str
    summary: Sequence[str] = ()
    health: Health | None = None
    comparison: Comparison | None = None
    noise: NoiseComparison | None = None
    classes: ClassTable | None = None
    truth: TrueLabels | None = None
    path: RegularizationPath | None = None
    coverage: Coverage | None = None
    refusals: Refusals | None = None
    suspects: Suspects | None = None
    picture: Picture | None = None
    card: Sequence[CardSection] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
