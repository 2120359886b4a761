"""What trying three kernel widths instead of one gains a search, and what it costs.

    python benchmarks/widths.py [--splits 2]

Eleven data sets (BUTTRESS_DATA), at most 400 standardised training rows; errors of the other rows
(refusals count 0.2) with ``gammas=None`` and ``gammas="auto"``, and processor time.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from _common import report
from buttress import (
    DoubleRampClassifierCV,
    LeakyHockeyStickClassifierCV,
    RademacherSelector,
    RampClassifierCV,
    UncertaintySetClassifierCV,
)
from buttress.datasets import load_dataset

NAMES = (
    "banana", "breast_cancer", "diabetis", "german", "heart", "image", "ringnorm", "splice",
    "thyroid", "twonorm", "waveform",
)  # fmt: skip
ROWS, REFUSAL = 400, 0.2
SEARCHES: dict[str, Callable[[Any], Any]] = {
    "leaky": lambda gammas: LeakyHockeyStickClassifierCV(gammas=gammas),
    "uncertainty sets": lambda gammas: UncertaintySetClassifierCV(gammas=gammas),
    "ramp": lambda gammas: RampClassifierCV(gammas=gammas, random_state=0),
    "double ramp": lambda gammas: DoubleRampClassifierCV(d=REFUSAL, gammas=gammas),
    "Rademacher": lambda gammas: RademacherSelector(gammas=gammas, random_state=0),
}


def split(name: str, seed: int) -> tuple[Any, Any, Any, Any]:
    data = load_dataset(f"{name}_ida")
    X, y = np.asarray(data.X, dtype=float), np.asarray(data.y)
    n = min(ROWS, len(y) // 2)
    train, test, labels, truth = train_test_split(
        X, y, train_size=n, test_size=min(3000, len(y) - n), random_state=seed, stratify=y
    )
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(test), labels, truth


def loss_and_seconds(search: Any, data: tuple[Any, Any, Any, Any]) -> tuple[float, float]:
    train, test, labels, truth = data
    begin = time.process_time()
    search.fit(train, labels)
    took = time.process_time() - begin
    loss = (search.predict(test) != truth).astype(float)
    if hasattr(search, "reject"):
        loss = np.where(search.reject(test), REFUSAL, loss)
    return float(loss.mean()), took


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=2)
    n_splits = parser.parse_args().splits
    warnings.simplefilter("ignore")
    table = []
    drawn = [split(name, seed) for name in NAMES for seed in range(n_splits)]
    for name, make in SEARCHES.items():
        make("auto").fit(*drawn[0][::2])  # compiles
        one, three = (
            np.array([loss_and_seconds(make(gammas), data) for data in drawn])
            for gammas in (None, "auto")
        )
        gain = one[:, 0] - three[:, 0]
        table.append(
            {
                "search": name,
                "error, gamma alone": one[:, 0].mean(),
                "error, three widths": three[:, 0].mean(),
                "gain": gain.mean(),
                "its standard error": gain.std(ddof=1) / np.sqrt(len(gain)),
                "time ratio": three[:, 1].sum() / one[:, 1].sum(),
            }
        )
    report("widths", table, splits=n_splits)


if __name__ == "__main__":
    main()
