"""Reports are built from what the search has found, and say what was measured how."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_moons

from buttress.metrics import cost_on_noisy_labels
from buttress.model_selection import Judged, Measure
from buttress.model_selection.candidates import Request
from buttress.model_selection.cost_model import Size
from buttress.model_selection.planning import Planner
from buttress.model_selection.racing import RaceRules
from buttress.report import (
    Report,
    class_table,
    demonstration,
    fit_report,
    refusals_section,
    render,
    true_labels_section,
)
from buttress.report.fitted import left_by_itself
from buttress.report.truth import score_on_true_labels, wrong_label_shares
from buttress.tables import Table
from buttress.tables.automatic import choose_model


@pytest.fixture(scope="module")
def chosen():
    X, y = make_moons(160, noise=0.3, random_state=0)
    labels = np.array(["no", "yes"])[y]
    table = Table({"a": X[:, 0], "b": X[:, 1]})
    planner = Planner(Size(160, 2), 60, folds=3, speed=1e3, clock=lambda: 0.0)
    planner.tunes_in_folds = lambda kinds, rows: False
    request = Request(folds=3)
    rules = RaceRules(planner, request=request, jobs=1)
    found = choose_model(table, labels, ["leaky", "ramp"], rules)
    return table, labels, found, request


def asked(request, found):
    score = score_on_true_labels(found.judged, Measure())
    return {"measure": Measure(), "request": request, "folds": 3, "on_true_labels": score}


def test_the_report_reuses_the_searches(chosen, monkeypatch):
    table, labels, found, request = chosen

    def never(*arguments, **options):
        raise AssertionError("a report of these models needs no search")

    monkeypatch.setattr("buttress.report.fitted.make_candidate", never)
    page = fit_report("a/b.csv", table, labels, found, **asked(request, found))
    assert page.title.startswith("b.csv: ")
    assert page.path is not None
    assert page.comparison.names == ["leaky hockey stick", "ramp", "plain SVC"]
    text = render(page)
    assert "The parameters were chosen once on all rows compared" in text
    assert "The saved model was fitted to all 160 rows with the exact kernel." in text


def test_what_was_dropped_is_marked_and_said_once(chosen):
    table, labels, found, request = chosen
    late = "dropped after 1 of 3 folds"
    judged = [
        replace(each, dropped="" if each.kind == found.kind else late) for each in found.race.judged
    ]
    raced = replace(found, race=replace(found.race, judged=judged))
    page = fit_report("b.csv", table, labels, raced, **asked(request, raced))
    assert sum(name.endswith(" (dropped)") for name in page.comparison.names) == 2
    assert page.comparison.how.count("Dropped after 1 of 3 folds") == 1


def test_refusals_of_the_model_stand_beside_those_of_hindsight(chosen):
    judged = chosen[2].judged
    assert left_by_itself(judged) == ""
    refused = np.arange(len(judged.rows)) < 7
    assert "left 7 of 160 unanswered" in left_by_itself(replace(judged, rejected=refused))


def test_without_a_ramp_one_is_searched_for_the_suspects(chosen):
    table, labels, found, request = chosen
    searches = {"leaky": found.race.searches["leaky"]}
    bare = replace(found, race=replace(found.race, searches=searches))
    page = fit_report("b.csv", table, labels, bare, **asked(request, bare))
    assert page.suspects.n_rows == 160


def test_a_model_may_be_judged_on_rows_that_were_not_compared(chosen):
    table, labels, found, request = chosen
    assert len(found.judged.rows) == 160
    part = replace(found, race=replace(found.race, rows=np.arange(100)))
    page = fit_report("b.csv", table, labels, part, **asked(request, part))
    assert page.suspects.n_rows == 100
    assert sum(page.classes.rows) == 160


def test_classes_add_up(chosen):
    _, labels, found, _ = chosen
    shown = class_table(found.judged)
    np.testing.assert_array_equal(
        np.add(np.add(shown.right, shown.wrong), shown.rejected), shown.rows
    )
    assert dict(zip(shown.names, shown.recall, strict=True)) == found.judged.recalls()
    assert sum(shown.rows) == len(labels)


@pytest.mark.parametrize("d", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.4])
def test_the_corrected_cost_rejects_the_same_rows(d, rate):
    error = np.linspace(0, 1, 1001)
    contradicted = rate + (1 - 2 * rate) * error
    worth = contradicted > cost_on_noisy_labels(d, rate) + 1e-12
    np.testing.assert_array_equal(worth, error > d + 1e-12)


@pytest.mark.parametrize(("d", "rate"), [(0.0, 0.1), (0.6, 0.1), (0.2, -0.1), (0.2, 1.0)])
def test_impossible_costs_and_rates_are_refused(d, rate):
    with pytest.raises(ValueError, match="out of range"):
        cost_on_noisy_labels(d, rate)


@pytest.mark.parametrize("name", ["accuracy", "balanced-accuracy", "cost"])
def test_true_labels_are_estimated_beside_those_given(name):
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    true = np.where(x + 0.2 * rng.normal(size=600) > 0, "yes", "no")
    given = np.where(rng.random(600) < 0.2, np.where(true == "yes", "no", "yes"), true)
    answers = np.where(x > 0, "yes", "no")
    judged = Judged(
        "a", "A", np.arange(600), given, answers, np.abs(x) < 0.1, x, np.zeros(600, int), 1.0
    )
    measure = Measure(name)
    found = true_labels_section(judged, measure, score_on_true_labels(judged, measure))
    truth = measure.value(replace(judged, true=true))
    assert found.given[0] == pytest.approx(measure.value(judged))
    assert found.estimated[1] <= truth <= found.estimated[2]
    assert found.estimated[2] < found.given[1]
    assert all(abs(rate - 0.2) < 0.08 for rate, _, _ in found.rates.values())
    assert "on true labels, estimated" in render(Report("a", truth=found))


def test_rankings_and_tiny_classes_are_not_carried_over(chosen):
    judged = chosen[2].judged
    f1 = Measure("f1")
    score = score_on_true_labels(judged, f1)
    assert true_labels_section(judged, f1, score) is None
    assert set(wrong_label_shares(score)) == {"no", "yes"}  # which need no measure
    few = np.concatenate([np.flatnonzero(judged.true == "no"), [np.argmax(judged.true == "yes")]])
    assert score_on_true_labels(judged.take(few), Measure()) is None
    assert true_labels_section(judged.take(few), Measure(), None) is None
    assert wrong_label_shares(None) == {}


# -- the demonstration -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown():
    return demonstration.run_demonstration([0, 1], jobs=1)


def test_only_malignant_training_labels_are_wrong():
    split = demonstration.make_split(4)
    assert (split.y_clean[split.wrong] == "malignant").all()
    share = split.wrong.sum() / (split.y_clean == "malignant").sum()
    assert share == pytest.approx(demonstration.MISSED, abs=0.01)


def test_sentences_say_when_chance_would_do(shown):
    cost = Measure("cost", demonstration.D)
    sentences = demonstration.findings(shown)
    assert len(sentences) == len(shown.judged) - 1
    for kind, sentence in zip([k for k in shown.judged if k != "svc"], sentences, strict=True):
        measure = cost if shown.judged[kind][0].rejected.any() else Measure()
        gap = shown.against_svc(kind, measure)
        assert gap.low <= gap.value <= gap.high
        assert ("chance alone" in sentence) == (gap.low <= 0 <= gap.high)


def test_intervals_are_those_of_nadeau_and_bengio(shown):
    from scipy import stats

    values = shown.values("noise-aware", Measure())
    split = shown.splits[0]
    spread = np.sqrt((1 / 2 + len(split.y_test) / len(split.y_train)) * np.var(values, ddof=1))
    found = shown.interval(values)
    half = stats.t.ppf(0.975, 1) * spread
    np.testing.assert_allclose([found.low, found.high], values.mean() + np.array([-half, half]))


def test_abstaining_changes_what_is_answered_and_nothing_else(shown):
    for same, other in zip(shown.judged["noise-aware"], shown.judged["abstaining"], strict=True):
        np.testing.assert_array_equal(same.answers, other.answers)
        np.testing.assert_array_equal(same.scores, other.scores)
        assert not same.rejected.any()
        assert other.rejected.any()
    from buttress import NoiseAwareClassifier
    from buttress.report.demonstration import D, make_split

    split = make_split(0)
    model = shown.models["abstaining"]
    X = model.encoder_.transform(split.X_train)
    fitted = NoiseAwareClassifier(random_state=0, d=D).fit(X, split.y_train)
    np.testing.assert_array_equal(fitted.thresholds_, model.estimator_.thresholds_)


def test_the_list_stands_beside_the_truth(shown):
    section, flagged, found = demonstration.wrong_labels(shown)
    split = shown.splits[0]
    assert section.columns[-1] == "true"
    for row in section.rows:
        assert row[-1] == split.y_clean[row[0] - 1]
    hits = sum(row[-1] != row[1] for row in section.rows)
    assert (found["listed"], found["found"]) == (len(section.rows), hits)
    assert flagged.sum() == len(section.rows)
    page = render(demonstration.demonstration_report(shown, section, flagged, [0, 1]))
    assert "Mean over 2 random halves" in page


def test_refusals_fall_on_groups_and_have_reasons():
    rng = np.random.default_rng(0)
    n = 400
    X, hard = rng.normal(size=(n, 2)), rng.uniform(size=n) < 0.5
    score = X[:, 0] * np.where(hard, 0.3, 3.0)
    true = np.where(X[:, 0] + np.where(hard, 1.0, 0.1) * rng.normal(size=n) > 0, "yes", "no")
    said = np.where(score > 0, "yes", "no")
    rows = rng.permutation(n)  # answers come in the order of the folds
    table = Table({"x": X[:, 0], "site": np.where(hard, "hard", "easy").astype(object)})
    nothing = np.zeros(n, dtype=bool)
    folds = np.zeros(n, dtype=int)
    plain = Judged(
        "svc", "plain SVC", rows, true[rows], said[rows], nothing, score[rows], folds, 0.0
    )
    found = refusals_section(plain, table, X[rows], Measure(d=0.2))
    assert "answers every row" in found.how
    kept = {(column, value): row for column, value, *row in found.groups}
    assert set(kept) == {("label", "no"), ("label", "yes"), ("site", "easy"), ("site", "hard")}
    assert "refused: more" in kept["site", "hard"][-1]
    assert kept["site", "easy"][0] + kept["site", "hard"][0] == n
    # the share refused is that of the rows named
    refuser = replace(plain, rejected=hard[rows])
    by_site = {v: row for c, v, *row in refusals_section(refuser, table, X[rows], Measure()).groups}
    assert by_site["hard"][1][0] == 1.0
    assert by_site["easy"][1][0] == 0.0
    asked = refusals_section(refuser, table, X[rows], Measure())
    assert sum(asked.reasons.values()) == asked.n_refused == hard.sum()
    assert all(hard[row - 1] for row, _, _ in asked.examples)
    page = render(Report(title="x", refusals=asked))
    assert "Who gets no answer, and why" in page
    assert "site = hard" in page
    sure = replace(plain, answers=plain.true)
    assert refusals_section(sure, table, X[rows], Measure()) is None
