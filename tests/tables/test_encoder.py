"""Mixed columns become standardised numbers; what does not fit is named."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

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
    with pytest.raises(TableError, match="expected 3 columns, got 2"):
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
        ({"t": np.array(["2020-01-01"], dtype="datetime64[D]")}, "dates and times"),
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
