"""The five papers, by how the names of their experiments begin."""

from __future__ import annotations

PAPERS = {
    "pa-ramp": '"Kernel learning with non-convex ramp loss" (PA-RAMP).',
    "lhs": 'O. Kwon, H. Zou, "Leaky hockey stick loss: the first negatively divergent margin-based '
    'loss function for classification", JMLR 24, 2023.',
    "double-ramp": 'N. Manwani, K. Desai, S. Sasidharan, R. Sundararajan, "Double ramp loss based '
    'reject option classifier", PAKDD 2015.',
    "uncertainty": 'T. Kanamori, A. Takeda, T. Suzuki, "Conjugate relation between loss functions '
    'and uncertainty sets in classification problems", JMLR 14, 2013.',
    "rademacher": 'C. P. Diehl, "Rademacher penalty optimization with the generalized ramp loss", '
    "2009.",
}


def paper_of(name: str) -> str:
    """The paper that an experiment belongs to.

    Examples
    --------
    >>> paper_of("pa-ramp-table1")
    '"Kernel learning with non-convex ramp loss" (PA-RAMP).'
    """
    return next(paper for family, paper in PAPERS.items() if name.startswith(f"{family}-"))
