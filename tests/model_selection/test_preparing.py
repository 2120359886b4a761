"""What is compiled before a command looks at a clock, what is said about it, and how often."""

from __future__ import annotations

import os

import pytest

from buttress import KernelPegasos, Norma, PARampClassifier, _compile
from buttress.classifiers.online import learner_names
from buttress.model_selection.preparing import (
    Job,
    job_of_learner,
    jobs_of_family,
    jobs_of_kinds,
    prepare,
)
from buttress.warm_up import FAMILIES


@pytest.fixture(autouse=True)
def commands_start_at_once():
    """Not here: this is about what they do before."""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(_compile, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


def test_a_job_is_done_once_and_said_beforehand(cache):
    done, told = [], []
    jobs = [Job("a", "ramp", 3.0, lambda: done.append("a"))]
    jobs += [Job("b", "leaky", 4.0, lambda: done.append("b"))]
    prepare(jobs[:1], lambda text: told.append((text, list(done))), live=False)
    assert done == ["a"]
    text, before = told[0]
    assert text.startswith("compiling the solvers of ramp: about ")
    assert text.endswith(" s, once; later runs start at once")
    assert before == []
    prepare(jobs, lambda text: told.append((text, None)), live=False)
    assert done == ["a", "b"]
    assert "solvers of leaky:" in told[1][0]
    assert prepare(jobs, told.append, live=False) == 0.0
    assert len(told) == 2


def test_other_sources_or_no_folder_mean_that_nothing_is_remembered(cache, monkeypatch):
    _compile.remember("a")
    assert _compile.is_remembered("a")
    assert not _compile.is_remembered("b")
    monkeypatch.setattr(_compile, "_stamp", lambda: "another state of the sources")
    assert not _compile.is_remembered("a")
    monkeypatch.setattr(_compile, "cache_folder", lambda: None)
    _compile.remember("a")
    assert not _compile.is_remembered("a")


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(_compile, "cache_folder", lambda: tmp_path / "file" / "cache")
    _compile.remember("a")
    assert not _compile.is_remembered("a")


def test_what_failed_is_not_remembered(cache):
    def fail():
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        prepare([Job("a", "ramp", 3.0, fail)], live=False)
    assert not _compile.is_remembered("a")


def test_compiled_code_has_a_place_for_what_is_remembered():
    folder = _compile.cache_folder()
    assert folder is not None
    assert folder.name.startswith(("__pycache__", "buttress")) or os.environ.get("NUMBA_CACHE_DIR")


def test_every_family_knows_what_commands_call_of_it():
    for family in FAMILIES:
        keys = [job.key for job in jobs_of_family(family)]
        assert keys or family == "theory"
        assert len(set(keys)) == len(keys)
    streams = [job.title for job in jobs_of_family("stream")]
    assert set(learner_names().values()) < set(streams)
    assert [job.key for job in jobs_of_kinds(["online"], landmarks=True)] == ["online"]


def test_jobs_fit_the_kind_that_they_name(cache):
    for job in jobs_of_kinds(["ramp", "uncertainty"], landmarks=True):
        job.call()
    for learner in (PARampClassifier(), KernelPegasos(budget=100, budget_policy="forget")):
        job_of_learner(learner).call()
        assert not hasattr(learner, "classes_")
    assert job_of_learner(Norma(kernel="linear")).key == "stream-Norma-linear"
