"""The HTML report: one file that needs nothing else."""

from buttress._lazy import attach

_HOME = {
    "Comparison": "sections",
    "Coverage": "sections",
    "Health": "sections",
    "NoiseComparison": "sections",
    "Picture": "sections",
    "RegularizationPath": "sections",
    "Report": "sections",
    "Suspects": "sections",
    "data_health": "health",
    "render": "rendering",
    "write_report": "rendering",
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME)
