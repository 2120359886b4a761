"""Two ways to train on rows: an exact kernel in memory, or mapped rows in blocks.

`ApproximationMixin._rows` looks at the data and the parameters and chooses between the strategies
of `row_strategies`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from buttress._arrays import Array, IntArray
from buttress._frames import collected, n_rows, rows_of
from buttress._memory import free_memory
from buttress._user_warnings import warn_user
from buttress.blocks.base import ArrayBlocks, Block, BlockSource, take_rows
from buttress.blocks.sources import Changed, ClassFactors, as_blocks, is_blocks, mapped_once
from buttress.classifiers.kernel_source import kernel_of
from buttress.classifiers.parameters import check_common, check_number, check_option
from buttress.classifiers.row_strategies import (
    ExactRows,
    ScaledFit,
    ScaledKernel,
    TrainingScores,
)
from buttress.classifiers.training import TrainingSet, with_class_weight
from buttress.kernels import Kernel, resolve_gamma
from buttress.kernels.approximate import (
    FeatureMap,
    FourierMap,
    LinearMap,
    NystroemMap,
    fourier_map,
    nystroem_map,
)
from buttress.kernels.landmarks import LANDMARK_RULES, candidate_rows, choose_landmarks
from buttress.solvers.blockwise.columns import Folds
from buttress.solvers.blockwise.scan import scan

APPROXIMATIONS = (None, "nystroem", "fourier", "auto")
# Rows that the median distance is taken from: with 1000 it is 2 % off on image, with 500 7 % on
# covtype_sample.
_MEDIAN_ROWS = 2000
# Free memory assumed where the system does not say, and units of memory in megabytes.
_UNKNOWN = 4 * 2**30
_UNITS = {"": 1.0, "KB": 2.0**-10, "MB": 1.0, "GB": 2.0**10, "TB": 2.0**20}


class ApproximationMixin:
    """``approximation``, ``n_components``, ``landmarks`` and ``memory_limit``.

    Comes before the base class in the list of bases; a subclass is trained by `_fit_exact` or
    `_fit_scaled`.
    """

    approximation: str | None
    n_components: int
    landmarks: str
    memory_limit: Any
    kernel: Any
    gamma: Any
    degree: float
    coef0: float
    kernel_params: Any
    class_weight: Any
    random_state: Any
    _check_parameters: Any

    def _train(self, X: Any, y: Any, sample_weight: Any) -> Any:
        self._check_parameters()
        self._rows(X, y, sample_weight).train(self)
        return self

    def _rows(
        self, X: Any, y: Any, sample_weight: Any, cv: Any = None, split: Any = None
    ) -> ExactRows | ScaledFit:
        """How to train: on all similarities, or on mapped rows in blocks.

        `cv` are the folds of a search and `split` what its splitter is told beside the rows.
        """
        check_common(self)
        check_option("approximation", self.approximation, APPROXIMATIONS)
        check_number("n_components", self.n_components, "[1, inf)", integer=True)
        check_option("landmarks", self.landmarks, LANDMARK_RULES)
        limit = memory_limit_bytes(self.memory_limit)
        self.approximation_: str | None = None
        X, blocks = collected(X), is_blocks(X)
        exact = self.approximation is None and not blocks
        name = None if exact else self._chosen_approximation(X, blocks, limit)
        if name is None and not blocks:
            return ExactRows(self._training_set(X, y, sample_weight))  # type: ignore[attr-defined]
        if self.kernel == "precomputed":
            raise ValueError(
                f"approximation={name!r} needs rows to map; kernel='precomputed' has none."
            )
        data = None
        if blocks:
            source = as_blocks(X, y, sample_weight)
        else:
            data = self._training_set(X, y, sample_weight)  # type: ignore[attr-defined]
            source = ArrayBlocks(data.X, data.codes, data.weight)
        seed = int(check_random_state(self.random_state or 0).randint(2**31 - 1))
        folds = self._scaled_folds(cv, seed, data, split or {})
        summary = scan(source, folds)
        if blocks:
            self._describe_input(source)
            totals, codes = summary.class_weight, np.arange(len(summary.classes))
            wanted = with_class_weight(totals, self.class_weight, summary.classes, codes)
            if self.class_weight is not None and wanted is not None:
                source = Changed(source, ClassFactors(summary.classes, wanted / totals))
                summary = scan(source, folds)
        self.approximation_ = name
        return ScaledFit(source, summary, folds, name, seed, limit / 2.0, data)

    def _chosen_approximation(self, X: Any, blocks: bool, limit: float) -> str | None:
        if self.kernel == "linear":
            return None
        if self.approximation not in ("auto", None):
            return self.approximation
        if blocks:
            if self.approximation is None:
                raise ValueError(
                    "Data in blocks (a path, a Dask collection) need approximation='nystroem', "
                    "'fourier' or 'auto', or kernel='linear': an exact kernel needs all rows in "
                    "memory."
                )
            return "nystroem"
        n = n_rows(X)
        itemsize = 4 if getattr(X, "dtype", None) == np.float32 else 8
        needed = float(n) * n * itemsize
        if self.kernel == "precomputed" or needed <= limit:
            return None
        warn_user(
            f"The kernel matrix of {n} rows needs {needed / 2**20:.4g} MB and memory_limit allows "
            f"{limit / 2**20:.4g} MB: approximation='auto' takes the Nyström map with "
            f"n_components={self.n_components}.",
        )
        return "nystroem"

    def _scaled_folds(
        self, cv: Any, seed: int, data: TrainingSet | None, split: dict[str, Any]
    ) -> Folds:
        if cv is None:
            return Folds()
        if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
            check_number("cv", cv, "[2, inf)", integer=True)
            return Folds(int(cv), seed)
        if data is None:
            raise ValueError(f"cv={cv!r}: data in blocks take a number of folds only.")
        split_rows = {name: rows_of(values, data.rows) for name, values in split.items()}
        pairs = list(cv.split(data.X, data.codes, **split_rows) if hasattr(cv, "split") else cv)
        train, test = np.zeros((2, len(data.codes), len(pairs)), dtype=bool)
        for fold, pair in enumerate(pairs):
            train[pair[0], fold], test[pair[1], fold] = True, True
        return Folds(len(pairs), seed, (train, test))

    def _describe_input(self, source: BlockSource) -> None:
        self.n_features_in_ = source.n_features
        if source.feature_names is not None:
            self.feature_names_in_ = np.asarray(source.feature_names, dtype=object)

    def _scaled_width(self, fit: ScaledFit, gamma: Any = None) -> float | None:
        """The kernel's width as a number, None for kernels without one."""
        gamma = self.gamma if gamma is None else gamma
        source, p = fit.source, fit.source.n_features
        if self.kernel == "linear" or callable(self.kernel):
            return None
        if isinstance(gamma, str) and gamma == "scale":
            spread = p * fit.summary.variance
            return 1.0 / spread if spread > 0 else 1.0
        if isinstance(gamma, str) and gamma == "median":
            picked = np.linspace(0, source.n_rows - 1, min(source.n_rows, _MEDIAN_ROWS))
            block = take_rows(source, picked.astype(int))
            return resolve_gamma("median", block.X, block.weight)
        return resolve_gamma(gamma, np.empty((0, p)))

    def _scaled_similarity(self, fit: ScaledFit, gamma: Any = None) -> Kernel:
        """The kernel with its width fixed from all rows."""
        dense = fit.data is None or not sparse.issparse(fit.data.X)
        center = fit.summary.mean if dense else None
        return kernel_of(self, self._scaled_width(fit, gamma), center)

    def _scaled_kernel(self, fit: ScaledFit, gamma: Any = None) -> ScaledKernel:
        """Fix the kernel's width, choose landmarks or draw frequencies."""
        source, p = fit.source, fit.source.n_features
        kernel = self._scaled_similarity(fit, gamma)
        rows, codes = np.empty(0, dtype=int), np.empty(0, dtype=int)
        features: FeatureMap
        if fit.name is None:
            features = LinearMap(p)
        elif fit.name == "fourier":
            features = fourier_map(kernel, p, int(self.n_components), fit.seed)
        else:
            m = int(self.n_components)
            candidates = candidate_rows(self.landmarks, source.n_rows, m, fit.seed)
            block = take_rows(source, candidates)
            chosen = choose_landmarks(self.landmarks, kernel, block.X, m, fit.seed, block.weight)
            rows, codes = candidates[chosen], block.codes(fit.classes)[chosen]
            features = nystroem_map(kernel, block.X[chosen])
        mapped_source, reading = mapped_once(source, features, fit.classes, fit.limit)
        return ScaledKernel(kernel, features, rows, codes, mapped_source, reading)

    def _store_scaled(
        self, fit: ScaledFit, scaled: ScaledKernel, weights: Array, intercept: Array
    ) -> None:
        """Keep the model: an expansion in landmarks, random features, or linear weights.

        Parameters
        ----------
        fit : ScaledFit
        scaled : ScaledKernel
        weights : array of shape (n_components, n_problems)
            In the coordinates of the feature map.
        intercept : array of shape (n_problems,)
        """
        dtype = fit.source.dtype
        raw = np.ascontiguousarray(scaled.raw_weights(weights).T, dtype=dtype)
        rows = scaled.rows if fit.data is None else fit.data.rows[scaled.rows]
        self.classes_ = fit.labels
        self.intercept_ = np.asarray(intercept, dtype=dtype)
        self.kernel_ = scaled.kernel
        self.gamma_ = scaled.kernel.params.get("gamma")
        self.support_ = rows
        self.n_support_ = np.bincount(scaled.codes, minlength=len(fit.classes))
        self.support_vectors_ = np.empty((0, fit.source.n_features), dtype=dtype)
        self.dual_coef_ = np.empty((len(raw), 0), dtype=dtype)
        features = scaled.features
        if isinstance(features, NystroemMap):
            self.support_vectors_, self.dual_coef_ = features.landmarks, raw
        elif isinstance(features, FourierMap):
            self.random_weights_ = features.weights.astype(dtype)
            self.random_phase_ = features.phase.astype(dtype)
            self.feature_coef_ = raw
        else:
            self.coef_ = raw

    def _training_scores(self, fit: ScaledFit) -> TrainingScores:
        """What the stored model says of all training rows."""
        blocks = list(fit.source.map(_ScoreTask(self, fit.classes)))
        scores, codes, weight = (np.concatenate(column) for column in zip(*blocks, strict=True))
        rows: IntArray = np.arange(len(codes))
        n_rows = len(codes)
        if fit.data is not None:
            rows, n_rows = fit.data.rows, fit.data.n_rows
        return TrainingScores(scores, codes, weight, rows, n_rows)

    # -- prediction ------------------------------------------------------------------------

    def _scores(self, X: Any) -> Array:
        if not hasattr(self, "random_weights_"):
            return super()._scores(X)  # type: ignore[misc, no-any-return]
        features = FourierMap(self.random_weights_, self.random_phase_)
        step = max(1, 8_000_000 // features.n_raw)
        blocks = [
            features.raw(X[i : i + step]) @ self.feature_coef_.T + self.intercept_
            for i in range(0, X.shape[0], step)
        ]
        return np.concatenate(blocks) if blocks else np.empty((0, len(self.intercept_)))

    def decision_function(self, X: Any) -> Any:
        """Signed score of every row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or a path to Parquet or Arrow files, or a Dask collection: then the scores are
            made block by block, and stay a Dask array in the last case.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            One column per class when there are more than two. Positive values speak for
            ``classes_[1]`` (two classes) or for the column's class.
        """
        if is_blocks(X):
            return by_blocks(self, X, "decision_function")
        return super().decision_function(X)  # type: ignore[misc]

    def predict(self, X: Any) -> Any:
        """The label of every row; a score of exactly zero is ``classes_[0]``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or a path or a Dask collection, as in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if is_blocks(X):
            return by_blocks(self, X, "predict")
        return super().predict(X)  # type: ignore[misc]


@dataclass(frozen=True, eq=False)
class _ScoreTask:
    model: Any
    classes: NDArray[Any]

    def __call__(self, block: Block) -> tuple[Array, IntArray, Array]:
        weight = np.ones(len(block)) if block.weight is None else block.weight
        return self.model._scores(block.X), block.codes(self.classes), weight


def memory_limit_bytes(limit: Any) -> float:
    """Bytes that ``memory_limit`` allows: megabytes, text such as "2 GB", or None.

    None is half of the memory that is free now.

    Examples
    --------
    >>> memory_limit_bytes(1), memory_limit_bytes("2 GB")
    (1048576.0, 2147483648.0)
    """
    if limit is None:
        return (free_memory() or _UNKNOWN) / 2.0
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?B?)\s*", limit.upper())
        unit = None if match is None else match[2] + "B" * (match[2] in ("K", "M", "G", "T"))
        if match is None or unit not in _UNITS:
            raise ValueError(
                f"memory_limit={limit!r} is not accepted: expected megabytes, or text such as "
                "'500 MB' or '2 GB'."
            )
        return float(match[1]) * _UNITS[unit] * 2.0**20
    return check_number("memory_limit", limit, "(0, inf)") * 2.0**20


def by_blocks(model: Any, X: Any, method: str) -> Any:
    """Run a prediction method on files or on a Dask collection, block by block.

    Parameters
    ----------
    model : fitted classifier
    X : path, source of blocks, Dask array or Dask dataframe
    method : {"decision_function", "predict"}
    """
    names = getattr(model, "feature_names_in_", None)
    call = partial(_predict_rows, model, method, names)
    if hasattr(X, "__dask_graph__"):
        if hasattr(X, "columns"):
            X = X[list(names) if names is not None else list(X.columns)].to_dask_array()
        sample = call(np.zeros((1, model.n_features_in_)))
        X = X.rechunk({1: -1})
        if sample.ndim == 1:
            return X.map_blocks(call, dtype=sample.dtype, drop_axis=1, meta=sample[:0])
        chunks = (X.chunks[0], (sample.shape[1],))
        return X.map_blocks(call, dtype=sample.dtype, chunks=chunks, meta=sample[:0])
    source = as_blocks(X, columns=None if names is None else list(names))
    return np.concatenate(list(source.map(partial(_predict_block, call))))


def _predict_block(call: Any, block: Block) -> Any:
    return call(block.X)


def _predict_rows(model: Any, method: str, names: Any, rows: Any) -> Any:
    if names is not None:
        import pandas as pd

        rows = pd.DataFrame(rows, columns=names)
    return getattr(model, method)(rows)
