"""Mixed columns become standardised numbers; what does not fit is named."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress.tables import TableClassifier, TableEncoder, TableError, as_table
from buttress.tables.table import Table

TABLE = {"age": [20.0, 40.0, 60.0, 30.0], "city": ["b", "a", "b", "c"]}


@pytest.mark.smoke
def test_numbers_are_scaled_as_scikit_learn_does_and_text_is_one_hot():
    encoded = TableEncoder().fit_transform(TABLE)
    scaled = StandardScaler().fit_transform(np.array(TABLE["age"])[:, None])
    np.testing.assert_array_equal(encoded[:, :1], scaled)
    np.testing.assert_array_equal(encoded[:, 1:], [[0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    names = TableEncoder().fit(TABLE).get_feature_names_out().tolist()
    assert names == ["age", "city=a", "city=b", "city=c"]


def test_all_kinds_of_tables_give_the_same_numbers():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    encoder = TableEncoder().fit(TABLE)
    wanted = encoder.transform(TABLE)
    for other in (
        pandas.DataFrame(TABLE),
        pandas.DataFrame(TABLE)[["city", "age"]],
        pandas.DataFrame(TABLE).astype({"city": "category", "age": "Int64"}),
        polars.DataFrame(TABLE),
        as_table(TABLE),
        np.array([[a, c] for a, c in zip(*TABLE.values(), strict=True)], dtype=object),
    ):
        np.testing.assert_array_equal(encoder.transform(other), wanted)


def test_a_matrix_of_numbers_is_taken_by_position():
    X = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_array_equal(
        TableEncoder().fit(X).transform(X), StandardScaler().fit_transform(X)
    )
    np.testing.assert_array_equal(TableEncoder(standardize=False).fit_transform(X), X)
    with pytest.raises(TableError, match="X has 2 features, but TableEncoder is expecting 3"):
        TableEncoder().fit(X).transform(X[:, :2])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"age": None}, "column 'age' of the model is missing"),
        ({"extra": [1] * 4}, "extra column 'extra'"),
        ({"city": ["a", "b", "z", "y"]}, "category that the model does not know: 'y', 'z'"),
        ({"age": ["old", 1, 2, 3]}, "'age' is numeric, but holds 'old'"),
        ({"age": [np.inf, 1, 2, 3]}, "'age' holds an infinite value"),
        ({"age": [np.nan, 1, 2, 3], "city": [None, "a", None, "b"]}, "'age' 1, 'city' 2"),
        ({"age": [None] * 4}, "'age' 4"),
    ],
)
def test_what_does_not_fit_the_model_is_named(change, reason):
    encoder = TableEncoder().fit(TABLE)
    changed = {name: values for name, values in (TABLE | change).items() if values is not None}
    with pytest.raises(TableError, match=reason):
        encoder.transform(changed)


def test_missing_values_are_filled_with_the_median_or_the_most_frequent():
    table = {"age": [20.0, np.nan, 60.0, 30.0], "city": ["b", None, "b", "c"]}
    encoder = TableEncoder(missing="impute").fit(table)
    assert encoder.fill_ == {"age": 30.0, "city": "b"}
    encoded = encoder.transform({"age": [np.nan], "city": [None]})
    np.testing.assert_array_equal(encoded, encoder.transform({"age": [30.0], "city": ["b"]}))


def test_new_categories_and_extra_columns_can_be_ignored():
    encoder = TableEncoder(new_categories="ignore", extra_columns="ignore").fit(TABLE)
    encoded = encoder.transform({"age": [40.0], "city": ["z"], "more": [1.0]})
    np.testing.assert_array_equal(encoded[:, 1:], [[0.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"a": [1.0, np.nan]}, "missing values: 'a' 1"),
        ({"a": [1.0, np.inf]}, "infinite"),
        ({}, "no columns"),
        ({"a": [1.0, 2.0], "b": [1.0]}, "differ in length"),
        (np.zeros(3), "shape"),
        ({"t": np.array([5], dtype="timedelta64[D]")}, "durations"),
    ],
)
def test_tables_that_cannot_be_learned_from(table, reason):
    with pytest.raises(TableError, match=reason):
        TableEncoder().fit(table)


def test_a_column_without_any_value_cannot_be_filled():
    with pytest.raises(TableError, match="'a' has no value at all"):
        TableEncoder(missing="impute").fit({"a": [np.nan, np.nan], "b": [1.0, 2.0]})


def test_columns_of_a_frame_must_have_different_names():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TableError, match="not unique"):
        as_table(pandas.DataFrame([[1, 2]], columns=["a", "a"]))


@pytest.mark.parametrize("name", ["missing", "new_categories", "extra_columns"])
def test_wrong_options_are_refused(name):
    with pytest.raises(ValueError, match=f"{name}='perhaps'"):
        TableEncoder(**{name: "perhaps"}).fit(TABLE)


def test_an_unknown_column_of_a_table_is_named():
    with pytest.raises(TableError, match=r"no column 'x'.*'age', 'city'"):
        as_table(TABLE)["x"]
    assert Table({}).shape == (0, 0)


# -- the classifier ------------------------------------------------------------------------


@pytest.mark.smoke
def test_the_classifier_is_encoder_and_estimator():
    table = TABLE | {"y": ["no", "yes", "no", "yes"]}
    model = TableClassifier(SVC(), target="y").fit(table)
    encoder = TableEncoder().fit(TABLE)
    plain = SVC().fit(encoder.transform(TABLE), table["y"])
    np.testing.assert_array_equal(
        model.decision_function(table), plain.decision_function(encoder.transform(TABLE))
    )
    np.testing.assert_array_equal(model.predict(TABLE), plain.predict(encoder.transform(TABLE)))
    assert model.score(TABLE, table["y"]) >= 0.5
    assert not model.rejects
    assert not model.reject(TABLE).any()
    assert clone(model).get_params()["target"] == "y"


def test_rows_with_missing_values_are_dropped_when_asked():
    table = {"a": [1.0, np.nan, 3.0, 4.0, 5.0], "y": ["n", "n", "p", None, "n"]}
    model = TableClassifier(SVC(), target="y", missing="drop-rows").fit(table)
    assert model.rows_.tolist() == [0, 2, 4]
    with pytest.raises(TableError, match="no row is left"):
        TableClassifier(SVC(), target="y", missing="drop-rows").fit({"a": [np.nan], "y": ["n"]})
    with pytest.raises(TableError, match="1 rows have no label"):
        TableClassifier(SVC(), target="y", missing="impute").fit(table)


def test_labels_come_from_y_or_the_target_column():
    with pytest.raises(ValueError, match="name their column"):
        TableClassifier(SVC()).fit(TABLE)
    with pytest.raises(ValueError, match="2 labels"):
        TableClassifier(SVC()).fit(TABLE, [0, 1])
    model = TableClassifier(SVC()).fit(TABLE, [0.0, 1.0, 0.0, 1.0])
    assert model.classes_.tolist() == [0, 1]


def test_the_reject_interface_reaches_the_estimator():
    from buttress import DoubleHingeClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=80) > 0, "p", "n")
    model = TableClassifier(DoubleHingeClassifier(kernel="linear")).fit(X, y)
    rejected = model.reject(X)
    assert model.rejects
    assert 0 < rejected.sum() < 80
    np.testing.assert_array_equal(model.predict_or_reject(X).mask, rejected)
    np.testing.assert_array_equal(model.predict_or_reject(X, "?") == "?", rejected)
    numbers = TableClassifier(DoubleHingeClassifier(kernel="linear")).fit(X, y == "p")
    assert set(numbers.predict_or_reject(X, "?")[rejected]) == {"?"}


def test_numbers_too_large_to_standardise_are_named():
    table = as_table({"a": [1.0, 2.0], "b": [1e200, -1e250]})
    with pytest.raises(TableError, match="'b' holds numbers too large"):
        TableEncoder().fit(table)
    assert TableEncoder(standardize=False).fit_transform(table)[1, 1] == -1e250


# -- as a transformer of scikit-learn --------------------------------------------------------


@parametrize_with_checks([TableEncoder(), TableEncoder(missing="impute", standardize=False)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output_gives_the_frame_asked_for(container):
    pytest.importorskip(container)
    encoder = TableEncoder().set_output(transform=container).fit(TABLE)
    found = encoder.transform(TABLE)
    assert type(found).__module__.startswith(container)
    assert list(found.columns) == ["age", "city=a", "city=b", "city=c"]
    np.testing.assert_array_equal(found.to_numpy(), TableEncoder().fit_transform(TABLE))


# -- dates and free text -------------------------------------------------------------------------


def test_dates_become_their_place_in_the_year_the_week_and_the_day():
    dates = ["2023-01-01", "2023-12-31", "2023-07-02T06:00", "2023-07-02T08:00+02:00"]
    encoder = TableEncoder(standardize=False).fit({"d": dates})
    names = encoder.get_feature_names_out().tolist()
    parts = dict(zip(names, encoder.transform({"d": dates}).T, strict=True))
    epoch = np.array(dates[:2], dtype="datetime64[D]").astype(int)
    np.testing.assert_array_equal(parts["d:day"][:2], epoch)
    # the first of January is near the last of December, and half a year from July
    year = np.column_stack([parts["d:year_sin"], parts["d:year_cos"]])
    assert np.linalg.norm(year[0] - year[1]) < 0.05
    assert np.linalg.norm(year[0] - year[2]) > 1.9
    # both are Sundays, so is the second of July
    week = np.column_stack([parts["d:week_sin"], parts["d:week_cos"]])
    assert np.linalg.norm(week[0] - week[1]) < 1e-6
    # six in the morning, twice: in UTC
    np.testing.assert_allclose(parts["d:day_sin"], [0, 0, 1, 1], atol=1e-6)


def test_days_are_standardised_and_the_clock_is_left_out_where_there_is_none():
    dates = [f"2024-01-{day:02d}" for day in range(1, 22)]
    encoder = TableEncoder().fit({"d": dates})
    encoded = encoder.transform({"d": dates})
    assert encoded.shape == (21, 5)
    np.testing.assert_allclose([encoded[:, 0].mean(), encoded[:, 0].std()], [0, 1], atol=1e-9)
    later = encoder.transform({"d": ["2025-01-01"]})
    assert later[0, 0] > encoded[:, 0].max()


def test_dates_that_are_none_and_other_wishes():
    encoder = TableEncoder().fit({"d": ["2024-01-01", "2024-01-02"]})
    with pytest.raises(TableError, match="'d' holds dates such as 2024-02-29, but 'soon'"):
        encoder.transform({"d": ["soon"]})
    with pytest.raises(TableError, match="'d' holds dates: choose"):
        TableEncoder(dates="error").fit({"d": ["2024-01-01"]})
    as_words = TableEncoder(dates="categories").fit({"d": ["2024-01-01", "2024-01-02"]})
    assert as_words.categories_ == {"d": ["2024-01-01", "2024-01-02"]}
    # one value that is no date, and the column is text
    assert TableEncoder().fit({"d": ["2024-01-01", "2024-02-30"]}).dates_ == {}
    filled = TableEncoder(missing="impute").fit({"d": ["2024-01-01", "2024-01-01", None]})
    np.testing.assert_array_equal(
        filled.transform({"d": [None]}), filled.transform({"d": ["2024-01-01"]})
    )


def test_text_with_many_values_is_hashed_by_its_letters():
    rng = np.random.default_rng(0)
    words = ["physician", "carpenter", "librarian"]
    kinds = rng.integers(0, 3, 300)
    jobs = [words[k] + " " + "".join(rng.choice(list("abcdefgh"), 3)) for k in kinds]
    assert len(set(jobs)) > 200
    encoder = TableEncoder(max_categories=50).fit({"job": jobs})
    assert encoder.texts_ == ["job"]
    assert encoder.transform({"job": ["never seen"]}).shape == (1, 64)
    model = make_pipeline(TableEncoder(max_categories=50), SVC()).fit(
        {"job": jobs[:200]}, kinds[:200]
    )
    # half of the words misspelt: every one of them is new
    wrong = [job.replace("i", "y").replace("e", "a") for job in jobs[200:]]
    assert model.score({"job": wrong}, kinds[200:]) > 0.9
    # all values are kept as categories when asked for
    assert len(TableEncoder(max_categories=None).fit({"job": jobs}).categories_["job"]) > 200


def test_an_identifier_is_pointed_out():
    table = {"id": [f"row {k}" for k in range(120)], "x": np.arange(120.0)}
    with pytest.warns(UserWarning, match="'id' holds another text in every row"):
        TableEncoder().fit(table)


@pytest.mark.parametrize(
    ("name", "value"), [("max_categories", 0), ("text_size", 1.5), ("dates", 3)]
)
def test_wrong_sizes_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        TableEncoder(**{name: value}).fit(TABLE)


def test_a_saved_model_of_dates_and_text_answers_alike(tmp_path):
    pytest.importorskip("skops")
    from buttress import load, save

    table = {
        "when": [f"2024-{1 + k % 12:02d}-10" for k in range(150)],
        "note": [f"note {k % 130}" for k in range(150)],
    }
    model = TableClassifier(SVC()).fit(table, np.arange(150) % 2)
    save(model, tmp_path / "m.skops")
    np.testing.assert_array_equal(
        load(tmp_path / "m.skops").decision_function(table), model.decision_function(table)
    )
    from buttress.persistence import to_onnx

    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match=r"dates and free text \(when, note\)"):
        to_onnx(model, tmp_path / "m.onnx")
