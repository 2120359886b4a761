"""Sentences of the papers as checks: each fails on a table that is deliberately wrong."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from buttress.experiments import experiment_names, get_experiment
from buttress.experiments._claims import always, at_least, cases, gap, verdict
from buttress.experiments._reports import values_of

RESULTS = Path(__file__).parents[2] / "docs" / "results"
# The papers' own sentences about columns that err less, store less, reject less.
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
WITH_CLAIMS = [name for name in experiment_names() if get_experiment(name).check is not None]


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
    return values_of(report)


def changed(value, change):
    """The same nest of lists with every number changed."""
    if isinstance(value, list):
        return [changed(item, change) for item in value]
    if isinstance(value, bool):
        return not value
    return change(value) if isinstance(value, int | float) else value


def largest(value):
    if isinstance(value, list):
        return max((largest(item) for item in value), default=0.0)
    return abs(float(value)) if isinstance(value, int | float) else 0.0


def wrong_tables(values):
    """Tables that say something else: turned round, all equal, far too large, of other sign."""
    top = 2 * max(largest(column) for column in values.values())
    columns = {key: top - k for k, key in enumerate(values)}
    rows = np.random.default_rng(0)
    return {
        "turned": {k: changed(v, lambda x: top - x) for k, v in values.items()},
        "equal": {k: changed(v, lambda x: 0.9) for k, v in values.items()},
        "negative": {k: changed(v, lambda x: -1.0 - abs(x)) for k, v in values.items()},
        "large": {k: changed(v, lambda x: 1e3 + 10 * abs(x)) for k, v in values.items()},
        "falling": {k: changed(v, lambda x, k=k: columns[k]) for k, v in values.items()},
        "random": {k: changed(v, lambda x: 10 * rows.standard_normal()) for k, v in values.items()},
    }


def one_column_wrong(values):
    """Tables of which a single column is wrong: the others keep their shape and meaning."""
    rows = np.random.default_rng(1)
    for key in values:
        for change in (
            lambda x: 0.9,
            lambda x: -1.0 - abs(x),
            lambda x: 1e3 + 10 * abs(x),
            lambda x: 10 * rows.standard_normal(),
        ):
            yield values | {key: changed(values[key], change)}


def claims_of(name, values):
    """The claims on a table; nothing where a table is too wrong to be read."""
    with np.errstate(all="ignore"):
        try:
            return {claim.statement: claim.holds for claim in get_experiment(name).check(values)}
        except (ValueError, ArithmeticError, IndexError, TypeError, RuntimeError):
            return {}


@pytest.mark.parametrize("name", WITH_CLAIMS)
@pytest.mark.filterwarnings("ignore")
def test_every_claim_can_fail(name):
    """One that holds, or cannot be told, does not hold on some wrong table."""
    values = stored_values(name)
    honest = list(get_experiment(name).check(values))
    assert honest
    unrefuted = {claim.statement for claim in honest if claim.holds is not False}
    for table in chain(wrong_tables(values).values(), one_column_wrong(values)):
        if not unrefuted:
            break
        unrefuted -= {text for text, holds in claims_of(name, table).items() if holds is False}
    assert not unrefuted


@pytest.mark.parametrize("name", TABLES)
def test_every_comparison_fails_on_a_table_that_is_turned_round(name):
    # Turn each column round about a constant: what was smaller becomes larger.
    values = stored_values(name)
    check = get_experiment(name).check
    wrong = {claim.statement: claim.holds for claim in check(wrong_tables(values)["turned"])}
    held = [claim.statement for claim in check(values) if claim.holds]
    assert not [text for text in held if wrong[text] and "comparable" not in text]


@pytest.mark.parametrize("name", TABLES)
def test_no_comparison_holds_where_everything_is_equally_bad(name):
    values = {key: [0.9] * max(2, len(column)) for key, column in stored_values(name).items()}
    found = list(get_experiment(name).check(values))
    # being as good as the others is what an equal table shows
    assert not [
        claim.statement for claim in found if claim.holds and "comparable" not in claim.statement
    ]


def test_comparable_accuracy_fails_two_points_below_the_best():
    values = stored_values("pa-ramp-table2")
    worse = {
        key: [v - 0.02 for v in shifted(0.9, 5)] if "/PA-RAMP/" in key else shifted(0.9, 5)
        for key in values
    }
    found = get_experiment("pa-ramp-table2").check(worse)
    comparable = [claim for claim in found if "comparable" in claim.statement]
    assert len(comparable) == 3
    assert all(claim.holds is False for claim in comparable)


def test_letters_claim_holds_only_where_the_counts_at_width_one_are_the_printed_ones():
    experiment = get_experiment("pa-ramp-letters")
    right = {
        cell.id: [float(cell.printed) * (1.0 if cell.id.startswith("1/") else 2.0)] * 3
        for cell in experiment.cells
    }
    assert all(claim.holds for claim in experiment.check(right))
    wrong = {
        key: [v * (3.0 if key.startswith("1/") else 0.5) for v in c] for key, c in right.items()
    }
    assert not any(claim.holds for claim in experiment.check(wrong))
