"""A user's loss is compiled with what it calls, or run interpreted, which is said once."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import NamedTuple

import numba
import numpy as np
import pytest

from buttress import LeakyHockeyStickClassifier, LeakyHockeyStickClassifierCV
from buttress.losses import (
    Exponential,
    OfNegative,
    ScalarLoss,
    TruncatedQuadratic,
    compiling,
)
from buttress.losses.compiling import reason, with_helpers
from buttress.solvers.smooth.margins import compiled_loss, set_slopes

SQUARED_HINGE = OfNegative(TruncatedQuadratic())
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(70, 3))
Y = np.where(X[:, 0] + 0.7 * RANDOM.normal(size=70) > 0.2, 1, 0)
ROUTES = [{}, {"approximation": "nystroem", "n_components": 20, "random_state": 0}]


def beyond(u):
    return max(0.0, 1.0 - u)


def value(u):
    return beyond(u) ** 2


def derivative(u):
    return -2.0 * beyond(u)


def curvature(u):
    return 2.0 if beyond(u) > 0.0 else 0.0


def opaque(u):
    return u if str(object()) else -u


class Power:
    """A callable object that cannot be a key."""

    __hash__ = None

    def __init__(self, p):
        self.p = p

    def __call__(self, u):
        return beyond(u) ** self.p


def scaled(by, p, u):
    return by * beyond(u) ** p


class InArrays:
    """The squared hinge as an object."""

    curvature_bound = 2.0

    def value(self, u):
        return SQUARED_HINGE.value(u)

    def derivative(self, u):
        return SQUARED_HINGE.derivative(u)

    def curvature(self, u):
        return SQUARED_HINGE.curvature(u)


def with_scalars(kind, *parameters):
    """The squared hinge with hand-written scalars."""

    class WithScalars(InArrays):
        scalars = kind(*parameters)

    return WithScalars()


def told(record):
    """Messages of the warnings about losses, and where they point."""
    return [
        (str(one.message), one.filename, one.lineno)
        for one in record
        if "interpreted" in str(one.message) or "called from Python" in str(one.message)
    ]


def same_path(loss, options):
    # smaller penalties magnify rounding: scores change their signs
    options = options | {"alphas": 10.0 ** np.linspace(0, -3, 25), "cv": 3}
    own = LeakyHockeyStickClassifierCV(loss=loss, **options).fit(X, Y)
    built_in = LeakyHockeyStickClassifierCV(loss=SQUARED_HINGE, **options)
    np.testing.assert_allclose(own.cv_mean_, built_in.fit(X, Y).cv_mean_)
    np.testing.assert_allclose(own.decision_function(X), built_in.decision_function(X), atol=1e-5)


def test_helpers_by_name_and_in_closures_are_compiled_too():
    inside = beyond

    def deep(u):
        return value(u) + inside(u)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss = ScalarLoss(deep, derivative, curvature, curvature_bound=2.0)
        assert loss.value(np.array([-1.0, 2.0])).tolist() == [6.0, 0.0]
        assert compiled_loss(loss) is not None
    assert deep(-1.0) == 6.0
    assert inside is beyond


def test_a_function_without_helpers_is_left_as_it_is():
    assert with_helpers(math.exp) is math.exp
    assert with_helpers(beyond) is beyond
    square = numba.njit(lambda u: u * u)

    def jitted_helper(u):
        return square(u)

    assert with_helpers(jitted_helper) is jitted_helper


def test_helpers_that_call_each_other_come_to_an_end():
    def down(u):
        return 0.0 if u <= 0.0 else up(u - 1.0)

    def up(u):
        return down(u)

    assert numba.njit(with_helpers(beyond))(0.0) == 1.0
    loss = ScalarLoss(down, derivative, curvature, curvature_bound=2.0)
    with pytest.warns(UserWarning, match="down cannot be compiled"):
        assert loss.value(np.array([3.0])).tolist() == [0.0]


def test_the_warning_gives_the_reason_and_points_at_the_function():
    def slope(u):
        return opaque(u)

    loss = ScalarLoss(value, slope, curvature, curvature_bound=2.0)
    with pytest.warns(UserWarning, match="slope cannot be compiled") as record:
        loss.derivative(np.zeros(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        loss.value(np.zeros(2))
    [(message, file, line)] = told(record)
    assert "Untyped global name 'object'" in message
    assert "numba.njit" in message
    assert f"test_compiling.py:{opaque.__code__.co_firstlineno + 1}" in message
    assert (file, line) == (__file__, slope.__code__.co_firstlineno)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda u: "a" + u, r"No implementation of function .*add.* found for signature: add\("),
        (lambda u: (u, u), "it returns .*float64.*, expected a number"),
        (lambda u: None, "it returns none, expected a number"),
    ],
)
def test_what_is_no_function_of_numbers_is_named(wrong, why):
    loss = ScalarLoss(value, wrong, curvature, curvature_bound=2.0)
    with pytest.warns(UserWarning, match=why):
        assert loss.scalars is None


def test_reasons_are_one_line():
    assert reason(RuntimeError("")) == "RuntimeError: no reason given"
    assert reason(KeyError("x")) == "KeyError: 'x'"


@pytest.mark.parametrize("options", ROUTES, ids=["exact", "nystroem"])
def test_partial_functions_and_callable_objects_run_interpreted_and_say_so_once(options):
    loss = ScalarLoss(Power(2), partial(scaled, -2.0, 1), curvature, curvature_bound=2.0)
    compiling._said.clear()
    with pytest.warns(UserWarning, match="run interpreted") as record:
        same_path(loss, options)
    [(message, _, _)] = told(record)
    assert message.startswith("Power, partial cannot be compiled")
    assert "Numba compiles functions made by def or lambda, not" in message


class Opaque(NamedTuple):
    unused: float = 0.0

    def value(self, u):
        return opaque(beyond(u)) ** 2

    def slopes(self, u):
        return 2.0 * opaque(beyond(u)), curvature(u)


class Sloping(NamedTuple):
    unused: float = 0.0

    def value(self, u):
        return value(u)

    def slopes(self, u):
        return -derivative(u)


class NoSlopes(NamedTuple):
    unused: float = 0.0

    def value(self, u):
        return value(u)


class NoNumber(NamedTuple):
    unused: object = Power(2)

    def value(self, u):
        return value(u)

    def slopes(self, u):
        return -derivative(u), curvature(u)


class NoTuple:
    def value(self, u):
        return value(u)


@pytest.mark.parametrize("options", ROUTES, ids=["exact", "nystroem"])
@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Opaque, "value: Untyped global name 'object'"),
        (Sloping, "slopes: it returns float64, expected 2 numbers"),
        (NoSlopes, "it has no method slopes"),
        (NoNumber, "Cannot determine Numba type"),
        (NoTuple, "Numba reads named tuples"),
    ],
)
def test_scalars_that_cannot_be_compiled_run_interpreted_and_say_so_once(kind, why, options):
    loss = with_scalars(kind)
    compiling._said.clear()
    with pytest.warns(UserWarning, match=f"cannot be compiled, and .*{why}") as record:
        same_path(loss, options)
    [(_, file, _)] = told(record)
    assert file == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="needs a compiled loss"):
            LeakyHockeyStickClassifier(loss=loss, solver="batched").fit(X, Y)


@pytest.mark.parametrize("options", ROUTES, ids=["exact", "nystroem"])
def test_objects_without_scalars_say_so_once_on_both_routes(options):
    compiling._said.clear()
    with pytest.warns(UserWarning, match="is called from Python.*ScalarLoss") as record:
        same_path(InArrays(), options)
    [(_, file, _)] = told(record)
    assert file == __file__


def test_losses_of_the_package_are_blamed_on_the_line_that_fits():
    loss = OfNegative(Exponential())
    with pytest.warns(UserWarning, match="OfNegative is called from Python") as record:
        LeakyHockeyStickClassifierCV(loss=loss, alphas=25, cv=3).fit(X, Y)
    [(_, file, _)] = told(record)
    assert file == __file__


@pytest.mark.slow
@pytest.mark.parametrize("options", ROUTES, ids=["exact", "nystroem"])
def test_scalars_with_helpers_take_the_compiled_loops(options):
    class Helped(NamedTuple):
        unused: float = 0.0

        def value(self, u):
            return value(u)

        def slopes(self, u):
            return -derivative(u), curvature(u)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same_path(with_scalars(Helped), options)


def test_two_types_of_one_name_do_not_share_code():
    def falling(by):
        class Straight(NamedTuple):
            unused: float = 0.0

            def value(self, u):
                return -by * u

            def slopes(self, u):
                return by, 0.0

        return with_scalars(Straight)

    slopes = numba.njit(lambda loss, u, t, kappa: set_slopes(loss, u, t, kappa))
    for by in (1.0, 2.0):
        u, t, kappa = np.ones((3, 2))
        slopes(compiled_loss(falling(by)), u, t, kappa)
        assert t.tolist() == [by, by]
