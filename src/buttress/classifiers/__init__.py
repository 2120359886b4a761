"""What users import: one estimator per file, one shared base."""

from buttress._lazy import attach
from buttress.classifiers import online

_HOME = {
    "ChowRejector": "chow",
    "DoubleHingeClassifier": "double_hinge",
    "DoubleRampClassifier": "double_ramp",
    "GeneralizedHingeClassifier": "generalized_hinge",
    "GroupwiseRejector": "group_bands",
    "LeakyHockeyStickClassifier": "leaky_hockey_stick",
    "MinimaxProbabilityMachine": "minimax_probability_machine",
    "RampClassifier": "ramp",
    "TwoStageRejector": "two_stage",
    "UncertaintySetClassifier": "uncertainty_set",
    "explain_held_out": "refusal_reasons",
    "explain_reject": "refusal_reasons",
    **dict.fromkeys(online.__all__, "online"),
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME, saved={"RegularizationPath": "leaky_path"})
