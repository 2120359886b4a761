"""Classification when the labels cannot be trusted and a wrong answer costs more than no answer.

Public names are loaded on first use, so that ``import buttress`` and ``buttress --help``
cost nothing. Every package below has a page like this one, which says what lives there; a newcomer
who adds a name that users need puts it into the list below. Others import the names below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from buttress._lazy import attach
from buttress._version import __version__

if TYPE_CHECKING:
    from buttress.classifiers import (
        ChowRejector,
        DoubleHingeClassifier,
        DoubleRampClassifier,
        GeneralizedHingeClassifier,
        GroupwiseRejector,
        KernelPegasos,
        KernelPerceptron,
        LeakyHockeyStickClassifier,
        MinimaxProbabilityMachine,
        Norma,
        PARampClassifier,
        RampClassifier,
        TwoStageRejector,
        UncertaintySetClassifier,
    )
    from buttress.model_selection import (
        DoubleRampClassifierCV,
        LeakyHockeyStickClassifierCV,
        RademacherSelector,
        RampClassifierCV,
        UncertaintySetClassifierCV,
        cross_validate_reject,
    )
    from buttress.noise import LabelAudit, NoiseAwareClassifier
    from buttress.persistence import load, save

_HOME = {
    "LeakyHockeyStickClassifier": "classifiers",
    "LeakyHockeyStickClassifierCV": "model_selection",
    "RampClassifier": "classifiers",
    "RampClassifierCV": "model_selection",
    "PARampClassifier": "classifiers",
    "KernelPerceptron": "classifiers",
    "KernelPegasos": "classifiers",
    "Norma": "classifiers",
    "DoubleRampClassifier": "classifiers",
    "DoubleRampClassifierCV": "model_selection",
    "DoubleHingeClassifier": "classifiers",
    "GeneralizedHingeClassifier": "classifiers",
    "ChowRejector": "classifiers",
    "TwoStageRejector": "classifiers",
    "GroupwiseRejector": "classifiers",
    "UncertaintySetClassifier": "classifiers",
    "UncertaintySetClassifierCV": "model_selection",
    "MinimaxProbabilityMachine": "classifiers",
    "RademacherSelector": "model_selection",
    "cross_validate_reject": "model_selection",
    "LabelAudit": "noise",
    "NoiseAwareClassifier": "noise",
    "save": "persistence",
    "load": "persistence",
}

__all__ = [
    "ChowRejector",
    "DoubleHingeClassifier",
    "DoubleRampClassifier",
    "DoubleRampClassifierCV",
    "GeneralizedHingeClassifier",
    "GroupwiseRejector",
    "KernelPegasos",
    "KernelPerceptron",
    "LabelAudit",
    "LeakyHockeyStickClassifier",
    "LeakyHockeyStickClassifierCV",
    "MinimaxProbabilityMachine",
    "NoiseAwareClassifier",
    "Norma",
    "PARampClassifier",
    "RademacherSelector",
    "RampClassifier",
    "RampClassifierCV",
    "TwoStageRejector",
    "UncertaintySetClassifier",
    "UncertaintySetClassifierCV",
    "__version__",
    "cross_validate_reject",
    "load",
    "save",
]


__getattr__, __dir__ = attach(__name__, _HOME)
