"""The worked example of the documentation gives the numbers it prints."""

from __future__ import annotations

import doctest
from pathlib import Path


def test_the_worked_example():
    page = Path(__file__).parents[2] / "docs" / "theory.rst"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 20
    assert result.failed == 0


def test_the_page_of_guarantees():
    page = Path(__file__).parents[2] / "docs" / "guarantees.rst"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 8
    assert result.failed == 0
