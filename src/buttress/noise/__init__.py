"""Who believes the labels? Noise rates, suspects, and classifiers of true labels."""

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
