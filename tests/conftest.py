"""Fixtures shared by all tests."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Workers beside each other take a processor each. Threads of the linear algebra of all of them on
# the same processors wait for each other: half of the time of tests of small matrices. Libraries
# read this when they are loaded.
if "PYTEST_XDIST_WORKER" in os.environ:
    for library in ("OPENBLAS", "OMP", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import hypothesis
import numpy as np
import pytest

# SciPy reads it when it is imported; without it scikit-learn skips its array API checks.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

hypothesis.settings.register_profile(
    "buttress", deadline=None, max_examples=25, derandomize=True, print_blob=True
)
hypothesis.settings.load_profile("buttress")


@pytest.fixture(autouse=True)
def commands_start_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands compile what they call as they go: which test is the first to run one, and sees the
    line about the compiler, would depend on the machine."""
    from buttress.model_selection import preparing

    monkeypatch.setattr(preparing, "is_remembered", lambda job: True)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of benchmark data; the test is skipped where there is none."""
    folder = os.environ.get("BUTTRESS_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("set BUTTRESS_DATA to the folder of benchmark data")
    return Path(folder)


@pytest.fixture(scope="session")
def oracle() -> Callable[[str], tuple[dict[str, np.ndarray], Any]]:
    """Load an independent high-precision solution by name: its arrays and its parameters."""
    folder = os.environ.get("BUTTRESS_ORACLE")
    if not folder or not Path(folder).is_dir():
        pytest.skip("set BUTTRESS_ORACLE to the folder of reference solutions")

    def load(name: str) -> tuple[dict[str, np.ndarray], Any]:
        arrays = {}
        if (Path(folder) / f"{name}.npz").exists():
            with np.load(Path(folder) / f"{name}.npz") as stored:
                arrays = dict(stored)
        description = Path(folder) / f"{name}.json"
        return arrays, json.loads(description.read_text()) if description.exists() else None

    return load


# Files of tests that start processes and browsers, or simulate for long: `make test-long`.
LONG = (
    "blocks/test_dask_blocks",
    "classifiers/online/test_online_banana",
    "classifiers/test_approximation",
    "classifiers/test_offsets",
    "classifiers/test_risk_control",
    "cli/test_commands",
    "cli/test_fit",
    "cli/test_reproduce",
    "cli/test_stream",
    "docs/test_pages",
    "experiments/test_pages",
    "experiments/test_quick",
    "experiments/test_runner",
    "fuzz/",
    "inspection/test_theory_pictures",
    "model_selection/test_planning",
    "model_selection/test_rademacher",
    "noise/test_classifier",
    "report/test_browser",
    "review/test_review_browser",
    "review/test_review_kills",
    "serve/",
    "test_compile",
    "theory/test_theorems",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            name = item.path.relative_to(here).as_posix()
            if name.startswith(LONG):
                item.add_marker(pytest.mark.long)
