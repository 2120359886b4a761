"""``buttress fit`` on directories of Parquet files and on Dask clusters."""

from __future__ import annotations

import json

import numpy as np
import pytest

from buttress import load
from buttress.cli import main

pytest.importorskip("skops")
pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("blocks")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 0.0]
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["y"] = np.where(X[:, 0] + (X[:, 1] - 5) / 10 > 0, "p", "n")
    frame["id"] = np.arange(120)
    (path / "rows").mkdir()
    frame.iloc[:80].to_parquet(path / "rows" / "a.parquet", row_group_size=30)
    frame.iloc[80:].to_parquet(path / "rows" / "b.parquet")
    frame.drop(columns="id").to_parquet(path / "all.parquet")
    return path


def run(*words) -> int:
    return main([str(word) for word in words])


def test_a_directory_becomes_a_model_that_predicts_files(folder, tmp_path, capsys) -> None:
    out = tmp_path / "model.skops"
    code = run(
        "fit",
        folder / "rows",
        "--target",
        "y",
        "--ignore",
        "id",
        "--model",
        "leaky",
        "--folds",
        2,
        "--json",
        "--out",
        out,
    )
    assert code == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["rows"], said["columns"], said["approximation"]) == (120, 3, "nystroem")
    model = load(out)
    frame = pd.read_parquet(folder / "all.parquet")
    assert (model.predict(frame.drop(columns="y")) == frame.y).mean() > 0.95
    assert run("predict", out, folder / "all.parquet", "--out", tmp_path / "answers.csv") == 0
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 121


def test_a_cluster_on_this_machine_gives_the_same_model(folder, tmp_path) -> None:
    pytest.importorskip("distributed")
    from buttress.cli._blocks import fit_in_blocks
    from buttress.model_selection.candidates import make_candidate

    def fitted(dask):
        estimator = make_candidate("leaky", approximation="nystroem").set_params(
            alphas=[0.3], cv=2, n_components=30
        )
        return fit_in_blocks(folder / "all.parquet", "y", estimator, dask=dask, ignore=[])

    here, there = fitted(None), fitted("local")
    np.testing.assert_allclose(there.estimator_.dual_coef_, here.estimator_.dual_coef_, atol=1e-8)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "z"], "column 'z' is missing"),
        (["--target", "a"], "column 'y' has type"),
        (["--target", "y", "--model", "online"], "do not apply to --model online"),
        (["--target", "y", "--dask", "tcp://127.0.0.1:9"], "No Dask scheduler answers"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(folder, tmp_path, capsys, words, message) -> None:
    code = run("fit", folder / "rows", *words, "--out", tmp_path / "m.skops")
    assert code in (1, 2)
    said = capsys.readouterr().err
    assert message in " ".join(said.split())
    assert not (tmp_path / "m.skops").exists()


@pytest.mark.parametrize(
    "words",
    ["--missing impute", "--missing drop-rows", "--categorical a", "--decimal ,", "--d 0.2"],
)
def test_an_option_that_blocks_do_not_follow_is_refused(folder, tmp_path, capsys, words) -> None:
    out = tmp_path / "model.skops"
    line = ["fit", folder / "rows", "-t", "y", "--ignore", "id", "--model", "leaky", "-o", out]
    assert run(*line, *words.split()) == 2
    assert f"{words.split()[0]} does not apply to --dask and directories" in capsys.readouterr().err
    assert not out.exists()
