"""One model of label noise: a curve over held-out scores whose ends are the noise rates."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import chi2
from sklearn.utils.multiclass import check_classification_targets

from buttress._arrays import Array, IntArray
from buttress._numbers import check_number
from buttress._threads import own_threads
from buttress.noise.core._averaging import averaged
from buttress.noise.core._curves import (
    Design,
    class_probabilities,
    log_likelihood,
)
from buttress.noise.core._posterior import (
    LARGEST_RATE,
    Posterior,
    free_mode,
    free_posterior,
    two_rate_evidence,
    two_rate_posterior,
    uniform_posterior,
)
from buttress.noise.core._witness import favoured
from buttress.noise.core.estimate import check_weight, encode
from buttress.noise.core.label_noise import (
    ROW_SHARE,
    LabelNoise,
    LabelNoiseWarning,
    score_features,
    score_table,
)

# Normal priors on the scale of log-odds, of standardised scores: the sum of the witnesses' slopes
# (standard deviation 7) and the intercepts (10) are free, they are only kept finite. Slopes of
# witnesses differ by about one: measured on the development sets of benchmarks/noise.py, free
# slopes lose a percent at 30 % noise and equal ones half a percent on clean labels.
_SUM_PRECISION, _DIFFERENCE_PRECISION, _INTERCEPT_PRECISION = 0.02, 2.0, 0.01
# Beta prior of the rates. A flat one puts a hundredth more on all rates of the development sets.
DEFAULT_PRIOR = (1.0, 3.0)
# One rate for all classes is held for five times as likely beforehand as rates that differ. Of
# twelve development sets, two splits: to pick the likelier kind instead of averaging loses half a
# percent at 10 % noise and under one-sided noise; odds of three are better under one-sided noise,
# odds of ten near the boundary.
_EVIDENCE_FOR_RATES = np.log(5.0)
# A prior of more rows than this leaves the labels nothing to say.
_LARGEST_PRIOR = 1e6
# Fewer rows of a class carry no rate.
FEWEST_ROWS = 10
# The chance below which the curve counts as not describing the labels, and the bins it is read in.
_MISFIT, _BINS = 1e-3, 10
# What scores that agree with every label mean: by whether they are known to be held out.
_ALL_AGREE = {
    False: "The scores agree with every label and the rates are zero. Either no label is wrong, or "
    "the scores come from models that were trained on these rows: use held-out ones.",
    True: "The scores agree with every label, by models that have not seen the row: no label looks "
    "wrong, and the noise rates are near zero. Nothing is to be done, unless rows have copies with "
    "the same wrong label: keep copies in one fold (groups).",
}
# Posterior share next to the largest rate that makes it a bound instead of an estimate.
_AT_BOUND = 0.1


def fit_label_noise(
    scores: Any,
    y: Any,
    *,
    prior: tuple[float, float] = DEFAULT_PRIOR,
    sample_weight: Any = None,
    rates: str = "auto",
    level: float = 0.9,
) -> LabelNoise:
    """Fit the curve with asymptotes to held-out scores and the labels as given.

    Parameters
    ----------
    scores : array of shape (n,), (n, n_witnesses), (n, n_classes) or (n, n_witnesses, n_classes)
        Scores of every row by models that were not trained on it: decision values or log-odds,
        larger for the later label. Two classes: one column per model. More classes: one column
        per class, with a middle axis for several models.
    y : array-like of shape (n,)
        Labels as given.
    prior : pair of floats, default=(1, 3)
        Parameters of the Beta prior of every rate, truncated at .49. (1, 1) is flat; the default
        holds a rate of .4 for a quarter as likely as one near zero. The whole transition matrix of
        more than two classes has none.
    sample_weight : array-like of shape (n,), optional
        An integer weight equals that many copies of the row.
    rates : {"auto", "uniform", "per_class"}, default="auto"
        One rate for all classes, or one (with more than two classes: a whole transition matrix)
        for each. "auto": probabilities are averaged over both kinds by their posterior weights,
        one rate being five times as likely beforehand.
    level : float in (0, 1), default=0.9
        Level of the intervals.

    Returns
    -------
    LabelNoise

    Warns
    -----
    LabelNoiseWarning
        When the curve does not describe the labels, when a rate is at its bound, and when the
        scores agree with every label, as scores of training rows do.

    Notes
    -----
    With two classes, scores z and rates ``r_0 = P(given 1 | true 0)``, ``r_1 = P(given 0 | true
    1)``::

        P(given = 1 | z) = r_0 + (1 - r_0 - r_1) eta(z),    eta(z) = sigmoid(w . z + b)

    A label that differs from a confident score has another origin than one near the boundary:
    the ends of the curve are the noise rates, its slope is the overlap of the classes. The rates
    are integrated over a grid, the curve's coefficients by Laplace's approximation; all
    probabilities are means over draws from that posterior, so that they hold the error of the
    estimates too. Intervals are the shortest with the posterior mass `level`. More than two
    classes: a softmax with one slope per witness and one intercept per class.

    References
    ----------
    J. Bootkrajang and A. Kaban, "Label-noise robust logistic regression and its applications",
    European Conference on Machine Learning, 2012.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 1000)
    >>> scores = 2.0 * rng.standard_normal(1000) + np.where(truth == 1, 3.0, -3.0)
    >>> given = np.where(rng.random(1000) < 0.2, 1 - truth, truth)
    >>> noise = fit_label_noise(scores, given)
    >>> noise.kind, bool(abs(noise.rates_[0] - 0.2) < 0.03)
    ('uniform', True)
    """
    return estimate_label_noise(
        scores,
        y,
        prior=prior,
        sample_weight=sample_weight,
        rates=rates,
        level=level,
        fewest_rows=FEWEST_ROWS,
    )


def estimate_label_noise(
    scores: Any,
    y: Any,
    *,
    prior: tuple[float, float] = DEFAULT_PRIOR,
    sample_weight: Any = None,
    rates: str = "auto",
    level: float = 0.9,
    fewest_rows: int = FEWEST_ROWS,
    row_share: float = ROW_SHARE,
    held_out: bool = False,
) -> LabelNoise:
    """`fit_label_noise` for callers that have a use for an estimate from very few rows.

    With `held_out` the scores are known to come from models that have not seen their rows.
    """
    if not isinstance(rates, str) or rates not in ("auto", "uniform", "per_class"):
        raise ValueError(f"rates={rates!r} is not accepted: 'auto', 'uniform' or 'per_class'.")
    a, b = check_prior(prior)
    check_number("level", level, "(0, 1)")
    labels = _checked_labels(y, scores)
    known = np.unique(labels)
    if len(known) < 2:
        raise ValueError(
            f"The labels hold only one class ({known.tolist()}): noise shows itself only where at "
            "least two classes are given."
        )
    table = score_table(scores, len(known))
    codes = encode(labels, known)
    weight = check_weight(sample_weight, len(codes))
    used = np.flatnonzero(weight)
    table, codes, weight = table[used], codes[used], weight[used]
    _check_rows(codes, known, fewest_rows)
    centre, scale = _standardisation(table, weight)
    design = curve_design((table - centre[:, None]) / scale[:, None], codes, row_share * weight)
    random = np.random.default_rng(0)
    with own_threads():
        posterior, kind, factor = _chosen(design, (a, b), rates, random)
    p_value = _goodness_of_fit(design, posterior, row_share)
    noise = LabelNoise(
        classes=known,
        kind=kind,
        transition_=posterior.transition.mean(axis=0),
        loglik=log_likelihood(design, posterior.mode_transition, posterior.mode_coefficients)
        / row_share,
        log_bayes_factor=factor,
        p_value=p_value,
        level=level,
        n_rows=len(used),
        log_evidence=posterior.log_evidence,
        rate_bounds=posterior.rate_intervals(level),
        centre=centre,
        scale=scale,
        transition_draws=posterior.transition,
        coefficient_draws=posterior.coefficients,
    )
    _warn(noise, posterior, table, codes, held_out)
    return noise


def check_prior(prior: Any) -> tuple[float, float]:
    """The two parameters of a Beta prior, or a ValueError that says what is expected."""
    values = list(prior) if isinstance(prior, (tuple, list, np.ndarray)) else []
    try:
        a, b = (check_number("prior", value, f"(0, {_LARGEST_PRIOR}]") for value in values)
    except ValueError:
        raise ValueError(
            f"prior={prior!r} is not accepted: expected two positive numbers (a, b) of at most "
            f"{_LARGEST_PRIOR:g}."
        ) from None
    return a, b


def _checked_labels(y: Any, scores: Any) -> NDArray[Any]:
    if not np.shape(scores):
        raise ValueError(f"scores={scores!r} is not accepted: expected an array with a row each.")
    labels, n = np.asarray(y), np.shape(scores)[:1]
    if labels.shape != n:
        raise ValueError(f"y has shape {labels.shape}, expected {n}: a label per row.")
    check_classification_targets(labels)
    return labels


def _check_rows(codes: IntArray, classes: NDArray[Any], fewest: int) -> None:
    counts = np.bincount(codes, minlength=len(classes))
    small = int(counts.argmin())
    if counts[small] < fewest:
        raise ValueError(
            f"Class {classes.tolist()[small]!r} has {counts[small]} rows; noise rates need at "
            f"least {fewest} of every class."
        )


def _standardisation(table: Array, weight: Array) -> tuple[Array, Array]:
    """Centre and spread of every witness; more classes are centred by their own row."""
    _, n_witnesses, columns = table.shape
    total = weight.sum()
    flat = np.swapaxes(table, 0, 1).reshape(n_witnesses, -1)
    repeated = np.repeat(weight, columns)
    mean = flat @ repeated / (total * columns)
    spread = np.sqrt((flat - mean[:, None]) ** 2 @ repeated / (total * columns))
    constant = spread <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
    if constant.all():
        raise ValueError("The scores are constant: they say nothing about any label.")
    return mean, np.where(constant, 1.0, spread)


def curve_design(table: Array, codes: IntArray, weight: Array) -> Design:
    """What curves of standardised scores are fitted to."""
    features = score_features(table)
    n_witnesses = table.shape[1]
    precision = _INTERCEPT_PRECISION * np.eye(features.shape[2])
    apart = np.eye(n_witnesses) - 1.0 / n_witnesses
    precision[:n_witnesses, :n_witnesses] = _SUM_PRECISION + _DIFFERENCE_PRECISION * apart
    return Design(features, codes, weight, precision)


def _chosen(
    design: Design, prior: tuple[float, float], rates: str, random: np.random.Generator
) -> tuple[Posterior, str, float]:
    """The posterior of both kinds of noise, by how much the labels support each."""
    shared = uniform_posterior(design, prior, random)
    if rates == "uniform":
        return shared, "uniform", 0.0
    if design.features.shape[1] == 1:
        factor = two_rate_evidence(design, prior) - shared.log_evidence
        apart = partial(two_rate_posterior, design, prior, random)
    else:
        mode = free_mode(design, shared)
        factor = mode.log_evidence - shared.log_evidence
        apart = partial(free_posterior, design, mode, random)
    if rates == "per_class":
        return apart(), "per_class", factor
    share = float(expit(factor - _EVIDENCE_FOR_RATES))
    kind = "per_class" if share > 0.5 else "uniform"
    # the mean of both, by what was believed beforehand
    evidence = shared.log_evidence + float(
        np.logaddexp(_EVIDENCE_FOR_RATES, factor) - np.logaddexp(_EVIDENCE_FOR_RATES, 0.0)
    )
    return replace(averaged(shared, apart, share), log_evidence=evidence), kind, factor


def _goodness_of_fit(design: Design, posterior: Posterior, row_share: float) -> float:
    """Chance of binned labels that lie further from the curve than these (Hosmer, Lemeshow)."""
    proba = class_probabilities(design.features, posterior.mode_coefficients[None])[0]
    expected = proba @ posterior.mode_transition
    statistic, cells = 0.0, 0
    for k in range(1 if expected.shape[1] == 2 else 0, expected.shape[1]):
        order = np.argsort(expected[:, k], kind="stable")
        for rows in np.array_split(order, min(_BINS, max(2, len(order) // 20))):
            weight = design.weight[rows] / row_share
            mean = float(expected[rows, k] @ weight)
            spread = float(expected[rows, k] * (1.0 - expected[rows, k]) @ weight**2)
            seen = float((design.codes[rows] == k) @ weight)
            if min(mean, weight.sum() - mean) >= 1.0:
                statistic += (seen - mean) ** 2 / max(spread, 1e-12)
                cells += 1
    free = cells - 2
    return float(chi2.sf(statistic, free)) if free >= 1 else 1.0


def _warn(
    noise: LabelNoise, posterior: Posterior, table: Array, codes: IntArray, held_out: bool
) -> None:
    if noise.p_value < _MISFIT:
        causes = " looks" if held_out else ", or scores that are not held out, look"
        warnings.warn(
            f"The noise model does not describe the scores (p = {noise.p_value:.1g}): rates and "
            "probabilities are rough, the order of the rows still holds. Noise that depends on "
            f"the row{causes} like this.",
            LabelNoiseWarning,
            stacklevel=4,
        )
    if posterior.share_above(0.97 * LARGEST_RATE) > _AT_BOUND:
        warnings.warn(
            f"A noise rate is at its bound of {LARGEST_RATE}: the scores hardly predict the "
            "labels. Give better witnesses before trusting the rates.",
            LabelNoiseWarning,
            stacklevel=4,
        )
    if (favoured(table) == codes[:, None]).all(axis=0).any():
        warnings.warn(_ALL_AGREE[held_out], LabelNoiseWarning, stacklevel=4)
