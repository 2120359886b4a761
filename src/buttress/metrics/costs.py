"""Costs of no answer, carried over from clean labels to labels that may be wrong."""

from __future__ import annotations

from buttress._numbers import check_number


def cost_on_noisy_labels(d: float, rate: float) -> float:
    """The cost of no answer to train with on noisy labels, so that it is `d` on clean ones.

    When a share r of the labels is wrong, an answer that is wrong with probability e contradicts
    its label with probability r + (1 - 2 r) e. A row is better left unanswered where e > d, hence
    where its label is contradicted with probability above r + (1 - 2 r) d.

    Parameters
    ----------
    d : float in (0, 0.5]
        Cost on clean labels.
    rate : float in [0, 1)
        Share of wrong labels; what is above .45 counts as .45, where next to nothing can be
        learned any more.

    Returns
    -------
    float in (0, 0.5]

    Examples
    --------
    >>> cost_on_noisy_labels(0.2, 0.0), round(cost_on_noisy_labels(0.2, 0.1), 3)
    (0.2, 0.26)
    """
    check_number("d", d, "(0, 0.5]")
    check_number("rate", rate, "[0, 1)")
    rate = min(rate, 0.45)
    return rate + (1.0 - 2.0 * rate) * d
