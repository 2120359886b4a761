"""What the labels can mean: all right, right but not to be foretold, or partly wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit

from buttress._arrays import Array
from buttress.noise.core._curves import Curves, maximise
from buttress.noise.core._posterior import LARGEST_RATE, N_DRAWS, systematic
from buttress.noise.core.estimate import check_weight, encode
from buttress.noise.core.fitting import curve_design
from buttress.noise.core.label_noise import ROW_SHARE, LabelNoise, score_table

# Overlap may keep the curve away from 0 and 1 by any amount up to the largest rate, alike; rates of
# wrong labels are a tenth in the mean, Beta(1, 9), because few labels in use are worse. Of 37 sets
# with right labels and with a tenth flipped, two splits, means of 0.07 to 0.15 give the same risk
# to a percent (those of benchmarks/reject_noise.py); a mean of 1/4 loses up to two percent where a
# tenth is wrong, and gains a tenth of the risk where three labels in ten are.
_BETA_OF_WRONG_LABELS = 9.0


def believed(noise: LabelNoise, scores: Any, y: Any, sample_weight: Any = None) -> LabelNoise:
    """The noise model, averaged with two others in which every label is right.

    Parameters
    ----------
    noise : LabelNoise
        Of these scores and labels.
    scores, y, sample_weight
        As in `fit_label_noise`.

    Returns
    -------
    LabelNoise
        Draws of the three models, in proportion to their posterior probability. Rates and
        intervals are those of `noise`.

    Notes
    -----
    Three models, held for equally likely beforehand, explain the labels:

    - all are right, and the curve goes from 0 to 1;
    - all are right, but the classes overlap everywhere: some rows cannot be foretold from their
      scores, and the curve ends short of 0 and 1;
    - some are wrong, and that is why it ends short.

    The labels say whether the curve ends short (the evidence of the first model against that of
    the others), never which of the other two is true: they predict the same labels. There the
    ends decide, and what is known beforehand about rates: low ends, and ends of which one is
    clean, speak for wrong labels.

    Examples
    --------
    >>> from buttress.noise import fit_label_noise
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(-9, 9, 600)
    >>> labels = np.where(rng.random(600) < 0.1, scores < 0, scores > 0)
    >>> noise = fit_label_noise(scores, labels)
    >>> models = noise, believed(noise, scores, labels)
    >>> assumed, averaged = (model.clean_proba([9.0])[0, 1] for model in models)
    >>> bool(assumed > 0.99 > averaged > 0.9)
    True
    """
    labels = np.asarray(y)
    weight = check_weight(sample_weight, len(labels))
    used = np.flatnonzero(weight)
    table = score_table(scores, len(noise.classes))[used]
    standard = (table - noise.centre[:, None]) / noise.scale[:, None]
    codes = encode(labels[used], noise.classes)
    design = curve_design(standard, codes, ROW_SHARE * weight[used])
    same = np.eye(len(noise.classes))
    whole = maximise(design, same[None], np.zeros(design.n_parameters))
    # two models whose curves end short against one whose curve does not
    ends_short = expit(np.log(2.0) + noise.log_evidence - float(whole.log_evidence[0]))
    n_short = round(N_DRAWS * float(ends_short))
    random = np.random.default_rng(0)
    wrong = chance_of_wrong_labels(noise.transition_draws)
    shares = np.concatenate([wrong, 1.0 - wrong]) / len(wrong)
    is_overlap, draws = np.divmod(systematic(shares, n_short, random), len(wrong))
    ends, n_wrong = noise.transition_draws[draws], int((is_overlap == 0).sum())
    # draws of wrong labels first, then of overlap, then of whole curves
    overlap = np.repeat(same[None], N_DRAWS, axis=0)
    transition = overlap.copy()
    transition[:n_wrong], overlap[n_wrong:n_short] = ends[:n_wrong], ends[n_wrong:]
    return replace(
        noise,
        transition_draws=transition,
        coefficient_draws=np.concatenate(
            [noise.coefficient_draws[draws], _normal_draws(whole, N_DRAWS - n_short, random)]
        ),
        overlap_draws=overlap,
    )


def chance_of_wrong_labels(transition: Array) -> Array:
    """The probability that curves which end short by so much do so by wrong labels, not overlap.

    Examples
    --------
    Both ends at 0.1, both at 0.3, and one at 0.3 while the other is nearly clean:

    >>> ends = np.array([[0.1, 0.1], [0.3, 0.3], [0.3, 0.02]])
    >>> at = np.array([[[1 - a, a], [b, 1 - b]] for a, b in ends])
    >>> chance_of_wrong_labels(at).round(2).tolist()
    [0.65, 0.2, 0.89]
    """
    ends = 1.0 - np.diagonal(transition, axis1=1, axis2=2)
    wrong = _BETA_OF_WRONG_LABELS * (1.0 - ends.mean(axis=1)) ** (_BETA_OF_WRONG_LABELS - 1.0)
    overlap = _likeness(ends) / LARGEST_RATE
    return np.asarray(wrong / (wrong + overlap))


def _likeness(ends: Array) -> Array:
    """How much likelier ends so unequal are by overlap than by wrong labels.

    Rows overlap with those of another class, so overlap bends two ends at least, while labels of
    one class may be wrong alone. Where every class has a rate of its own, the ratio t of the second
    largest to the largest has the density (K - 1) t^(K - 2) under wrong labels, that of K
    independent uniform rates, and K t^(K - 1) under overlap: with two classes 1 and 2t. One rate
    for all classes says nothing.
    """
    n_classes = ends.shape[1]
    second, largest = np.sort(ends, axis=1)[:, -2:].T
    ratio = np.divide(second, largest, out=np.ones_like(largest), where=largest > 0.0)
    return np.where(second == largest, 1.0, ratio * n_classes / (n_classes - 1.0))


def _normal_draws(curves: Curves, count: int, random: np.random.Generator) -> Array:
    """Draws of the coefficients of the one curve, by Laplace's approximation."""
    factor = np.linalg.cholesky(curves.curvature[0])
    noise = random.standard_normal((len(factor), count))
    return np.asarray(curves.coefficients + np.linalg.solve(factor.T, noise).T)
