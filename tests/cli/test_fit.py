"""``buttress fit``: what it says, what it weighs, what it plans."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import buttress
from buttress.cli import main
from buttress.cli._models import class_weights_of, seconds_of

pytest.importorskip("skops")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("fit")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    rare = X[:, 0] + 0.7 * rng.normal(size=150) > 1.1
    lines = [
        f"{a!r},{b!r},{'yes' if t else 'no'}" for (a, b), t in zip(X.tolist(), rare, strict=True)
    ]
    (path / "rare.csv").write_text("a,b,y\n" + "\n".join(lines) + "\n")
    (path / "sorted.csv").write_text(
        "a,b,y\n" + "\n".join(sorted(lines, key=lambda line: line.split(",")[2])) + "\n"
    )
    (path / "small.csv").write_text("a,b,y\n" + "\n".join(lines[:80]) + "\n")
    return path


def fit(folder, tmp_path, capsys, *words, data="rare.csv"):
    line = ["fit", folder / data, "-t", "y", "-o", tmp_path / "m.skops", "--folds", 3, "--json"]
    assert main([str(word) for word in (*line, *words)]) == 0
    return json.loads(capsys.readouterr().out)


def test_one_model_without_a_report_says_how_good_it_is(folder, tmp_path, capsys):
    words = ["fit", folder / "rare.csv", "-t", "y", "-o", tmp_path / "m.skops", "--model", "ramp"]
    assert main([str(word) for word in words]) == 0
    out = capsys.readouterr().out
    assert "ramp on 150 rows that it had not seen: error" in out
    assert "95 % interval" in out
    assert "labels that seem wrong" in out
    assert out.index("about") < out.index("error")  # the estimate comes first


def test_every_model_says_how_many_labels_seem_wrong_and_the_report_says_the_same(
    folder, tmp_path, capsys
):
    page = tmp_path / "r.html"
    words = ["fit", folder / "rare.csv", "-t", "y", "-o", tmp_path / "m.skops", "--model", "leaky"]
    assert main([str(word) for word in (*words, "--report", page, "--folds", 3)]) == 0
    out = capsys.readouterr().out
    said = re.search(r"labels that seem wrong: ([\d.]+) % of class (\w+) \(([\d.]+) – ", out)
    assert said
    text = page.read_text().replace("\u00a0", " ")
    assert f"{said[1]} % of class {said[2]} ({said[3]} % – " in text


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{i},{j},{small}", "the class no has 6 rows, and 10 are needed"),
        ("1,2,{third}", "the models say the same of every row"),
    ],
)
def test_a_report_is_written_where_labels_cannot_be_judged(tmp_path, capsys, line, reason):
    data, page = tmp_path / "d.csv", tmp_path / "r.html"
    rows = [
        line.format(i=i, j=(7 * i) % 5, small="no" if i < 6 else "yes", third="yn"[i % 3 > 0])
        for i in range(60)
    ]
    data.write_text("a,b,y\n" + "\n".join(rows) + "\n")
    words = ["fit", data, "-t", "y", "-o", tmp_path / "m.skops", "--model", "leaky"]
    assert main([str(word) for word in (*words, "--report", page)]) == 0
    assert "labels that seem wrong" not in capsys.readouterr().out
    assert f"The labels were not judged: {reason}." in page.read_text()


def test_rows_of_the_report_are_those_of_the_file_also_where_some_were_left_out(tmp_path):
    data, page = tmp_path / "d.csv", tmp_path / "r.html"
    side = np.tile([-1.0, 1.0], 100)
    wrong = {20, 33, 60, 71, 90, 101, 140, 151}
    said = [
        ("yes" if x > 0 else "no", "no" if x > 0 else "yes")[i in wrong] for i, x in enumerate(side)
    ]
    rows = [
        f"{x + i / 1000:.4f},{label}" for i, (x, label) in enumerate(zip(side, said, strict=True))
    ]
    rows += ["3.5,yes", "3.5,no"]  # equal features, another label
    data.write_text("a,y\n" + "\n".join([",yes"] * 30 + rows) + "\n")
    words = ["fit", data, "-t", "y", "-o", tmp_path / "m.skops", "--model", "ramp"]
    words += ["--missing", "drop-rows", "--folds", 3, "--report", page]
    assert main([str(word) for word in words]) == 0
    text = page.read_text()
    suspects = text[text.index('<table id="suspect-table">') :]
    listed = re.findall(r'<tr><td class="number">(\d+)</td>', suspects)
    assert len(listed) >= 4
    assert {int(row) - 31 for row in listed} <= wrong | {200, 201}
    assert "share all their features with a row of another class (rows 231, 232)" in text
    examples = text[text.index("The nearest rows are given") :]
    row, near = re.findall(r"<td[^>]*>([^<]*)</td>", examples)[:3:2]
    numbers = [int(row), *map(int, re.findall(r"\b\d+\b", near))]
    assert min(numbers) > 30


def test_an_abstaining_model_says_what_it_leaves_unanswered(folder, tmp_path, capsys):
    words = ["fit", folder / "rare.csv", "-t", "y", "-o", tmp_path / "m.skops", "--model", "reject"]
    assert main([str(word) for word in (*words, "--d", 0.1)]) == 0
    out = capsys.readouterr().out
    assert "0-d-1 risk at d = 0.1" in out
    assert "no answer to" in out


def test_class_weights_raise_the_recall_of_the_rare_class(folder, tmp_path, capsys):
    plain = fit(folder, tmp_path, capsys, "--model", "leaky")
    weighted = fit(folder, tmp_path, capsys, "--model", "leaky", "--class-weight", "balanced")
    explicit = fit(folder, tmp_path, capsys, "--model", "leaky", "--class-weight", "yes=9,no=1")
    recalls = [each["held_out"]["recall"]["yes"] for each in (plain, weighted, explicit)]
    assert recalls[1] > recalls[0]
    assert recalls[2] > recalls[0]


@pytest.mark.parametrize(
    ("metric", "title"),
    [
        ("f1", "1 − F1"),
        ("average-precision", "1 − average precision"),
        ("cost", "0-d-1 risk at d = 0.2"),
    ],
)
def test_the_metric_decides(folder, tmp_path, capsys, metric, title):
    said = fit(folder, tmp_path, capsys, "--metric", metric, "--folds", 2, data="small.csv")
    assert said["measure"] == title
    able = {e["model"]: e["risk"] for e in said["compared"] if e["model"] != "svc"}
    done = {kind: risk for kind, risk in able.items() if not _dropped(said, kind)}
    assert said["chosen"] == min(done, key=done.get)
    assert ("reject" in able) == (metric == "cost")


def _dropped(said, kind):
    return next(each["dropped"] for each in said["compared"] if each["model"] == kind)


def test_the_coverage_asked_for_is_kept(folder, tmp_path, capsys):
    said = fit(folder, tmp_path, capsys, "--model", "reject", "--target-coverage", 0.7)
    assert 0.5 < said["held_out"]["answered"] < 0.9
    assert buttress.load(tmp_path / "m.skops").estimator_.target_coverage == 0.7


def test_a_sorted_file_gives_the_same_learner_of_one_pass_as_a_shuffled_one(
    folder, tmp_path, capsys
):
    errors = [
        fit(folder, tmp_path, capsys, "--model", "online", data=name)["held_out"]["risk"]
        for name in ("rare.csv", "sorted.csv")
    ]
    assert max(errors) < 0.25
    assert abs(errors[0] - errors[1]) < 0.08


def test_more_time_tunes_every_fold(folder, tmp_path, capsys, monkeypatch):
    from buttress.model_selection import planning

    monkeypatch.setattr(planning, "_QUICK", 0.0)
    short = fit(folder, tmp_path, capsys, "--model", "leaky")
    long = fit(folder, tmp_path, capsys, "--model", "leaky", "--time", "10m")
    assert not short["tuned_in_folds"]
    assert long["tuned_in_folds"]


def test_the_model_is_saved_before_the_report_is_built(folder, tmp_path, capsys, monkeypatch):
    def broken(*arguments, **options):
        raise RuntimeError("no report today")

    monkeypatch.setattr("buttress.report.fitted.fit_report", broken)
    words = ["fit", folder / "rare.csv", "-t", "y", "-o", tmp_path / "m.skops", "--model", "leaky"]
    assert main([str(word) for word in (*words, "--report", tmp_path / "r.html")]) == 1
    assert "no report today" in capsys.readouterr().err
    assert buttress.load(tmp_path / "m.skops").record_["rows"] == 150
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--time 0s", "--time 0s: expected at least a second"),
        ("--time soon", "--time soon"),
        ("--class-weight yes", "expected 'balanced' or label=weight"),
        ("--class-weight maybe=2", "there is no class 'maybe'; there are 'no', 'yes'"),
        ("--class-weight yes=-1", "positive numbers"),
        ("--class-weight ,", "positive numbers"),
        ("--class-weight=", "positive numbers"),
        ("--time=", "expected at least a second"),
        ("--class-weight balanced --model online", "--class-weight does not apply"),
        ("--target-coverage 0.8", "add --model reject"),
        ("--target-coverage 1.8 --model reject", "a share in (0, 1]"),
        ("--approximation nystroem --model online", "--approximation does not apply"),
        ("--d 0.7", "out of range"),
    ],
)
def test_wrong_options_are_one_line(folder, tmp_path, capsys, words, said):
    line = ["fit", str(folder / "rare.csv"), "-t", "y", "-o", str(tmp_path / "m.skops")]
    assert main([*line, *words.split()]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "m.skops").exists()


def test_directories_take_no_options_that_need_all_rows(folder, tmp_path, capsys):
    for words in (["--metric", "f1"], ["--report", str(tmp_path / "r.html")], ["--time", "5m"]):
        assert main(["fit", str(folder), "-t", "y", "-o", str(tmp_path / "m.skops"), *words]) == 2
        assert f"{words[0]} does not apply" in capsys.readouterr().err


def test_times_and_weights_are_read():
    assert [seconds_of(t) for t in ("45", "45s", "1.5 min", "2h")] == [45, 45, 90, 7200]
    assert class_weights_of(None, [0, 1]) is None
    assert class_weights_of("balanced", [0, 1]) == "balanced"
    assert class_weights_of("1=3", np.array([0, 1])) == {0: 1.0, 1: 3.0}
    assert class_weights_of("a=b=2", np.array(["a=b", "c"])) == {"a=b": 2.0, "c": 1.0}


def test_compare_takes_metric_and_weights(folder, capsys):
    line = ["compare", str(folder / "rare.csv"), "-t", "y", "--models", "svc,leaky,online"]
    words = ["--metric", "balanced-accuracy", "--class-weight", "balanced", "--cv", "3", "--json"]
    assert main([*line, *words]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["measure"] == "balanced error"
    assert [each["model"] for each in said["results"]] == ["svc", "leaky"]


def test_accuracy_on_the_training_file_says_so(folder, tmp_path, capsys):
    fit(folder, tmp_path, capsys, "--model", "leaky")
    for name, seen in (("rare.csv", True), ("sorted.csv", False)):
        words = ["predict", tmp_path / "m.skops", folder / name, "-o", tmp_path / "p.csv"]
        assert main([str(word) for word in words]) == 0
        said = capsys.readouterr().err
        assert "of the answers agree with 'y' in the file" in said
        assert ("which the model was trained on: new rows will fare worse" in said) == seen
