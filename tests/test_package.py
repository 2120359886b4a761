"""The package as a newcomer meets it: imports, files, progress."""

import io
import subprocess
import sys

import pytest

import buttress
from buttress import _files, _progress


def modules_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(' '.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.smoke
def test_import_is_light():
    loaded = modules_after("import buttress")
    assert not loaded & {"numba", "sklearn", "scipy", "numpy", "matplotlib"}


@pytest.mark.smoke
@pytest.mark.parametrize("name", sorted(set(buttress.__all__) - {"__version__"}))
def test_every_public_name_is_there(name):
    assert getattr(buttress, name).__name__ == name
    assert name in dir(buttress)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="'buttress' has no attribute 'Magic'"):
        buttress.Magic


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    target = tmp_path / "model.bin"
    with _files.replacing(target) as file:
        file.write(b"old")
    target.chmod(0o640)

    def interrupted():
        with _files.replacing(target) as file:
            file.write(b"half of the ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["model.bin"]
    with _files.replacing(target, "w") as file:
        file.write("neu \N{LATIN SMALL LETTER U WITH DIAERESIS}")
    assert target.read_text(encoding="utf-8") == "neu ü"
    assert target.stat().st_mode & 0o777 == 0o640


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_silent_unless_on_a_terminal_and_asked_for(monkeypatch):
    for stream, verbose, shown in ((io.StringIO(), 1, False), (Terminal(), 0, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with _progress.progress("solving", 2, verbose) as advance:
            advance(2)
        assert bool(stream.getvalue()) is shown
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with _progress.progress("solving", 2, 1) as advance:
        advance(2)
    assert "solving" in stream.getvalue()
