"""Plain model files are read and written without skops, as skops would."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Bunch

import buttress
from buttress.persistence._reader import NotPlain, read_plain
from buttress.persistence._trusted import trusted_types
from buttress.persistence._writer import write_plain
from buttress.persistence.container import ModelFileError, seal
from buttress.tables import TableClassifier

skops_io = pytest.importorskip("skops.io")
pytestmark = pytest.mark.filterwarnings("ignore")

X, Y = make_moons(80, noise=0.3, random_state=0)
WORDS = np.array(["no", "yes"])[Y]
THREE = np.array(["a", "b", "c"])[np.arange(80) % 3]


def table():
    return {"x": X[:, 0], "y": X[:, 1], "city": np.where(X[:, 0] > 0, "Oslo", "Bergen")}


MODELS = {
    "ramp": lambda: buttress.RampClassifierCV(Cs=[0.1, 1.0], cv=2).fit(X, WORDS),
    "leaky": lambda: buttress.LeakyHockeyStickClassifier().fit(X, THREE),
    "reject": lambda: buttress.DoubleRampClassifier(d=0.2).fit(X, Y),
    "sets": lambda: buttress.UncertaintySetClassifier().fit(X, Y),
    "online": lambda: buttress.PARampClassifier().fit(X, WORDS),
    "landmarks": lambda: buttress.RampClassifier(approximation="fourier").fit(X, Y),
    "table": lambda: TableClassifier(
        buttress.RampClassifier(class_weight={"no": 1, "yes": 2.5})
    ).fit(table(), WORDS),
    "foreign": lambda: SVC().fit(X, WORDS),
}


def same(first, second):
    """Whether two states are equal, part by part."""
    assert type(first) is type(second)
    if isinstance(first, np.ndarray):
        assert first.dtype == second.dtype
        np.testing.assert_array_equal(first, second)
    elif isinstance(first, dict):
        assert list(first) == list(second)
        for key, value in first.items():
            same(value, second[key])
    elif isinstance(first, (list, tuple)):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            same(one, other)
    elif hasattr(first, "__dict__") and not isinstance(first, (type, np.generic)):
        same(vars(first), vars(second))
    elif not (first != first and second != second):  # NaN
        assert first == second


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_plain_model_is_what_skops_would_make_of_it(name):
    data = skops_io.dumps(MODELS[name]())
    named = skops_io.get_untrusted_types(data=data)
    expected = skops_io.loads(data, trusted=sorted(trusted_types(named)))
    same(read_plain(data, trusted_types), expected)


def schema_of(data):
    """The schema of an archive; objects and members are numbered as they come."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    schema = json.loads(archive.read("schema.json"))
    schema.pop("_skops_version", None)
    numbers: dict[int, int] = {}

    def numbered(node):
        if isinstance(node, list):
            return [numbered(each) for each in node]
        if not isinstance(node, dict):
            return node
        if "file" in node and "__class__" in node:
            node = node | {"file": np.load(io.BytesIO(archive.read(node["file"]))).tolist()}
        if "__id__" in node:
            node = node | {"__id__": numbers.setdefault(node["__id__"], len(numbers))}
        return {key: numbered(value) for key, value in node.items()}

    return numbered(schema)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_plain_model_is_written_as_skops_would(name):
    model = MODELS[name]()
    data = write_plain(model, trusted_types, zipfile.ZIP_DEFLATED)
    assert schema_of(data) == schema_of(skops_io.dumps(model))
    same(read_plain(data, trusted_types), read_plain(skops_io.dumps(model), trusted_types))
    again = write_plain(model, trusted_types, zipfile.ZIP_STORED)
    members = [zipfile.ZipFile(io.BytesIO(each)) for each in (data, again)]
    assert members[0].namelist() == members[1].namelist()
    for member in members[0].namelist():
        assert members[0].read(member) == members[1].read(member)


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, None, True, "x"], 3: (), 0.5: float("nan")},
        np.array([["a", None], [2, 3.5]], dtype=object),
        [np.float32(1.5), np.int8(3), np.bool_(True), np.str_("ä"), np.dtype("<f4")],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        SVC(class_weight={0: 1.0}),
    ],
)
def test_plain_values_are_written_as_skops_would(value):
    assert schema_of(write_plain(value, trusted_types, zipfile.ZIP_STORED)) == schema_of(
        skops_io.dumps(value)
    )


class Odd(buttress.RampClassifier):
    """Made anew by a function of its own."""

    def __reduce__(self):
        return (type(self), ())


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        {True: 1},
        {np.int64(1): 2},
        np.ma.masked_array([1, 2], [0, 1]),
        np.zeros(2, dtype=[("a", float)]),
        np.sum,
        np.random.default_rng(0),
        int,
        b"x",
        OrderedDict(a=1),
        DecisionTreeClassifier().fit(X, Y),
        Odd(),
        Bunch(a=1),
        io.StringIO(),
    ],
)
def test_what_is_not_plain_is_not_written_here(value):
    with pytest.raises(NotPlain):
        write_plain([value], trusted_types, zipfile.ZIP_STORED)


