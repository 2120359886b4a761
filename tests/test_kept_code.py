"""Compiled code on disk follows all of its sources."""

import os
import subprocess
import sys

import pytest

CALLED = """
from typing import NamedTuple
from buttress._compile import inner

class {name}(NamedTuple):
    number: float

@inner()
def changed(pair):
    return {result} * pair.number
"""
CALLER = """
from buttress._compile import compiled
from house.called import changed

@compiled()
def outer(pair):
    return changed(pair)
"""
MAIN = """
import house.called, house.caller
from house.caller import outer
pair = house.called.{name}(1.0)
print(outer(pair), sum(outer.stats.cache_hits.values()))
"""


@pytest.fixture
def run(tmp_path):
    package = tmp_path / "house"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "caller.py").write_text(CALLER)

    def run(name, result):
        (package / "called.py").write_text(CALLED.format(name=name, result=result))
        environment = os.environ | {
            "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
            "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            [sys.executable, "-c", MAIN.format(name=name)],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        value, hits = done.stdout.split()
        return float(value), int(hits)

    return run


def test_code_is_kept_and_a_change_in_another_file_is_noticed(run):
    assert run("Pair", 3.0) == (3.0, 0)
    assert run("Pair", 3.0) == (3.0, 1)
    assert run("Pair", 5.0) == (5.0, 0)


def test_code_of_another_version_whose_classes_are_gone_is_compiled_anew(run):
    assert run("Pair", 3.0) == (3.0, 0)
    assert run("Renamed", 3.0) == (3.0, 0)


def test_broken_files_are_compiled_anew(run, tmp_path):
    run("Pair", 3.0)
    for kept in (tmp_path / "kept").rglob("*.nb*"):
        kept.write_bytes(kept.read_bytes()[:40])
    assert run("Pair", 3.0) == (3.0, 0)
