"""How long the fuzzers run: seconds in the suite, minutes with ``pytest -m slow``."""

from __future__ import annotations

import hypothesis
import pytest

# In the suite the examples are the same every time; the long run looks for new ones.
SHORT = hypothesis.settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
LONG = hypothesis.settings(SHORT, max_examples=1000, derandomize=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that examples of one fuzzer share; each cleans up what it makes."""
    return tmp_path_factory.mktemp("fuzz")
