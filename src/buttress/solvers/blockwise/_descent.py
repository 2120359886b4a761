"""Descent on many smooth convex problems at once, one column each.

Every pass over the data evaluates one trial point of every unfinished column. A column that
accepts its trial takes the next quasi-Newton direction, one that does not shortens its step;
neither waits for the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray

Evaluate = Callable[[Array, IntArray], tuple[Array, Array]]

# Sufficient decrease, and the slope a trial may end with where values no longer tell.
_DECREASE, _END_SLOPE = 1e-4, 0.9
_SHORTEN, _LEAST_SHARE, _MOST_SHARE = 0.25, 0.05, 0.5
_MOST_REJECTIONS = 12
# By how much a step's curvature may shorten directions. A metric that is nearly singular where the
# step went would shorten all of them, and the decrement with them: to nothing, as at a minimum.
_MOST_CURVED = 10.0


class Preconditioner(Protocol):
    """An approximation of the inverse Hessian, column by column."""

    def apply(self, gradient: Array, columns: IntArray, /) -> Array: ...

    def refresh(self, theta: Array, columns: IntArray, /) -> bool:
        """Adapt to new points; True when the old pairs of the memory are now useless."""
        ...


class OffsetSearch(Protocol):
    """Finds the offsets (the last parameter) of columns whose margins are hardly curved."""

    held: BoolArray

    def look(self, theta: Array, /) -> None:
        """Decide which columns are `held`."""
        ...

    def moves(self, theta: Array, slope: Array, step: Array, columns: IntArray, /) -> Array:
        """How far the offsets go when the weights move by `step`."""
        ...


@dataclass
class DescentState:
    """Where the columns are.

    Attributes
    ----------
    theta, gradient : arrays of shape (parameters, columns)
    value : array of shape (columns,)
    decrement : array of shape (columns,)
        ``g' H g`` with the current inverse Hessian estimate: about twice the distance of the
        value from its minimum.
    passes : int
    done : bool array of shape (columns,)
    """

    theta: Array
    value: Array
    gradient: Array
    decrement: Array
    passes: int
    done: BoolArray


class _Memory:
    """The last few steps and gradient changes of every column (L-BFGS)."""

    def __init__(self, size: int, shape: tuple[int, int]) -> None:
        self.steps: list[Array] = []
        self.changes: list[Array] = []
        self.inverse: list[Array] = []
        self.size, self.shape = size, shape

    def add(self, columns: IntArray, step: Array, change: Array) -> None:
        if self.size == 0 or len(columns) == 0:
            return
        product = np.einsum("ij,ij->j", step, change)
        scale = np.sqrt((step**2).sum(axis=0) * (change**2).sum(axis=0))
        kept = product > 1e-10 * np.maximum(scale, np.finfo(float).tiny)
        S, Y, inverse = np.zeros(self.shape), np.zeros(self.shape), np.zeros(self.shape[1])
        S[:, columns[kept]], Y[:, columns[kept]] = step[:, kept], change[:, kept]
        inverse[columns[kept]] = 1.0 / product[kept]
        self.steps.append(S)
        self.changes.append(Y)
        self.inverse.append(inverse)
        if len(self.steps) > self.size:
            for kind in (self.steps, self.changes, self.inverse):
                kind.pop(0)

    def forget(self) -> None:
        for kind in (self.steps, self.changes, self.inverse):
            kind.clear()

    def direction(
        self, gradient: Array, columns: IntArray, apply: Callable[[Array, IntArray], Array]
    ) -> Array:
        q = gradient.copy()
        coefficients = []
        for S, Y, inverse in zip(
            reversed(self.steps), reversed(self.changes), reversed(self.inverse), strict=True
        ):
            a = inverse[columns] * np.einsum("ij,ij->j", S[:, columns], q)
            coefficients.append(a)
            q -= a * Y[:, columns]
        d = self._scaled(q, columns, apply)
        for S, Y, inverse, a in zip(
            self.steps, self.changes, self.inverse, reversed(coefficients), strict=True
        ):
            b = inverse[columns] * np.einsum("ij,ij->j", Y[:, columns], d)
            d += (a - b) * S[:, columns]
        return -d

    def _scaled(
        self, q: Array, columns: IntArray, apply: Callable[[Array, IntArray], Array]
    ) -> Array:
        """The preconditioner times the length that the last step has shown to be right."""
        d = apply(q, columns)
        if not self.steps:
            return d
        Y, inverse = self.changes[-1][:, columns], self.inverse[-1][columns]
        curvature = np.einsum("ij,ij->j", Y, apply(Y, columns)) * inverse
        return d / np.where(curvature > 0, np.minimum(curvature, _MOST_CURVED), 1.0)


def descend(
    evaluate: Evaluate,
    start: Array,
    preconditioner: Preconditioner,
    tolerance: Array,
    max_passes: int,
    *,
    memory: int = 8,
    rounding: float = 1e-15,
    state: DescentState | None = None,
    offsets: OffsetSearch | None = None,
) -> DescentState:
    """Minimise all columns until their decrement is at most ``tolerance * (1 + |value|)``.

    Parameters
    ----------
    evaluate : callable
        From points (parameters, k) and the k column numbers to values and gradients.
    start : array of shape (parameters, columns)
    preconditioner : Preconditioner
    tolerance : array of shape (columns,)
    max_passes : int
        Calls of `evaluate`, counted from `state`.
    memory : int
        Steps remembered; 0 for a preconditioner that is the Hessian itself.
    rounding : float
        Relative accuracy of the values.
    state : DescentState, optional
        Go on from here instead of `start`.
    offsets : OffsetSearch, optional
        Used in the columns that it holds at the first point.
    """
    n_columns = start.shape[1]
    everything = np.arange(n_columns)
    if state is None:
        state = _first_state(evaluate, start)
    state.done = state.done.copy()
    pairs = _Memory(memory, start.shape)
    direction = np.zeros_like(state.theta)
    slope, step = np.zeros(n_columns), np.ones(n_columns)
    rejected = np.zeros(n_columns, dtype=int)
    fresh = everything[~state.done]  # columns that need a direction
    first = state.passes
    if offsets is not None and len(fresh):
        offsets.look(state.theta)
    while True:
        if len(fresh):
            if preconditioner.refresh(state.theta, fresh):
                pairs.forget()
            d = _direction(state, fresh, pairs, preconditioner, offsets)
            direction[:, fresh] = d
            slope[fresh] = np.einsum("ij,ij->j", d, state.gradient[:, fresh])
            state.decrement[fresh] = np.abs(slope[fresh])
            step[fresh], rejected[fresh] = 1.0, 0
            limit = tolerance[fresh] * (1.0 + np.abs(state.value[fresh]))
            state.done[fresh] = state.decrement[fresh] <= limit
        live = everything[~state.done & (rejected < _MOST_REJECTIONS)]
        if len(live) == 0 or state.passes - first >= max_passes:
            return state
        trial = state.theta[:, live] + step[live] * direction[:, live]
        value, gradient = evaluate(trial, live)
        state.passes += 1
        end_slope = np.einsum("ij,ij->j", gradient, direction[:, live])
        old, down = state.value[live], slope[live]
        accepted = _accepted(old, value, step[live] * down, down, end_slope, rounding)
        better = live[accepted]
        pairs.add(
            better,
            trial[:, accepted] - state.theta[:, better],
            gradient[:, accepted] - state.gradient[:, better],
        )
        state.theta[:, better] = trial[:, accepted]
        state.value[better] = value[accepted]
        state.gradient[:, better] = gradient[:, accepted]
        worse = live[~accepted]
        step[worse] *= _shorter(step[worse], old[~accepted], down[~accepted], value[~accepted])
        rejected[worse] += 1
        fresh = better


def _direction(
    state: DescentState,
    fresh: IntArray,
    pairs: _Memory,
    preconditioner: Preconditioner,
    offsets: OffsetSearch | None,
) -> Array:
    """Where the columns `fresh` go next, shape (parameters, fresh)."""
    if offsets is not None and offsets.held[fresh].any():
        return _with_offsets(state, fresh, pairs, preconditioner, offsets)
    return pairs.direction(state.gradient[:, fresh], fresh, preconditioner.apply)


def _first_state(evaluate: Evaluate, start: Array) -> DescentState:
    n_columns = start.shape[1]
    value, gradient = evaluate(start, np.arange(n_columns))
    endless, none = np.full(n_columns, np.inf), np.zeros(n_columns, dtype=bool)
    return DescentState(start.copy(), value, gradient, endless, 1, none)


def _accepted(
    old: Array, value: Array, expected: Array, slope: Array, end_slope: Array, rounding: float
) -> BoolArray:
    """Which steps lower the value by enough of what the slope at their beginning `expected`."""
    falls = value <= old + _DECREASE * expected
    # Near the minimum values are all rounding: then the slope decides (Hager and Zhang).
    flat = np.abs(end_slope) <= _END_SLOPE * np.abs(slope)
    return np.asarray(falls | ((value <= old + rounding * (1.0 + np.abs(old))) & flat))


def _shorter(step: Array, old: Array, slope: Array, value: Array) -> Array:
    """By how much to shorten steps: to the minimum of a parabola, within limits."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        best = -slope * step / (2.0 * (value - old - slope * step))
    return np.clip(np.where(np.isfinite(best), best, _SHORTEN), _LEAST_SHARE, _MOST_SHARE)


def _with_offsets(
    state: DescentState,
    fresh: IntArray,
    pairs: _Memory,
    preconditioner: Preconditioner,
    offsets: OffsetSearch,
) -> Array:
    """Directions in which the offsets of the held columns follow the weights.

    With the offset's own slope left out, the weights move as if the offset were always at its
    best; where that is, the search tells.
    """
    gradient = state.gradient[:, fresh]
    held = np.flatnonzero(offsets.held[fresh])
    columns = fresh[held]
    blind = gradient.copy()
    blind[-1, held] = 0.0
    d = pairs.direction(blind, fresh, preconditioner.apply)
    d[-1, held] = offsets.moves(state.theta[:, columns], gradient[-1, held], d[:, held], columns)
    uphill = held[np.einsum("ij,ij->j", d[:, held], gradient[:, held]) >= 0.0]
    d[-1, uphill] = 0.0
    return d
