"""The commands do what they say, for people and for programs."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import buttress
from buttress.cli import main
from buttress.tables import TableClassifier, read_table

pytest.importorskip("skops")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("commands")
    X, y = make_classification(
        90, 2, n_informative=2, n_redundant=0, class_sep=0.8, flip_y=0.1, random_state=1
    )
    rng = np.random.default_rng(0)
    city = rng.choice(["u", "v", "w"], 90)
    lines = [f"{a:.6f},{b:.6f},{c},{'pn'[t]}" for (a, b), c, t in zip(X, city, y, strict=True)]
    (path / "mixed.csv").write_text("a,b,city,y\n" + "\n".join(lines) + "\n")
    plain = [f"{a!r},{b!r},{t}" for (a, b), t in zip(X.tolist(), y, strict=True)]
    (path / "plain.csv").write_text("a,b,y\n" + "\n".join(plain) + "\n")
    three = np.where(X[:, 0] > 0.9, 2, y)
    rows = [f"{a!r},{b!r},{t}" for (a, b), t in zip(X.tolist(), three, strict=True)]
    (path / "three.csv").write_text("a,b,y\n" + "\n".join(rows) + "\n")
    holes = [line.replace("u", "?") if i % 9 == 0 else line for i, line in enumerate(lines)]
    (path / "holes.csv").write_text("a,b,city,y\n" + "\n".join(holes) + "\n")
    return path


def run(*words):
    return main([str(word) for word in words])


def answers(path):
    header, *lines = path.read_text().splitlines()
    assert header in ("label,margin", "label,margin,probability")
    labels, margins = zip(*(line.split(",")[:2] for line in lines), strict=True)
    return np.array(labels), np.array([float(m) if m else np.nan for m in margins])


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        *(("mixed.csv", kind) for kind in ("leaky", "ramp", "reject", "uncertainty", "online")),
        *(("three.csv", kind) for kind in ("leaky", "online")),
    ],
)
def test_the_same_settings_in_python_give_identical_predictions(folder, tmp_path, kind, data):
    from buttress.model_selection.candidates import Request, make_candidate

    model, out = tmp_path / "m.skops", tmp_path / "p.csv"
    words = ["--model", kind, "--d", "0.3", "--folds", 3, "--seed", 7, "-o", model, "-q"]
    assert run("fit", folder / data, "--target", "y", *words) == 0
    assert run("predict", model, folder / data, "-o", out, "-q") == 0
    table = read_table(folder / data)
    if kind == "online":
        table = table.take(np.random.default_rng(7).permutation(len(table)))
    estimator = make_candidate(kind, Request(d=0.3, seed=7, folds=3))
    own = TableClassifier(estimator, target="y").fit(table)
    table = read_table(folder / data)
    labels, margins = answers(out)
    scores = own.decision_function(table)
    # Means and scales of rows in another order differ in their last bits.
    rtol = 1e-9 if kind == "online" else 0.0
    wanted_margins = scores if scores.ndim == 1 else scores.max(axis=1)
    np.testing.assert_allclose(margins, wanted_margins, rtol=rtol)
    wanted = own.predict(table).astype(str).astype(object)
    wanted[own.reject(table)] = "abstain"
    np.testing.assert_array_equal(labels, wanted)
    if kind == "reject":
        assert own.reject(table).any()


def test_plain_numbers_equal_a_scikit_learn_pipeline_to_the_last_bit(folder, tmp_path):
    model = tmp_path / "m.skops"
    assert run("fit", folder / "plain.csv", "-t", "y", "--model", "leaky", "-o", model, "-q") == 0
    table = np.loadtxt(folder / "plain.csv", delimiter=",", skiprows=1)
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    pipeline = make_pipeline(
        StandardScaler(), buttress.LeakyHockeyStickClassifierCV(cv=cv, random_state=0)
    ).fit(table[:, :2], table[:, 2].astype(int))
    np.testing.assert_array_equal(
        buttress.load(model).decision_function(table[:, :2]),
        pipeline.decision_function(table[:, :2]),
    )


def test_auto_says_what_was_compared_chosen_and_why(folder, tmp_path, capsys):
    model, report = tmp_path / "m.skops", tmp_path / "r.html"
    words = ["-o", model, "--report", report, "--folds", 3, "--d", "0.2", "--json"]
    assert run("fit", folder / "plain.csv", "-t", "y", *words) == 0
    result = json.loads(capsys.readouterr().out)
    compared = {each["model"]: each["risk"] for each in result["compared"]}
    assert set(compared) == {"svc", "leaky", "ramp", "uncertainty", "online", "reject"}
    best = min((kind for kind in compared if kind != "svc"), key=lambda kind: compared[kind])
    assert result["chosen"] == best
    assert "plain SVC" in result["why"]
    assert buttress.load(model).record_["rows"] == 90
    page = report.read_text()
    for part in ("comparison", "coverage", "suspects", "picture", "path", "health"):
        assert f'<section id="{part}"' in page
    assert 'class="region' in page


def test_auto_prints_a_table_for_people(folder, tmp_path, capsys):
    words = ["-o", tmp_path / "m.skops", "--folds", 2]
    assert run("fit", folder / "plain.csv", "-t", "y", *words) == 0
    out = capsys.readouterr().out
    assert "plain SVC" in out
    assert "double ramp" not in out
    assert "chosen:" in out
    assert "wrote" in out


def test_large_files_are_compared_on_a_sample(folder, tmp_path, capsys, monkeypatch):
    from buttress.model_selection import planning

    monkeypatch.setattr(planning, "MOST_EXACT_ROWS", 60)
    # the plan of an idle machine, however busy this one is
    monkeypatch.setattr(planning, "machine_factor", lambda: 1.0)
    monkeypatch.setattr(planning.Planner, "observe", lambda *arguments: None)
    monkeypatch.setattr(planning.Planner, "remaining", lambda planner: planner.budget)
    words = ["--model", "leaky", "-o", tmp_path / "m.skops", "--report", tmp_path / "r.html"]
    assert run("fit", folder / "mixed.csv", "-t", "y", *words) == 0
    out = capsys.readouterr().out
    assert "random 60 of the rows" in out
    assert "all 90 rows with" in out
    assert "of the 60 labels looked at" in (tmp_path / "r.html").read_text()


def test_missing_values_are_filled_or_dropped_when_asked(folder, tmp_path, capsys):
    model, out = tmp_path / "m.skops", tmp_path / "p.csv"
    data = folder / "holes.csv"
    line = ["fit", data, "-t", "y", "--model", "leaky", "-o", model]
    assert run(*line, "--missing", "impute", "-q") == 0
    assert run("predict", model, data, "-o", out) == 0
    assert "" not in answers(out)[0]
    assert run(*line, "--missing", "drop-rows") == 0
    assert "rows with missing values left out" in capsys.readouterr().out
    assert run("predict", model, data, "-o", out) == 0
    labels, margins = answers(out)
    dropped = ~read_table(data).complete()
    np.testing.assert_array_equal(labels == "", dropped)
    np.testing.assert_array_equal(np.isnan(margins), dropped)
    assert f"{dropped.sum()} with missing values" in capsys.readouterr().err


def test_blocks_and_standard_output_and_json_lines_agree(folder, tmp_path, capsys):
    model = tmp_path / "m.skops"
    data = folder / "mixed.csv"
    assert run("fit", data, "-t", "y", "--model", "leaky", "-o", model, "-q") == 0
    assert run("predict", model, data, "-o", tmp_path / "p.csv", "-q") == 0
    assert run("predict", model, data, "--block-rows", 7, "-q") == 0
    (tmp_path / "blocks.csv").write_text(capsys.readouterr().out)
    labels, margins = answers(tmp_path / "p.csv")
    in_blocks = answers(tmp_path / "blocks.csv")
    np.testing.assert_array_equal(in_blocks[0], labels)
    # The order of sums inside a matrix product depends on its shape.
    np.testing.assert_allclose(in_blocks[1], margins, rtol=1e-12)
    assert run("predict", model, data, "--json") == 0
    captured = capsys.readouterr()
    rows = [json.loads(line) for line in captured.out.splitlines()]
    assert [row["label"] for row in rows] == labels.tolist()
    assert [row["margin"] for row in rows] == margins.tolist()
    assert "of the answers agree with 'y'" in captured.err


def test_lenient_prediction_ignores_extra_columns_and_new_categories(folder, tmp_path):
    model, data = tmp_path / "m.skops", tmp_path / "new.csv"
    fit = ["fit", folder / "mixed.csv", "-t", "y", "--model", "leaky", "-o", model, "-q"]
    assert run(*fit) == 0
    data.write_text("z,a,b,city\n1,0,0,elsewhere\n")
    assert run("predict", model, data, "-o", tmp_path / "p.csv", "-q") == 1
    assert not (tmp_path / "p.csv").exists()
    assert run("predict", model, data, "--lenient", "-o", tmp_path / "p.csv", "-q") == 0
    assert len(answers(tmp_path / "p.csv")[0]) == 1


def test_a_model_saved_in_python_predicts_files_by_its_feature_names(folder, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(folder / "plain.csv")
    own = buttress.DoubleHingeClassifier().fit(frame[["a", "b"]], frame["y"])
    buttress.save(own, tmp_path / "m.skops")
    frame[["b", "a"]].to_csv(tmp_path / "new.csv", index=False)
    assert run("predict", tmp_path / "m.skops", tmp_path / "new.csv", "-o", tmp_path / "p") == 0
    np.testing.assert_array_equal(
        answers(tmp_path / "p")[1], own.decision_function(frame[["a", "b"]])
    )
    buttress.save(StandardScaler().fit([[0.0], [1.0]]), tmp_path / "scaler.skops")
    assert run("predict", tmp_path / "scaler.skops", tmp_path / "new.csv") == 1


def test_inspect_shows_columns_settings_and_versions(folder, tmp_path, capsys):
    model = tmp_path / "m.skops"
    words = ["--model", "online", "-o", model, "-q", "--ignore", "b", "--categorical", "a"]
    assert run("fit", folder / "mixed.csv", "-t", "y", *words) == 0
    assert run("inspect", model, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["about"]["format"] == 2
    assert facts["model"]["class"] == "PARampClassifier"
    assert [c["kind"] for c in facts["model"]["columns"]] == ["text", "text"]
    assert run("inspect", model) == 0
    out = capsys.readouterr().out
    assert "PA-RAMP" in out
    assert "categories" in out
    buttress.save(StandardScaler().fit([[0.0], [1.0]]), tmp_path / "scaler.skops")
    assert run("inspect", tmp_path / "scaler.skops", "--quiet") == 0


def test_export_writes_a_graph_that_answers_as_the_model(folder, tmp_path, capsys):
    onnxruntime = pytest.importorskip("onnxruntime")
    model, graph = tmp_path / "m.skops", tmp_path / "m.onnx"
    fit = ["fit", folder / "plain.csv", "-t", "y", "--model", "reject", "-o", model, "-q"]
    assert run(*fit) == 0
    assert run("export", model, "--onnx", graph, "--double", "--json") == 0
    assert json.loads(capsys.readouterr().out)["outputs"] == ["label", "decision", "reject"]
    table = np.loadtxt(folder / "plain.csv", delimiter=",", skiprows=1)[:, :2]
    session = onnxruntime.InferenceSession(graph.read_bytes())
    label, decision, reject = session.run(None, {"X": table})
    fitted = buttress.load(model)
    np.testing.assert_allclose(decision, fitted.decision_function(table), atol=1e-9)
    np.testing.assert_array_equal(label, fitted.predict(table))
    np.testing.assert_array_equal(reject, fitted.reject(table))


@pytest.mark.parametrize("kind", ["reject", "leaky"])
def test_export_writes_json_for_readers_without_a_library(folder, tmp_path, capsys, kind):
    model, program = tmp_path / "m.skops", tmp_path / "m.json"
    fit = ["fit", folder / "plain.csv", "-t", "y", "--model", kind, "-o", model, "-q"]
    assert run(*fit) == 0
    assert run("export", model, "--format", "json", "--out", program, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    # what the graph has
    assert run("export", model, "--onnx", tmp_path / "m.onnx", "--json") == 0
    assert said["outputs"] == json.loads(capsys.readouterr().out)["outputs"]
    assert ("reject" in said["outputs"]) == (kind == "reject")
    assert said["bytes"] == program.stat().st_size
    assert json.loads(program.read_text())["classes"] == buttress.load(model).classes_.tolist()


def test_compare_counts_every_model_at_every_noise_rate(folder, tmp_path, capsys):
    words = ["--noise", "0,0.2", "--cv", "2x2", "--models", "svc,leaky", "--d", "0.3"]
    report = tmp_path / "r.html"
    line = ["compare", folder / "plain.csv", "-t", "y", "--report", report]
    assert run(*line, *words, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    found = {(each["model"], each["noise"]) for each in result["results"]}
    assert found == {(m, r) for m in ("svc", "leaky", "reject") for r in (0.0, 0.2)}
    assert all(each["low"] <= each["risk"] <= each["high"] for each in result["results"])
    assert '<section id="noise"' in report.read_text()
    assert run(*line, "--models", "svc", "--noise", "0.2", "--jobs", 1) == 0
    assert "20 % flipped" in capsys.readouterr().out


def test_the_demo_compares_finds_wrong_labels_and_reports(tmp_path, capsys):
    report = tmp_path / "report.html"
    assert run("demo", "--out", report, "--repeats", 2, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    by_kind = {each["model"]: each for each in result["models"]}
    assert {"svc", "noise-aware", "abstaining"} <= set(by_kind)
    assert all(each["low"] <= each["risk"] <= each["high"] for each in by_kind.values())
    assert by_kind["svc"]["risk_against_svc"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert by_kind["abstaining"]["answered"] < 1.0 == by_kind["noise-aware"]["answered"]
    assert by_kind["noise-aware"]["error"] < by_kind["svc"]["error"]
    assert min(each["accuracy"] for each in by_kind.values()) > 0.85
    assert result["suspects"]["precision"] > 0.7
    assert result["suspects"]["recall"] > 0.5
    assert "recall" in report.read_text()


# -- the program itself --------------------------------------------------------------------


def test_help_is_quick_because_nothing_heavy_is_imported():
    code = (
        "import sys; from buttress.cli import main; main(['--help']); "
        "heavy = {'sklearn', 'numba', 'matplotlib', 'numpy', 'scipy'} & set(sys.modules); "
        "sys.exit(len(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("demo", "fit", "predict", "compare", "inspect", "export", "stream"):
        assert name in done.stdout


@pytest.mark.parametrize(
    "command", ["demo", "fit", "predict", "compare", "inspect", "export", "stream"]
)
def test_every_command_has_help_with_an_example_and_the_common_options(command, capsys):
    assert run(command, "--help") == 0
    out = capsys.readouterr().out
    assert f"buttress {command}" in out
    assert "xample" in out
    for option in ("--json", "--quiet", "--seed"):
        assert option in out
    assert "--jobs" in out


def test_unexpected_errors_are_one_line_unless_a_traceback_is_asked_for(
    folder, tmp_path, capsys, monkeypatch
):
    from buttress.cli import _inputs

    raised = []

    def broken(*arguments, **options):
        raise raised[-1]

    monkeypatch.setattr(_inputs, "existing_file", broken)
    for failure, said in [
        (RuntimeError("two\nlines"), "RuntimeError: two lines"),
        (MemoryError(), "out of memory; try --approximation nystroem or fewer rows"),
        (KeyboardInterrupt(), "interrupted; no output file was changed"),
        (OSError("strange"), "strange"),
        (FileNotFoundError(2, "No such file", "x.csv"), "x.csv: no such file"),
        (ImportError("saved models need skops"), "saved models need skops"),
    ]:
        raised.append(failure)
        assert run("inspect", tmp_path / "m.skops") == 1
        assert capsys.readouterr().err.strip().endswith(said)
    raised.append(RuntimeError("seen"))
    monkeypatch.setenv("BUTTRESS_TRACEBACK", "1")
    with pytest.raises(RuntimeError, match="seen"):
        run("inspect", tmp_path / "m.skops")


def test_a_reader_that_leaves_causes_no_traceback(folder, tmp_path):
    model = tmp_path / "m.skops"
    fit = ["fit", folder / "mixed.csv", "-t", "y", "--model", "leaky", "-o", model, "-q"]
    assert run(*fit) == 0
    big = tmp_path / "big.csv"
    header, *rows = (folder / "mixed.csv").read_text().splitlines()
    big.write_text("\n".join([header, *(rows * 300)]))
    line = [sys.executable, "-c", "import sys; from buttress.cli import main; sys.exit(main())"]
    process = subprocess.Popen(
        [*line, "predict", str(model), str(big)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.readline()
    process.stdout.close()
    error = process.stderr.read().decode()
    assert process.wait() in (0, 1)
    assert "Traceback" not in error
