"""The path on all rows, which is solved when somebody asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.classifiers.leaky_path import LeakyProblem, RegularizationPath, make_geometry
from buttress.classifiers.training import TrainingSet
from buttress.kernels import Kernel


def solve_whole(problem: LeakyProblem, alphas: Array) -> Any:
    """The path on all rows with its certificates; a list of one for every class beyond two."""
    targets = problem.data.targets.T
    omegas = np.tile(problem.omega, (len(targets), 1))
    paths = problem.solve(targets, omegas, alphas)
    path = [problem.certified(y, alphas, paths, q) for q, y in enumerate(targets)]
    return path[0] if len(path) == 1 else path


@dataclass(frozen=True, eq=False)
class WholePath:
    """What the path of the chosen width and exponent is solved from.

    A search needs the solution at one penalty. The others take as long as a fold or two (a third
    of the time of 26 classes), and are seldom looked at. The Gram matrix is made again.

    Attributes
    ----------
    settings : dict
        Attributes of a `LeakyProblem`, but for its rows.
    data : TrainingSet
    alphas : array of shape (L,)
    most_features : int or None
        As in `make_geometry`.
    fingerprint : float
        Of the rows: a Gram matrix is the user's own, who may have changed it.
    """

    settings: dict[str, Any]
    data: TrainingSet
    alphas: Array
    most_features: int | None
    fingerprint: float

    @classmethod
    def of(
        cls, problem: LeakyProblem, data: TrainingSet, alphas: Array, most_features: int | None
    ) -> WholePath:
        """The path of a problem, from `data` that has its rows."""
        settings = dict(vars(problem))
        del settings["geometry"], settings["data"]
        return cls(settings, data, alphas, most_features, float(data.X.sum()))

    def solve(self) -> RegularizationPath | list[RegularizationPath]:
        """The path with its certificates; one for every class when there are more than two.

        Raises
        ------
        ValueError
            When the rows have changed since the search.
        """
        if float(self.data.X.sum()) != self.fingerprint:
            raise ValueError(
                "The Gram matrix that fit was given has changed since, and path_ is solved when "
                "it is first asked for: ask before changing it, or fit again."
            )
        kernel: Kernel = self.settings["kernel"]
        fit_intercept: bool = self.settings["fit_intercept"]
        geometry = make_geometry(kernel, self.data, fit_intercept, self.most_features)
        problem = LeakyProblem(data=self.data, geometry=geometry, **self.settings)
        return solve_whole(problem, self.alphas)  # type: ignore[no-any-return]
