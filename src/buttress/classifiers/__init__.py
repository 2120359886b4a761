"""What users import: one estimator per file, one shared base."""

from buttress._lazy import attach

_HOME = {
    "ChowRejector": "chow",
    "DoubleHingeClassifier": "double_hinge",
    "DoubleRampClassifier": "double_ramp",
    "GeneralizedHingeClassifier": "generalized_hinge",
    "KernelPegasos": "online.kernel_pegasos",
    "KernelPerceptron": "online.kernel_perceptron",
    "LeakyHockeyStickClassifier": "leaky_hockey_stick",
    "MinimaxProbabilityMachine": "minimax_probability_machine",
    "Norma": "online.norma",
    "PARampClassifier": "online.pa_ramp",
    "RampClassifier": "ramp",
    "UncertaintySetClassifier": "uncertainty_set",
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME)
