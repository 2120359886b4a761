"""Any change to a model file or a checkpoint, sealed anew: a model or one kind of error."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import buttress
from buttress.classifiers.online.checkpoint import CheckpointError, write_checkpoint
from buttress.persistence import ModelFileError, container
from buttress.tables import TableClassifier
from buttress.tables.stream import model_of_checkpoint

from .conftest import LONG, SHORT

skops_io = pytest.importorskip("skops.io")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
Y = np.array([0, 1] * 6)
LEARNER = buttress.PARampClassifier(gamma=0.5, budget=5).fit(X, Y)
MODEL = TableClassifier(buttress.PARampClassifier(gamma=0.5), target="y").fit(
    {"a": X[:, 0], "b": X[:, 1], "city": ["u", "v"] * 6, "y": Y}
)
with zipfile.ZipFile(io.BytesIO(skops_io.dumps(MODEL))) as _archive:
    MEMBERS = {_name: _archive.read(_name) for _name in _archive.namelist()}
SCHEMA = json.loads(MEMBERS["schema.json"])

odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.just([]),
    st.just({}),
    st.sampled_from(["os", "builtins", "eval", "sklearn.svm", "SVC", "numpy", "FunctionNode"]),
)
places = st.lists(st.integers(0, 2**30), min_size=1, max_size=12)


def changed(value, place, new):
    """The value with one of its parts replaced, found by a walk that numbers lead."""
    if not place:
        return new
    if isinstance(value, dict) and value:
        key = sorted(value)[place[0] % len(value)]
        return value | {key: changed(value[key], place[1:], new)}
    if isinstance(value, list) and value:
        index = place[0] % len(value)
        return [*value[:index], changed(value[index], place[1:], new), *value[index + 1 :]]
    return new


def check_model(folder, members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    path = folder / "model.skops"
    path.write_bytes(container.seal(buffer.getvalue()))
    reason = str(path)
    try:
        buttress.load(path)
    except ModelFileError as error:
        reason = str(error)
    assert str(path) in reason


SCHEMAS = {"changes": st.lists(st.tuples(places, odd), min_size=1, max_size=3)}


@SHORT
@given(**SCHEMAS)
def test_a_changed_schema(folder, changes):
    schema = SCHEMA
    for place, new in changes:
        schema = changed(schema, place, new)
    check_model(folder, MEMBERS | {"schema.json": json.dumps(schema)})


ARRAYS = {
    "which": st.integers(0, 2**30),
    "place": st.integers(0, 2**30),
    "new": st.binary(min_size=1, max_size=12),
}


@SHORT
@given(**ARRAYS)
def test_a_changed_array(folder, which, place, new):
    name = sorted(MEMBERS)[which % len(MEMBERS)]
    content = MEMBERS[name]
    place %= len(content)
    check_model(folder, MEMBERS | {name: content[:place] + new + content[place + len(new) :]})


@SHORT
@given(st.binary(max_size=200))
def test_any_bytes_as_a_model(folder, data):
    path = folder / "any.skops"
    for content in (data, b"PK\x03\x04" + data, container.seal(b"PK\x03\x04" + data + b"\0\0")):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=r"any\.skops"):
            buttress.load(path)


def check_checkpoint(path):
    for read in (model_of_checkpoint, buttress.PARampClassifier.load_checkpoint):
        with suppress(CheckpointError):
            read(path)


STATE = LEARNER._state()


@SHORT
@given(**SCHEMAS)
def test_a_changed_checkpoint(folder, changes):
    content = {"learner": STATE}
    for place, new in changes:
        content = changed(content, place, new)
    path = folder / "state"
    if not isinstance(content, dict):
        content = {"learner": content}
    write_checkpoint(path, content)
    check_checkpoint(path)


@SHORT
@given(place=st.integers(0, 2**30), new=st.binary(min_size=1, max_size=12))
def test_changed_bytes_of_a_checkpoint(folder, place, new):
    path = folder / "state"
    write_checkpoint(path, {"learner": STATE})
    body = path.read_bytes()[:-32]
    place %= len(body)
    body = body[:place] + new + body[place + len(new) :]
    path.write_bytes(body + hashlib.sha256(body).digest())
    check_checkpoint(path)


@pytest.mark.slow
@LONG
@given(**SCHEMAS, **ARRAYS)
def test_changed_model_files_for_longer(folder, changes, which, place, new):
    test_a_changed_schema.hypothesis.inner_test(folder, changes)
    test_a_changed_array.hypothesis.inner_test(folder, which, place, new)
    test_a_changed_checkpoint.hypothesis.inner_test(folder, changes)
    test_changed_bytes_of_a_checkpoint.hypothesis.inner_test(folder, place, new)
