"""The compiler's work before a command's own, with a line that says what and how long."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buttress.cli._console import Output


def compile_kinds(kinds: Iterable[str], say: Output, landmarks: bool = False) -> None:
    """Compile what fits of these kinds of models call; silent when it is there already."""
    from buttress.model_selection.preparing import jobs_of_kinds, prepare

    prepare(jobs_of_kinds(kinds, landmarks), say.note, None if say.talks else False)


def compile_learner(learner: Any, say: Output) -> None:
    """Compile what a learner of streams calls; silent when it is there already."""
    from buttress.model_selection.preparing import job_of_learner, prepare

    prepare([job_of_learner(learner)], say.note, None if say.talks else False)


def compile_noise_aware(say: Output) -> None:
    """Compile what the model of label noise calls; silent when it is there already."""
    from buttress.model_selection.preparing import job_of_noise_aware, prepare

    prepare([job_of_noise_aware()], say.note, None if say.talks else False)
