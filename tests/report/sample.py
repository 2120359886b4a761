"""A report with every section, for the tests."""

from __future__ import annotations

import numpy as np

from buttress.report import (
    ClassTable,
    Comparison,
    Coverage,
    NoiseComparison,
    Picture,
    RegularizationPath,
    Report,
    Suspects,
    data_health,
)
from buttress.tables import as_table


def report() -> Report:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)).round(6)
    f = X[:, 0]
    y = (f + 0.5 * rng.normal(size=200) > 0).astype(int)
    labels = np.array(["benign", "malignant, sure"])[y]
    regions = np.zeros((20, 30), dtype=np.int64)
    regions[:, 15:], regions[:, 13:17] = 1, -1
    names = ["leaky hockey stick", "ramp <b>", "double ramp (abstains)", "PA-RAMP", "plain SVC"]
    suspects = [
        [int(row) + 1, labels[row], labels[row - 1], round(float(abs(f[row])), 4)]
        for row in rng.choice(200, 30, replace=False)
    ]
    return Report(
        title="buttress fit patients.csv",
        summary=["The ramp classifier was chosen.", "30 labels look wrong & more."],
        health=data_health(
            as_table({"a": X[:, 0], "b": X[:, 1].round(0), "city": ["x"] * 200}), labels
        ),
        comparison=Comparison(
            "error",
            names,
            [0.04, 0.031, 0.035, 0.06, 0.055],
            [0.02, 0.015, 0.02, 0.04, float("nan")],
            [0.06, 0.05, 0.05, 0.08, float("nan")],
            {"seconds": ["0.3"] * 5},
            "ramp <b>",
            how="Five folds.",
            meaning="share of wrong answers",
            notes={"seconds": "of all <i>fits</i>"},
        ),
        classes=ClassTable(
            ["benign", "malignant, sure"],
            [120, 80],
            [110, 60],
            [6, 15],
            [4, 5],
            [0.88, float("nan")],
            "ramp <b>",
        ),
        noise=NoiseComparison(
            "error",
            [0.0, 0.1, 0.2],
            names[:3],
            [[0.03, 0.04, 0.06], [0.03, 0.06, 0.12], [0.03, 0.05, 0.08]],
            [[0.02, 0.03, 0.04], [0.02, 0.04, 0.1], [float("nan")] * 3],
            [[0.04, 0.05, 0.08], [0.04, 0.08, 0.14], [float("nan")] * 3],
            "Five times ten folds.",
        ),
        path=RegularizationPath(
            np.logspace(1, -7, 50).tolist(),
            (0.05 + 0.02 * np.linspace(-2, 1.5, 50) ** 2).tolist(),
            [0.01] * 50,
            1e-3,
            1e-1,
        ),
        coverage=Coverage.from_answers(y, (f > 0).astype(int), np.abs(f), 0.2, "Out of fold."),
        suspects=Suspects(
            ["row", "given", "suggested", "score"], suspects, 200, "By ramp scores.", "Truth known."
        ),
        picture=Picture(
            X[:, 0],
            X[:, 1],
            y,
            ["benign", "malignant, sure"],
            ("radius", "texture"),
            suspects=np.arange(200) % 17 == 0,
            confidence=np.abs(f),
            regions=regions,
            extent=(-3.0, 3.0, -3.0, 3.0),
            how="The two features.",
        ),
        settings={"data": "patients.csv", "seed": "0"},
    )
