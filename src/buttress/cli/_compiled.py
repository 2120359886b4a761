"""The compiler's work before a command's own, with a line that says what and how long."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buttress.cli._console import Output


def compile_kinds(kinds: Iterable[str], say: Output, landmarks: bool = False) -> None:
    """Compile what fits of these kinds of models call; silent when it is there already."""
    _compile(lambda preparing: preparing.jobs_of_kinds(kinds, landmarks), say)


def compile_learner(learner: Any, say: Output) -> None:
    """Compile what a learner of streams calls; silent when it is there already."""
    _compile(lambda preparing: [preparing.job_of_learner(learner)], say)


def compile_noise_aware(say: Output) -> None:
    """Compile what the model of label noise calls; silent when it is there already."""
    _compile(lambda preparing: [preparing.job_of_noise_aware()], say)


def _compile(jobs: Callable[[Any], Any], say: Output) -> None:
    from buttress.model_selection import preparing

    preparing.prepare(jobs(preparing), say.note, None if say.talks else False)
