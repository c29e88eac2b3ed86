"""The command `score`: lists of ids on every objective, from wherever they came."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datamask import catalogue
from datamask.cli.common import DONE, check_device, command_work, read_rows_of
from datamask.cli.output import board_text, print_json, score_text
from datamask.cli.parser import corpus_config
from datamask.cli.streams import print_text
from datamask.errors import OptionError
from datamask.runs.store import RunStore
from datamask.work.context import Work

if TYPE_CHECKING:
    from datamask.corpus.corpus import Corpus


def score(options: argparse.Namespace) -> int:
    """`score`: values of all objectives for id lists, and their overlaps beside what chance would give."""
    from datamask.evaluation.comparing import panel_rows
    from datamask.evaluation.id_lists import overlaps, read_rows
    from datamask.evaluation.scoring import score_selection

    if options.center and options.panel:
        raise OptionError("--center and --panel exclude each other: the panel measures the features as they are")
    check_device(options.device)
    store = RunStore(options.runs_dir)
    with command_work(sentence="scoring was stopped; nothing was written") as work:
        corpus = read_rows_of(corpus_config(options), work, None if options.panel else ())
        lists = {path: read_rows(path, corpus) for path in dict.fromkeys(options.selection)}
        own = [name for name in catalogue.objective_terms(options.objective or "facility") if catalogue.is_own(name)]

        scores = [
            {
                "selection": path,
                "unknown_ids": id_list.unknown,
                **score_selection(
                    corpus,
                    id_list.rows,
                    store.cache_dir,
                    options.device,
                    work.report,
                    work.poll,
                    center=bool(options.center),
                    components=options.components,
                    objectives=own,
                ),
            }
            for path, id_list in lists.items()
        ]
        board = (
            _board(
                corpus,
                {path: id_list.rows for path, id_list in lists.items()},
                store.cache_dir,
                options.device,
                work,
            )
            if options.panel
            else None
        )
    report: dict[str, Any] = {
        "n": len(corpus),
        "selections": scores,
        "overlaps": overlaps({path: id_list.rows for path, id_list in lists.items()}, len(corpus)),
    }
    if board is not None:
        report["scoreboard"] = board
        for entry in scores:
            entry["panel"] = panel_rows(board, entry["selection"])
    if options.json:
        print_json(report)
        return DONE
    for entry in scores:
        print_text(score_text(entry))
    for pair in report["overlaps"]:
        print_text(
            f"{pair['a']} and {pair['b']} share {pair['shared']:,} rows: overlap {pair['overlap']:.3f}, by chance "
            f"{pair['chance']:.3f}"
        )
    if board is not None:
        print_text(board_text(board))
    return DONE


def _board(corpus: Corpus, lists: dict[str, Any], cache_dir: Path, device: str, work: Work) -> dict[str, Any]:
    """The scoreboard of id lists; what each was made by stands in its file."""
    from datamask.evaluation.comparing import scoreboard
    from datamask.evaluation.id_lists import read_config
    from datamask.evaluation.verdicts import optimised_by

    configs = {path: config for path in lists if (config := read_config(path)) is not None}
    board = scoreboard(
        corpus,
        lists,
        cache_dir,
        optimised={path: optimised_by(config) for path, config in configs.items()},
        cut=True,
        device=device,
        progress=work.report,
        poll=work.poll,
    )
    if unknown := [path for path in lists if path not in configs]:
        board["notes"].append(f"How {', '.join(unknown)} came about is not known, so no measure is taken as its own.")
    return board
