"""``buttress card``: a model card, with what the model does to rows it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from buttress._words import did_you_mean
from buttress.cli._console import Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import (
    DecimalMark,
    as_table_model,
    fingerprint,
    guard_files,
    load_model,
    names,
    refuse_absent,
    refuse_decimal_commas,
)

if TYPE_CHECKING:
    from buttress.report.card import Answered
    from buttress.tables import Table

app = typer.Typer(rich_markup_mode="markdown")


@app.command()
def card(
    model: Annotated[Path, typer.Argument(help="A model saved by 'buttress fit' or save().")],
    data: Annotated[
        Path | None, typer.Option(help="Labelled rows that the model has not seen.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Their column of labels; the model's own.")
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="Columns to report errors and refusals by: sex,site.")
    ] = None,
    intended: Annotated[
        str, typer.Option(help="What the model is for, in a sentence or two.")
    ] = "",
    audit: Annotated[
        bool, typer.Option("--audit", help="Look for wrong labels in the data, too.")
    ] = False,
    decimal: DecimalMark = ".",
    out: Annotated[Path, typer.Option("--out", "-o", help="Markdown file to write.")] = Path(
        "model-card.md"
    ),
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Write a model card: data, noise found, who is refused, intended use, metrics by group.

    The card is Markdown in the format of skops' cards, with certificate and versions. Rows that
    the model learned from flatter it; the command says so when it recognises them.

    **Example:** `buttress card model.skops --data test.csv --groups site --intended "Triage."`
    """
    guard_files([model, data], {"--out": out})
    if data is None and (groups is not None or audit or target is not None):
        raise typer.BadParameter("--groups, --audit and --target need rows: give them by --data")
    from buttress._files import replacing
    from buttress.report.card import card_sections, render_card

    say = Output(json, quiet)
    with limit_threads(jobs):
        fitted, _ = load_model(model)
        answered = noise = None
        if data is not None:
            wrapped = as_table_model(fitted)
            label = wrapped.target if target is None else target
            table = _read(wrapped, data, label, decimal)
            answered = _answers(wrapped, table, label, names(groups), data)
            if audit:
                noise = _audited(wrapped, table, label, seed)
        sections = card_sections(fitted, answered=answered, noise=noise, intended=intended)
        text = render_card(fitted, sections, file=model.name)
        with replacing(out, "w") as file:
            file.write(text)
    say.say(f"wrote {out}: {len(sections)} sections")
    say.result(
        {
            "card": str(out),
            "sections": [
                {
                    "title": section.title,
                    "text": section.text,
                    "columns": list(section.columns),
                    "rows": [list(row) for row in section.rows],
                }
                for section in sections
            ],
        }
    )


def _read(model: Any, path: Path, target: str | None, decimal: str) -> Table:
    from buttress.tables import Table, column_names, read_table
    from buttress.tables.table import refuse_too_large

    if target is None:
        raise typer.BadParameter("the model does not know the column of labels: name it, --target")
    present = column_names(path, decimal=decimal)
    refuse_absent(path, target, present, "--target")
    encoder = model.encoder_
    text = [name for name in present if name in encoder.categories_]
    table = read_table(path, target=target, text=text, decimal=decimal)
    numbers = [name for name in encoder.numeric_ if name in table.columns]
    numeric = Table({name: table[name] for name in numbers})
    refuse_decimal_commas(path, numeric, decimal)
    refuse_too_large(numeric, str(path))
    known = [i for i, label in enumerate(table[target]) if label is not None]
    return table.take(known)


def _answers(model: Any, table: Table, target: str, groups: list[str], data: Path) -> Answered:
    import numpy as np

    from buttress.report.card import Answered
    from buttress.tables.table import as_text, lacking

    for name in groups:
        refuse_absent(data, name, table.names, "--groups")
    features = table.without(target)
    unknown = [name for name in features.names if name not in model.feature_names_in_]
    features = features.without(*unknown)
    absent = [name for name in model.feature_names_in_ if name not in features.columns]
    if absent:
        hint = did_you_mean(absent[0], unknown)
        raise typer.BadParameter(f"{data}: {lacking(absent)} in the data{hint}")
    true = np.array([str(label) for label in table[target]])
    answers = np.array([str(label) for label in model.predict(features)])
    where = f"the {len(true)} rows of {data.name}"
    if getattr(model, "record_", {}).get("data sha256") == fingerprint(data):
        where += ", which the model was trained on: new rows will fare worse"
    by = {name: np.array(["" if v is None else v for v in as_text(table[name])]) for name in groups}
    return Answered(true, answers, model.reject(features), by, where)


def _audited(model: Any, table: Table, target: str, seed: int) -> Any:
    import numpy as np

    from buttress import LabelAudit

    features = table.without(
        *[name for name in table.names if name not in set(model.feature_names_in_)]
    )
    labels = np.array([str(label) for label in table[target]])
    return LabelAudit(random_state=seed).audit(model.encode(features), labels)
