"""What users import: one estimator per file, all on the base in `base`.

`approximation` and `row_strategies` decide how an estimator meets its rows (an exact kernel in
memory, or mapped rows in blocks), `reject` is the interface of classifiers that may give no
answer, `wrapping` that of classifiers around another one; `online` has the learners of streams. A
newcomer adds an estimator in a file of its own and its name below. Others import the names below,
and what estimators are made of: `parameters` checks them, `training` holds the rows,
`kernel_source` their kernel, `callbacks` watch a fit, `stopping` tells of those that ended early,
`costs` and `risk_control` set bands, `refusal_reasons` say why; `leaky_hockey_stick` and
`leaky_path`, `scaled_models` and `set_machines` are shared with the searches of
`buttress.model_selection`.
"""

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
