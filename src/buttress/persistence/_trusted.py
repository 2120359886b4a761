"""The types of this library that a model file may hold.

Everything else must be trusted by skops itself (NumPy arrays, scikit-learn estimators). No
function is in the list: a model with a callable kernel cannot be saved.
"""

from __future__ import annotations

TRUSTED = frozenset(
    {
        "buttress.classifiers.chow.ChowRejector",
        "buttress.classifiers.double_hinge.DoubleHingeClassifier",
        "buttress.classifiers.double_ramp.DoubleRampClassifier",
        "buttress.classifiers.generalized_hinge.GeneralizedHingeClassifier",
        "buttress.classifiers.kernel_pegasos.KernelPegasos",
        "buttress.classifiers.kernel_perceptron.KernelPerceptron",
        "buttress.classifiers.leaky_hockey_stick.LeakyHockeyStickClassifier",
        "buttress.classifiers.minimax_probability_machine.MinimaxProbabilityMachine",
        "buttress.classifiers.norma.Norma",
        "buttress.classifiers.pa_ramp.PARampClassifier",
        "buttress.classifiers.ramp.RampClassifier",
        "buttress.classifiers.uncertainty_set.UncertaintySetClassifier",
        "buttress.kernels.gram.Kernel",
        "buttress.model_selection.double_ramp.DoubleRampClassifierCV",
        "buttress.model_selection.leaky_hockey_stick.LeakyHockeyStickClassifierCV",
        "buttress.model_selection.rademacher.RademacherSelector",
        "buttress.model_selection.ramp.RampClassifierCV",
        "buttress.model_selection.uncertainty_set.UncertaintySetClassifierCV",
        "buttress.tables.classifier.TableClassifier",
        "buttress.tables.encoder.TableEncoder",
    }
)
