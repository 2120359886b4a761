"""Model cards: what a model is for, what it learned from, whom it answers, how sure it is.

A card is built from a fitted model and, where there are some, rows that it has not seen. It is
written in the Markdown of skops' cards, with the sections that skops' template names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.classifiers.reject import may_refuse
from buttress.metrics import accepted_accuracy, outcomes_by_group, rejection_rate
from buttress.report.environment import versions
from buttress.report.sections import CardSection

_CERTIFICATES = {
    "duality_gap_": "duality gap",
    "kkt_residual_": "KKT residual",
    "objective_": "objective",
    "n_iter_": "iterations",
    "solver_": "solver",
    "worst_case_accuracy_": "worst-case accuracy",
}
_UNSTATED = "Not stated by whoever made this card. Ask before you use the model for anything else."


@dataclass(frozen=True, eq=False)
class Answered:
    """What a model said to rows that it had not seen.

    Attributes
    ----------
    true, answers : ndarray of shape (n,)
    rejected : ndarray of bool of shape (n,)
    groups : mapping of str to ndarray of shape (n,)
        By column, the group of every row.
    where : str
        Which rows these are.
    """

    true: NDArray[Any]
    answers: NDArray[Any]
    rejected: NDArray[np.bool_]
    groups: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    where: str = ""


def card_sections(
    model: Any,
    *,
    answered: Answered | None = None,
    noise: Any = None,
    intended: str = "",
) -> list[CardSection]:
    """The sections of a model's card.

    Parameters
    ----------
    model : estimator
        Fitted; a `TableClassifier`, a search, or any classifier.
    answered : Answered, optional
        Its answers to rows that it has not seen.
    noise : LabelNoise or LabelSuspects, optional
        What was found about the labels; the model's own estimate when not given.
    intended : str
        What the model is for.

    Examples
    --------
    >>> import numpy as np
    >>> from buttress import LeakyHockeyStickClassifier
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> sections = card_sections(LeakyHockeyStickClassifier().fit(X, y), intended="An example.")
    >>> [section.title.rpartition("/")[2] for section in sections][:2]
    ['Model description', 'Intended uses & limitations']
    """
    outer, inner = _outer_and_inner(model)
    suspects = noise if noise is not None else getattr(inner, "suspects_", None)
    sections = [
        CardSection("Model description", _description(outer, inner)),
        CardSection("Model description/Intended uses & limitations", intended or _UNSTATED),
        _data(outer),
        *_columns(outer),
        _parameters(inner),
        _certificate(inner),
        _noise(suspects),
    ]
    if answered is not None:
        sections += _evaluation(answered)
    else:
        sections.append(
            CardSection("Evaluation results", "No rows were given to judge the model on.")
        )
    about = versions()
    sections.append(
        CardSection("Versions", "", ("", "version"), [[name, v] for name, v in about.items()])
    )
    return sections


def render_card(model: Any, sections: Sequence[CardSection], *, file: str = "model.skops") -> str:
    """The card as Markdown, by skops' `Card`, with the metadata block that model hubs read.

    Parameters
    ----------
    model : estimator
    sections : sequence of CardSection
    file : str
        Name of the model file, for the lines that load it.
    """
    try:
        from skops.card import Card
    except ImportError:
        raise ImportError("cards need skops: pip install 'buttress[export]'") from None
    card = Card(model, model_diagram=False, template=None)
    for section in sections:
        content = section.text
        if section.columns:
            content = (content + "\n\n" if content else "") + _markdown_table(section)
        card.add(**{section.title: content})
    start = f'```python\nimport buttress\n\nmodel = buttress.load("{file}")\n```'
    card.add(**{"How to get started with the model": start})
    labels = ", ".join(str(label) for label in getattr(model, "classes_", ()))
    head = (
        "---\nlibrary_name: buttress\ntags:\n- buttress\n- sklearn\n- tabular-classification\n"
        f"model_format: skops\nmodel_file: {file}\n---\n\n"
    )
    return f"{head}# Model card: {file}\n\nClasses: {labels}\n\n{card.render().strip()}\n"


def _outer_and_inner(model: Any) -> tuple[Any, Any]:
    """The model of tables, if there is one, and the estimator that answers."""
    inner = getattr(model, "estimator_", model) if hasattr(model, "encoder_") else model
    best = inner if hasattr(inner, "intercept_") else getattr(inner, "best_estimator_", inner)
    return model, best


def _description(outer: Any, inner: Any) -> str:
    doc = (type(inner).__doc__ or "").strip().split("\n\n")[0]
    says = " ".join(doc.split())
    classes = [str(label) for label in getattr(outer, "classes_", ())]
    abstains = (
        "It can refuse: `predict_or_reject` withholds an answer where one would cost too much."
        if may_refuse(inner)
        else "It always answers."
    )
    return f"`{type(inner).__name__}`: {says} Classes: {', '.join(classes)}. {abstains}"


def _data(outer: Any) -> CardSection:
    record = {str(k): v for k, v in getattr(outer, "record_", {}).items()}
    if getattr(outer, "target", None):
        record = {"target": outer.target} | record
    if len(getattr(outer, "rows_", ())):
        record.setdefault("rows", len(outer.rows_))
    record.setdefault("features", getattr(outer, "n_features_in_", ""))
    rows = [[name, str(value)] for name, value in record.items()]
    return CardSection("Model description/Training procedure/Data", "", ("", "value"), rows)


def _columns(outer: Any) -> list[CardSection]:
    encoder = getattr(outer, "encoder_", None)
    if encoder is None:
        return []
    kinds = dict.fromkeys(encoder.numeric_, "number")
    kinds |= {name: f"{len(known)} categories" for name, known in encoder.categories_.items()}
    for name in encoder.derived_columns():
        kinds[name] = "date" if name in encoder.dates_ else "free text"
    rows = [[str(name), kinds[name]] for name in encoder.feature_names_in_]
    return [
        CardSection("Model description/Training procedure/Columns", "", ("column", "kind"), rows)
    ]


def _parameters(inner: Any) -> CardSection:
    rows = [[name, str(value)] for name, value in inner.get_params(deep=False).items()]
    title = "Model description/Training procedure/Hyperparameters"
    return CardSection(title, "", ("hyperparameter", "value"), rows)


def _certificate(inner: Any) -> CardSection:
    rows = [
        [title, _number(getattr(inner, name))]
        for name, title in _CERTIFICATES.items()
        if getattr(inner, name, None) is not None
    ]
    promise = getattr(inner, "risk_certificate_", None)
    text = "How exactly the training problem was solved, recomputed from the saved model."
    if not rows:
        text = "This estimator reports no certificate of optimality."
    if promise is not None:
        text += (
            f" Promised: an error of at most {promise.target:g} among the answers, with "
            f"probability {promise.confidence:g} over the calibration rows ({promise.method}, "
            f"{promise.errors} wrong of {promise.n} answered); the bound reached is "
            f"{promise.bound:.4g}."
        )
    title = "Model description/Training procedure/Certificate"
    return CardSection(title, text, ("", "value") if rows else (), rows)


def _noise(suspects: Any) -> CardSection:
    title = "Label noise"
    if suspects is None:
        return CardSection(title, "Not looked for. `buttress suspects` lists doubtful labels.")
    noise = getattr(suspects, "noise", suspects)
    rows = [[str(label), _share(rate)] for label, rate in noise.rates_.items()]
    text = "Estimated share of wrong labels among the rows that truly belong to each class."
    if noise is not suspects:
        expected, low, high = suspects.error_counts
        text += (
            f" About {expected:.0f} of {len(suspects.scores)} labels are wrong ({low:.0f} to "
            f"{high:.0f}); {len(suspects.selected)} are named."
        )
    return CardSection(title, text, ("class", "wrong labels"), rows)


def _evaluation(answered: Answered) -> list[CardSection]:
    true, pred, rejected = answered.true, answered.answers, answered.rejected
    refused = rejection_rate(rejected, confidence=0.95)
    overall = [["rows", str(len(true))], ["refused", _share(refused)]]
    if not rejected.all():
        right = accepted_accuracy(true, pred, rejected, confidence=0.95)
        overall.append(["right among the answers", _share(right)])
    overall.append(["right if every row is answered", _number(float(np.mean(true == pred)))])
    where = answered.where or "rows that the model had not seen"
    text = f"On {where}; 95 % intervals."
    sections = [CardSection("Evaluation results", text, ("", "value"), overall)]
    groups = {"class": true, **answered.groups}
    for name, values in groups.items():
        sections.append(_by_group(name, true, pred, rejected, values))
    return sections


def _by_group(name: str, true: Any, pred: Any, rejected: Any, groups: Any) -> CardSection:
    columns = (name, "rows", "refused", "wrong among the answers", "refused more", "errs more")
    rows = [
        [
            str(one.group),
            str(one.n),
            _share(one.rejection_rate),
            _share(one.risk) if one.n_answered else "no answer",
            one.refused_more,
            one.errs_more,
        ]
        for one in outcomes_by_group(true, pred, rejected, groups)
    ]
    text = f"Who was refused, and who was answered wrongly, by {name}; compared with all others."
    return CardSection(f"Evaluation results/By {name}", text, columns, rows)


def _share(estimate: Any) -> str:
    """A share with its interval, whether it is a number or holds one."""
    value = float(getattr(estimate, "value", estimate))
    return f"{value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)


def _markdown_table(section: CardSection) -> str:
    def line(cells: Sequence[str]) -> str:
        plain = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
        return f"| {' | '.join(plain)} |"

    rule = "|" + "---|" * len(section.columns)
    return "\n".join([line(section.columns), rule, *(line(row) for row in section.rows)])
