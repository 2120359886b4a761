"""A fitted model goes on in a stream, and a stream's checkpoint is a model."""

from __future__ import annotations

import json

import numpy as np
import pytest

import buttress
from buttress.classifiers import online
from buttress.classifiers.online import learner_names
from buttress.classifiers.online.checkpoint import CheckpointError, write_checkpoint
from buttress.cli import main
from buttress.tables import TableClassifier, read_table
from buttress.tables.stream import learner_of, model_of_checkpoint

pytest.importorskip("skops")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name, n in (("old.csv", 120), ("new.csv", 200)):
        X = rng.normal(size=(n, 2)) * [1.0, 30.0] + 4.0
        city = rng.choice(["u", "v"], n)
        y = np.where((X[:, 0] - 4) * (X[:, 1] - 4) > 0, 1, 0)
        rows = [
            f"{i},{a!r},{b!r},{c},{t}\n"
            for i, ((a, b), c, t) in enumerate(zip(X.tolist(), city, y, strict=True))
        ]
        (tmp_path / name).write_text("id,a,b,city,y\n" + "".join(rows))
    table = read_table(tmp_path / "old.csv", target="y")
    model = TableClassifier(buttress.PARampClassifier(gamma=0.5), target="y", ignore=["id"])
    buttress.save(model.fit(table), tmp_path / "m.skops")
    return tmp_path


def stream(folder, *words):
    return main(["stream", str(folder / "new.csv"), *map(str, words), "-q"])


def test_a_fitted_model_goes_on_and_its_checkpoint_predicts(folder, capsys):
    out, state = folder / "out.csv", folder / "state"
    assert stream(folder, "--from", folder / "m.skops", "-o", out, "--checkpoint", state) == 0
    model = buttress.load(folder / "m.skops")
    new = read_table(folder / "new.csv", target="y")
    encoded = model.encode(new)
    labels = np.array(list(new["y"]))
    given = model.estimator_.answer_and_learn(encoded, labels)
    answers = [line.split(",") for line in out.read_text().splitlines()[1:]]
    assert [answer[1] for answer in answers] == [str(label) for label in given]
    assert main(["predict", str(state), str(folder / "new.csv"), "--json"]) == 0
    captured = capsys.readouterr()
    rows = [json.loads(line) for line in captured.out.splitlines()]
    np.testing.assert_allclose([row["margin"] for row in rows], model.decision_function(new))
    assert [row["label"] for row in rows] == model.predict(new).tolist()
    assert main(["inspect", str(state), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["model"]["class"] == "PARampClassifier"
    assert facts["model"]["target"] == "y"


def test_a_checkpoint_is_a_start_for_another_stream(folder):
    first, second = folder / "first", folder / "second"
    text = (folder / "new.csv").read_text().splitlines(keepends=True)
    whole = ["-t", "y", "--features", "a,b", "--gamma", 0.5, "--warm-up", 64]
    assert stream(folder, *whole, "-o", folder / "o1", "--checkpoint", first) == 0
    (folder / "new.csv").write_text("".join(text[:1] + text[1:][::-1]))
    assert stream(folder, "--from", first, "-o", folder / "o2", "--checkpoint", second) == 0
    model = model_of_checkpoint(second)
    assert model.estimator_.n_seen_ == 400
    expected = model_of_checkpoint(first)
    table = read_table(folder / "new.csv", target="y")
    learner = learner_of(expected)
    learner.partial_fit(expected.encode(table.without("city", "id")), np.array(list(table["y"])))
    encoded = model.encode(table.without("city", "id"))
    np.testing.assert_allclose(
        model.estimator_.decision_function(encoded), learner.decision_function(encoded)
    )


def test_a_fitted_stream_resumes_too(folder):
    out, state = folder / "out", folder / "state"
    text = (folder / "new.csv").read_text()
    common = ["--from", folder / "m.skops", "-o", out, "--checkpoint", state]
    assert stream(folder, *common[:2], "-o", folder / "whole") == 0
    (folder / "new.csv").write_text("".join(text.splitlines(keepends=True)[:129]))
    assert stream(folder, *common) == 0
    (folder / "new.csv").write_text(text)
    assert stream(folder, *common, "--resume") == 0
    assert out.read_bytes() == (folder / "whole").read_bytes()


def test_rows_that_the_model_cannot_take_are_put_aside(folder):
    with (folder / "new.csv").open("a") as file:
        file.write("900,1,2,elsewhere,1\n901,,2,u,1\n902,1,2,u,7\n")
    rejects = folder / "rejects"
    words = ["--from", folder / "m.skops", "-o", folder / "out", "--rejects", rejects]
    assert stream(folder, *words) == 0
    reasons = [json.loads(line)["reason"] for line in rejects.read_text().splitlines()]
    assert "unknown category" in reasons[0]
    assert "'a' is missing" in reasons[1]
    assert "'7' was not announced" in reasons[2]


def test_a_model_that_fills_in_values_does_so_in_a_stream(folder):
    table = read_table(folder / "old.csv", target="y")
    model = TableClassifier(buttress.Norma(), target="y", ignore=["id"], missing="impute")
    buttress.save(model.fit(table), folder / "m.skops")
    text = (folder / "new.csv").read_text().splitlines()
    text[3] = "2,NA,3.0,?,1"
    (folder / "new.csv").write_text("\n".join(text) + "\n")
    assert stream(folder, "--from", folder / "m.skops", "-o", folder / "out") == 0
    assert len((folder / "out").read_text().splitlines()) == 201


def test_what_cannot_go_on_is_said(folder, capsys):
    from sklearn.svm import SVC

    table = read_table(folder / "old.csv", target="y")
    buttress.save(TableClassifier(SVC(), target="y").fit(table), folder / "svc.skops")
    assert stream(folder, "--from", folder / "svc.skops") == 2
    assert "only online learners" in capsys.readouterr().err
    assert stream(folder, "--from", folder / "m.skops", "--gamma", "scale") == 2
    assert "--gamma does not go with --from" in capsys.readouterr().err
    with pytest.raises(ValueError, match="no Gram matrix"):
        learner_of(buttress.Norma(kernel="precomputed"))
    for content in (
        {"learner": {"class": "os"}},
        {"learner": {"class": "SVC"}},
        {"learner": {"class": "Norma"}},
        {"learner": 3},
        {"nothing": 1},
    ):
        write_checkpoint(folder / "odd", content)
        with pytest.raises(CheckpointError):
            model_of_checkpoint(folder / "odd")
        with pytest.raises(ValueError, match=r"odd|holds"):
            buttress.Norma.load_checkpoint(folder / "odd")
        assert main(["predict", str(folder / "odd"), str(folder / "new.csv")]) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("word", sorted(learner_names()))
def test_every_learner_of_the_package_has_a_word(folder, word, capsys):
    assert stream(folder, "-t", "y", "--features", "a,b", "--model", word, "-o", folder / "o") == 0
    assert len((folder / "o").read_text().splitlines()) == 201
    own = {"pegasos": "alpha", "norma": "eta", "pa-ramp": "s"}
    for owner, option in own.items():
        if owner == word or (word, option) == ("norma", "alpha"):
            continue
        assert stream(folder, "--model", word, f"--{option}", "0.5") == 2
        assert f"--{option} does not belong to --model {word}" in capsys.readouterr().err


def test_the_words_follow_from_the_learners_that_are_there():
    named = {name for name in online.__all__ if name[0].isupper()}
    assert set(learner_names().values()) == named
