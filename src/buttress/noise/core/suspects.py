"""Which labels are probably wrong: a list with few false alarms, and what to look at next."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, BoolArray, IntArray
from buttress._frames import is_frame, with_columns
from buttress.noise.core.estimate import Estimate
from buttress.noise.core.label_noise import LabelNoise, against_labels

# Rows shown by the repr.
_SHOWN = 5
# Standard deviations of the share of false alarms that a list must have to spare: so many per unit
# of the noise rate, because where much is noise the curve's ends are the least like the model's;
# and so many when rates differ, which the same labels have said. Measured on twelve development
# sets (see benchmarks/_noise_sets.py): a constant that is right for 30 % flips leaves lists at 10 %
# half empty.
_CAUTION_PER_RATE, _CAUTION_PER_CLASS = 2.0, 0.75
# Probabilities are kept this far from 0 and 1 when they become log-odds.
_EDGE = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class LabelSuspects:
    """What the search for wrong labels found.

    Attributes
    ----------
    scores : ndarray of shape (n_samples,)
        Log-odds that the label is wrong; larger is more suspicious, above 0 it is probably so.
    probabilities : ndarray of shape (n_samples,)
        P(label is wrong), with the error of the noise model averaged in.
    given, suggested : ndarray of shape (n_samples,)
        The labels as given, and the most probable true ones.
    selected : ndarray of int
        Positions of the rows named at `fdr`, the most suspicious first.
    fdr : float
        Expected share of correct labels among the rows named (0 when none is).
    error_counts : tuple of floats
        How many labels are wrong in all: expected, and the ends of an interval.
    noise : LabelNoise
        The model behind all of it.
    influence : ndarray of shape (n_samples,)
        How much a model moves when the row's label changes (see `next`).
    held_out_scores : ndarray of shape (n_samples, n_witnesses, n_columns)
        The witnesses' scores.
    """

    scores: Array
    probabilities: Array
    given: NDArray[Any]
    suggested: NDArray[Any]
    selected: IntArray
    fdr: float
    error_counts: tuple[float, float, float]
    noise: LabelNoise
    influence: Array
    held_out_scores: Array
    asked: float = 0.1
    rows: Any = field(default=None, repr=False)

    @property
    def mask(self) -> BoolArray:
        """The rows named, as a mask."""
        mask = np.zeros(len(self.scores), dtype=bool)
        mask[self.selected] = True
        return mask

    @property
    def expected_errors(self) -> Estimate:
        """How many labels are wrong in all, with an interval."""
        return Estimate(*self.error_counts, self.noise.level)

    @property
    def noise_rates(self) -> dict[Any, Estimate]:
        """Share of wrong labels among the rows of each true class, with intervals."""
        return self.noise.rates_

    @property
    def noise_rate(self) -> Estimate:
        """Share of wrong labels in all, with an interval."""
        n, errors = max(len(self.scores), 1), self.expected_errors
        return Estimate(errors / n, errors.low / n, errors.high / n, errors.level)

    def top(self, k: int) -> IntArray:
        """Positions of the `k` most suspicious rows, whatever the list says."""
        return self.order[: _checked_count(k)]

    @property
    def order(self) -> IntArray:
        """All rows, the most suspicious first."""
        return np.argsort(-self.scores, kind="stable")

    def next(self, k: int, strategy: str = "errors", exclude: Any = None) -> IntArray:
        """The `k` rows to look at next.

        Parameters
        ----------
        k : int
            How many labels can be checked.
        strategy : {"errors", "value"}, default="errors"
            "errors" finds the most wrong labels: the order of P(wrong). "value" weighs P(wrong)
            by `influence`: a wrong label among many rows near the boundary does more harm than
            one that stands alone or far on its side.
        exclude : array-like of int or bool, optional
            Rows already checked.

        Returns
        -------
        ndarray of int
        """
        if strategy not in ("errors", "value"):
            raise ValueError(f"strategy={strategy!r} is not accepted: 'errors' or 'value'.")
        worth = self.scores if strategy == "errors" else self.probabilities * self.influence
        order = np.argsort(-worth, kind="stable")
        if exclude is not None:
            left = np.ones(len(order), dtype=bool)
            left[np.asarray(exclude)] = False
            order = order[left[order]]
        return order[: _checked_count(k)]

    def __getstate__(self) -> dict[str, Any]:
        """What files hold: everything but the rows, which are the user's."""
        return self.__dict__ | {"rows": None}

    def to_frame(self, only_selected: bool = False, rows: Any = None) -> Any:
        """The rows with what was found, as a data frame of the kind that was given.

        Parameters
        ----------
        only_selected : bool, default=False
            Only the rows named, the most suspicious first.
        rows : table, optional
            The rows that were judged; needed after loading from a file, which does not hold them.

        Returns
        -------
        DataFrame
            Of the library that the rows came in; of pandas for a matrix. The original columns
            (and index), then ``given``, ``suggested``,
            ``wrong_probability`` and ``selected``.
        """
        columns = {
            "given": self.given,
            "suggested": self.suggested,
            "wrong_probability": self.probabilities,
            "selected": self.mask,
        }
        rows = self.rows if rows is None else rows
        if rows is None:
            raise ValueError("The rows are not kept in files: give them as to_frame(rows=X).")
        if not is_frame(rows):
            import pandas as pd

            dense = rows.toarray() if hasattr(rows, "toarray") else rows
            rows = pd.DataFrame(dense)
            rows.columns = [f"x{k}" for k in range(rows.shape[1])]
        return with_columns(rows, columns, self.selected if only_selected else None)

    def placed(self, used: IntArray, rows: Any, given: NDArray[Any]) -> LabelSuspects:
        """The same findings in a larger table, of which only the rows `used` were judged."""

        def spread(values: Array, fill: float) -> Array:
            whole = np.full((len(given), *values.shape[1:]), fill)
            whole[used] = values
            return whole

        suggested = given.copy()
        suggested[used] = self.suggested
        return replace(
            self,
            scores=spread(self.scores, float(np.log(_EDGE))),
            probabilities=spread(self.probabilities, 0.0),
            given=given,
            suggested=suggested,
            selected=used[self.selected],
            influence=spread(self.influence, 0.0),
            held_out_scores=spread(self.held_out_scores, 0.0),
            rows=rows,
        )

    def __len__(self) -> int:
        return len(self.selected)

    def __repr__(self) -> str:
        errors, n = self.expected_errors, len(self.scores)
        head = (
            f"{n} labels, {float(errors):.0f} probably wrong ({errors.low:.0f} to "
            f"{errors.high:.0f}); noise rates "
            + ", ".join(f"{label!r}: {rate!r}" for label, rate in self.noise_rates.items())
        )
        if not len(self.selected):
            return f"{head}\n{self.why_empty()}"
        lines = [f"{len(self.selected)} named, about {100 * self.fdr:.0f} % of them wrongly:"]
        lines.append(f"{'row':>8} {'given':>12} {'suggested':>12} {'P(wrong)':>9}")
        lines += [
            f"{i:>8} {str(self.given[i])[:12]:>12} {str(self.suggested[i])[:12]:>12} "
            f"{self.probabilities[i]:>9.3f}"
            for i in self.selected[:_SHOWN].tolist()
        ]
        if len(self.selected) > _SHOWN:
            lines.append(f"     ... {len(self.selected) - _SHOWN} more")
        return "\n".join([head, *lines])

    def why_empty(self) -> str:
        """A sentence on why no row is named, and what to do; empty when rows are named."""
        if len(self.selected):
            return ""
        best = float(self.probabilities.max()) if len(self.probabilities) else 0.0
        if self.expected_errors < 1.0:
            reason = "hardly any label looks wrong"
        else:
            reason = (
                f"some labels are probably wrong, but the surest is so with {best:.2f} only, and "
                f"a list with {100 * self.asked:.0f} % false alarms needs {1 - self.asked:.2f}"
            )
        return (
            f"No row is named: {reason}. Look at top(k) in order, allow more false alarms (fdr), "
            "or give more or better witnesses."
        )


