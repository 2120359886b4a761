"""A person who looks: corrections of labels, the review queue, and its page."""

from buttress._lazy import attach

_HOME = {
    "Conflict": "corrections",
    "Correction": "corrections",
    "CorrectionError": "corrections",
    "apply_corrections": "corrections",
    "corrected_labels": "corrections",
    "read_corrections": "corrections",
    "write_corrections": "corrections",
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME)
