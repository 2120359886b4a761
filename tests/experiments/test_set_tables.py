"""The paired test and the statements checked with it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from buttress.experiments import get_experiment
from buttress.experiments._set_tables import paired_test


def test_without_overlap_it_is_the_ordinary_paired_t_test():
    random = np.random.default_rng(0)
    one = list(random.random(12))
    other = list(random.random(12))
    gap, p = paired_test(one, other, 0.0)
    assert gap == pytest.approx(np.mean(one) - np.mean(other))
    assert p == pytest.approx(stats.ttest_rel(one, other).pvalue)
    assert paired_test(one, other, 0.5)[1] > p


def test_equal_differences_need_no_test():
    assert paired_test([0.3, 0.3], [0.3, 0.3], 0.5) == (0.0, 1.0)
    gap, p = paired_test([0.5, 0.25], [0.25, 0.0], 0.5)
    assert (gap, p) == (0.25, 0.0)


def test_statements_compare_the_unbiased_machine_with_h_zero():
    check = get_experiment("uncertainty-table3").check
    assert check is not None
    values = {
        "heart_ida/h = 0": [0.17, 0.18, 0.16],
        "heart_ida/unbiased MPM": [0.25, 0.27, 0.24],
        "titanic_ida/h = 0": [0.22, 0.21, 0.23],
        "titanic_ida/unbiased MPM": [0.23, 0.23, 0.23],
        "banana_ida/h = 0": [0.1],
        "banana_ida/unbiased MPM": [0.1],
    }
    holds = {result.statement.split(":")[0]: result.holds for result in check(values)}
    assert holds == {"heart": True, "titanic": False}


def test_the_table_of_two_classes_makes_no_statement_from_half_of_it():
    check = get_experiment("uncertainty-table1").check
    assert check is not None
    assert check({"0.2/MPM": [0.26]}) == []
