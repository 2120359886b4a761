"""What is compiled of a user's loss is what its names mean now; errors within are told."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from buttress import LeakyHockeyStickClassifier
from buttress.losses import OfNegative, ScalarLoss, TruncatedQuadratic, scalar
from buttress.solvers.smooth.margins import loss_scalars

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(70, 3))
Y = np.where(X[:, 0] + 0.7 * RANDOM.normal(size=70) > 0.2, 1, 0)


def of_source(source, namespace=None):
    """What functions a piece of source defines, by name."""
    defined = {} if namespace is None else namespace
    exec(source, defined)
    return defined


SQUARED = """
def value(u): return margin(u) ** 2
def derivative(u): return -2.0 * margin(u)
def curvature(u): return 2.0 if margin(u) > 0.0 else 0.0
"""
HELPER = "def margin(u): return max(0.0, bound - u)\n"


def test_a_helper_or_a_constant_that_changed_makes_another_loss():
    cell = of_source(f"bound = 1.0\n{HELPER}{SQUARED}", {"__name__": "notebook"})
    loss = ScalarLoss(cell["value"], cell["derivative"], cell["curvature"], 2.0)
    twin = ScalarLoss(cell["value"], cell["derivative"], cell["curvature"], 2.0)
    first = LeakyHockeyStickClassifier(loss=loss, alpha=0.01).fit(X, Y).decision_function(X)
    assert loss.scalars is twin.scalars
    for change in ("bound = 10.0", "bound = 1.0\ndef margin(u): return max(0.0, 10.0 - u)"):
        of_source(change, cell)
        assert loss.value(np.array([0.0])).tolist() == [loss.value_at(0.0)] == [100.0]
        changed = LeakyHockeyStickClassifier(loss=loss, alpha=0.01).fit(X, Y)
        assert np.abs(changed.decision_function(X) - first).max() > 0.1
        of_source(f"bound = 1.0\n{HELPER}", cell)
        assert loss.value(np.array([0.0])).tolist() == [1.0]
    again = LeakyHockeyStickClassifier(loss=loss, alpha=0.01).fit(X, Y)
    np.testing.assert_array_equal(again.decision_function(X), first)


def test_a_helper_of_scalars_that_changed_makes_other_scalars():
    cell = of_source(
        "from typing import NamedTuple\n"
        "def margin(u): return max(0.0, 1.0 - u)\n"
        "class Scalars(NamedTuple):\n"
        "    unused: float = 0.0\n"
        "    def value(self, u): return margin(u) ** 2\n"
        "    def slopes(self, u): return 2.0 * margin(u), 2.0 if margin(u) > 0.0 else 0.0\n",
        {"__name__": "notebook"},
    )
    before = loss_scalars(SimpleNamespace(scalars=cell["Scalars"]()))
    assert type(loss_scalars(SimpleNamespace(scalars=cell["Scalars"]()))) is type(before)
    of_source("def margin(u): return max(0.0, 2.0 - u)", cell)
    assert type(loss_scalars(SimpleNamespace(scalars=cell["Scalars"]()))) is not type(before)


def test_functions_of_a_nameless_module_run_interpreted_with_the_reason():
    cell = of_source(f"bound = 1.0\n{HELPER}{SQUARED}")
    assert cell["value"].__module__ is None
    loss = ScalarLoss(cell["value"], cell["derivative"], cell["curvature"], 2.0)
    model = LeakyHockeyStickClassifier(loss=loss, alpha=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # whether Numba can is not ours to say
        model.fit(X, Y)
    usual = LeakyHockeyStickClassifier(loss=OfNegative(TruncatedQuadratic(-1.0, 0.25)), alpha=0.01)
    np.testing.assert_allclose(
        model.decision_function(X), usual.fit(X, Y).decision_function(X), atol=1e-6
    )


def test_an_error_of_reading_a_loss_is_told_as_it_is(monkeypatch):
    def fails(*given):
        raise AttributeError("the true reason")

    monkeypatch.setattr(scalar, "compiled_function", fails)
    loss = ScalarLoss(lambda u: -u, lambda u: -1.0, lambda u: 0.0, 1.0)
    with pytest.raises(AttributeError, match="the true reason"):
        loss.value(np.zeros(1))
    assert not hasattr(loss, "conjugate")


def test_arguments_with_defaults_are_compiled():
    def value(u, bound=1.0):
        return max(0.0, bound - u) ** 2

    def derivative(u, bound=1.0):
        return -2.0 * max(0.0, bound - u)

    def curvature(u, bound=1.0):
        return 2.0 if u < bound else 0.0

    loss = ScalarLoss(value, derivative, curvature, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loss.scalars is not None
        assert loss.value(np.array([0.0, 2.0])).tolist() == [1.0, 0.0]
