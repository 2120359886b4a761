"""What an error on given labels says about the true ones, when the labels may be wrong."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import bdtr

from buttress._arrays import Array, IntArray
from buttress.theory.binomial import binomial_upper

# Of the failure probability, what the interval of the shares of the answers may use. Rates that
# differ by .1 move the bound by a tenth of the error of a share, so little suffices.
_SHARE_LEVEL = 0.1
# Of a bound that is found by bisection, and given from above.
_BOUND_PRECISION = 1e-7


@dataclass(frozen=True, eq=False)
class LabelErrors:
    """Intervals of the shares of wrong labels, for bounds on the true labels.

    Attributes
    ----------
    low, high : arrays of shape (n_classes,)
        Ends of the interval of the probability that a row which truly belongs to a class
        carries another label. It must not depend on the row otherwise.
    tied : bool
        Whether the rates of all classes are known to be equal.
    draws : array of shape (n_draws, n_classes), optional
        Equally probable rates, as those of a posterior, instead of an interval of which nothing
        else is known: bounds then fail with the stated probability over rows and rates together.

    Examples
    --------
    >>> LabelErrors.symmetric(0.09, 0.11).true_error(0.13, np.array([0.5, 0.5]))
    0.0487...
    """

    low: Array
    high: Array
    tied: bool = False
    draws: Array | None = None

    def __post_init__(self) -> None:
        if self.low.shape != self.high.shape or self.low.ndim != 1 or len(self.low) < 2:
            raise ValueError("Noise rates need one (lower, upper) pair for every class.")
        if not (self.low.min() >= 0.0 and (self.low <= self.high).all()):
            raise ValueError(
                f"Noise rates must satisfy 0 <= lower <= upper; got {self.low.tolist()} and "
                f"{self.high.tolist()}."
            )
        largest = np.sort(self.high)[-2:].sum()
        if not largest < 1.0:
            raise ValueError(
                f"The upper noise rates of two classes add up to {largest:g}: at 1 or more the "
                "labels say nothing about the classes. Narrow the interval."
            )

    @classmethod
    def symmetric(cls, low: float, high: float, n_classes: int = 2) -> LabelErrors:
        """One rate, the same for every class, in an interval."""
        return cls(np.full(n_classes, float(low)), np.full(n_classes, float(high)), tied=True)

    @classmethod
    def drawn(cls, draws: Array) -> LabelErrors:
        """Rates of which equally probable values are known; the limits are the extreme ones."""
        return cls(draws.min(axis=0), draws.max(axis=0), draws=draws)

    def narrowed(self, factor: float) -> LabelErrors:
        """The same with all draws nearer to their mean, as more rows would leave them."""
        if self.draws is None:
            return self
        mean = self.draws.mean(axis=0)
        return LabelErrors.drawn(mean + factor * (self.draws - mean))

    @property
    def middle(self) -> LabelErrors:
        """The middle of the intervals, or the mean of the draws, taken as known."""
        middle = 0.5 * (self.low + self.high) if self.draws is None else self.draws.mean(axis=0)
        return LabelErrors(middle, middle, tied=self.tied)

    def true_error(self, observed: float, shares: Array) -> float:
        """The largest error on true labels that agrees with an error on given labels.

        Parameters
        ----------
        observed : float
            Error rate among the answers by the given labels, or a bound of it.
        shares : array of shape (n_classes,)
            Which share of the answers names each class.

        Notes
        -----
        Among the answers "k", with error a on true labels, the given label differs with
        probability ``(1 - a) r_k + a (1 - r_j)``, j the true class, or more with more than two
        classes. Solved for a and added up: ``(observed - sum shares r) / (1 - r_0 - r_1)``. It is
        monotone in each rate, so the largest value is at a corner of the box.
        """
        if self.tied:
            corners = [self.low, self.high]
        elif len(self.low) == 2:
            corners = [np.array(rates) for rates in product(*zip(self.low, self.high, strict=True))]
        else:
            # the smallest expected noise and the smallest room bound every corner
            room = 1.0 - float(np.sort(self.high)[-2:].sum())
            return float(np.clip((observed - self.low @ shares) / room, 0.0, 1.0))
        errors = [(observed - r @ shares) / (1.0 - np.sort(r)[-2:].sum()) for r in corners]
        return float(np.clip(max(errors), 0.0, 1.0))

    def true_error_bound(self, errors: int, answers: IntArray, level: float) -> float:
        """Upper bound on the error on true labels, failing with probability `level` at most.

        Parameters
        ----------
        errors : int
            Answers that differ from the given labels.
        answers : int array of shape (n_classes,)
            How many answers name each class.
        level : float
        """
        n = int(answers.sum())
        if n == 0:
            return 1.0
        if self.draws is not None:
            return self._averaged_bound(errors, answers / n, n, level)
        # the shares matter only where the rates may differ between the classes
        alike = self.tied or bool(np.ptp(np.concatenate([self.low, self.high])) == 0.0)
        if alike:
            return self.true_error(binomial_upper(errors, n, level), answers / n)
        spent = _SHARE_LEVEL * level
        observed = binomial_upper(errors, n, level - spent)
        if len(self.low) > 2:
            least = np.zeros(len(self.low))
            least[int(np.argmin(self.low))] = 1.0
            return self.true_error(observed, least)
        high = binomial_upper(int(answers[1]), n, spent / 2.0)
        low = 1.0 - binomial_upper(int(answers[0]), n, spent / 2.0)
        return max(self.true_error(observed, np.array([1.0 - s, s])) for s in (low, high))

    def _averaged_bound(self, errors: int, shares: Array, n: int, level: float) -> float:
        """The largest error at which so few errors have the mean probability `level`.

        Given the rates and the classes answered, an error e on true labels makes the given ones
        differ with probability ``sum shares r + e (1 - r_0 - r_1)`` at least on average, and the
        lower tail of such a count is no heavier than the binomial one of the same mean
        (Hoeffding 1956): the binomial probability of so few is a p-value. Its mean over the rates
        is one for rows and rates drawn together.
        """
        assert self.draws is not None
        expected = self.draws @ shares
        room = 1.0 - np.sort(self.draws, axis=1)[:, -2:].sum(axis=1)
        low, high = 0.0, 1.0
        if np.mean(bdtr(errors, n, expected)) < level:
            return 0.0
        while high - low > _BOUND_PRECISION:
            e = 0.5 * (low + high)
            if np.mean(bdtr(errors, n, np.minimum(expected + e * room, 1.0))) < level:
                high = e
            else:
                low = e
        return high
