"""The HTML report: one file that needs nothing else.

`sections` says as plain data what a report can say; `fitted`, `comparing`, `suspected`, `refused`,
`truth` and `health` make sections of results; `rendering` and `charts` write them as HTML, `card`
as a model card. A newcomer adds a section: its data in `sections`, a function that makes it, and
its place in ``templates``. Others import the names below, and of `demonstration` what
``buttress demo`` shows.
"""

from buttress._lazy import attach

_HOME = {
    "Answered": "card",
    "CardSection": "sections",
    "ClassTable": "sections",
    "Comparison": "sections",
    "Coverage": "sections",
    "Health": "sections",
    "NoiseComparison": "sections",
    "Picture": "sections",
    "Refusals": "sections",
    "RegularizationPath": "sections",
    "Report": "sections",
    "Suspects": "sections",
    "TrueLabels": "sections",
    "card_sections": "card",
    "class_table": "fitted",
    "comparison_section": "comparing",
    "data_health": "health",
    "fit_report": "fitted",
    "noise_report": "comparing",
    "path_section": "comparing",
    "picture": "pictures",
    "refusals_section": "refused",
    "render": "rendering",
    "render_card": "card",
    "suspects_section": "suspected",
    "true_labels_section": "truth",
    "versions": "environment",
    "write_report": "rendering",
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME)
