"""One class per main job, in asv's conventions; nothing here needs asv.

`setup` makes the data and runs the job once, so that no compilation is timed. ``python
asv_benchmarks/main_jobs.py`` runs every one of them without asv.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

from sklearn.datasets import make_classification

from buttress import (
    DoubleRampClassifier,
    LabelAudit,
    LeakyHockeyStickClassifierCV,
    PARampClassifier,
    RampClassifier,
    UncertaintySetClassifier,
)


class _Job:
    """A fit on rows of a known seed."""

    params: ClassVar[list[int]] = [300, 1000]
    param_names: ClassVar[list[str]] = ["rows"]
    timeout = 120.0

    def setup(self, rows: int) -> None:
        self.X, self.y = make_classification(rows, 10, n_informative=6, flip_y=0.1, random_state=0)
        self.work()

    def work(self) -> Any:
        raise NotImplementedError

    def time_fit(self, rows: int) -> None:
        self.work()


class Path(_Job):
    """A hundred penalties on five folds."""

    def work(self) -> Any:
        return LeakyHockeyStickClassifierCV(alphas=100, cv=5).fit(self.X, self.y)

    def track_gap(self, rows: int) -> float:
        """Not a time: the certificate of the model chosen."""
        return float(self.work().duality_gap_)


class Ramp(_Job):
    """The ramp machine."""

    def work(self) -> Any:
        return RampClassifier().fit(self.X, self.y)


class Reject(_Job):
    """The machine that learns when not to answer."""

    def work(self) -> Any:
        return DoubleRampClassifier(d=0.2).fit(self.X, self.y)


class Sets(_Job):
    """Nearest points of two uncertainty sets."""

    def work(self) -> Any:
        return UncertaintySetClassifier().fit(self.X, self.y)


class Stream(_Job):
    """One pass with a budget."""

    def work(self) -> Any:
        return PARampClassifier(budget=100).fit(self.X, self.y)


class Audit(_Job):
    """Judge every label."""

    params: ClassVar[list[int]] = [300]

    def work(self) -> Any:
        return LabelAudit(random_state=0).audit(self.X, self.y)


JOBS = (Path, Ramp, Reject, Sets, Stream, Audit)


def main() -> None:
    for kind in JOBS:
        for rows in kind.params:
            job = kind()
            job.setup(rows)
            start = time.perf_counter()
            job.time_fit(rows)
            print(f"{kind.__name__:8} {rows:6} rows  {time.perf_counter() - start:.4f} s")


if __name__ == "__main__":
    main()
