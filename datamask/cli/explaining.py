"""The command `explain`: why samples are in a run's selection, or not, one by one or in bulk."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datamask.cli.common import DONE, stop_on_signals
from datamask.cli.output import Progress, check_output, print_json, say
from datamask.cli.own import check_typed
from datamask.errors import InputError, OptionError, poll_of
from datamask.runs.store import RunStore

if TYPE_CHECKING:
    from datamask.corpus.corpus import Corpus
    from datamask.evaluation.explaining import Explanation

AT_ONCE = 500
WITNESS_WORDS = {
    "covers": "covers",
    "would cover": "would cover",
    "similar": "similar and selected",
    "dimension": "dimension",
}


def explain(options: argparse.Namespace) -> int:
    """`explain`: RUN, then ids, or a file of ids, or all rows of the corpus."""
    if sum((bool(options.sample), options.ids is not None, options.all)) != 1:
        raise OptionError("explain needs ids after RUN, or --ids FILE, or --all; give one of them")
    if (options.all or options.ids) and not (options.output or options.json):
        raise OptionError("--ids and --all explain in bulk: give --output OUT.parquet (or .csv), or --json")
    run = RunStore(options.runs_dir).get(options.run)
    check_typed(run, options.objective)
    output = None if options.output is None else _checked(options.output, run.config.corpus.inputs)
    from datamask.evaluation.id_lists import read_rows
    from datamask.runs.explaining import explainer_of

    with stop_on_signals() as stop, Progress() as progress:
        explainer = explainer_of(run, progress=lambda share, what: progress(0.5 * share, what), should_stop=stop.is_set)
        corpus = explainer.pool.corpus
        if options.all:
            rows = np.arange(len(corpus))
        elif options.ids is not None:
            rows = read_rows(options.ids, corpus).rows
        else:
            rows = _rows_of(options.sample, corpus)
        told: list[Explanation] = []
        for part in _parts(rows):
            told += explainer.explain(part, poll=poll_of(stop.is_set, "explaining was stopped; nothing was written"))
            progress(0.5 + 0.5 * len(told) / len(rows), f"{len(told):,} of {len(rows):,} samples")
    if output is not None:
        _write(told, corpus, output)
    if options.json:
        print_json(
            {
                "run_id": run.id,
                "exceptions": explainer.exceptions,
                "sd": explainer.sd,
                "output": output,
                "samples": [_plain(one, corpus) for one in told],
            }
        )
    elif output is None:
        print("\n\n".join(_text(one, corpus) for one in told))
    else:
        print(f"{len(told):,} explanations: {output}")
    if explainer.exceptions:
        say(
            f"{explainer.exceptions:,} of {len(corpus):,} samples lie on the other side of the threshold than their "
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
    place = {str(found): row for row, found in enumerate(corpus.ids.to_pylist())}
    unknown = [word for word in ids if word not in place]
    if unknown:
        raise InputError(f"{unknown[0]!r} is not an id of the corpus; its ids are such as {next(iter(place))!r}")
    return np.array([place[word] for word in dict.fromkeys(ids)])


def _checked(output: str, inputs: Sequence[str]) -> str:
    """Raises: OptionError: neither .parquet nor .csv, or not a place to write to."""
    if Path(output).suffix.lower() not in (".parquet", ".csv"):
        raise OptionError(f"--output must end in .parquet or .csv, got {output!r}")
    return check_output(output, inputs)


def _id_of(row: int, corpus: Corpus) -> Any:
    return None if row < 0 else corpus.ids[row].as_py()


def _plain(told: Explanation, corpus: Corpus) -> dict[str, Any]:
    """An explanation for JSON, its rows as ids."""
    plain = told.to_dict()
    plain["nearest_selected"] = _id_of(told.nearest_selected, corpus)
    plain["copy_of"] = _id_of(told.copy_of, corpus)
    for found in plain["witnesses"].values():
        for witness in found:
            if witness["kind"] != "dimension":
                witness["id"] = _id_of(witness["row"], corpus)
    return plain


def _write(told: Sequence[Explanation], corpus: Corpus, output: str) -> None:
    """One row per sample, one column per part, to parquet or CSV."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from datamask.files import replacing
    from datamask.runs.exports import table_csv

    names = [part.name for part in told[0].parts] if told else []
    table = pa.table(
        {
            corpus.provenance.columns["id"]: corpus.ids.take(pa.array([one.row for one in told], pa.int64())),
            "selected": [one.selected for one in told],
            "state": [one.state for one in told],
            "score": [one.score for one in told],
            "threshold": [one.threshold for one in told],
            "margin": [one.margin for one in told],
            **{
                f"part_{name.replace(' ', '_')}": [one.parts[place].value for one in told]
                for place, name in enumerate(names)
            },
            "nearest_selected": corpus.ids.take(
                pa.array([one.nearest_selected if one.nearest_selected >= 0 else None for one in told], pa.int64())
            ),
            "nearest_similarity": [one.nearest_similarity for one in told],
            "copy_of": corpus.ids.take(
                pa.array([one.copy_of if one.copy_of >= 0 else None for one in told], pa.int64())
            ),
            "sentence": [one.sentence for one in told],
        }
    )
    with replacing(output) as path:
        if output.lower().endswith(".csv"):
            path.write_bytes(table_csv(table))
        else:
            pq.write_table(table, path)


def _text(told: Explanation, corpus: Corpus) -> str:
    """One sample for people."""
    lines = [f"{told.id}: {told.sentence}", ""]
    width = max(len(part.name) for part in told.parts)
    lines += [f"  {part.name:<{width}}  {part.value:+.3e}" for part in told.parts]
    lines.append(
        f"  {'score - threshold':<{width}}  {told.score - told.threshold:+.3e}, {told.margin:+.2f} standard "
        "deviations of all scores"
    )
    if told.nearest_selected >= 0:
        lines.append(
            f"  Nearest selected: {_id_of(told.nearest_selected, corpus)}, cosine {told.nearest_similarity:.3f}"
        )
    for objective, found in told.witnesses.items():
        for witness in found[:5]:
            what = witness.row if witness.kind == "dimension" else _id_of(witness.row, corpus)
            cosine = "" if witness.similarity is None else f", cosine {witness.similarity:.3f}"
            other = "" if witness.otherwise is None else f" (otherwise {witness.otherwise:.3f})"
            lines.append(f"  {objective}: {WITNESS_WORDS[witness.kind]} {what}{cosine}{other}, {witness.amount:+.3e}")
        if told.witness_counts[objective] > 5:
            lines.append(f"  {objective}: and {told.witness_counts[objective] - 5:,} more")
    return "\n".join(lines)
