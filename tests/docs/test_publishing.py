"""The project around the code: versions of the documentation, citation, badges and commands."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

import buttress

ROOT = Path(__file__).resolve().parents[2]


def load_script(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_versions_stand_side_by_side(tmp_path):
    publish = load_script(ROOT / "tools" / "publish_docs.py").publish
    built, pages = tmp_path / "html", tmp_path / "pages"
    built.mkdir()
    pages.mkdir()

    def build(text, version):
        (built / "index.html").write_text(text)
        return publish(built, pages, version)

    assert build("main", "dev") == ["dev"]
    assert (pages / "stable" / "index.html").read_text() == "main"
    assert build("first", "v0.1.0") == ["0.1.0", "dev"]
    assert build("second", "0.10.0") == ["0.10.0", "0.1.0", "dev"]
    assert build("a late fix", "0.1.1") == ["0.10.0", "0.1.1", "0.1.0", "dev"]
    assert (pages / "stable" / "index.html").read_text() == "second"
    listed = json.loads((pages / "switcher.json").read_text())
    assert [entry["version"] for entry in listed if entry["preferred"]] == ["0.10.0"]
    assert listed[0]["url"].endswith("/stable/")
    with pytest.raises(ValueError, match="neither 'dev' nor a release"):
        build("x", "../up")
    with pytest.raises(ValueError, match="no built documentation"):
        publish(tmp_path / "nothing", pages, "dev")


def test_the_citation_is_of_this_version_and_complete():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == buttress.__version__
    assert citation["license"] == "BSD-3-Clause"
    allowed = {"software", "dataset"}
    assert citation["type"] in allowed
    for key in ("title", "message", "authors", "abstract", "keywords", "references"):
        assert citation[key], key
    for work in citation["references"]:
        assert {"type", "title", "authors", "year"} <= work.keys()
        assert 1950 < work["year"] < 2100
        for author in work["authors"]:
            assert author.keys() <= {"family-names", "given-names", "name"}


def test_every_number_of_the_readme_has_a_command_or_a_page():
    """Sentences with a measured number are in a section that names its script or its page."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(benchmarks/\w+\.py)", text))
    assert named
    assert all((ROOT / script).is_file() for script in named)
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        measured = re.search(r"\d(?:[.,]\d+)?\s?(?:×|s of|% of|times as)", section)
        if measured:
            assert re.search(
                r"benchmarks/\w+\.py|docs/\S+\.(rst|py)|make \w+|buttress \w+", section
            )
    for link in re.findall(r"\]\((?!http|#)([^)]+)\)", text):
        assert (ROOT / link).exists(), link


def test_readme_and_front_page_show_the_numbers_of_the_tables():
    for path, text in load_script(ROOT / "tools" / "measured.py").renewed().items():
        shown = path.read_text(encoding="utf-8")
        assert shown == text, f"{path.name}: run python tools/measured.py"


def list_table(rows):
    cells = [list(rows[0]), *(list(row.values()) for row in rows)]
    lines = ["   * - " + "\n     - ".join(row) for row in cells]
    return ".. list-table::\n   :header-rows: 1\n\n" + "\n".join(lines) + "\n"


def test_measured_numbers_follow_their_tables(tmp_path):
    measured = load_script(ROOT / "tools" / "measured.py")
    tables = tmp_path / "docs" / "benchmarks"
    tables.mkdir(parents=True)
    for name in ("README.md", "docs/index.rst"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    path = measured.table("path_cv")
    changed = [row | {"ratio": "3.25"} for row in path[:-1]] + [path[-1] | {"ratio": "901"}]
    (tables / "path_cv.inc").write_text(list_table(changed), encoding="utf-8")
    first = [row | {"first, processor s": "77.7"} for row in measured.table("first_run")]
    (tables / "first_run.inc").write_text(list_table(first), encoding="utf-8")
    readme, front = measured.renewed(tmp_path).values()
    assert readme.count("| 3.25× |") == len(path) - 1
    assert f"1 of {len(path)} jobs meet theirs; missed: 139 × 60 (Gaussian, 3.25×), 460 × 14" in (
        readme
    )
    assert "takes 78 s of processor time" in readme
    assert "3 to 901 times as fast" in front
    (tmp_path / "docs" / "index.rst").write_text("no number", encoding="utf-8")
    with pytest.raises(ValueError, match="stands 0 times"):
        measured.renewed(tmp_path)


def test_the_list_for_language_models_names_pages_that_exist():
    text = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
    for page in re.findall(r"\]\(([\w/]+)\.html\)", text):
        assert (ROOT / "docs" / f"{page}.rst").is_file(), page


def test_every_how_to_and_coming_from_page_includes_tables_that_exist():
    for page in [*ROOT.glob("docs/how_to/*.rst"), *ROOT.glob("docs/coming_from/*.rst")]:
        for table in re.findall(r"^\.\. include:: (\S+)", page.read_text(), re.MULTILINE):
            assert (page.parent / table).resolve().is_file(), (page.name, table)


def test_the_jobs_for_asv_run():
    jobs = load_script(ROOT / "asv_benchmarks" / "main_jobs.py")
    for kind in jobs.JOBS:
        assert kind.__doc__
        assert any(name.startswith("time_") for name in dir(kind))
    stream = jobs.Stream()
    stream.setup(60)
    stream.time_fit(60)
    assert stream.work().n_seen_ == 60


def test_the_picture_of_every_estimator_links_to_its_page():
    from sklearn.base import BaseEstimator

    from buttress import tables

    listed = (ROOT / "docs" / "api" / "index.rst").read_text(encoding="utf-8")
    names = [("buttress", name) for name in buttress.__all__]
    names += [("buttress.tables", "TableEncoder"), ("buttress.tables", "TableClassifier")]
    seen = 0
    for package, name in names:
        found = getattr(buttress if package == "buttress" else tables, name)
        if not (isinstance(found, type) and issubclass(found, BaseEstimator)):
            continue
        seen += 1
        link = found._get_doc_link(found.__new__(found))
        assert link.endswith(f"/stable/api/generated/{package}.{name}.html"), name
        assert f"\n   {name}\n" in listed
    assert seen > 15
