"""Exact block-wise online kernel learning.

`model` is the entry; a learner is one update rule (`rules`), its vectors live in a `store` and
are bounded by a `budget`; `similarity` computes kernel values block by block. A newcomer writes a
rule: a subclass of `UpdateRule`, in the file of its learner. Others import the names below, `rules`
and of `budget` its policies.
"""

from buttress._lazy import attach

_HOME = {
    "NormaRule": "rules",
    "OnlineModel": "model",
    "PARampRule": "rules",
    "PegasosRule": "rules",
    "PerceptronRule": "rules",
    "UpdateRule": "rules",
}

_PARTS = {
    "Budget": "budget",
    "DenseRows": "store",
    "GramSource": "similarity",
    "KernelSource": "similarity",
    "Panels": "store",
    "RbfSource": "similarity",
    "SparseRows": "store",
    "VectorStore": "store",
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME, saved=_PARTS)