def disagreement(scores: Array, codes: IntArray) -> Array:
    """Evidence of decision values against the labels, on the scale of the scores.

    ``-y f(x)`` for one column, half the best other score minus the own for several.

    Examples
    --------
    >>> disagreement(np.array([[2.0], [-1.0]]), np.array([1, 1]))
    array([-2.,  1.])
    """
    if scores.shape[1] == 1:
        return np.asarray(np.where(codes == 1, -scores[:, 0], scores[:, 0]))
    rows = np.arange(len(codes))
    of_label = scores[rows, codes]
    others = scores.copy()
    others[rows, codes] = -np.inf
    return np.asarray(0.5 * (others.max(axis=1) - of_label))


def judge_labels(
    scores: Array,
    y: Any,
    noise: LabelNoise,
    *,
    fdr: float,
    rows: Any = None,
) -> LabelSuspects:
    """Probabilities, suggestions and the list from held-out scores and a noise model.

    The list is the longest run of the order whose expected share of correct labels, plus a part
    of the standard deviation of that share over the posterior of rates and curve, is at most
    `fdr`.
    """
    labels = np.asarray(y)
    true = noise.true_proba(scores, labels)
    wrong = against_labels(true, np.searchsorted(noise.classes, labels))
    evidence = np.log(np.maximum(wrong, _EDGE) / np.maximum(1.0 - wrong, _EDGE))
    order = np.argsort(-evidence, kind="stable")
    count, false_share = _list_length(
        np.asarray(scores)[order], labels[order], wrong[order], noise, fdr
    )
    counts = noise.wrong_counts(scores, labels)
    tail = 0.5 * (1.0 - noise.level)
    low, high = np.quantile(counts, [tail, 1.0 - tail])
    total = float(wrong.sum())
    return LabelSuspects(
        scores=evidence,
        probabilities=wrong,
        given=labels,
        suggested=np.asarray(noise.classes[true.argmax(axis=1)]),
        selected=order[:count],
        fdr=false_share,
        error_counts=(total, float(min(low, total)), float(max(high, total))),
        noise=noise,
        influence=boundary_influence(np.asarray(scores), noise.clean_proba(scores)),
        held_out_scores=np.asarray(scores),
        asked=float(fdr),
        rows=rows,
    )


