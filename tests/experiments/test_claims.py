"""Sentences of the papers as checks: each fails on a table that is deliberately wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from buttress.experiments import get_experiment
from buttress.experiments._claims import always, at_least, cases, gap, verdict

RESULTS = Path(__file__).parents[2] / "docs" / "results"
TABLES = (
    "double-ramp-table3",
    "double-ramp-table4",
    "double-ramp-table5",
    "lhs-table1",
    "lhs-table2",
    "pa-ramp-table2",
    "uncertainty-table1",
    "uncertainty-table3",
)


def shifted(centre, size=20):
    return list(centre + np.linspace(-0.01, 0.01, size))


def test_a_gap_is_clear_beyond_two_standard_errors():
    assert verdict(*gap(shifted(0.1), shifted(0.2))) == -1
    assert verdict(*gap(shifted(0.2), shifted(0.1))) == 1
    assert verdict(*gap([1.0, 3.0, 2.0], [2.0, 1.0, 3.0])) == 0
    assert verdict(*gap([1.0], [2.0])) == 0
    assert verdict(*gap([], [])) == 0


def test_pairs_with_a_missing_side_are_left_out():
    assert gap([1.0, None, 3.0], [2.0, 5.0, None]) == (-1.0, np.inf)


@pytest.mark.parametrize(
    ("small", "large", "needed", "holds"),
    [(2, 0, 2, True), (0, 2, 1, False), (1, 0, 2, None), (1, 1, 2, False)],
)
def test_so_many_cases(small, large, needed, holds):
    wins = [(f"w{k}", shifted(0.1), shifted(0.2)) for k in range(small)]
    losses = [(f"l{k}", shifted(0.2), shifted(0.1)) for k in range(large)]
    unclear = [("u", [1.0, 3.0, 2.0], [2.0, 1.0, 3.0])] * (2 - small - large)
    assert at_least("s", needed, [*wins, *losses, *unclear]).holds is holds


def test_every_case_but_the_named_ones():
    table = [("a", shifted(0.1), shifted(0.2)), ("b", shifted(0.2), shifted(0.1))]
    assert always("s", table).holds is False
    assert always("s", table, unless=["b"]).holds is True
    assert always("s", [*table, ("c", [1.0, 3.0], [3.0, 1.0])], unless=["b"]).holds is None


def test_cases_need_both_sides():
    assert cases({"x": [1.0]}, {"a": ("x", "y")}) == []


def stored_values(name):
    report = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return {cell["id"]: cell["values"] for cell in report["cells"] if cell["values"]}


@pytest.mark.parametrize("name", TABLES)
def test_every_claim_fails_on_a_table_that_is_wrong(name):
    # Turn each column round about a constant: what was smaller becomes larger.
    values = stored_values(name)
    check = get_experiment(name).check
    honest = check(values)
    assert honest
    top = 2 * max(v for column in values.values() for v in column if v is not None)
    turned = {
        key: [None if v is None else top - v for v in column] for key, column in values.items()
    }
    wrong = {claim.statement: claim.holds for claim in check(turned)}
    held = [claim.statement for claim in honest if claim.holds]
    assert not [statement for statement in held if wrong[statement]]


@pytest.mark.parametrize("name", TABLES)
def test_no_claim_holds_where_everything_is_equally_bad(name):
    values = {key: [0.9] * max(2, len(column)) for key, column in stored_values(name).items()}
    assert not [claim.statement for claim in get_experiment(name).check(values) if claim.holds]
