"""A person who looks: corrections of labels, the review queue, and its page.

`corrections` reads, writes and applies corrected labels and is what users import; `store` keeps the
queue on disk, `room` joins it with the rows, `evidence` and `judges` say why a label is doubted,
`progress` when to stop, `effect` what corrections change in a model, `page` and `templates` show
it. A newcomer may add evidence, or a chart of `charts`, without touching what is on disk, which
`records` describes. Others import the names below and these modules.
"""

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
