"""Before and after the corrections: errors fall where labels were wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from buttress.cli import main
from buttress.review import Correction, write_corrections
from buttress.review.effect import effect_of_corrections
from buttress.tables import TableClassifier
from buttress.tables.table import Table

pytestmark = pytest.mark.filterwarnings("ignore")


def made(n=240, n_wrong=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    truth = np.where(X[:, 0] > 0, "yes", "no")
    given = truth.copy()
    # one-sided: it moves the boundary
    wrong = rng.choice(np.flatnonzero(truth == "yes"), n_wrong, replace=False)
    given[wrong] = "no"
    return Table({"a": X[:, 0], "b": X[:, 1]}), given, truth, wrong


def test_corrected_labels_make_a_better_model():
    table, given, truth, _ = made()
    model = TableClassifier(LogisticRegression())
    before, after = effect_of_corrections(model, table, given, truth)
    assert after.error < before.error
    assert after.noise_rate < 0.05 < before.noise_rate
    assert after.true_error <= after.error
    assert before.refused == after.refused == 0


def test_fit_with_corrections_learns_them_and_reports_what_they_change(tmp_path, capsys):
    pytest.importorskip("skops")
    table, given, truth, wrong = made(120, 20)
    lines = [
        f"{a!r},{b!r},{y}"
        for a, b, y in zip(table["a"].tolist(), table["b"].tolist(), given, strict=True)
    ]
    data, file = tmp_path / "data.csv", tmp_path / "corrections.csv"
    data.write_text("a,b,y\n" + "\n".join(lines) + "\n")
    write_corrections(file, [Correction(str(i + 1), "no", "yes", who="ada") for i in wrong])
    common = ["--target", "y", "--model", "leaky", "--json"]
    out, report = tmp_path / "m.skops", tmp_path / "r.html"
    words = ["fit", str(data), *common, "-o", str(out), "--corrections", str(file)]
    assert main([*words, "--report", str(report)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["classes"]["yes"] == int((truth == "yes").sum())
    changes = told["corrections"]
    assert changes["after"]["error"] <= changes["before"]["error"]
    assert "20 labels were corrected." in report.read_text()
    assert "20 labels were corrected." in changes["sentences"]
    # conflicts stop it before anything is written
    write_corrections(file, [Correction("1", "perhaps", "yes")])
    out.unlink()
    assert main(words) == 1
    assert "the label is" in capsys.readouterr().err
    assert not out.exists()
