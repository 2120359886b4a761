"""The papers, reproduced: one module per table or figure, run by name.

A module ends in its `EXPERIMENT`: printed cells and tasks (`grid`, `tasks_over`), and its functions
`_run`, which does one task, `_check`, statements that runs confirm or refute, and `_draw`. What is
computed is kept, so that a run may be stopped; a report is judged anew without running. A newcomer
adds a module and its name below. Others import the names below, and `pages`, which writes reports.

>>> from buttress.experiments import experiment_names
>>> "lhs-table2" in experiment_names()
True
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from buttress.experiments._model import Cell, Check, Experiment, Plan, Task

# Of every paper, in order; the module has the same name with underscores.
_EXPERIMENTS = {
    "pa-ramp": "table1 table2 fig1 fig2 fig3 banana letters theorem3 beyond",
    "lhs": "table1 table1-fixed table2 fig1 fig2 fig3 lemma4 consistency beyond",
    "double-ramp": "table1 table2 table3 table4 table5 fig1 fig2 fig3 fig4 starts tuning sparsity "
    "beyond",
    "uncertainty": "table1 table2 table3 fig1 fig2 fig3 fig4 fig5 fig6 bounds splitting "
    "consistency beyond",
    "rademacher": "curve starts beyond",
}
_NAMES = tuple(
    f"{family}-{name}" for family, names in _EXPERIMENTS.items() for name in names.split()
)

__all__ = [
    "Cell",
    "Check",
    "Experiment",
    "Plan",
    "Task",
    "experiment_names",
    "get_experiment",
    "reproduce",
    "write_pages",
]


def experiment_names() -> list[str]:
    """Names of all experiments, in the order of the papers."""
    return list(_NAMES)


def get_experiment(name: str) -> Experiment:
    """The experiment of this name.

    Parameters
    ----------
    name : str
        One of `experiment_names()`.
    """
    if name not in _NAMES:
        raise ValueError(f"experiment must be one of {experiment_names()}, got {name!r}")
    module = import_module(f"buttress.experiments.{name.replace('-', '_')}")
    experiment = module.EXPERIMENT
    assert isinstance(experiment, Experiment)
    return experiment


def reproduce(name: str, plan: Plan | None = None) -> dict[str, Any]:
    """Run an experiment and write its JSON, Markdown page and figure.

    What is already computed in ``plan.out`` is not computed again.

    Parameters
    ----------
    name : str
        One of `experiment_names()`.
    plan : Plan, optional
        How to run it.

    Returns
    -------
    dict
        The report, as in the JSON file; ``files`` names what was written.
    """
    import json

    from buttress.experiments._figures import save_figures
    from buttress.experiments._reports import merged, write_report
    from buttress.experiments._runner import report_name, run_experiment
    from buttress.experiments.pages import Markdown, write_page

    plan = Plan() if plan is None else plan
    experiment = get_experiment(name)
    report = run_experiment(experiment, plan)
    folder, stem = plan.out, report_name(experiment, plan)
    if plan.into is not None:
        folder = plan.into
        stored = json.loads((folder / f"{stem}.json").read_text(encoding="utf-8"))
        report = merged(experiment, stored, report)
    written = [folder / f"{stem}.json"]
    write_report(report, written[0])
    pictures = save_figures(experiment, report, folder / stem)
    if plan.into is None:
        page = write_page(report, Markdown(), pictures)
        written.append(_written(folder / f"{stem}.md", page))
    written += pictures
    return report | {"files": [str(path) for path in written]}


def _written(path: Path, text: str) -> Path:
    from buttress._files import replacing

    with replacing(path, "w") as file:
        file.write(text)
    return path


def write_pages(folder: Path | str, *, draw: bool = True) -> list[Path]:
    """Make the manual's pages from the JSON reports in a folder.

    The runs in the reports are judged by the present rules, and the reports rewritten with the
    verdicts that the pages show.

    Parameters
    ----------
    folder : path
        Holds ``<experiment>.json``.
    draw : bool
        Draw the figures again too, from the same reports.

    Returns
    -------
    list of Path
        One page per report, ``errata.rst`` and ``index.rst``.
    """
    import json

    from buttress.experiments._errata import write_errata
    from buttress.experiments._figures import pictures_of, save_figures
    from buttress.experiments._index import write_index
    from buttress.experiments._reports import rejudged, write_report
    from buttress.experiments.pages import RestructuredText, write_page

    folder = Path(folder)
    reports, written = [], []
    for name in _NAMES:
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        experiment = get_experiment(name)
        report = rejudged(experiment, json.loads(path.read_text(encoding="utf-8")))
        write_report(report, path)
        reports.append(report)
        stem = folder / name
        pictures = save_figures(experiment, report, stem) if draw else pictures_of(stem)
        page = write_page(report, RestructuredText(), pictures)
        written.append(_written(path.with_suffix(".rst"), page))
    written.append(_written(folder / "errata.rst", write_errata(RestructuredText())))
    written.append(_written(folder / "index.rst", write_index(reports, RestructuredText())))
    return written
