"""Model cards: everything that the model and the rows can tell, in skops' format."""

from __future__ import annotations

import hashlib
import json
import re

import numpy as np
import pytest

from buttress.cli import main

pytest.importorskip("skops")

from buttress import (
    ChowRejector,
    DoubleRampClassifier,
    NoiseAwareClassifier,
    PARampClassifier,
    RampClassifier,
    save,
)
from buttress.metrics import outcomes_by_group
from buttress.report import Answered, card_sections, render_card
from buttress.tables import TableClassifier


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 2))
    site = np.where(np.arange(160) % 4 == 0, "north", "south")
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=160) > 0, "ill", "well")
    return {"a": X[:, 0], "b": X[:, 1], "site": site.astype(object)}, y


@pytest.fixture(scope="module")
def files(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("card")
    table, y = rows
    model = TableClassifier(DoubleRampClassifier(d=0.2), target="y", ignore=["site"])
    save(model.fit({**table, "y": y}), folder / "model.skops")
    lines = [
        "a,b,site,y",
        *map(",".join, zip(*[map(str, c) for c in table.values()], y, strict=True)),
    ]
    (folder / "test.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_the_command_writes_every_section(files, rows, capsys):
    out = files / "CARD.md"
    words = ["card", files / "model.skops", "--data", files / "test.csv", "--groups", "site"]
    words += ["--intended", "Triage only.", "--audit", "--out", out, "--json"]
    assert main([str(word) for word in words]) == 0
    told = json.loads(capsys.readouterr().out)
    text = out.read_text()
    assert text.startswith("---\nlibrary_name: buttress\n")
    for heading in (
        "# Model description", "## Intended uses & limitations", "### Hyperparameters",
        "### Certificate", "### Data", "### Columns", "# Label noise", "# Evaluation results",
        "## By class", "## By site", "# Versions", "# How to get started",
    ):  # fmt: skip
        assert f"\n{heading}" in text, heading
    assert "Triage only." in text
    assert 'buttress.load("model.skops")' in text
    by_site = next(s for s in told["sections"] if s["title"].endswith("By site"))
    table, y = rows
    from buttress import load

    model = load(files / "model.skops")
    features = {"a": table["a"], "b": table["b"]}
    wanted = outcomes_by_group(y, model.predict(features), model.reject(features), table["site"])
    assert [row[:2] for row in by_site["rows"]] == [[one.group, str(one.n)] for one in wanted]
    for row, one in zip(by_site["rows"], wanted, strict=True):
        assert row[2].startswith(f"{one.rejection_rate.value:.3f} (")
    noise = next(s for s in told["sections"] if s["title"] == "Label noise")
    assert [row[0] for row in noise["rows"]] == ["ill", "well"]
    assert all(re.fullmatch(r"0\.\d{3} \(0\.\d{3} to 0\.\d{3}\)", row[1]) for row in noise["rows"])


def test_a_card_does_not_take_the_place_of_a_projects_readme(files, tmp_path, monkeypatch):
    (tmp_path / "README.md").write_text("of the project")
    monkeypatch.chdir(tmp_path)
    assert main(["card", str(files / "model.skops"), "--quiet"]) == 0
    assert (tmp_path / "README.md").read_text() == "of the project"
    assert (tmp_path / "model-card.md").read_text().startswith("---\nlibrary_name: buttress\n")


def test_a_card_without_rows_says_so(files, capsys):
    out = files / "bare.md"
    assert main(["card", str(files / "model.skops"), "--out", str(out)]) == 0
    text = out.read_text()
    assert "No rows were given" in text
    assert "Not stated" in text
    assert "Not looked for" in text
    assert "4 sections" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--groups", "site"], "need rows"),
        (["--data", "test.csv", "--groups", "sight"], "did you mean 'site'"),
        (["--data", "test.csv", "--target", "z"], "no column 'z'"),
        (["--data", "nope.csv"], "no such file"),
    ],
)
def test_wrong_use_is_named(files, capsys, monkeypatch, words, reason):
    monkeypatch.chdir(files)
    assert main(["card", "model.skops", "--out", "x.md", *words]) in (1, 2)
    assert reason in capsys.readouterr().err
    assert not (files / "x.md").exists()


def test_rows_of_the_training_file_are_recognised(files, tmp_path):
    from buttress import load

    model = load(files / "model.skops")
    model.record_ = {
        "data sha256": hashlib.sha256((files / "test.csv").read_bytes()).hexdigest(),
        "rows": 160,
    }
    save(model, tmp_path / "m.skops")
    words = ["card", str(tmp_path / "m.skops"), "--data", str(files / "test.csv"), "-q"]
    assert main([*words, "--out", str(tmp_path / "c.md")]) == 0
    assert "which the model was trained on" in (tmp_path / "c.md").read_text()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_promise_and_a_model_without_table_are_described(rows):
    table, y = rows
    X = np.column_stack([table["a"], table["b"]])
    model = ChowRejector(RampClassifier(probability=True), target_risk=0.45, random_state=0)
    model.fit(X, y)
    sections = {section.title: section for section in card_sections(model)}
    certificate = sections["Model description/Training procedure/Certificate"]
    assert "an error of at most 0.45 among the answers" in certificate.text
    answered = Answered(y, np.roll(y, 1), np.ones(len(y), dtype=bool))
    refused = card_sections(model, answered=answered)
    by_class = next(s for s in refused if s.title.endswith("By class"))
    assert {row[3] for row in by_class.rows} == {"no answer"}
    assert "| ill | " in render_card(model, refused)


def test_a_cell_with_a_bar_stays_one_cell():
    from buttress.report import CardSection

    model = RampClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    text = render_card(model, [CardSection("T", "", ("a|b", "c"), [["1|2", "3"]])])
    assert "| a\\|b | c |" in text
    assert "| 1\\|2 | 3 |" in text


@pytest.mark.parametrize(
    ("band", "words"), [({}, "It always answers."), ({"d": 0.2}, "It can refuse:")]
)
def test_a_learner_of_streams_refuses_only_with_a_band(rows, tmp_path, capsys, band, words):
    table, y = rows
    X = np.column_stack([table["a"], table["b"]])
    model = PARampClassifier(**band).fit(X, y)
    assert words in render_card(model, card_sections(model))
    save(model, tmp_path / "model.skops")
    assert main(["inspect", str(tmp_path / "model.skops"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"]["abstains"] is bool(band)


def test_a_noise_aware_classifier_without_a_cost_always_answers(rows):
    table, y = rows
    model = NoiseAwareClassifier(RampClassifier()).fit(np.column_stack([table["a"], table["b"]]), y)
    assert "It always answers." in render_card(model, card_sections(model))
