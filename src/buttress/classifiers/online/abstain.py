"""Refusing in a stream: a band that is steered to a coverage, an error or a cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, BoolArray, IntArray
from buttress.classifiers.base import all_or_nothing
from buttress.classifiers.online.labels import answers
from buttress.classifiers.online.recent_errors import RecentErrors
from buttress.classifiers.parameters import check_number
from buttress.classifiers.reject import RejectMixin
from buttress.metrics.scorer import half_gap

# Step of the threshold, on the scale from 0 to 1 of `BandTracker`. With .002 the coverage of the
# first 2000 rows of elec2 was off by .03, with .05 that of single weeks by .02.
STEP = 0.01
# Weight of a new row in the running scale of the confidences: looks back on about 1000 rows.
_SCALE_WEIGHT = 1e-3
# Wrong answers (kind "risk") that may be given beyond the target's share.
ALLOWANCE = 10.0
# A row that is refused because they are used up adds this share of the target to them, so that a
# band which refuses everything opens again.
CREEP = 0.02
# The error that is aimed at, as shares of the target: less where most of the allowance is used up,
# more where much of it is left.
_AIMS = (0.5, 1.25)


@dataclass
class BandTracker:
    """A threshold of confidence that moves with every row.

    Parameters
    ----------
    kind : {"coverage", "risk", "cost"}
    target : float
        The share of answers, the error among them, or the cost d of no answer.
    threshold : float
        On the scale ``u = c / (c + scale)`` of a confidence c.
    scale : float
        Running mean of the confidences.
    n_rows, n_answered, n_judged, n_wrong : int
        Rows, answered ones, those of them whose label was given, and wrong ones among those.
    n_waiting : int
        Rows refused because the allowance was used up (kind "risk").
    recent : RecentErrors
        What rows of each confidence were like lately, answered or not (kinds "risk", "cost").

    Notes
    -----
    Coverage: after every row ``threshold += step (answered - target)``. All u lie in [0, 1), so
    the threshold stays within one step of [0, 1], and the steps add up: after T rows the share
    of answers differs from the target by at most ``(1 + 2 step) / (step T)``, whatever the
    stream does.

    Risk: labels of refused rows say what their answers would have been, so the threshold is the
    lowest above which the latest 1000 rows had the error aimed at. Besides, an answer is given only
    while one more error leaves ``n_wrong <= 10 + target n_judged + target n_waiting / 50``; so
    whatever the stream does, the error among N answers is at most ``target + (10 + target
    n_waiting / 50) / N``. The aim is lowered as the allowance is used up and raised while it is
    not.

    Cost: the threshold of the lowest 0-d-1 risk on the latest 1000 rows.

    References
    ----------
    I. Gibbs and E. Candès, "Adaptive conformal inference under distribution shift", Advances in
    Neural Information Processing Systems 34, 2021: the argument that the steps add up.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tracker = BandTracker("coverage", 0.8)
    >>> confidence = np.exp(np.linspace(0.0, 5.0, 20000)) * rng.uniform(size=20000)
    >>> refused = tracker.run(confidence, np.zeros(20000, dtype=bool), np.ones(20000, dtype=bool))
    >>> abs(float(1 - refused.mean()) - 0.8) < 1.02 / (0.01 * 20000)
    True
    """

    kind: str
    target: float
    threshold: float = 0.0
    scale: float = 0.0
    n_rows: int = 0
    n_answered: int = 0
    n_judged: int = 0
    n_wrong: int = 0
    n_waiting: int = 0
    recent: RecentErrors = field(default_factory=RecentErrors)

    def __post_init__(self) -> None:
        if isinstance(self.recent, dict):  # from a checkpoint
            self.recent = RecentErrors(**self.recent)

    def run(self, confidence: Array, wrong: BoolArray, labelled: BoolArray) -> BoolArray:
        """Decide row after row and learn from each; returns which rows were refused.

        Parameters
        ----------
        confidence : array of shape (n,)
            Never negative.
        wrong, labelled : arrays of bool of shape (n,)
            Whether the answer is wrong, where the label is given.
        """
        refused = np.zeros(len(confidence), dtype=bool)
        rows = zip(confidence.tolist(), wrong.tolist(), labelled.tolist(), strict=True)
        for k, (c, is_wrong, has_label) in enumerate(rows):
            self.n_rows += 1
            # a plain mean at first
            self.scale += max(_SCALE_WEIGHT, 1.0 / self.n_rows) * (c - self.scale)
            u = c / (c + self.scale) if c > 0 else 0.0
            answered = u > self.threshold or self.threshold <= 0.0
            refused[k] = not answered
            self.n_answered += answered
            if answered and has_label:
                self.n_judged += 1
                self.n_wrong += is_wrong
            self._step(u, answered, is_wrong, has_label)
        return refused

    def _step(self, u: float, answered: bool, is_wrong: bool, has_label: bool) -> None:
        if self.kind == "coverage":
            self.threshold += STEP * (answered - self.target)
            return
        if has_label:
            self.recent.add(u, is_wrong)
        if self.kind == "cost":
            self.threshold = self.recent.threshold_for_cost(self.target)
            return
        left = self._allowed_errors()
        if left < 1.0:
            self.n_waiting += not answered
            self.threshold = 1.0
            return
        share = min(max(left / ALLOWANCE, _AIMS[0]), _AIMS[1])
        self.threshold = self.recent.threshold_for_error(share * self.target)

    def _allowed_errors(self) -> float:
        """Wrong answers that may still be given."""
        earned = self.n_judged + CREEP * self.n_waiting
        return ALLOWANCE + self.target * earned - self.n_wrong

    @property
    def width(self) -> float:
        """The threshold on the scale of the confidences; infinite when nothing is answered."""
        if self.threshold <= 0.0:
            return 0.0
        if self.threshold >= 1.0:
            return float("inf")
        return self.scale * self.threshold / (1.0 - self.threshold)

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return asdict(self)


def new_band(kind: str, target: float) -> BandTracker:
    """A band at the start of a stream: everything is answered, or nothing.

    An error or a cost is approached from refusing, so that a poor start is not paid for.
    """
    return BandTracker(kind, target, threshold=0.0 if kind == "coverage" else 1.0)


class AbstainingMixin(RejectMixin):
    """`d`, `target_coverage` or `target_risk` of an online learner, and the reject interface.

    Comes before `BaseOnlineClassifier` in the list of bases.
    """

    d: float | None  # type: ignore[assignment]
    _band: BandTracker | None
    _one_band = True
    _refused: BoolArray

    def _check_parameters(self, *, continuing: bool = False) -> None:
        super()._check_parameters(continuing=continuing)  # type: ignore[misc]
        asked = {name: getattr(self, name) for name in ("d", "target_coverage", "target_risk")}
        asked = {name: value for name, value in asked.items() if value is not None}
        if len(asked) > 1:
            raise ValueError(
                f"{' and '.join(f'{k}={v!r}' for k, v in asked.items())} cannot both set the "
                "band: leave all but one None."
            )
        for name, value in asked.items():
            check_number(name, value, {"d": "(0, 0.5]"}.get(name, "(0, 1)"))

    def _start(self, X: Any, classes: NDArray[Any]) -> None:
        super()._start(X, classes)  # type: ignore[misc]
        kinds = {"d": "cost", "target_coverage": "coverage", "target_risk": "risk"}
        asked = [(k, getattr(self, name)) for name, k in kinds.items()]
        self._band = next((new_band(k, float(v)) for k, v in asked if v is not None), None)

    def _advance(
        self,
        X: Any,
        codes: IntArray,
        positions: IntArray | None = None,
        answered: IntArray | None = None,
    ) -> Any:
        outcome = super()._advance(X, codes, positions, answered)  # type: ignore[misc]
        self._refused = np.zeros(len(codes), dtype=bool)
        # a label that comes late says nothing of how sure the answer was then
        if self._band is not None and answered is None:
            scores = outcome.scores
            wrong = answers(scores) != codes
            self._refused = self._band.run(half_gap(scores), wrong, codes >= 0)
        return outcome

    @all_or_nothing
    def answer_or_refuse(self, X: Any, y: Any, classes: Any = None) -> NDArray[Any]:
        """`answer_and_learn` that may refuse, by the band as it stood before each row.

        Parameters
        ----------
        X, y, classes
            As in `partial_fit`.

        Returns
        -------
        masked array of shape (n_samples,)
            Masked where no answer is given.
        """
        labels = self.answer_and_learn(X, y, classes)  # type: ignore[attr-defined]
        return np.ma.MaskedArray(labels, mask=self._refused)

    @property
    def thresholds_(self) -> Array:  # type: ignore[override]
        """The band on the scale of `decision_function`, as it stands now."""
        width = 0.0 if self._band is None else self._band.width
        return np.array([-width, width])

    def _may_refuse(self) -> bool:
        return self._band is not None  # its width changes with the stream

    @property
    def coverage_(self) -> float:
        """Share of the rows so far that were answered."""
        band = self._band
        return 1.0 if band is None or band.n_rows == 0 else band.n_answered / band.n_rows

    @property
    def answered_error_(self) -> float:
        """Share of wrong answers among those given so far whose label came with the row."""
        if self._band is None:
            return float(self.progressive_error_)  # type: ignore[attr-defined]
        return self._band.n_wrong / self._band.n_judged if self._band.n_judged else 0.0

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = super()._state()  # type: ignore[misc]
        if self._band is not None:
            state["band"] = self._band.state()
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)  # type: ignore[misc]
        self._band = BandTracker(**state["band"]) if "band" in state else None
