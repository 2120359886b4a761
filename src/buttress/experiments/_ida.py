"""The thirteen IDA benchmarks with their realisations, canonical where they are available."""

from __future__ import annotations

import numpy as np

from buttress.datasets import load_dataset
from buttress.datasets.registry import BY_NAME
from buttress.experiments._sampling import Split, TrainTest, standardised

SETS = {
    "banana_ida": "banana",
    "breast_cancer_ida": "breast-cancer",
    "diabetis_ida": "diabetis",
    "flare_solar_ida": "flare-solar",
    "german_ida": "german",
    "heart_ida": "heart",
    "image_ida": "image",
    "ringnorm_ida": "ringnorm",
    "splice_ida": "splice",
    "thyroid_ida": "thyroid",
    "titanic_ida": "titanic",
    "twonorm_ida": "twonorm",
    "waveform_ida": "waveform",
}
# The smaller training parts first.
BY_SIZE = sorted(SETS, key=lambda name: (BY_NAME[name].split or (0, 0))[0])
SPLITS_SENTENCE = (
    "Realisations: the canonical IDA splits 1 to 10 where the local files hold them (banana, "
    "breast-cancer, german, heart, ringnorm, titanic, waveform; 1 to 9 of image, the first of "
    "twonorm, one of diabetis); seeded random splits of the same sizes otherwise (flare-solar, "
    "splice, thyroid, and the rest of image, twonorm, diabetis)."
)


def realisations(name: str, count: int) -> list[tuple[Split, bool]]:
    """The first `count` splits, and whether each is canonical."""
    bunch = load_dataset(name)
    n_train, _ = BY_NAME[name].split or (0, 0)
    stored: list[tuple[Split, bool]] = [(split, True) for split in bunch.splits[:count]]
    for number in range(len(stored), count):
        order = np.random.default_rng(number).permutation(len(bunch.y))
        stored.append(((order[:n_train], order[n_train:]), False))
    return stored


def realisation(name: str, number: int) -> TrainTest:
    """One of the splits; scaled as the training rows ask."""
    bunch = load_dataset(name)
    (train, test), _ = realisations(name, number + 1)[number]
    X = standardised(bunch.X, train)
    return TrainTest(X[train], bunch.y[train], X[test], bunch.y[test])
