"""LIBSVM files: scikit-learn reads what we write, we read what it writes, and so does the shell."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from buttress.cli import main
from buttress.tables import TableError, column_names, read_libsvm, read_table, write_libsvm


@pytest.fixture
def rows():
    X = sparse.random(30, 6, density=0.4, random_state=0, format="csr")
    return X, np.where(np.arange(30) % 3, 1, -1)


def test_both_ways_with_scikit_learn(rows, tmp_path):
    X, y = rows
    write_libsvm(tmp_path / "ours.svm", X, y)
    theirs, labels = load_svmlight_file(str(tmp_path / "ours.svm"), n_features=6, zero_based=False)
    np.testing.assert_array_equal(theirs.toarray(), X.toarray())
    np.testing.assert_array_equal(labels, y)
    dump_svmlight_file(X, y, str(tmp_path / "theirs.svm"), zero_based=False, comment="made there")
    ours, labels = read_libsvm(tmp_path / "theirs.svm", n_features=6)
    np.testing.assert_allclose(ours.toarray(), X.toarray(), rtol=1e-14)
    np.testing.assert_array_equal(labels, y)
    with gzip.open(tmp_path / "packed.svm.gz", "wt") as file:
        file.write("+1 1:2 # a comment\n\nb 2:-1e-3 qid:3\n")
    X, y = read_libsvm(tmp_path / "packed.svm.gz")
    assert X.toarray().tolist() == [[2.0, 0.0], [0.0, -0.001]]
    assert y.tolist() == ["1", "b"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 1:2\nx 2\n", "line 2: expected 'label index:value"),
        ("1 0:2\n", "line 1: indices begin at 1"),
        ("1 2:2 1:3\n", "must increase"),
        ("1 1:nan\n", "not a finite number"),
        ("1 9:2\n", "beyond n_features=4"),
        ("# nothing\n", "no rows"),
        ("1 1_0:2\n", "line 1: expected"),
        ("1 1:1_000\n", "line 1: expected"),
        ("1 1:2\n1 \uff11:2\n", "line 2: expected"),
        ("1 1:2\n2\0 1:2\n", "line 2: the line holds a NUL"),
    ],
)
def test_lines_that_are_no_rows_are_named(text, reason, tmp_path):
    (tmp_path / "bad.svm").write_text(text)
    with pytest.raises(TableError, match=reason):
        read_libsvm(tmp_path / "bad.svm", n_features=4)


def test_what_cannot_be_written(tmp_path):
    for X, y, reason in (
        ([[np.nan]], [1], "NaN"),
        ([[1.0]], ["a b"], "cannot stand"),
        ([[1.0]], [1, 2], "1 rows"),
    ):
        with pytest.raises(ValueError, match=reason):
            write_libsvm(tmp_path / "x.svm", X, y)
    assert not (tmp_path / "x.svm").exists()


def test_a_file_is_a_table(rows, tmp_path):
    X, y = rows
    write_libsvm(tmp_path / "a.svm", X, y)
    assert column_names(tmp_path / "a.svm") == ["label", *[f"x{j}" for j in range(1, 7)]]
    table = read_table(tmp_path / "a.svm", target="label", block_rows=7)
    assert table["label"].tolist() == y.tolist()
    np.testing.assert_array_equal(
        np.column_stack([table[f"x{j}"] for j in range(1, 7)]), X.toarray()
    )
    (tmp_path / "wide.svm").write_text("1 30000:1\n")
    with pytest.raises(TableError, match="read_libsvm keeps them sparse"):
        column_names(tmp_path / "wide.svm")


def test_the_command_line_fits_predicts_and_converts(rows, tmp_path, capsys):
    pytest.importorskip("skops")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    write_libsvm(tmp_path / "train.svm", X, y)
    # a row that does not reach the last column: the rest of it is zero
    write_libsvm(tmp_path / "new.svm", X[:10, :2], y[:10])
    model, out = tmp_path / "m.skops", tmp_path / "answers.csv"
    words = ["fit", tmp_path / "train.svm", "-t", "label", "--model", "leaky", "-o", model, "-q"]
    assert main([str(word) for word in words]) == 0, capsys.readouterr().err
    words = ["predict", model, tmp_path / "new.svm", "--out", out, "-q"]
    assert main([str(word) for word in words]) == 0, capsys.readouterr().err
    from buttress import load

    wanted = load(model).predict({"x1": X[:10, 0], "x2": X[:10, 1], "x3": np.zeros(10)})
    assert [line.split(",")[0] for line in out.read_text().splitlines()[1:]] == [
        str(label) for label in wanted
    ]


def test_convert_both_ways(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("x,city,y\n1.5,Oslo,yes\n0,Bergen,no way\n")
    a, b, c = (str(tmp_path / name) for name in ("a.csv", "b.svm", "c.csv"))
    assert main(["convert", a, b, "--target", "y"]) == 0
    assert (tmp_path / "b.svm").read_text() == "yes 1:1.5 3:1\nno_way 2:1\n"
    assert "2 rows, 3 columns" in capsys.readouterr().out
    assert main(["convert", b, c]) == 0
    assert (tmp_path / "c.csv").read_text() == "label,x1,x2,x3\nyes,1.5,0,1\nno_way,0,1,0\n"
    for words, reason in (
        ([a, b], "needs labels"),
        ([a, b, "--target", "z"], "no column 'z'"),
        ([a, str(tmp_path / "d.xlsx"), "--target", "y"], "expected a name that ends in"),
    ):
        assert main(["convert", *words]) == 2
        assert reason in capsys.readouterr().err


def test_labels_with_zeros_before_them_are_no_numbers(tmp_path):
    (tmp_path / "codes.svm").write_text("007 1:1\n7 1:2\n")
    assert read_libsvm(tmp_path / "codes.svm")[1].tolist() == ["007", "7"]
    (tmp_path / "numbers.svm").write_text("+1 1:1\n1.0 1:2\n-1.00 1:2\n9007199254740993 1:1\n")
    assert read_libsvm(tmp_path / "numbers.svm")[1].tolist() == [1, 1, -1, 2**53 + 1]


def test_a_model_of_other_columns_does_not_answer_a_libsvm_file(tmp_path):
    from sklearn.svm import SVC

    from buttress.tables import TableClassifier
    from buttress.tables.prediction import FilePrediction

    y = ["n", "p"] * 5
    (tmp_path / "rows.svm").write_text("1 1:1\n2 1:2\n")
    model = TableClassifier(SVC()).fit({"age": list(range(10)), "x9": list(range(10))}, y)
    with pytest.raises(TableError, match="'age' of the model is missing"):
        FilePrediction(model, tmp_path / "rows.svm")


def converted(tmp_path, text, out, *words):
    (tmp_path / "in.csv").write_text(text)
    code = main(["convert", str(tmp_path / "in.csv"), str(tmp_path / out), *words, "-q"])
    made = tmp_path / out
    return code, made.read_text() if made.exists() else None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,y\n1,a b\n2,a_b\n", "differ in blanks only"),
        ("a,y\n1,u\n2,\n", "1 rows have no 'y'; use --missing drop-rows"),
        ("a,y\n,u\n2,v\n", "use --missing impute"),
        ("a;y\n1,5;u\n2,5;v\n", "--decimal ,"),
    ],
)
def test_what_a_libsvm_file_would_get_wrong_is_refused(tmp_path, capsys, text, reason):
    assert converted(tmp_path, text, "out.svm", "-t", "y") == (2, None)
    assert reason in capsys.readouterr().err


def test_rows_that_miss_a_value_are_filled_or_left_out_as_asked(tmp_path):
    text = "a,y\n,u\n2,v\n3,w\n"
    dropped = converted(tmp_path, text, "d.svm", "-t", "y", "--missing", "drop-rows")
    assert dropped == (0, "v 1:2\nw 1:3\n")
    code, filled = converted(tmp_path, text, "i.svm", "-t", "y", "--missing", "impute")
    assert code == 0
    assert [line[0] for line in filled.splitlines()] == ["u", "v", "w"]


def test_cells_of_a_table_are_written_as_they_stand(tmp_path):
    text = 'id,n,big,y\n007,1e400,9007199254740993,NA\n"x,y",1.50,?,0x10\n'
    assert converted(tmp_path, text, "out.csv") == (0, text)
    assert converted(tmp_path, text, "scaled.csv", "--scale") == (2, None)
    comma = converted(tmp_path, "id;n\n007;1,5\n", "comma.csv", "--decimal", ",")
    assert comma == (0, "id,n\n007,1.5\n")
