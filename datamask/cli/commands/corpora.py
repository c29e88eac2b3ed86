"""Options of the commands on a corpus itself: open, prepare, copies."""

from __future__ import annotations

import argparse

from datamask.cli.arguments import OUTPUT, add_corpus, add_device, add_inputs, add_json, add_option, add_runs_dir, whole
from datamask.options import CORPUS_OPTIONS
from datamask.tables import ROWS_FILE


def add_open(parser: argparse.ArgumentParser) -> None:
    """Add the options of `open`."""
    group = parser.add_argument_group("Server")
    group.add_argument("--port", type=whole, metavar="N", help="port to listen on (STREAMLIT_SERVER_PORT, else 8501)")
    add_runs_dir(group, "--runs")
    add_corpus(parser)


def add_prepare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `prepare`."""
    add_inputs(parser)
    parser.add_argument("--output", required=True, metavar="FOLDER", help="folder for the prepared shards")
    parser.add_argument("--text_column", metavar="NAME", help="column with the texts (text)")
    parser.add_argument("--id_column", metavar="NAME", help="column with the ids (found by name, else ids are made)")
    for name in ("make_ids", "split", "drop_invalid"):
        add_option(parser, CORPUS_OPTIONS[name])
    parser.add_argument(
        "--embedder",
        default="tfidf",
        metavar="EMBEDDER",
        help="what makes the features: tfidf; model2vec:PATH, a static embedding model in a local folder; "
        "st:NAME_OR_PATH, a sentence-transformers model; or MODULE:FUNCTION, your function from a list of texts to an "
        "array (tfidf)",
    )
    add_device(parser)
    parser.add_argument(
        "--tokenizer", metavar="PATH", help="tokenizer.json that counts the tokens (an estimate by script)"
    )
    parser.add_argument("--dim", type=whole, metavar="D", help="dimensions of tfidf features (256)")
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="seed of the tfidf features (0)")
    add_json(parser)


def add_copies(parser: argparse.ArgumentParser) -> None:
    """Add the options of `copies`."""
    group = parser.add_argument_group("Duplicates")
    group.add_argument(
        "--cosine",
        type=float,
        default=0.95,
        metavar="C",
        help="cosine of semantic duplicates, at least (0.95)",
    )
    group.add_argument(
        "--remove",
        metavar=ROWS_FILE,
        help="write the rows without semantic duplicates: of each group the one with the highest quality is kept",
    )
    group.add_argument(
        "--pairs",
        metavar=ROWS_FILE,
        help="write a line for each row that --remove leaves out: its id, the id that is kept, and their cosine",
    )
    group.add_argument(
        "--exact",
        action="store_true",
        help="with --remove or --pairs: exact duplicates alone, rows with the same text (without a text column, the "
        "same features) (off)",
    )
    output = parser.add_argument_group(OUTPUT)
    add_runs_dir(output)
    add_json(output)
    add_corpus(parser)
