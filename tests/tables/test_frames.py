"""One table in every library's frame gives the same fit, the same names, the same answers."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import buttress
from buttress import _frames
from buttress.noise import clean_score
from buttress.tables import TableClassifier, TableEncoder, as_table

pd = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

TABLE = {
    "age": [20.0, 40.0, None, 30.0],
    "city": ["b", "a", "b", None],
    "joined": ["2024-02-29", "2024-03-01", None, "2023-12-31"],
    "grade": [1, 2, 1, 1],
    "yes": [True, False, None, True],
}


def frames_of(table):
    frame = pd.DataFrame(table)
    found = {
        "pandas": frame,
        "polars": polars.DataFrame(table),
        "lazy polars": polars.LazyFrame(table),
        "pyarrow": pyarrow.table(table),
    }
    if find_spec("duckdb") is not None:
        import duckdb

        found["DuckDB"] = duckdb.from_arrow(found["pyarrow"])
    return found


# Modin needs an older pandas than the rest: CI tries it in an environment of its own.
KINDS = ["pandas", "polars", "lazy polars", "pyarrow", "DuckDB", "Modin"]


def frame_of(kind, table):
    if kind == "DuckDB":
        pytest.importorskip("duckdb")
    if kind == "Modin":
        return pytest.importorskip("modin.pandas").DataFrame(table)
    return frames_of(table)[kind]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_the_same_from_every_library(kind):
    wanted, found = as_table(TABLE), as_table(frame_of(kind, TABLE))
    assert found.names == wanted.names
    for name in wanted.names:
        assert found[name].dtype == wanted[name].dtype, name
        np.testing.assert_array_equal(found[name], wanted[name])


def test_dates_categories_and_decimals_of_frames():
    from decimal import Decimal

    days = pd.to_datetime(["2024-02-29", None])
    frame = pd.DataFrame(
        {
            "day": days,
            "moment": pd.to_datetime(["2024-02-29 13:30", None]),
            "zoned": pd.to_datetime(["2024-02-29 13:30+02:00", None], utc=True),
            "code": pd.Categorical([7, None]),
            "whole": pd.array([1, None], dtype="Int64"),
        }
    )
    table = as_table(frame)
    assert table["day"].tolist() == ["2024-02-29", None]
    assert table["moment"].tolist() == ["2024-02-29T13:30:00.000000", None]
    assert table["zoned"].tolist() == ["2024-02-29T11:30:00.000000", None]
    assert table["code"].tolist() == ["7", None]
    np.testing.assert_array_equal(table["whole"], [1.0, np.nan])
    money = polars.DataFrame({"m": [Decimal("1.5"), None]})
    np.testing.assert_array_equal(as_table(money)["m"], [1.5, np.nan])
    durations = polars.DataFrame({"d": [1, 2]}).cast(polars.Duration)
    with pytest.raises(ValueError, match="durations"):
        as_table(durations)


@pytest.mark.parametrize("kind", KINDS)
def test_classifiers_take_every_frame_and_keep_its_names(kind):
    X, y = make_classification(60, 4, random_state=0)
    table = dict(zip("abcd", X.T, strict=True))
    plain = buttress.LeakyHockeyStickClassifier().fit(X, y)
    frame = frame_of(kind, table)
    model = buttress.LeakyHockeyStickClassifier().fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_allclose(model.decision_function(frame), plain.decision_function(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame_of(kind, dict(reversed(table.items()))))


@pytest.mark.parametrize(
    "estimator",
    [
        buttress.PARampClassifier(),
        buttress.ChowRejector(buttress.RampClassifier(probability=True)),
        buttress.DoubleRampClassifierCV(Cs=[1.0]),
        buttress.LeakyHockeyStickClassifier(approximation="nystroem", n_components=10),
    ],
    ids=lambda each: type(each).__name__,
)
def test_other_families_take_a_database_relation(estimator):
    X, y = make_classification(60, 3, n_redundant=0, random_state=1)
    frame = frame_of("DuckDB", dict(zip("abc", X.T, strict=True)))
    expected = estimator.fit(X, y).decision_function(X)
    np.testing.assert_allclose(estimator.fit(frame, y).decision_function(frame), expected)


LINE = LogisticRegression()


@pytest.mark.filterwarnings("error:X does not have valid feature names")
@pytest.mark.filterwarnings("error:X has feature names")
@pytest.mark.parametrize(
    "estimator",
    [
        buttress.LeakyHockeyStickClassifier(approximation="auto"),
        buttress.RampClassifierCV(Cs=[1.0], approximation="auto", cv=3),
        buttress.DoubleRampClassifier(target_risk=0.4, random_state=0),
        buttress.ChowRejector(LINE),
        buttress.ChowRejector(LINE, novelty=0.1),
        buttress.ChowRejector(LINE, costs=[[0, 1, 0.2], [1, 0, 0.2]]),
        buttress.ChowRejector(LINE, target_risk=0.4, random_state=0),
        buttress.TwoStageRejector(LINE, target_coverage=0.7, random_state=0),
        buttress.GroupwiseRejector(LINE, target_coverage=0.8, random_state=0),
        buttress.NoiseAwareClassifier(LINE, random_state=0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["pandas", "lazy polars", "DuckDB"])
def test_every_method_takes_frames_as_they_are(estimator, kind):
    X, y = make_classification(60, 3, n_redundant=0, random_state=1)
    frame = frame_of(kind, dict(zip("abc", X.T, strict=True)))
    plain, model = clone(estimator).fit(X, y), clone(estimator).fit(frame, y)
    for method in ("predict", "decision_function", "predict_proba", "reject", "rejection_score"):
        if hasattr(plain, method):
            wanted = getattr(plain, method)(X)
            np.testing.assert_allclose(getattr(model, method)(frame), wanted, err_msg=method)
    if hasattr(plain, "explain_reject"):
        wanted = [(why.row, why.reason) for why in plain.explain_reject(X, X, y)]
        reasons = model.explain_reject(frame, frame, y)
        assert [(why.row, why.reason) for why in reasons] == wanted


@pytest.mark.parametrize("kind", ["lazy polars", "DuckDB"])
def test_judgements_of_labels_and_refusals_take_lazy_frames(kind):
    X, y = make_classification(90, 3, n_redundant=0, flip_y=0.1, random_state=1)
    frame = frame_of(kind, dict(zip("abc", X.T, strict=True)))

    def judged(rows):
        suspects = buttress.LabelAudit(LINE, random_state=0).audit(rows, y)
        costs = buttress.cross_validate_reject(buttress.ChowRejector(LINE), rows, y, [0.2], cv=3)
        clean = clean_score(LINE, rows, y, random_state=0)
        return [suspects.probabilities, costs.risk, clean]

    for found, wanted in zip(judged(frame), judged(X), strict=True):
        np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_model_of_tables_fitted_in_one_library_answers_in_another(kind):
    rows = {
        "x": np.linspace(-1, 1, 40).tolist(),
        "city": ["a", "b"] * 20,
        "when": [f"2024-{month:02d}-15" for month in range(1, 13)] * 3 + ["2024-01-02"] * 4,
    }
    y = np.repeat(["no", "yes"], 20)
    model = TableClassifier(buttress.LeakyHockeyStickClassifier()).fit(pd.DataFrame(rows), y)
    wanted = model.predict(rows)
    np.testing.assert_array_equal(model.predict(frame_of(kind, rows)), wanted)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "Modin"])
def test_suspects_come_back_in_the_library_of_the_rows(kind):
    X, y = make_classification(60, 3, n_redundant=0, class_sep=2.0, random_state=0)
    y[0] = 1 - y[0]
    table = {"a": X[:, 0], "b": X[:, 1], "given": X[:, 2]}
    frame = frame_of(kind, table)
    suspects = buttress.RampClassifier(random_state=0).suspects(frame, y, cv=3)
    found = suspects.to_frame()
    assert type(found) is type(frame)
    columns = _frames.columns_of(found)
    assert list(columns) == [
        "a", "b", "given", "label_given", "suggested", "wrong_probability", "selected",
    ]  # fmt: skip
    np.testing.assert_array_equal(columns["label_given"], y)
    chosen = _frames.columns_of(suspects.to_frame(only_selected=True))
    np.testing.assert_array_equal(chosen["a"], X[suspects.selected, 0])


def test_the_grid_of_a_picture_is_a_frame_of_the_same_library():
    columns = {"a": np.zeros(2), "b": np.ones(2)}
    for kind in ("pandas", "polars", "pyarrow"):
        frame = frame_of(kind, columns)
        assert type(_frames.like(frame, columns)) is type(frame)
    assert _frames.collected(columns) is columns
    assert not _frames.is_frame(np.zeros((2, 2)))


ROWS = np.arange(12.0).reshape(6, 2)
IN_MEMORY = {
    "array": ROWS,
    "list": ROWS.tolist(),
    "pandas": pd.DataFrame(ROWS, columns=["a", "b"], index=list("zyxwvu")),
    "polars": polars.DataFrame(ROWS, schema=["a", "b"]),
    "pyarrow": pyarrow.table({"a": ROWS[:, 0], "b": ROWS[:, 1]}),
    "pandas series": pd.Series(ROWS[:, 1], index=list("zyxwvu")),
    "polars series": polars.Series(ROWS[:, 1]),
    "pyarrow array": pyarrow.array(ROWS[:, 1]),
    "csr": sparse.csr_array(ROWS),
    "csc": sparse.csc_matrix(ROWS),
    "coo": sparse.coo_array(ROWS),
    "dia": sparse.dia_matrix(ROWS),
}


@pytest.mark.parametrize("kind", IN_MEMORY)
@pytest.mark.parametrize(
    "rows",
    [[4, 0, 0], np.array([5, 2]), ROWS[:, 0] > 4, slice(1, 4), (3, 1), []],
    ids=["list", "indices", "mask", "slice", "tuple", "none"],
)
def test_rows_are_counted_and_chosen_in_every_form(kind, rows):
    given = IN_MEMORY[kind]
    assert _frames.n_rows(given) == 6
    taken = _frames.rows_of(given, rows)
    assert isinstance(taken, type(given)) or kind in ("coo", "dia")
    dense = taken.toarray() if sparse.issparse(taken) else np.asarray(taken)
    column = "series" in kind or kind == "pyarrow array"
    wanted = (ROWS[:, 1] if column else ROWS)[list(rows) if isinstance(rows, tuple) else rows]
    np.testing.assert_array_equal(dense.reshape(wanted.shape), wanted)


@pytest.mark.parametrize(
    "given", [3, np.array(3), LINE, iter([1])], ids=["number", "array", "estimator", "iterator"]
)
def test_what_has_no_rows_is_refused(given):
    with pytest.raises(TypeError, match="Expected sequence or array-like"):
        _frames.n_rows(given)


def test_the_encoder_stands_beside_skrub():
    """Both turn the same mixed table into numbers a classifier can use, in a pipeline."""
    skrub = pytest.importorskip("skrub")
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 120)
    frame = pd.DataFrame(
        {
            "city": np.array(["Oslo", "Bergen", "Tromsø"])[group],
            "size": rng.normal(size=120) + (group == 1),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 120), "D"),
        }
    )
    y = (group == 1).astype(int)
    for front in (TableEncoder(), make_pipeline(skrub.TableVectorizer(), StandardScaler())):
        model = make_pipeline(front, buttress.LeakyHockeyStickClassifier())
        assert cross_val_score(model, frame, y, cv=3).mean() > 0.8
