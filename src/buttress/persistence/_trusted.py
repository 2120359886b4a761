"""The types that a model file may hold, beside those that skops itself trusts.

skops trusts NumPy arrays and scikit-learn's estimators. Added here are the classes of this
library, the support vectors of models fitted on sparse rows, and scikit-learn's splitters,
scorers and calibrators, which searches carry along. No function of a user is in the list: a
model with a callable kernel cannot be saved.
"""

from __future__ import annotations

_OWN = frozenset(
    {
        "buttress.classifiers.chow.ChowRejector",
        "buttress.classifiers.double_hinge.DoubleHingeClassifier",
        "buttress.classifiers.double_ramp.DoubleRampClassifier",
        "buttress.classifiers.generalized_hinge.GeneralizedHingeClassifier",
        "buttress.classifiers.online.kernel_pegasos.KernelPegasos",
        "buttress.classifiers.online.kernel_perceptron.KernelPerceptron",
        "buttress.classifiers.leaky_hockey_stick.LeakyHockeyStickClassifier",
        "buttress.classifiers.minimax_probability_machine.MinimaxProbabilityMachine",
        "buttress.classifiers.online.norma.Norma",
        "buttress.classifiers.online.pa_ramp.PARampClassifier",
        "buttress.classifiers.ramp.RampClassifier",
        "buttress.classifiers.uncertainty_set.UncertaintySetClassifier",
        "buttress.classifiers.online.drift.PageHinkley",
        "buttress.classifiers.online.drift.Rivalry",
        "buttress.classifiers.leaky_path.RegularizationPath",
        "buttress.classifiers.online.history.History",
        "buttress.classifiers.online.history.Window",
        "buttress.kernels.approximate.FourierMap",
        "buttress.kernels.approximate.LinearMap",
        "buttress.kernels.approximate.NystroemMap",
        "buttress.kernels.gram.Kernel",
        "buttress.losses.hinge.DoubleHinge",
        "buttress.losses.hinge.GeneralizedHinge",
        "buttress.losses.hinge.HardMargin",
        "buttress.losses.hinge.Hinge",
        "buttress.losses.hinge.NuHinge",
        "buttress.losses.leaky.LeakyHockeyStick",
        "buttress.losses.ramp.DoubleRamp",
        "buttress.losses.ramp.GeneralizedRamp",
        "buttress.losses.ramp.Ramp",
        "buttress.losses.smooth.EllipsoidError",
        "buttress.losses.smooth.Exponential",
        "buttress.losses.smooth.LogBarrier",
        "buttress.losses.smooth.Logistic",
        "buttress.losses.smooth.TruncatedQuadratic",
        "buttress.metrics.cost_risk.CostScorer",
        "buttress.metrics.scorer.RejectScorer",
        "buttress.model_selection.double_ramp.DoubleRampClassifierCV",
        "buttress.model_selection.leaky_hockey_stick.LeakyHockeyStickClassifierCV",
        "buttress.model_selection.rademacher.RademacherSelector",
        "buttress.model_selection.ramp.RampClassifierCV",
        "buttress.model_selection.uncertainty_set.UncertaintySetClassifierCV",
        "buttress.solvers.stream.budget.Budget",
        "buttress.solvers.stream.similarity.GramSource",
        "buttress.solvers.stream.similarity.KernelSource",
        "buttress.solvers.stream.similarity.RbfSource",
        "buttress.solvers.stream.store.DenseRows",
        "buttress.solvers.stream.store.Panels",
        "buttress.solvers.stream.store.SparseRows",
        "buttress.theory.risk_control.RiskCertificate",
        "buttress.solvers.stream.store.VectorStore",
        "buttress.solvers.stream.model.NormaRule",
        "buttress.solvers.stream.model.OnlineModel",
        "buttress.solvers.stream.model.PARampRule",
        "buttress.solvers.stream.model.PegasosRule",
        "buttress.solvers.stream.model.PerceptronRule",
        "buttress.theory.rademacher.RademacherCurve",
        "buttress.tables.classifier.TableClassifier",
        "buttress.tables.encoder.TableEncoder",
    }
)

_SPLITTERS = (
    "GroupKFold",
    "KFold",
    "LeaveOneOut",
    "PredefinedSplit",
    "RepeatedKFold",
    "RepeatedStratifiedKFold",
    "ShuffleSplit",
    "StratifiedGroupKFold",
    "StratifiedKFold",
    "StratifiedShuffleSplit",
    "TimeSeriesSplit",
)

_OTHERS = frozenset(
    {
        "numpy.dtype",
        "scipy.sparse._csr.csr_array",
        "scipy.sparse._csr.csr_matrix",
        *(f"sklearn.model_selection._split.{name}" for name in _SPLITTERS),
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.metrics._classification.accuracy_score",
        "sklearn.metrics._classification.balanced_accuracy_score",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.metrics._scorer._Scorer",
    }
)

TRUSTED = _OWN | _OTHERS
