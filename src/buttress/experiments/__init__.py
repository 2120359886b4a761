"""The papers, reproduced: one module per table or figure, run by name.

>>> from buttress.experiments import experiment_names
>>> "lhs-table2" in experiment_names()
True
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from buttress.experiments._model import Cell, Check, Experiment, Plan, Task

# In the order of the papers; the module has the same name with underscores.
_NAMES = (
    "pa-ramp-table1",
    "pa-ramp-table2",
    "pa-ramp-fig1",
    "pa-ramp-fig2",
    "pa-ramp-fig3",
    "lhs-table1",
    "lhs-table2",
    "lhs-fig1",
    "lhs-fig2",
    "lhs-fig3",
    "double-ramp-table3",
    "double-ramp-table4",
    "double-ramp-table5",
    "double-ramp-fig1",
    "double-ramp-fig2",
    "double-ramp-fig3",
    "double-ramp-fig4",
    "uncertainty-table1",
    "uncertainty-table2",
    "uncertainty-table3",
    "uncertainty-fig1",
    "uncertainty-fig3",
    "uncertainty-fig4",
    "uncertainty-fig6",
    "rademacher-curve",
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
    from buttress._files import replacing
    from buttress.experiments._figures import save_figure
    from buttress.experiments._runner import report_name, run_experiment, write_report
    from buttress.experiments.pages import Markdown, write_page

    plan = Plan() if plan is None else plan
    experiment = get_experiment(name)
    report = run_experiment(experiment, plan)
    stem = report_name(experiment, plan)
    written = [plan.out / f"{stem}.json", plan.out / f"{stem}.md"]
    write_report(report, written[0])
    picture = plan.out / f"{stem}.png"
    if save_figure(experiment, report, picture):
        written.append(picture)
    with replacing(written[1], "w") as file:
        file.write(write_page(report, Markdown(), picture.name if picture in written else None))
    return report | {"files": [str(path) for path in written]}


def write_pages(folder: Path | str) -> list[Path]:
    """Make the manual's pages from the JSON reports in a folder.

    The runs in the reports are judged by the present rules, and the reports rewritten with the
    verdicts that the pages show.

    Parameters
    ----------
    folder : path
        Holds ``<experiment>.json`` and ``<experiment>.png``.

    Returns
    -------
    list of Path
        One page per report and ``index.rst``.
    """
    import json

    from buttress._files import replacing
    from buttress.experiments._runner import rejudged, write_report
    from buttress.experiments.pages import RestructuredText, write_page, write_summary

    folder = Path(folder)
    reports, written = [], []
    for name in _NAMES:
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        report = rejudged(get_experiment(name), json.loads(path.read_text(encoding="utf-8")))
        write_report(report, path)
        reports.append(report)
        picture = path.with_suffix(".png")
        page = write_page(report, RestructuredText(), picture.name if picture.exists() else None)
        written.append((path.with_suffix(".rst"), page))
    written.append((folder / "index.rst", write_summary(reports, RestructuredText())))
    for path, text in written:
        with replacing(path, "w") as file:
            file.write(text)
    return [path for path, _ in written]
