"""Every experiment runs, quickly, and its printed numbers are complete."""

from __future__ import annotations

import math

import pytest

from buttress.experiments import Plan, experiment_names, get_experiment, reproduce

# printed numbers per experiment (a cell with "NA" counts: it is printed)
PRINTED = {
    "pa-ramp-table1": 10,
    "pa-ramp-table2": 120,
    # the same printed numbers again, beside other readings of the protocol
    "pa-ramp-banana": 6,
    "pa-ramp-letters": 36,
    "lhs-table1": 48,
    "lhs-table1-fixed": 108,
    "lhs-table2": 150,
    "double-ramp-table1": 20,
    "double-ramp-starts": 20,
    "double-ramp-tuning": 8,
    "double-ramp-table3": 60,
    "double-ramp-table4": 60,
    "double-ramp-table5": 60,
    "uncertainty-table1": 10,
    "uncertainty-table2": 65,
    "uncertainty-table3": 91,
}
NEEDS_NO_DATA = [
    "pa-ramp-fig1",
    "pa-ramp-fig3",
    "pa-ramp-theorem3",
    "lhs-fig1",
    "lhs-fig2",
    "lhs-fig3",
    "lhs-table1",
    "lhs-table1-fixed",
    "lhs-lemma4",
    "lhs-consistency",
    "double-ramp-table1",
    "double-ramp-table2",
    "double-ramp-starts",
    "double-ramp-fig1",
    "double-ramp-fig2",
    "double-ramp-fig3",
    "double-ramp-fig4",
    "double-ramp-table3",
    "uncertainty-table1",
    "uncertainty-bounds",
    "uncertainty-splitting",
    "uncertainty-consistency",
    "uncertainty-fig1",
    "uncertainty-fig2",
    "uncertainty-fig3",
    "uncertainty-fig4",
    "uncertainty-fig5",
    "uncertainty-fig6",
]


def run_quick(name, folder):
    report = reproduce(name, Plan(quick=True, out=folder))
    assert report["failures"] == []
    assert report["tasks"] > 0
    # Figures state facts; what is claimed of tables a few small runs cannot show.
    assert all(check["holds"] for check in report["checks"])
    experiment = get_experiment(name)
    assert [cell["id"] for cell in report["cells"]] == [cell.id for cell in experiment.cells]
    if experiment.cells:
        assert any(cell["runs"] for cell in report["cells"])
    else:
        assert report["checks"]
    return report


@pytest.mark.parametrize("name", NEEDS_NO_DATA)
def test_quick_run_without_data(name, tmp_path):
    report = run_quick(name, tmp_path)
    assert (tmp_path / f"{name}.quick.png").exists()
    assert report["quick"]


@pytest.mark.datasets
@pytest.mark.parametrize("name", sorted(set(experiment_names()) - set(NEEDS_NO_DATA)))
def test_quick_run_with_data(name, tmp_path, data_dir):
    report = run_quick(name, tmp_path)
    assert report["title"]


@pytest.mark.parametrize("name", experiment_names())
def test_printed_cells_are_complete_and_are_numbers(name):
    cells = get_experiment(name).cells
    printed = [cell for cell in cells if cell.printed is not None]
    assert len(printed) == PRINTED.get(name, 0)
    assert len({cell.id for cell in cells}) == len(cells)
    for cell in printed:
        assert cell.printed == "NA" or math.isfinite(float(cell.printed))
        assert cell.spread is None or float(cell.spread) >= 0


def test_printed_numbers_at_the_corners_of_the_tables():
    def printed(name, cell_id):
        cell = next(c for c in get_experiment(name).cells if c.id == cell_id)
        return cell.printed, cell.spread

    assert printed("pa-ramp-table2", "wdbc/0/Perceptron/accuracy") == ("88.42", "7.07")
    assert printed("pa-ramp-table2", "adult/0.1/PA-RAMP/SVs") == ("19588.2", "1374.8")
    assert printed("pa-ramp-table2", "banana_ida/0.05/NORMA/accuracy") == ("83.91", "1.80")
    assert printed("lhs-table1", "1/50/linear/LHS") == ("34.63", "0.05")
    assert printed("lhs-table1", "3/900/Gaussian/SVM") == ("18.02", "0.04")
    assert printed("lhs-table2", "sonar/Gaussian/SVM/error") == ("15.65", "0.43")
    assert printed("lhs-table2", "kr_vs_kp/Gaussian/LHS/seconds") == ("239.25", None)
    assert printed("double-ramp-table3", "0.05/double hinge/accuracy") == ("NA", None)
    assert printed("double-ramp-table4", "0.5/double hinge/accuracy") == ("94.55", "0.47")
    assert printed("double-ramp-table5", "0.25/double ramp/RR") == ("20.46", "2.79")
    assert printed("uncertainty-table1", "0.2/MPM") == ("26.0", "2.2")
    assert printed("uncertainty-table3", "waveform_ida/h = 1") == ("10.1", "0.7")
    assert printed("uncertainty-table3", "titanic_ida/unbiased MPM") == ("22.4", "1.2")
