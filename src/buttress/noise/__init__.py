"""Who believes the labels? Noise rates, suspects, and classifiers of true labels.

`audit` and `classifier` are the estimators, `clean_scores` judges a model on true labels, and
`witnesses` says who judges a row when nobody is named; the model of the noise itself is in `core`.
A newcomer adds a witness: any classifier is one. Others import the names below.
"""

from buttress._lazy import attach

_HOME = {
    "CleanScore": "clean_scores",
    "CleanScorer": "clean_scores",
    "Estimate": "core.estimate",
    "ForestWitness": "core.forest_witness",
    "KernelWitness": "core.kernel_witness",
    "LabelAudit": "audit",
    "LabelNoise": "core.label_noise",
    "LabelNoiseWarning": "core.label_noise",
    "NoiseAwareClassifier": "classifier",
    "LabelSuspects": "core.suspects",
    "clean_score": "clean_scores",
    "clean_scorer": "clean_scores",
    "fit_label_noise": "core.fitting",
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME)
