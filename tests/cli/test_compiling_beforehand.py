"""Commands compile what they will call before they look at a clock."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import buttress


@pytest.fixture(autouse=True)
def commands_start_at_once():
    """Not here: this is about what they do before."""


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("uncertainty", marks=pytest.mark.long),
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("leaky", "ramp", "online")),
    ],
)
def test_after_preparing_a_fit_compiles_nothing(kind, tmp_path):
    code = f"""
import numpy as np
from buttress._compilation import watching
from buttress.cli import main
from buttress.model_selection.preparing import jobs_of_kinds, prepare
rng = np.random.default_rng(0)
X = rng.normal(size=(900, 5))
y = X[:, 0] + rng.normal(size=900) > 0
lines = [",".join(map(str, row)) + "," + str(t) for row, t in zip(X.tolist(), y.tolist())]
open("rows.csv", "w").write("a,b,c,d,e,y\\n" + "\\n".join(lines) + "\\n")
prepare(jobs_of_kinds([{kind!r}, "ramp"], landmarks=True), live=False)
with watching(live=False) as watch:
    line = "fit rows.csv -t y --model {kind} --quiet --time 60s --report r.html"
    assert main(line.split()) == 0
assert watch.functions == 0, watch.functions
"""
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.path.dirname(os.path.dirname(buttress.__file__)),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
