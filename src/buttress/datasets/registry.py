"""The table of named data sets: facts only, the data stay where they are."""

from __future__ import annotations

from typing import Any

from buttress.datasets._records import (
    Bundled,
    Ida,
    Libsvm,
    OpenML,
    Record,
    Source,
    Text,
    Variant,
)

# Prefixes of the addresses below.
ADDRESSES = {
    "UCI": "https://archive.ics.uci.edu/ml/machine-learning-databases/",
    "LIBSVM": "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/",
    "GITHUB": "https://raw.githubusercontent.com/",
}
# The thirteen sets of the IDA repository come in one file.
IDA_URL = "https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets/raw/master/benchmarks.mat"
IDA_SHA256 = "47c19e4bc4716edc4077cfa5ea61edf4d02af4ec51a0ecfe035626ae8b561c75"

# name, SHA-256 of the file, rows, features, positives; training rows and published realisations
_FACTS = """
banana_ida 724e9a0c33d8362c63af35d8912c13d123bc51b3f0fa494c4fa171255092176c 5300 2 2376 400 100
breast_cancer_ida a111d56c31ddc4ce2e8090e5a399030c778add298bcdad473c1efed46ec1e2c8 277 9 81 200 100
diabetis_ida 1f20043b0c5e7e863f0572dfb849d3453612179b3a3c4231abc6fa85d0154f0c 768 8 268 468 100
flare_solar_ida e1124b3f936426795a0fb9aa471353638fe2fc88ef375cbd430c3c10889b942b 1066 9 589 666 100
german_ida 66386868b65b86a77c95df96fe510404276082f4e6a2b6f50b6f0055932f65c7 1000 20 300 700 100
heart_ida 64eaa9131502aed8b8d66ef034cdb02dbf2a8211d9568ffa52a70fe3c8560570 270 13 120 170 100
image_ida 1d9159e3a7ee1402894724f0627e372b8d733d62eaf46020ffac8cd6c5b6ac14 2310 18 1320 1300 20
ringnorm_ida d978d6da6ae9440ce88b74f94e28960cdb28263d119fb5964fdd98542766099f 7400 20 3664 400 100
splice_ida 31bc7a3b6cfc866c200051c3f0776574aae88b58cc9763eaf7f406c1ecf5a0d4 3175 60 1527 1000 20
thyroid_ida e2a8f6193f9507eb1e24b979da0161ceab06384d251110a743bb03106a2113ad 215 5 65 140 100
titanic_ida 73366756c27f2cd15dfc3009e1c4b75f4e88222f4799578aba15a8a2990172f0 2201 3 711 150 100
twonorm_ida 3fc283d4dbcabef58208b31f45e34bc185fda19e5621bab2d332261c3db7a5bf 7400 20 3703 400 100
waveform_ida 68a440e41338b9ad45b14cde617e18edf8ce9c80720e0daf5294014700bf5933 5000 21 1647 400 100
arrhythmia d2d3266fb5caa1d4bd9f35bcbd435eceb93405e15d091f1d8af9db3a7ee1eaae 452 279 207
australian 2dc913d02c14a50eb73d57af44c8f2f2aeea51c05ba6735e3c779e3646ef6fb1 690 14 307
banknote fd54cdab8b3a4033b936d4f85c13a2a7cccbfabb55ea17e3cbed63df2043354c 1372 4 610
qsar_biodeg 182447722581aee8a4d283ddcdb3784049fdde46cf38eb64e2ac065a360d6624 1055 41 356
bupa 41fb14b2bd305f987e267b5674dae1cbc649734f9ed0f450935b65df5f016cb5 345 6 200
kr_vs_kp 6b5393d7930fa746c183cb855b47906551634f664efae212d64d8bdb15b05016 3196 36 1669
cleveland d6416500b131c587f0e69cd080abbcdcbd262df63e9ec8e73bddb9b6d3c2e777 303 13 139
hepatitis bff7e0ab4311b8a0e5a561da1a06c5ebd521b6d3358127d25453ebc3a5750a21 155 19 123
hungarian 6f97ecd94b171dcef618f5b71964e84cc5f461ca8ee9e828e86090b61e2205ec 294 13 106
lsvt 479a6a7fe4e137055b18b27126f8bdaa2bc957c73a10e7f118532f41b3858f1d 126 310 42
musk1 fc077f18cd45660b02bbb21ab62fad4de226feec9a02ffff32f5d8e305085bbb 476 166 207
parkinsons 6b1433fb52f19eadf496aee78b48d56fa6339f8d54b5a47b3b9640f87677c2f7 195 22 147
sonar fd140c0dbc6512aaa64b2000665a13b95c930941b60d4b3d317b7b86cb55216b 208 60 111
spect_train 5af21ed19a2259527ba6dadf446926bb37e63ab3f3fc455ee3a046d7d37ce419 80 22 40
spect 0df182c8778ecfe71a2290da7b70255a0fc2e1bdadba6d5e13207c4ca34ccafa 267 22 212
spectf b896db1b530215dcb2bbbe95ef4c43b37581f48fca0d965e7854566d79e9e47e 267 44 212
vertebral_2c 47c09639c3de9eff37cd1d3dbe3858b242c2d761cdf70b6604feaf5750c4b1fe 310 6 210
wdbc 6534e3077f72fd953fb8554b3366bb80db2d157daba7d4ea8e8d09b822553778 569 30 212
letter 702895c420c2674133c40f605c59d17a9be45158bdfc00a59fc14f13be4ec39b 20000 16 9940
occupancy f4bc2610f8ba36f5ee1c2e097fdf334adcd0e4769c1e81a3d4f2d3fc3c09c9cc 20560 6 4750
adult 312ec07769d807a8929b1ae9b4d0076138b1fb26a905b4f518cae7b77a78c89d 48842 14 11687
ionosphere 0bc0782f83af43e5a92b803b800d5e2a70919dd922a0e58cec7498b3a91955dd 351 34 225
a9a 3366cf9ff92653879a68d9f61d34773b141916afab9076155da17c0fc631cb87 48842 123 11687
w8a a5ec700e2c44bb7af5f34f5b4ecf43c0ffd92e41b9d8a9133154e91d6e491b94 49749 300 1479
phishing 9331140534eebdc10137a147410e48ed8306ea638c8751408b092ef883788582 11055 30 6157
higgs_sample 49dd6f3da4fe85d6370b4a3d168be0d136731360fa556ca89a456e9366ef5158 7500 28 3988
magic 07f14ddce0435894c5d0a8de7a348664619808796f674a90a6aaced23d020d19 19020 10 12332
elec2 d6f42ee928cec03046441cac655b3d07a318a16214fb5ab92583486c6d8c6151 45312 8 26075
covtype_sample d0576b068021ea7e3d84025727e784a99dbf0616063dfebc60b3078dea3aae70 10000 54 4925
"""


