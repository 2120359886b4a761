"""Data to learn from: the papers' generators, label noise, and named benchmark sets.

`registry` lists the named sets with their sources and checksums, `loading` finds or downloads
them; generators with a known distribution give its posterior and Bayes error too. A newcomer adds
a set as a record of the registry. Others import the names below, `loading` and `registry`.
"""

from buttress.datasets._gaussians import (
    make_mixture,
    make_ringnorm,
    make_skewed_gaussians,
    make_twonorm,
)
from buttress.datasets._noise import flip_labels
from buttress.datasets._shapes import (
    make_banana,
    make_noisy_band,
    make_reject_synthetic,
    make_waveform,
)
from buttress.datasets.loading import fetch_dataset, list_datasets, load_dataset

__all__ = [
    "fetch_dataset",
    "flip_labels",
    "list_datasets",
    "load_dataset",
    "make_banana",
    "make_mixture",
    "make_noisy_band",
    "make_reject_synthetic",
    "make_ringnorm",
    "make_skewed_gaussians",
    "make_twonorm",
    "make_waveform",
]
