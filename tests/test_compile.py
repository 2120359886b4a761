"""Compiling: where compiled code is kept, and what is said about it."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import event

import buttress
from buttress import _compilation, _compile, _compiler
from buttress.cli import main
from buttress.warm_up import FAMILIES, warm_up

LOOP = """
from buttress._compile import compiled
@compiled()
def twice(x):
    return 2 * x
assert twice(3) == 6
"""


@pytest.fixture(autouse=True)
def commands_start_at_once():
    """Not here: this is about what they do before."""


@pytest.fixture
def clean_environment(monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)


def run_script(folder: Path, home: Path, prelude: str = "") -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(prelude + LOOP)
    source = Path(buttress.__file__).parents[1]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PYTHONPATH": str(source),
    }
    return subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )


# What Numba finds where the sources' folder, or every folder, cannot be written. (The tests may
# run as a user to whom no folder is closed.)
NO_SOURCES = """
from numba.core import caching
caching.InTreeCacheLocator.from_function = classmethod(lambda *_: None)
"""
NOWHERE = (
    NO_SOURCES
    + """
caching.UserWideCacheLocator.from_function = classmethod(lambda *_: None)
"""
)


def test_code_goes_to_the_users_cache_and_that_is_said_once(tmp_path, clean_environment):
    first = run_script(tmp_path, tmp_path / "home", NO_SOURCES)
    assert first.returncode == 0, first.stderr
    assert first.stderr.count("compiled code is kept in") == 1
    second = run_script(tmp_path, tmp_path / "home", NO_SOURCES)
    assert second.returncode == 0
    assert "compiled code" not in second.stderr


def test_without_any_cache_code_runs_and_the_remedy_is_named(tmp_path, clean_environment):
    run = run_script(tmp_path, tmp_path / "home", NOWHERE)
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("NUMBA_CACHE_DIR") == 1


def test_other_faults_of_the_compiler_are_not_hidden(monkeypatch):
    def broken(**options):
        raise RuntimeError("something else")

    monkeypatch.setattr(_compile.numba, "njit", broken)
    with pytest.raises(RuntimeError, match="something else"):
        _compile.compiled()(lambda x: x)


def test_a_function_without_references_cannot_own_an_array():
    @_compile.inner(allocates=True)
    def made(n):
        return np.zeros(n)

    def total(n):
        return made(n)[0]

    def pair(x):
        return x, x

    def fresh(n):
        return np.zeros(n)[0]

    for function, argument in ((total, 3), (pair, np.zeros(2))):
        with pytest.raises(TypeError, match=f"{function.__name__} owns arrays"):
            _compile.compiled(cache=False)(function)(argument)
    with pytest.raises(numba.core.errors.NumbaError):
        _compile.compiled(cache=False)(fresh)(3)
    assert _compile.compiled(cache=False, allocates=True)(total)(3) == 0.0
    assert _compile.compiled(cache=False, allocates=True)(fresh)(3) == 0.0


def test_inner_functions_run_inside_functions_that_numba_compiles_in_its_own_way():
    @_compile.inner()
    def one_more(x):
        return x + 1

    @_compile.inner()
    def two_more(x):
        return one_more(one_more(x))

    @numba.njit
    def four_more(x):
        return two_more(two_more(x))

    outer = _compile.compiled(cache=False)(lambda x: two_more(two_more(x)))
    assert four_more(1) == outer(1) == 5


def test_compilations_are_counted_and_shown_on_a_terminal(capsys):
    with _compilation.watching(live=True) as watch:
        _compile.compiled(cache=False)(lambda x: x + 1)(1.0)
    assert watch.functions == 1
    assert watch.seconds > 0
    assert "compiling <lambda>" in capsys.readouterr().err
    watch.seconds = 2.0
    assert "warm-up" in watch.summary()
    with _compilation.watching(live=False) as watch:
        pass
    assert watch.summary() == ""


def test_a_family_that_is_not_there_is_refused_before_anything_is_compiled(capsys):
    with pytest.raises(ValueError, match="unknown family 'rampe'"):
        warm_up(["rampe"])
    assert main(["warm-up", "rampe"]) == 2
    assert "unknown family 'rampe'" in capsys.readouterr().err


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_second_warm_up_compiles_nothing(family):
    list(warm_up([family]))
    assert [functions for _, functions, _ in warm_up([family])] == [0]


def test_the_command_says_what_it_did(capsys):
    assert main(["warm-up", "ramp", "--json"]) == 0
    assert '"family": "ramp"' in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_new_process_finds_the_compiled_code(family, tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "buttress", "warm-up", family, "--json"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    again = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert '"functions": 0' in again.stdout


def test_functions_within_compiled_ones_become_part_of_them():
    @_compile.inner()
    def half(x):
        if x < 0.0:
            raise ValueError("negative")
        return 0.5 * x

    @_compile.inner()
    def quarter(x):
        return half(half(x))

    @_compile.compiled(cache=False)
    def eighth(x):
        return half(quarter(x))

    assert eighth(8.0) == 1.0
    with pytest.raises(ValueError, match="negative"):
        eighth(-1.0)
    for function, kept in ((half, False), (quarter, False), (eighth, True)):
        (found,) = function.overloads.values()
        assert isinstance(found.library, _compiler._Unlinked) != kept


@pytest.mark.parametrize("enabled", [True, False])
def test_collecting_garbage_goes_on_after_compiling_if_it_did_before(enabled):
    seen = []

    def ours(x):
        return x + 1

    ours.__module__ = "buttress.somewhere"

    class Watch(event.Listener):
        def on_start(self, event):
            seen.append(gc.isenabled())

        def on_end(self, event):
            pass

    watch, before = Watch(), gc.isenabled()
    event.register("numba:compile", watch)
    try:
        (gc.enable if enabled else gc.disable)()
        assert numba.njit(ours)(1) == 2
        after = gc.isenabled()
        with pytest.raises(numba.TypingError):
            numba.njit(ours)("text")
        after_failure = gc.isenabled()
    finally:
        event.unregister("numba:compile", watch)
        (gc.enable if before else gc.disable)()
    assert seen
    assert not any(seen)
    assert after == after_failure == enabled
