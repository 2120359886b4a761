"""The stream reads the CSV files that `fit` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from buttress.cli import main


def run(*words: Any) -> int:
    return main(["stream", *(str(word) for word in words)])


def content(delimiter: str, n: int = 200) -> str:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    lines = [
        delimiter.join([f"{a:.6f}", f"{b:.6f}", "yes" if a + 0.1 * b > 0 else "no"]) for a, b in X
    ]
    return "\n".join([delimiter.join(["a", "b", "label"]), *lines]) + "\n"


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_give_the_same_answers(tmp_path: Path, delimiter: str) -> None:
    (tmp_path / "comma.csv").write_text(content(","))
    (tmp_path / "other.csv").write_text(content(delimiter))
    assert run(tmp_path / "comma.csv", "-o", tmp_path / "expected", "--quiet") == 0
    assert run(tmp_path / "other.csv", "-o", tmp_path / "found", "--quiet") == 0
    assert (tmp_path / "found").read_text() == (tmp_path / "expected").read_text()


def test_a_resumed_run_remembers_the_delimiter(tmp_path: Path) -> None:
    whole, data = content(";"), tmp_path / "rows.csv"
    data.write_text(whole)
    assert run(data, "-o", tmp_path / "expected", "--warm-up", 64, "--quiet") == 0
    data.write_text("".join(whole.splitlines(keepends=True)[:129]))
    common = ("-o", tmp_path / "found", "--checkpoint", tmp_path / "state", "--warm-up", 64)
    assert run(data, *common, "--quiet") == 0
    data.write_text(whole)
    assert run(data, *common, "--quiet", "--resume") == 0
    assert (tmp_path / "found").read_text() == (tmp_path / "expected").read_text()


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    data = tmp_path / "rows.csv"
    data.write_bytes(b"\xef\xbb\xbf" + content(",").encode())
    assert run(data, "--features", "a,b", "-o", tmp_path / "out", "--quiet") == 0


@pytest.mark.parametrize(
    ("text", "words", "reason"),
    [
        ("a,a,label\n1,2,x\n", [], "rows.csv: column 'a' appears more than once"),
        ("a,b,label\n1,2,x\n", ["--target", "y"], "the header has no column 'y' (--target)"),
        ("a,b,label\nred,2,x\n", [], "line 2: the feature 'a' is no number: 'red'"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    words: list[str],
    reason: str,
) -> None:
    (tmp_path / "rows.csv").write_text(text)
    assert run(tmp_path / "rows.csv", *words) == 1
    assert reason in " ".join(capsys.readouterr().err.split())
