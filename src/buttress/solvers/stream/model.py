"""Exact block-wise online kernel learning.

A stream is taken in blocks. The kernel of a block's rows with the vectors stored so far is
one matrix product, shared by the threads; what the rows of a block do to each other is worked
off row by row in a compiled loop. The result is that of one-by-one processing: the same support
positions, and coefficients that differ by rounding only, whatever the block size and however the
stream is cut into calls.

The four update rules are those of the PA-RAMP paper's comparison. With ``f`` the model before
the row ``(x, y)``, ``z = y f(x)``, no bias:

========== ============================ =================================================
rule       updates when                 update
========== ============================ =================================================
PA-RAMP    ``s < z`` and ``1 - z > 0``  ``f += y (1 - z) / k(x, x) k(x, .)``
Perceptron ``z <= 0``                   ``f += y k(x, .)``
Pegasos    ``z < 1``                    ``f = (1 - 1/t) f + y k(x, .) / (alpha t)``
NORMA      ``z < 1``                    ``f = (1 - eta alpha) f + eta y k(x, .)``
========== ============================ =================================================

Pegasos and NORMA shrink ``f`` at every row; NORMA then drops coefficients below `tau`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from buttress._arrays import Array, BoolArray, IntArray
from buttress._deadline import check_time
from buttress._threads import own_threads
from buttress.kernels import Kernel
from buttress.solvers.numerics.workspace import workspace
from buttress.solvers.stream import _loops as loops
from buttress.solvers.stream.budget import Budget
from buttress.solvers.stream.rules import StreamOutcome, UpdateRule, compiled_rule
from buttress.solvers.stream.similarity import GramSource, KernelSource, RbfSource, Source
from buttress.solvers.stream.store import VectorStore

# Kernel values that a prediction holds at a time where the kernel is no Gaussian one: 64 MB.
_PREDICTED_VALUES = 8_000_000
# Blocks taken at once where no old coefficient changes: waking a thread costs as much as some
# hundred thousand kernel values.
_BLOCKS_TOGETHER = 4


class OnlineModel:
    """A kernel expansion that learns from a stream.

    Parameters
    ----------
    rule : UpdateRule
    kernel : Kernel
        Its `center` (Gaussian kernel) should be near the data.
    n_problems : int
        Binary problems that share the support vectors.
    n_features : int
    dtype : {float64, float32}
        Of the rows stored; coefficients are kept in float64.
    is_sparse : bool
        Whether rows come as CSR matrices.
    budget : int, optional
        The largest number of support vectors.
    budget_policy : {"merge", "project", "forget", "forget_oldest"}
    block_size : int
        Rows taken at a time; four times as many where no old coefficient changes.
    gram : array, optional
        The Gram matrix of the whole stream, with ``kernel.name == "precomputed"``; rows are
        then row numbers in one column.
    drawn : array of int, optional
        Where rows are drawn with replacement, which one stands at every stream position: copies
        of one row are one vector to the budget, and after `end_draws`.

    Notes
    -----
    One row costs n_vectors · n_features multiplications; the linear kernel without a budget
    (NORMA excepted) keeps the weight vector and costs 2 n_features. With a budget B add per
    update O(B p) to merge, O(B²) to project, O(B) to forget.
    """

    # models written before there were draws have none of their own
    drawn: IntArray | None = None

    def __init__(
        self,
        rule: UpdateRule,
        kernel: Kernel,
        *,
        n_problems: int,
        n_features: int,
        dtype: Any = np.float64,
        is_sparse: bool = False,
        budget: int | None = None,
        budget_policy: str = "merge",
        block_size: int = 64,
        gram: Array | None = None,
        drawn: IntArray | None = None,
    ) -> None:
        self.drawn = drawn
        self.rule = rule
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.block_size = block_size
        # A budget bounds the memory of dense vectors too, and merging needs them.
        self.is_sparse = is_sparse and budget is None
        self.source = _make_source(kernel, n_features, self.is_sparse, gram)
        augmented = n_features + 1 if isinstance(self.source, RbfSource) else 0
        self.store = VectorStore(
            n_features, n_problems, dtype, is_sparse=self.is_sparse, augmented=augmented
        )
        self.budget = None if budget is None else Budget(budget, budget_policy, self.source)
        self.revises = self.budget is not None or rule.shrinks
        linear = kernel.name == "linear" and not self.revises
        self.weights = np.zeros((n_problems, n_features)) if linear else None
        self.t = 0
        self.seen = np.zeros((n_problems, 2), dtype=np.bool_)
        self.size = np.zeros(n_problems)
        self.largest_root = 0.0
        compiled_rule(rule, self.dtype)  # a rule that cannot be compiled says so now

    # -- learning --------------------------------------------------------------------------

    def learn(self, X: Any, Y: Array, position: IntArray, code: IntArray) -> StreamOutcome:
        """Answer and learn rows in order.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
        Y : array of shape (n, n_problems)
            ±1, and 0 in all columns of a row without a label (it is answered, not learned).
        position : array of shape (n,)
            Where the rows stand in the stream.
        code : array of shape (n,)
            Class codes, kept with the support vectors.
        """
        n = X.shape[0]
        outcome = StreamOutcome.empty(n, Y.shape[1])
        Y = np.ascontiguousarray(Y, dtype=np.float64)
        if self.weights is not None:
            learn = self._learn_linear
        else:
            learn = self._learn_revising if self.revises else self._learn_appending
        together = 1 if self.revises or self.weights is not None else _BLOCKS_TOGETHER
        step = self.block_size * together
        with own_threads():
            for start in range(0, n, step):
                check_time()
                rows = slice(start, min(start + step, n))
                block = X[rows] if start or rows.stop < n else X
                if sparse.issparse(block) and not self.is_sparse:
                    block = block.toarray()
                learn(block, Y[rows], position[rows], code[rows], outcome.rows(rows))
        return outcome

    def _learner(self) -> loops.Learner:
        """What every compiled loop is told beside the rows."""
        return compiled_rule(self.rule, self.dtype), self.t, self.seen, self.size

    def _learn_linear(
        self, block: Any, Y: Array, position: IntArray, code: IntArray, out: StreamOutcome
    ) -> None:
        A = np.zeros_like(Y)
        if self.is_sparse:
            rows: Any = (block.data, block.indices.astype(np.int64), block.indptr.astype(np.int64))
            learn: Any = loops.learn_linear_sparse
        else:
            block = rows = np.ascontiguousarray(block)
            learn = loops.learn_linear
        self.t = learn(rows, Y, self.weights, self._learner(), A, out.arrays)
        out.vectors[:] = self.store.n + np.cumsum(out.updated)
        new = np.flatnonzero(out.updated)
        if len(new):
            rows = block[new]
            kxx = self.kernel.diagonal(rows)
            self.store.append(rows, None, A[new].T, kxx, position[new], code[new])

    def _learn_appending(
        self, block: Any, Y: Array, position: IntArray, code: IntArray, out: StreamOutcome
    ) -> None:
        prepared = self.source.prepare(block)
        out.scores[:] = self.source.sums(prepared, self.store)
        A = np.zeros_like(Y)
        within = self.source.within(prepared)
        kxx = np.diagonal(within).copy()
        self.t = loops.learn_appending(within, Y, kxx, self._learner(), A, out.arrays)
        out.vectors[:] = self.store.n + np.cumsum(out.updated)
        new = np.flatnonzero(out.updated)
        if len(new):
            augmented = self.source.augmented(prepared)
            augmented = None if augmented is None else augmented[new]
            self.store.append(block[new], augmented, A[new].T, kxx[new], position[new], code[new])

    def _learn_revising(
        self, block: Any, Y: Array, position: IntArray, code: IntArray, out: StreamOutcome
    ) -> None:
        store = self.store
        prepared = self.source.prepare(block)
        augmented = self.source.augmented(prepared)
        B, n = len(Y), store.n
        store.reserve(n + B)
        K = workspace("kernel with all vectors", (B, n + B), self.dtype)
        self.source.against(prepared, store, K)
        within = self.source.within(prepared)
        kxx = np.diagonal(within).copy()
        limit = np.iinfo(np.int64).max if self.budget is None else self.budget.size
        self.largest_root = max(self.largest_root, float(np.sqrt(max(kxx.max(), 0.0))))
        start = 0
        while start < B:
            begin, span = start, (start, n, limit)
            start, n, self.t = loops.learn_revising(
                span, K, within, store.coef, Y, kxx, self._learner(), out.arrays
            )
            new = begin + np.flatnonzero(out.updated[begin:start])
            right = None if augmented is None else augmented[new]
            store.append(block[new], right, None, kxx[new], position[new], code[new])
            if n > limit:
                self._respect_budget(prepared, K[start:], start)
                n = out.vectors[start - 1] = store.n
        if self.rule.shrinks:
            self._drop_dead()
        self.size[:] = self.largest_root * np.abs(store.coef[:, : store.n]).sum(axis=1)

    def _respect_budget(self, prepared: Any, K: Array, start: int) -> None:
        """Remove vectors until the budget holds; `K` follows (rows of the block not yet seen)."""
        assert self.budget is not None
        store = self.store
        self._add_up_copies(K)
        self._keep(np.asarray(store.coef[:, : store.n].any(axis=0)), K)
        while store.n > self.budget.size:
            last = store.n - 1
            removed, moved = self.budget.shrink(store)
            K[:, removed] = K[:, last]
            if moved is not None and isinstance(self.source, RbfSource):
                column = self.source.column(prepared, store.vectors()[moved])
                K[:, moved] = column[start:]

    def _drop_dead(self) -> None:
        self._keep(np.asarray(self.store.coef[:, : self.store.n].any(axis=0)))

    def _keep(self, mask: BoolArray, K: Array | None = None) -> None:
        """Drop the other vectors, and their columns of `K`."""
        if mask.all():
            return
        if K is not None:
            K[:, : int(mask.sum())] = K[:, : self.store.n][:, mask]
        self.store.keep(mask)
        if self.budget is not None:
            self.budget.inverse = None

    def _add_up_copies(self, K: Array | None = None) -> None:
        """Make one vector of those that are the same drawn row; `K` as in `_respect_budget`."""
        if self.drawn is None:
            return
        store = self.store
        row = self.drawn[store.position[: store.n]]
        if len(np.unique(row)) == store.n:
            return
        identity = row[:, None]
        if self.budget is not None:  # a merged vector is no longer the row it came from
            identity = np.column_stack([row, store.vectors()])
        _, first, inverse = np.unique(identity, axis=0, return_index=True, return_inverse=True)
        leader = first[inverse.ravel()]
        for coef in store.coef[:, : store.n]:
            coef[:] = np.bincount(leader, weights=coef, minlength=store.n)
        self._keep(leader == np.arange(store.n), K)

    def end_draws(self) -> None:
        """Make one vector of all copies of a row; positions are those of the rows from now on."""
        assert self.drawn is not None
        self._add_up_copies()
        position = self.store.position[: self.store.n]
        position[:] = self.drawn[position]
        self.drawn = None

    def forget_gram(self) -> None:
        """Let go of a Gram matrix given in advance: the stream is over."""
        self.source = GramSource(np.empty((0, 0)))
        if self.budget is not None:
            self.budget.source = self.source

    # -- the model -------------------------------------------------------------------------

    @property
    def scale(self) -> float:
        """What stored coefficients are multiplied by: rules that average keep sums."""
        if self.rule.averaging > 0.0:
            return 1.0 / (self.rule.averaging * self.t) if self.t else 0.0
        return 1.0

    @property
    def coefficients(self) -> Array:
        """Signed coefficients of the support vectors, shape (n_problems, n_vectors)."""
        return np.asarray(self.store.coef[:, : self.store.n] * self.scale)

    @property
    def linear_weights(self) -> Array:
        """``sum a x`` for every problem (linear kernel)."""
        if self.weights is not None:
            return np.asarray(self.weights * self.scale)
        return np.asarray(self.coefficients @ self.store.vectors())

    def scores(self, X: Any) -> Array:
        """``f(x)`` of every row and problem, in float64."""
        if self.kernel.name == "linear":
            return np.asarray(X @ self.linear_weights.T)
        if sparse.issparse(X) and not self.is_sparse:
            X = X.toarray()
        elif self.is_sparse and not sparse.issparse(X):
            X = sparse.csr_matrix(X)
        X = X.astype(self.dtype, copy=False)
        n = X.shape[0]
        F = np.empty((n, len(self.store.coef)))
        step = 16384 if isinstance(self.source, RbfSource) else 64
        step = max(step, _PREDICTED_VALUES // max(self.store.n, 1)) if step == 64 else step
        with own_threads():
            for start in range(0, n, step):
                prepared = self.source.prepare(X[start : start + step])
                F[start : start + step] = self.source.sums(prepared, self.store, predicting=True)
        return np.asarray(F * self.scale)

    # -- saving ----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything `restore` needs, as arrays and numbers."""
        state: dict[str, Any] = {
            "t": self.t,
            "seen": self.seen,
            "size": self.size,
            "largest_root": self.largest_root,
        }
        if self.weights is not None:
            state["weights"] = self.weights
        if self.budget is not None and self.budget.inverse is not None:
            state["inverse"] = self.budget.inverse
            state["inverse_age"] = self.budget.age
        return self.store.state() | state

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state` of a model made with the same arguments."""
        rows = self.store.restore(state)
        if rows.shape[0]:
            augmented = self.source.augmented(self.source.prepare(rows))
            numbers = (state["coef"], state["kxx"], state["position"], state["code"])
            self.store.append(rows, augmented, *numbers)
        self.t = int(state["t"])
        self.seen = np.array(state["seen"], dtype=np.bool_)
        self.size = np.array(state["size"], dtype=np.float64)
        self.largest_root = float(state["largest_root"])
        if self.weights is not None:
            self.weights = np.array(state["weights"], dtype=np.float64)
        if self.budget is not None and "inverse" in state:
            self.budget.inverse = np.array(state["inverse"], dtype=np.float64)
            self.budget.age = int(state["inverse_age"])


def _make_source(kernel: Kernel, n_features: int, is_sparse: bool, gram: Array | None) -> Source:
    if kernel.name == "precomputed":
        if gram is None:
            raise ValueError("A precomputed kernel needs the Gram matrix of the stream.")
        return GramSource(gram)
    if kernel.name == "rbf" and not is_sparse:
        center = np.zeros(n_features) if kernel.center is None else kernel.center
        return RbfSource(float(kernel.params["gamma"]), np.asarray(center, dtype=np.float64))
    return KernelSource(kernel)
