"""The command `explain`: why samples are in a run's selection, or not, one by one or in bulk."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from datamask.cli.common import DONE, command_work
from datamask.cli.output import check_output, print_json, say
from datamask.cli.own import check_typed
from datamask.cli.streams import print_text
from datamask.errors import InputError, OptionError
from datamask.runs.store import RunStore
from datamask.tables import OF_ROWS, score_name, with_fields, write_table

if TYPE_CHECKING:
    from datamask.analyses.explanation.compute import Explanation
    from datamask.corpus.corpus import Corpus

AT_ONCE = 500
WITNESS_WORDS = {
    "covers": "covers",
    "would cover": "would cover",
    "dimension": "dimension",
}


def explain(options: argparse.Namespace) -> int:
    """`explain`: RUN, then ids, or a file of ids, or all rows of the corpus."""
    if sum((bool(options.sample), options.ids is not None, options.all)) != 1:
        raise OptionError("explain needs ids after RUN, or --ids FILE, or --all; give one of them")
    if (options.all or options.ids) and not (options.output or options.json):
        raise OptionError("--ids and --all explain in bulk: give --output OUT.parquet, or --json")
    run = RunStore(options.runs_dir).get(options.run)
    check_typed(run, options.objective)
    output = None if options.output is None else check_output(options.output, run.config.corpus.inputs, among=OF_ROWS)
    from datamask.analyses.explanation.compute.explained_run import explainer_of
    from datamask.evaluation.id_lists import read_rows

    with command_work() as work:
        explainer = explainer_of(run, work.part(0.0, 0.5))
        corpus = explainer.pool.corpus
        say(corpus.provenance.notes[0])
        if options.all:
            rows = np.arange(len(corpus))
        elif options.ids is not None:
            rows = read_rows(options.ids, corpus).rows
        else:
            rows = _rows_of(options.sample, corpus)
        explanations: list[Explanation] = []
        for part in _parts(rows):
            explanations += explainer.explain(part, poll=work.poll)
            work.report(0.5 + 0.5 * len(explanations) / len(rows), f"{len(explanations):,} of {len(rows):,} rows")
    if output is not None:
        _write(explanations, corpus, output)
    if options.json:
        print_json(
            {
                "run_id": run.id,
                "exceptions": explainer.exceptions,
                "sd": explainer.sd,
                "output": output,
                "samples": [_plain(explanation, corpus) for explanation in explanations],
            }
        )
    elif output is None:
        print_text("\n\n".join(_text(explanation, corpus) for explanation in explanations))
    else:
        print_text(f"{len(explanations):,} explanations: {output}")
    if explainer.exceptions:
        say(
            f"{explainer.exceptions:,} of {len(corpus):,} rows lie on the other side of the threshold than their "
            "score says: the learner stopped, rounded or swapped there"
        )
    return DONE


def _parts(rows: np.ndarray) -> Iterator[list[int]]:
    left = iter(rows.tolist())
    while part := list(islice(left, AT_ONCE)):
        yield part


def _rows_of(ids: Sequence[str], corpus: Corpus) -> np.ndarray:
    """The rows of ids given as words.

    Raises:
        InputError: an id is not in the corpus.
    """
    place = {str(sample_id): row for row, sample_id in enumerate(corpus.ids.to_pylist())}
    unknown = [word for word in ids if word not in place]
    if unknown:
        raise InputError(f"{unknown[0]!r} is not an id of the corpus; its ids are such as {next(iter(place))!r}")
    return np.array([place[word] for word in dict.fromkeys(ids)])


def _id_of(row: int, corpus: Corpus) -> Any:
    return corpus.ids[row].as_py() if row >= 0 else None


def _plain(explanation: Explanation, corpus: Corpus) -> dict[str, Any]:
    """An explanation for JSON, its rows as ids."""
    plain = explanation.to_dict()
    plain["nearest_selected"] = _id_of(explanation.nearest_selected, corpus)
    plain["copy_of"] = _id_of(explanation.copy_of, corpus)
    for witnesses in plain["witnesses"].values():
        for witness in witnesses:
            if witness["kind"] != "dimension":
                witness["id"] = _id_of(witness["row"], corpus)
    return plain


def _write(explanations: Sequence[Explanation], corpus: Corpus, output: str) -> None:
    """One row per sample, one column per part."""
    import pyarrow as pa

    id_column = corpus.provenance.columns["id"]
    names = [part.name for part in explanations[0].parts] if explanations else []
    table = pa.table(
        {
            id_column: corpus.ids.take(pa.array([sample.row for sample in explanations], pa.int64())),
            "selected": [sample.selected for sample in explanations],
            "state": [sample.state for sample in explanations],
            score_name(corpus.input_columns): [sample.score for sample in explanations],
            "threshold": [sample.threshold for sample in explanations],
            "margin": [sample.margin for sample in explanations],
            **{
                f"part_{name.replace(' ', '_')}": [sample.parts[place].value for sample in explanations]
                for place, name in enumerate(names)
            },
            "nearest_selected": corpus.ids.take(
                pa.array(
                    [sample.nearest_selected if sample.nearest_selected >= 0 else None for sample in explanations],
                    pa.int64(),
                )
            ),
            "nearest_similarity": [sample.nearest_similarity for sample in explanations],
            "copy_of": corpus.ids.take(
                pa.array([sample.copy_of if sample.copy_of >= 0 else None for sample in explanations], pa.int64())
            ),
            "sentence": [sample.sentence for sample in explanations],
        }
    )
    ids = [id_column, "nearest_selected", "copy_of"]
    write_table(output, with_fields(table, *(corpus.id_field.with_name(name) for name in ids)), ids)


def _text(sample: Explanation, corpus: Corpus) -> str:
    """One sample for people."""
    lines = [f"{sample.id}: {sample.sentence}", ""]
    width = max(len(part.name) for part in sample.parts)
    lines += [f"  {part.name:<{width}}  {part.value:+.3e}" for part in sample.parts]
    lines.append(
        f"  {'score - threshold':<{width}}  {sample.score - sample.threshold:+.3e}, {sample.margin:+.2f} standard "
        "deviations of all scores"
    )
    if sample.nearest_selected >= 0:
        lines.append(
            f"  Nearest selected: {_id_of(sample.nearest_selected, corpus)}, cosine {sample.nearest_similarity:.3f}"
        )
    for objective, witnesses in sample.witnesses.items():
        for witness in witnesses[:5]:
            what = witness.row if witness.kind == "dimension" else _id_of(witness.row, corpus)
            cosine = "" if witness.similarity is None else f", cosine {witness.similarity:.3f}"
            other = "" if witness.otherwise is None else f" (otherwise {witness.otherwise:.3f})"
            lines.append(f"  {objective}: {WITNESS_WORDS[witness.kind]} {what}{cosine}{other}, {witness.amount:+.3e}")
        if sample.witness_counts[objective] > 5:
            lines.append(f"  {objective}: and {sample.witness_counts[objective] - 5:,} more")
    return "\n".join(lines)
