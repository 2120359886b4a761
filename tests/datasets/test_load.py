"""Named sets: what is read, and what happens when the file is not what it should be."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
import zipfile

import numpy as np
import pytest
from scipy.io import savemat

from buttress.datasets import _download, fetch_dataset, list_datasets, load_dataset, loading
from buttress.datasets._records import Bundled, Ida, Libsvm, OpenML, Record, Text, Variant
from buttress.datasets.registry import BY_NAME, RECORDS


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("BUTTRESS_DATA", raising=False)
    monkeypatch.setenv("BUTTRESS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def record_of(source, **changes):
    facts = {
        "name": "toy",
        "sha256": "",
        "rows": 4,
        "features": 2,
        "positives": 2,
        "positive_labels": ("b",),
        "source": source,
    }
    return Record(**(facts | changes))


@pytest.mark.datasets
@pytest.mark.parametrize("name", [r.name for r in RECORDS if r.rows * r.features < 400_000])
def test_every_small_set_has_the_registered_shape(name, data_dir):
    record = BY_NAME[name]
    raw = load_dataset(name, variant="raw")
    assert raw.X.shape == (record.rows, record.features)
    assert np.sum(raw.y == 1) == record.positives
    assert np.isnan(raw.X).sum() == record.missing
    paper = load_dataset(name)
    assert not np.isnan(paper.X).any()
    assert len(paper.feature_names) == paper.X.shape[1]
    assert set(paper.y) == {-1, 1}


@pytest.mark.datasets
def test_registry_agrees_with_the_index_of_the_folder(data_dir):
    index = {entry["name"]: entry for entry in json.loads((data_dir / "index.json").read_text())}
    assert set(index) == set(BY_NAME)
    for name, entry in index.items():
        record = BY_NAME[name]
        assert record.sha256 == entry["sha256"]
        assert (record.rows, record.features) == (entry["rows"], entry["features"])
        assert list(record.positive_labels) == entry["positive_label"]
        assert record.positives == entry["binary_counts"]["+1"]


@pytest.mark.datasets
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("arrhythmia", (68, 233)),
        ("cleveland", (297, 13)),
        ("hepatitis", (80, 19)),
        ("hungarian", (261, 10)),
        ("kr_vs_kp", (3196, 36)),
        ("occupancy", (20560, 5)),
        ("adult", (45222, 14)),
        ("australian", (690, 14)),
    ],
)
def test_paper_variant_has_the_printed_shape(name, shape, data_dir):
    assert load_dataset(name).X.shape == shape


@pytest.mark.datasets
def test_published_splits_partition_the_rows(data_dir):
    bunch = load_dataset("heart_ida")
    assert bunch.split_numbers == list(range(1, 11))
    for train, test in bunch.splits:
        assert (len(train), len(test)) == (170, 100)
        assert sorted([*train, *test]) == list(range(270))


@pytest.mark.datasets
def test_one_hot_columns_name_their_level_and_sum_to_one(data_dir):
    bunch = load_dataset("kr_vs_kp", categorical="onehot")
    assert bunch.X.shape == (3196, 38)
    three = [i for i, name in enumerate(bunch.feature_names) if name.startswith("katri=")]
    assert np.all(bunch.X[:, three].sum(axis=1) == 1)


@pytest.mark.datasets
def test_numeral_codes_keep_their_value(data_dir):
    codes = load_dataset("australian").X[:, 4]
    assert codes.max() == 14


@pytest.mark.datasets
def test_damaged_file_is_refused(data_dir, tmp_path, monkeypatch):
    copy = tmp_path / "bupa.csv"
    shutil.copy(data_dir / "bupa.csv", copy)
    monkeypatch.setenv("BUTTRESS_DATA", str(tmp_path))
    assert load_dataset("bupa").X.shape == (345, 6)
    copy.write_text(copy.read_text() + "1,2,3,4,5,6,1\n")
    with pytest.raises(ValueError, match="sha256"):
        load_dataset("bupa")


@pytest.mark.smoke
def test_bundled_set_needs_no_network_and_is_kept(cache):
    bunch = load_dataset("wdbc")
    assert bunch.X.shape == (569, 30)
    assert np.sum(bunch.y == 1) == 212
    path = cache / "wdbc.csv"
    assert fetch_dataset("wdbc") == path
    path.write_text(path.read_text().replace("malignant", "benign"))
    with pytest.raises(ValueError, match="sha256"):
        load_dataset("wdbc")
    path.with_suffix(".csv.sha256").unlink()
    assert load_dataset("wdbc").X.shape == (569, 30)
    assert fetch_dataset("wdbc", force=True) == path
    assert load_dataset("wdbc").X.shape == (569, 30)


def test_text_source_reads_several_files_drops_columns_and_renames(tmp_path):
    files = {"a.data": b"7, x, 1,?\n8, y., 2,5\n", "b.data": b"skip me\n9,y,3,6\n\n0,x,4,7\n"}
    source = Text(
        ("UCI:a.data", "UCI:b.data"),
        label=1,
        drop=(0,),
        header=(0, 1),
        rename={"y.": "b", "y": "b"},
    )
    path = _download.download(record_of(source), tmp_path, lambda url: files[url.rsplit("/")[-1]])
    assert list(csv.reader(path.open())) == [
        ["x1", "x2", "label"],
        ["1", "", "x"],
        ["2", "5", "b"],
        ["3", "6", "b"],
        ["4", "7", "x"],
    ]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert path.with_suffix(".csv.sha256").read_text().strip() == digest


def test_text_source_reads_members_of_a_zip_archive(tmp_path):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("one.dat", "1 2 b\n3 4 a\n")
        archive.writestr("two.dat", "5 6 b\n7 8 a\n")
    source = Text(("UCI:x.zip",), separator=None, member=("one.dat", "two.dat"))
    path = _download.download(record_of(source), tmp_path, lambda url: content.getvalue())
    assert path.read_text().splitlines()[1] == "1,2,b"


def test_changed_source_is_refused_and_nothing_is_kept(tmp_path):
    with pytest.raises(ValueError, match="has changed"):
        _download.download(record_of(Text(("UCI:x",))), tmp_path, lambda url: b"1,2,b\n")
    assert list(tmp_path.iterdir()) == []


def test_libsvm_source(tmp_path):
    text = b"+1 1:1\n-1 2:1\n+1 1:1 2:1\n-1\n"
    record = record_of(Libsvm(("LIBSVM:x",)), positive_labels=("1",))
    path = _download.download(record, tmp_path, lambda url: text)
    assert path.read_text().splitlines()[1:] == ["1,0,1", "0,1,-1", "1,1,1", "0,0,-1"]


def test_openml_source_restores_nominal_values(tmp_path, monkeypatch):
    from sklearn import datasets
    from sklearn.utils import Bunch

    answer = Bunch(
        data=np.array([[0.5, 0, 9], [np.nan, 1, 9], [1.5, 1, 9], [2.5, 0, 9]]),
        target=np.array(["UP", "DOWN", "DOWN", "UP"]),
        feature_names=["size", "kind", "id"],
        categories={"kind": ["-1", "1"]},
    )
    monkeypatch.setattr(datasets, "fetch_openml", lambda **options: answer)
    source = OpenML(1, drop=("id",), rename={"DOWN": "b"})
    path = _download.download(record_of(source), tmp_path)
    assert path.read_text().splitlines() == [
        "size,kind,label",
        "0.5,-1,UP",
        ",1,b",
        "1.5,1,b",
        "2.5,-1,UP",
    ]


def test_ida_source_checks_the_archive_and_keeps_the_splits(tmp_path, monkeypatch):
    content = io.BytesIO()
    stored = {
        "x": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]),
        "t": np.array([[1], [-1], [1], [-1]]),
        "train": np.array([[1, 2], [3, 4]]),
        "test": np.array([[3, 4], [1, 2]]),
    }
    savemat(content, {"toy": stored})
    record = record_of(Ida("toy"), name="toy_ida", positive_labels=("1",))
    with pytest.raises(ValueError, match="checksum"):
        _download.download(record, tmp_path, lambda url: content.getvalue())
    digest = hashlib.sha256(content.getvalue()).hexdigest()
    monkeypatch.setattr(_download, "IDA_SHA256", digest)
    path = _download.download(record, tmp_path, lambda url: content.getvalue())
    splits, numbers = loading._splits(path, record)
    assert numbers == [1, 2]
    np.testing.assert_array_equal(splits[1][0], [2, 3])


def test_a_set_that_is_nowhere_is_downloaded_once(cache, monkeypatch):
    calls = []

    def fake(record, folder):
        calls.append(record.name)
        text = "\n".join(["1,2,b", "3,,a", "5,6,b", "7,8,a"])
        return _download.download(record, folder, lambda url: text.encode())

    record = record_of(Text(("UCI:x",)), missing=1, variant=Variant(drop_incomplete=True))
    monkeypatch.setitem(loading.BY_NAME, "toy", record)
    monkeypatch.setattr(loading, "download", fake)
    assert load_dataset("toy").X.shape == (3, 2)
    assert load_dataset("toy", variant="raw").X.shape == (4, 2)
    assert calls == ["toy"]


def test_addresses_are_https_and_every_source_is_known():
    kinds = (Text, OpenML, Ida, Libsvm, Bundled)
    assert all(isinstance(record.source, kinds) for record in RECORDS)
    for record in RECORDS:
        for url in getattr(record.source, "urls", ()):
            assert _download._address(url).startswith("https://")


def test_get_reads_an_address(tmp_path):
    file = tmp_path / "x.txt"
    file.write_bytes(b"content")
    assert _download.get(file.as_uri()) == b"content"


def test_unknown_names_and_options_are_refused(cache):
    with pytest.raises(ValueError, match="name must be one of"):
        load_dataset("no such set")
    with pytest.raises(ValueError, match="variant"):
        load_dataset("wdbc", variant="x")
    with pytest.raises(ValueError, match="categorical"):
        load_dataset("wdbc", categorical="x")
    with pytest.raises(ValueError, match="group"):
        list_datasets("x")


def test_groups_hold_the_sets_of_each_paper():
    assert len(list_datasets("ida")) == 13
    assert {"banana_ida", "wdbc", "letter", "occupancy", "adult"} == set(list_datasets("online5"))
    assert set(list_datasets("reject2")) == {"ionosphere", "parkinsons"}
    assert len(list_datasets()) == len(RECORDS)


def test_default_cache_is_in_the_home_folder(monkeypatch):
    monkeypatch.delenv("BUTTRESS_CACHE", raising=False)
    assert loading.cache_folder().parts[-2:] == (".cache", "buttress")


def test_without_network_the_error_says_where_was_looked(cache, monkeypatch):
    def refuse(record, folder):
        raise OSError("no network")

    monkeypatch.setattr(loading, "download", refuse)
    with pytest.raises(OSError, match="BUTTRESS_DATA"):
        load_dataset("sonar")