def _record(
    name: str,
    positive_labels: tuple[str, ...],
    source: Source,
    groups: tuple[str, ...],
    **more: Any,
) -> Record:
    sha256, *numbers = _FACTS_OF[name]
    rows, features, positives, *split = map(int, numbers)
    return Record(
        name,
        sha256,
        rows,
        features,
        positives,
        positive_labels,
        source,
        groups=groups,
        split=(split[0], split[1]) if split else None,
        **more,
    )


_FACTS_OF = {line.split()[0]: line.split()[1:] for line in _FACTS.strip().splitlines()}
RECORDS: tuple[Record, ...] = (
    *(
        _record(
            name,
            ("1",),
            Ida(name.removesuffix("_ida")),
            ("ida", "online5") if name == "banana_ida" else ("ida",),
        )
        for name in _FACTS_OF
        if name.endswith("_ida")
    ),
    _record(
        "arrhythmia",
        ("2", "3", "4", "5", "6", "7", "8", "9", "10", "14", "15", "16"),
        Text(("UCI:arrhythmia/arrhythmia.data",)),
        groups=("lhs15",),
        missing=408,
        variant=Variant(drop_incomplete=True, drop_constant=True),
    ),
    _record(
        "australian",
        ("1",),
        Text(("UCI:statlog/australian/australian.dat",), separator=None),
        groups=("lhs15",),
        categorical=(0, 3, 4, 5, 7, 8, 10, 11),
        missing=6,
        variant=Variant(impute=True),
    ),
    _record(
        "banknote", ("1",), Text(("UCI:00267/data_banknote_authentication.txt",)), groups=("lhs15",)
    ),
    _record(
        "qsar_biodeg", ("RB",), Text(("UCI:00254/biodeg.csv",), separator=";"), groups=("lhs15",)
    ),
    _record("bupa", ("2",), Text(("UCI:liver-disorders/bupa.data",)), groups=("lhs15",)),
    _record(
        "kr_vs_kp",
        ("won",),
        Text(("UCI:chess/king-rook-vs-king-pawn/kr-vs-kp.data",)),
        groups=("lhs15",),
        categorical=tuple(range(36)),
    ),
    _record(
        "cleveland",
        ("1", "2", "3", "4"),
        Text(("UCI:heart-disease/processed.cleveland.data",)),
        groups=("lhs15",),
        missing=6,
        variant=Variant(drop_incomplete=True),
    ),
    _record(
        "hepatitis",
        ("2",),
        Text(("UCI:hepatitis/hepatitis.data",), label=0),
        groups=("lhs15",),
        missing=167,
        variant=Variant(drop_incomplete=True),
    ),
    _record(
        "hungarian",
        ("1",),
        Text(("UCI:heart-disease/processed.hungarian.data",)),
        groups=("lhs15",),
        missing=782,
        variant=Variant(drop_columns=(10, 11, 12), drop_incomplete=True),
    ),
    _record("lsvt", ("1",), OpenML(1484), groups=("lhs15",)),
    _record(
        "musk1",
        ("1",),
        OpenML(40665, drop=("molecule_name", "conformation_name")),
        groups=("lhs15",),
    ),
    _record(
        "parkinsons",
        ("1",),
        Text(("UCI:parkinsons/parkinsons.data",), label=17, header=1, drop=(0,)),
        groups=("lhs15", "reject2"),
    ),
    _record(
        "sonar",
        ("M",),
        Text(("UCI:undocumented/connectionist-bench/sonar/sonar.all-data",)),
        groups=("lhs15",),
    ),
    _record("spect_train", ("1",), Text(("UCI:spect/SPECT.train",), label=0), groups=("lhs15",)),
    _record(
        "spect",
        ("1",),
        Text(("UCI:spect/SPECT.train", "UCI:spect/SPECT.test"), label=0),
        groups=("lhs15",),
    ),
    _record(
        "spectf",
        ("1",),
        Text(("UCI:spect/SPECTF.train", "UCI:spect/SPECTF.test"), label=0),
        groups=("lhs15",),
    ),
    _record(
        "vertebral_2c",
        ("Abnormal",),
        Text(
            ("UCI:00212/vertebral_column_data.zip",),
            member=("column_2C.dat",),
            separator=None,
            rename={"AB": "Abnormal", "NO": "Normal"},
        ),
        groups=("lhs15",),
    ),
    _record("wdbc", ("malignant",), Bundled(), groups=("online5",)),
    _record(
        "letter",
        ("A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M"),
        Text(("UCI:letter-recognition/letter-recognition.data",), label=0),
        groups=("online5",),
    ),
    _record(
        "occupancy",
        ("1",),
        Text(
            ("UCI:00357/occupancy_data.zip",),
            member=("datatraining.txt", "datatest.txt", "datatest2.txt"),
            header=1,
            drop=(0,),
        ),
        groups=("online5",),
        categorical=(0,),
        variant=Variant(drop_columns=(0,)),
    ),
    _record(
        "adult",
        (">50K",),
        Text(
            ("UCI:adult/adult.data", "UCI:adult/adult.test"),
            header=(0, 1),
            rename={"<=50K.": "<=50K", ">50K.": ">50K"},
        ),
        groups=("online5",),
        categorical=(1, 3, 5, 6, 7, 8, 9, 13),
        missing=6465,
        variant=Variant(drop_incomplete=True),
    ),
    _record("ionosphere", ("g",), Text(("UCI:ionosphere/ionosphere.data",)), groups=("reject2",)),
    _record("a9a", ("1",), Libsvm(("LIBSVM:a9a", "LIBSVM:a9a.t")), groups=("large",)),
    _record("w8a", ("1",), Libsvm(("LIBSVM:w8a",)), groups=("large",)),
    _record("phishing", ("1",), OpenML(4534), groups=("large",)),
    _record(
        "higgs_sample",
        ("1",),
        Text(
            (
                "GITHUB:microsoft/LightGBM/master/examples/binary_classification/binary.train",
                "GITHUB:microsoft/LightGBM/master/examples/binary_classification/binary.test",
            ),
            label=0,
            separator="\t",
        ),
        groups=("large",),
    ),
    _record("magic", ("g",), Text(("UCI:magic/magic04.data",)), groups=("large",)),
    _record("elec2", ("1",), OpenML(151, rename={"DOWN": "1", "UP": "0"}), groups=("large",)),
    _record(
        "covtype_sample",
        ("1",),
        Text(
            (
                "GITHUB:liquidSVM/liquidSVM/master/data/covtype.5000.train.csv",
                "GITHUB:liquidSVM/liquidSVM/master/data/covtype.5000.test.csv",
            ),
            label=0,
        ),
        groups=("large",),
    ),
)
BY_NAME: dict[str, Record] = {record.name: record for record in RECORDS}