@pytest.mark.long
def test_a_command_that_saves_does_not_import_skops(tmp_path):
    code = (
        "import sys, buttress; X = [[0.0], [1.0], [0.2], [0.9]];"
        "buttress.save(buttress.RampClassifier().fit(X, [0, 1, 0, 1]), sys.argv[1]);"
        "sys.exit('skops' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path / "m.skops"]).returncode == 0


def test_what_is_shared_stays_shared():
    shared = np.arange(3.0)
    value = [shared, {"a": shared}]
    for data in (skops_io.dumps(value), write_plain(value, trusted_types, zipfile.ZIP_STORED)):
        found = read_plain(data, trusted_types)
        assert found[0] is found[1]["a"]


def test_other_parts_are_left_to_skops(tmp_path):
    forest = RandomForestClassifier(2, random_state=0).fit(X, Y)
    for value in (forest, {1, 2}, {True: 1}, np.ma.masked_array([1, 2], [0, 1]), np.sum):
        with pytest.raises(NotPlain):
            read_plain(skops_io.dumps(value), trusted_types)
    buttress.save(forest, tmp_path / "forest.skops")
    np.testing.assert_array_equal(
        buttress.load(tmp_path / "forest.skops").predict(X), forest.predict(X)
    )


def changed(data, change):
    """An archive whose schema was changed, sealed anew."""
    source = zipfile.ZipFile(io.BytesIO(data))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in source.namelist():
            content = source.read(name)
            if name == "schema.json":
                schema = json.loads(content)
                change(schema)
                content = json.dumps(schema).encode()
            archive.writestr(name, content)
    return file.getvalue()


def test_no_class_is_touched_that_is_not_trusted(tmp_path):
    def other_class(schema):
        schema["__module__"], schema["__class__"] = "antigravity", "Anything"

    data = changed(skops_io.dumps(MODELS["ramp"]()), other_class)
    with pytest.raises(NotPlain):
        read_plain(data, trusted_types)
    assert "antigravity" not in sys.modules
    (tmp_path / "m.skops").write_bytes(seal(data))
    with pytest.raises(ModelFileError, match=r"untrusted type antigravity\.Anything"):
        buttress.load(tmp_path / "m.skops")
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(
    "change",
    [
        lambda schema: schema.update(protocol=99),
        lambda schema: schema["content"].update(__loader__="_anything"),
        lambda schema: schema["content"]["key_types"].update(__class__="dict"),
        lambda schema: schema["content"]["content"]["intercept_"].update(__class__="frombuffer"),
    ],
)
def test_a_part_of_another_kind_is_not_read_here(change):
    with pytest.raises(NotPlain):
        read_plain(changed(skops_io.dumps(MODELS["ramp"]()), change), trusted_types)


@pytest.mark.parametrize(
    "change",
    [
        lambda schema: schema.update(content=7),
        lambda schema: schema["content"]["content"]["intercept_"].pop("file"),
        lambda schema: schema["content"]["key_types"].update(content=[]),
        lambda schema: schema["content"]["content"]["tol"].update(content="{"),
        lambda schema: schema.update(__class__="Nothing"),
    ],
)
def test_a_malformed_file_is_one_clear_error(change, tmp_path):
    data = changed(skops_io.dumps(MODELS["ramp"]()), change)
    (tmp_path / "m.skops").write_bytes(seal(data))
    with pytest.raises(ModelFileError):
        buttress.load(tmp_path / "m.skops")


@pytest.mark.long
@pytest.mark.parametrize(
    "machine", [buttress.RampClassifier(), buttress.DoubleRampClassifier(d=0.2)]
)
def test_a_prediction_imports_neither_skops_nor_what_it_drags_along(tmp_path, machine):
    model = TableClassifier(machine, target="t").fit(table(), WORDS)
    buttress.save(model, tmp_path / "m.skops")
    lines = [f"{a!r},{b!r},Oslo" for a, b in X[:5].tolist()]
    (tmp_path / "rows.csv").write_text("x,y,city\n" + "\n".join(lines) + "\n")
    code = (
        "import sys; from buttress.cli import main;"
        "code = main(['predict', 'm.skops', 'rows.csv', '-q', '-o', 'answers.csv']);"
        "heavy = {'skops', 'dask', 'pytest', 'matplotlib', 'sklearn.svm'};"
        "heavy &= set(sys.modules); sys.exit(f'{heavy} imported' if heavy else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 6