def _list_length(
    scores: Array, labels: NDArray[Any], wrong: Array, noise: LabelNoise, fdr: float
) -> tuple[int, float]:
    """How many rows, in their order, are named, and the share of correct labels among them."""
    expected = np.cumsum(1.0 - wrong) / np.arange(1, len(wrong) + 1)
    # a row that is rather right than wrong is not named, even where the mean would allow it
    within = np.flatnonzero((expected <= fdr) & (wrong > 0.5))
    if not len(within):
        return 0, 0.0
    # caution can only shorten the list, so the rows beyond it need no second look
    most = int(within[-1]) + 1
    mean, deviation = noise.false_shares(scores[:most], labels[:most])
    sure = np.flatnonzero(mean + list_caution(noise) * deviation <= fdr)
    return (int(sure[-1]) + 1, float(mean[sure[-1]])) if len(sure) else (0, 0.0)


def list_caution(noise: LabelNoise) -> float:
    """Standard deviations of the share of false alarms that a list has to spare."""
    if noise.kind == "per_class":
        return _CAUTION_PER_CLASS
    return _CAUTION_PER_RATE * float(1.0 - np.mean(np.diag(noise.transition_)))


def boundary_influence(scores: Array, clean: Array) -> Array:
    """How many undecided rows are near every row, in the space of the witnesses' scores.

    A label moves the model where other rows are close to it, and changes answers where these
    are undecided: the mean of ``p (1 - p)`` of the neighbours, p the largest clean probability.
    """
    flat = scores.reshape(len(clean), -1)
    spread = flat.std(axis=0)
    flat = (flat - flat.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    top = clean.max(axis=1)
    undecided = top * (1.0 - top)
    order = np.argsort(flat.mean(axis=1), kind="stable")
    # a moving mean over a twentieth of the rows in the order of the mean score
    width = max(3, len(clean) // 20)
    kernel = np.ones(width) / width
    padded = np.pad(undecided[order], (width // 2, width - 1 - width // 2), mode="edge")
    smooth = np.convolve(padded, kernel, mode="valid")
    influence = np.empty(len(clean))
    influence[order] = smooth
    return influence / max(float(influence.max()), 1e-300)


def _checked_count(k: Any) -> int:
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 0:
        raise ValueError(f"k={k!r} is out of range: expected a whole number of at least 0.")
    return int(k)
