"""Any command line: an exit code, one line with the reason, and no file but those asked for."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import SVC

import buttress
from buttress.cli import main
from buttress.tables import TableClassifier, read_table

from .conftest import LONG, SHORT

pytest.importorskip("skops")

FILES = [
    "rows.csv", "rows.jsonl", "odd.csv", "empty.csv", "m.skops", "online.skops", "state", "new",
    "none/x", ".", "link.csv", "-",
]  # fmt: skip
WORDS = ["y", "a", "b", "id", "a,b", "", "zz", "0", "1", "-1", "0.2", "1e9", "nan", "yes,no", "rbf"]
PROTECTED = FILES[:7]

OPTIONS = {
    "predict": ["-o", "--keep", "--abstain", "--decimal", "--block-rows", "--lenient", "--json"],
    "inspect": ["--json", "--quiet", "--jobs"],
    "export": ["--onnx", "--out", "--format", "--double", "--seed"],
    "stream": [
        "-o", "-t", "--classes", "--features", "--format", "--model", "--s", "--alpha", "--kernel",
        "--gamma", "--budget", "--block-size", "--warm-up", "--key", "--label-stream", "--rejects",
        "--checkpoint", "--every", "--resume", "--json", "--from", "--decimal", "--no-scale",
    ],
    "fit": ["--ignore", "--missing", "--folds", "--decimal", "--report", "-o", "--nonsense"],
}  # fmt: skip
# Words that make a fit succeed are left out: a fit takes seconds.
TARGETS = ["id", "zz", "", "a"]

values = st.one_of(st.sampled_from([*FILES, *WORDS]), st.text(max_size=5))
OUTPUTS = {"-o", "--out", "--onnx", "--report", "--rejects", "--checkpoint"}
FLAGS = {"--lenient", "--json", "--quiet", "--double", "--resume", "--no-scale"}


@st.composite
def lines(draw):
    command = draw(st.sampled_from(list(OPTIONS)))
    words = [command]
    words += draw(st.lists(st.sampled_from(FILES), min_size=0, max_size=2))
    if command == "fit":
        words += ["--target", draw(st.sampled_from(TARGETS))]
    for option in draw(st.lists(st.sampled_from(OPTIONS[command]), max_size=5)):
        words.append(option)
        if option not in FLAGS:
            words.append(draw(values))
    return [word.replace("\0", "") for word in words]


@pytest.fixture(scope="module")
def place(folder):
    """Good files and odd ones, to be found again as they were."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)).round(3)
    y = np.where(X[:, 0] > 0, "yes", "no")
    rows = [f"{i},{a},{b},{t}" for i, ((a, b), t) in enumerate(zip(X.tolist(), y, strict=True))]
    (folder / "rows.csv").write_text("id,a,b,y\n" + "\n".join(rows) + "\n")
    records = [{"a": a, "b": b, "y": t} for (a, b), t in zip(X.tolist(), y.tolist(), strict=True)]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, records)))
    (folder / "odd.csv").write_bytes(b"a,a\n\xff\x00,\n")
    (folder / "empty.csv").write_text("")
    (folder / "link.csv").symlink_to(folder / "rows.csv")
    table = read_table(folder / "rows.csv", target="y")
    for name, estimator in (("m", SVC()), ("online", buttress.PARampClassifier(gamma=0.5))):
        model = TableClassifier(estimator, target="y", ignore=["id"]).fit(table)
        buttress.save(model, folder / f"{name}.skops")
    buttress.PARampClassifier().fit(X, y).save_checkpoint(folder / "state")
    return folder


def asked_for(words):
    """Files that a command line may change: a checkpoint that goes on, and outputs it names."""
    named = {
        "rows.csv" if word == "link.csv" else word
        for option, word in pairwise(words)
        if option in OUTPUTS
    }
    read = {word for option, word in pairwise(words) if option not in OUTPUTS}
    return (named - read) | {"state"}


def check(place, capsys, words):
    before = {name: (place / name).read_bytes() for name in PROTECTED}
    known = {path.name for path in place.iterdir()}
    given = [str(place / word) if word in FILES and word != "-" else word for word in words]
    # A stream reads standard input when it is given no file.
    if given[0] == "stream" and (len(given) < 2 or given[1] in ("-", *OPTIONS["stream"])):
        given.insert(1, str(place / "rows.csv"))
    code = main(given)
    captured = capsys.readouterr()
    assert code in (0, 1, 2)
    errors = [line for line in captured.err.splitlines() if line.startswith("buttress: ")]
    reasons = [line for line in errors if not line.startswith("buttress: warning: ")]
    assert "Traceback" not in captured.err
    assert len(reasons) == (code != 0), captured.err
    for reason in reasons:
        assert not re.match(r"buttress: [A-Za-z]+(Error|Exception|Warning): ", reason), reason
    after = {name: (place / name).read_bytes() for name in before}
    for name, content in before.items():
        (place / name).write_bytes(content)
    changed = {name for name in before if after[name] != before[name]}
    assert changed <= (asked_for(words) if code == 0 else set()), words
    for path in place.iterdir():
        assert not path.name.startswith("."), path
        if path.name not in known:
            assert code == 0 or words[0] == "stream", path
            path.unlink()


@SHORT
@given(words=lines())
def test_any_command_line(place, capsys, monkeypatch, words):
    monkeypatch.chdir(place)
    check(place, capsys, words)


@pytest.mark.slow
@LONG
@given(words=lines())
def test_any_command_line_for_longer(place, capsys, monkeypatch, words):
    monkeypatch.chdir(place)
    check(place, capsys, words)
