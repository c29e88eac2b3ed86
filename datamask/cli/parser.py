"""The command line's words: every option of every command, and how they become a `RunConfig`.

Options are spelled with underscores here, as the paper does; `parse` accepts hyphens as well. Values are checked by
`datamask.config`, whose sentences name the option; what argparse itself refuses is turned into one sentence too.
"""

from __future__ import annotations

import argparse
import difflib
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import NoReturn

from datamask import __version__, catalogue
from datamask.ablation.question import LEAST_SEEDS, METHODS, SEEDS
from datamask.cli.arguments import (
    add_corpus,
    add_inputs,
    add_json,
    add_option,
    add_options,
    add_run,
    add_runs_dir,
    add_selection,
    given_values,
    whole,
)
from datamask.cli.streams import print_text
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.config.lambda_question import LAMBDAS
from datamask.config.run import MEASURING
from datamask.errors import OptionError
from datamask.options import CORPUS_OPTIONS, OPTIONS
from datamask.recipes.apply import KINDS
from datamask.runs.export_table import EXPORTS
from datamask.runs.varying import STUDIES, variable


class HelpLines(argparse.RawDescriptionHelpFormatter):
    """Help whose lines end between words: ``soft-quality`` in two halves is not found by whoever looks for it."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """argparse whose complaints are one-sentence `OptionError`s."""

    def error(self, message: str) -> NoReturn:
        message = re.sub(r"^argument (\S+?)(?:/\S+)*: ", r"\1 ", message)
        message = re.sub(r"^the following arguments are required: (.*)", r"\1 is required", message)
        message = re.sub(r" expected one argument$", " needs a value", message)
        message = re.sub(r"^unrecognized arguments: (.*)", r"too many words: \1", message)
        raise OptionError(message)

    def _print_message(self, message: str, file: object = None) -> None:
        # the one way out of help and version; argparse's own says nothing where they are lost
        print_text(message.rstrip("\n"))

    def refuse_unknown(self, words: Sequence[str]) -> None:
        """Before anything else is checked, so that a misspelled option is not reported as another one missing.

        Raises:
            OptionError: a word looks like an option and is none.
        """
        for word in words:
            name = word.split("=")[0]
            if name.startswith("--") and name not in self._option_string_actions:
                near = difflib.get_close_matches(name, self._option_string_actions, 1)
                hint = f"; did you mean {near[0]}?" if near else f"; `{self.prog} --help` lists what there is"
                raise OptionError(f"{name} is not an option of `{self.prog}`{hint}")


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Read the words after ``python -m datamask``; the result's `command` names what to do.

    Raises:
        OptionError: a word that no option knows, a missing one, or a value of the wrong kind.
        SystemExit: after printing help or version.
    """
    words = list(words)
    name = next((n for n in sorted(COMMANDS, key=len, reverse=True) if words[: len(n.split())] == n.split()), None)
    if name is None:
        _without_command(words)
    build, about = COMMANDS[name]
    parser = Parser(
        prog=f"datamask {name}",
        description=about,
        allow_abbrev=False,
        formatter_class=HelpLines,
        epilog="Every option may be written with hyphens or underscores.",
    )
    build(parser)
    places = " ".join(f"{action.metavar}{'...' if action.nargs else ''}" for action in parser._get_positional_actions())
    parser.usage = f"datamask {name} {places} [options]".replace("  ", " ")
    words = _underscored(words[len(name.split()) :])
    if "--" in words:
        # argparse forgets a bare -- when words are intermixed; what follows it are inputs, whatever they look like
        place = words.index("--")
        words[place:] = [f"--input={word}" for word in words[place + 1 :]]
    parser.refuse_unknown(words)
    # intermixed, so that `select A.parquet --output O.parquet B.parquet` reads both files
    options = parser.parse_intermixed_args(words)
    options.command = name
    return options


def run_config(options: argparse.Namespace) -> RunConfig:
    """What `select` was asked for, defaults filled in.

    Raises:
        OptionError: an option out of range, or not one of the chosen estimator.
    """
    selection = SelectionConfig.from_options(**given_options(options))
    return RunConfig(corpus_config(options, selection.seed), selection, options.name or "", options.notes or "")


def given_options(options: argparse.Namespace) -> dict[str, object]:
    """The options of a selection as they were given, None where not."""
    return {name: getattr(options, option.word) for name, option in OPTIONS.items()}


def corpus_config(options: argparse.Namespace, seed: int = 0) -> CorpusConfig:
    """Which rows were asked for; `seed` is used where `--row_seed` was not given."""
    return CorpusConfig(**{"seed": seed, **given_values(options, CORPUS_OPTIONS), "inputs": inputs(options)})


def import_config(options: argparse.Namespace) -> RunConfig:
    """What `runs import` was asked for; the ratio is found when the list is read.

    Raises:
        OptionError: an option out of range.
    """
    given = {name: value for name in MEASURING if (value := getattr(options, name)) is not None}
    selection = SelectionConfig(**given, estimator=catalogue.IMPORTED.name)
    return RunConfig(
        corpus_config(options, selection.seed),
        selection,
        options.name or "",
        options.notes or "",
        options.ids,
        options.ignore_unknown,
    )


def inputs(options: argparse.Namespace) -> tuple[str, ...]:
    """Positional inputs, then those of `--input`.

    Raises:
        OptionError: there are none.
    """
    paths = (*options.inputs, *options.input)
    if not paths:
        raise OptionError(f"INPUT is required: `datamask {options.command}` needs at least one file, folder or glob")
    return paths


# -- the commands ------------------------------------------------------------------------------------------------------


def _select(parser: Parser) -> None:
    add_corpus(parser)
    parser.add_argument("--output", required=True, metavar="OUT.parquet", help="where the selection goes")
    parser.add_argument(
        "--weights",
        metavar="OUT.csv|OUT.parquet",
        help="also write how often to repeat each sample: inclusion weights, and whole counts in proportion",
    )
    _add_repeats(parser)
    add_selection(parser)
    add_run(parser)
    _add_detach(parser)


def _add_repeats(parser: Parser) -> None:
    parser.add_argument(
        "--repeats",
        type=whole,
        metavar="N",
        help="what the counts of --weights add to, in samples (as many as are selected)",
    )
    parser.add_argument(
        "--repeat_tokens",
        metavar="TOKENS",
        help="what the samples of --weights hold together, each as often as it is repeated, such as 10B",
    )


def _plan(parser: Parser) -> None:
    add_corpus(parser)
    parser.add_argument(
        "--machines", type=whole, default=8, metavar="N", help="also say how long it takes on so many machines (8)"
    )
    parser.add_argument(
        "--tokens", default="15T", metavar="TOKENS", help="also plan for a corpus of so many tokens, such as 300G (15T)"
    )
    add_selection(parser)
    add_json(parser)


def _resume(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run id, as `runs list` shows it")
    parser.add_argument("--output", metavar="OUT.parquet", help="where the selection goes (as the run was given)")
    _add_own(parser)
    _add_detach(parser)
    add_runs_dir(parser)
    add_json(parser)


def _add_detach(parser: Parser) -> None:
    parser.add_argument(
        "--detach",
        action="store_true",
        help="do it in a process of its own, which goes on when this command, its terminal or its login ends, and "
        "print the run's id; `runs show` and the dashboard show how it stands, `runs stop` ends it",
    )


def _add_own(parser: Parser) -> None:
    parser.add_argument(
        "--objective",
        metavar="module:Class",
        help="needed again where the run uses an objective of your own, whose code nothing else loads",
    )


def _sweep(parser: Parser) -> None:
    add_corpus(parser)
    parser.add_argument(
        "--vary",
        action="append",
        default=[],
        required=True,
        metavar="OPTION=VALUES",
        help="START:STOP:COUNT, as in lamb=0:1:11, or a list, as in seed=0,1,2; several --vary span "
        f"their cross product. Of {', '.join(variable())}",
    )
    parser.add_argument(
        "--seeds",
        type=whole,
        default=1,
        metavar="N",
        help="where the seed is not varied, so many seeds for every point that is random (1)",
    )
    parser.add_argument("--output", metavar="OUT", help="the table of points, as .parquet, .csv or .json")
    add_selection(parser)
    add_run(parser)


def _study(parser: Parser) -> None:
    parser.add_argument("kind", metavar="KIND", help=f"one of {', '.join(STUDIES)}")
    add_corpus(parser)
    parser.add_argument("--output", metavar="FOLDER", help="where tables and figure go (study-KIND)")
    parser.add_argument(
        "--objectives", metavar="NAME,NAME", help="of the study `single`, which compares them (all, or --objective)"
    )
    parser.add_argument("--seeds", type=whole, default=3, metavar="N", help="seeds for whatever is random (3)")
    parser.add_argument("--quick", action="store_true", help="a few steps and few levels, to see that it works")
    add_selection(parser)
    add_run(parser)


def _prepare(parser: Parser) -> None:
    add_inputs(parser)
    parser.add_argument("--output", required=True, metavar="FOLDER", help="where the prepared shards go")
    parser.add_argument("--text_column", metavar="NAME", help="the column with the texts (text)")
    parser.add_argument("--id_column", metavar="NAME", help="the column with the ids (made up where there is none)")
    parser.add_argument(
        "--embedder",
        default="tfidf",
        metavar="EMBEDDER",
        help="what makes the features: tfidf; model2vec:PATH, a static embedding model in a folder of this machine; or "
        "MODULE:FUNCTION, a function of your own from a list of texts to an array (tfidf)",
    )
    parser.add_argument("--dim", type=whole, metavar="D", help="dimensions of tfidf features (256)")
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="of the truncated SVD of tfidf (0)")
    add_json(parser)


def _score(parser: Parser) -> None:
    add_corpus(parser)
    parser.add_argument(
        "--selection",
        action="append",
        required=True,
        metavar="OUT.parquet",
        help="ids to score: the output of select, or any parquet or CSV file with the id column; give "
        "several to see their overlap",
    )
    parser.add_argument(
        "--panel",
        action="store_true",
        help="every measure, with intervals, beside random and top quality, and who is best where",
    )
    add_options(parser, "center")
    parser.add_argument("--objective", metavar="module:Class", help="an objective of your own to measure besides")
    parser.add_argument("--device", default="auto", metavar="DEVICE", help="auto, cpu, cuda or cuda:K (auto)")
    add_runs_dir(parser)
    add_json(parser)


def _copies(parser: Parser) -> None:
    add_corpus(parser)
    group = parser.add_argument_group("near-copies")
    group.add_argument(
        "--cosine", type=float, default=0.95, metavar="C", help="from which two rows are near-copies (0.95)"
    )
    group.add_argument(
        "--times", type=float, default=4.0, metavar="K", help="also for a corpus K times as large, above 1 (4)"
    )
    add_runs_dir(parser)
    add_json(parser)


def _ablate(parser: Parser) -> None:
    add_corpus(parser)
    group = parser.add_argument_group("what to compare, and on what")
    add = group.add_argument
    add(
        "--target",
        metavar="TARGET",
        help="one target: random held-out rows, COLUMN=VALUE for held-out rows of one kind, high:COLUMN for the best "
        "quarter by a second quality column, or a file of your own texts (one per line, or .jsonl with text). Or 100 "
        "to 10,000 examples, of which half scores the rows and the other half evaluates: ids:FILE, "
        "features:FILE.parquet, or examples:FILE with texts (several targets at once)",
    )
    add("--label", default="", metavar="COLUMN", help="the several targets are its values; regions: of the features")
    add("--methods", metavar="NAME,NAME", help=f"of {', '.join(METHODS)} (all)")
    add("--objectives", metavar="NAME,NAME", help="objectives to try over lambda (facility,pairwise,vendi)")
    add("--lambdas", metavar="VALUES", help="START:STOP:COUNT or a list (0,0.35,0.5,0.7,0.85); 1 is top-quality")
    add("--select_ratio", type=float, default=0.3, metavar="SHARE", help="of every method (0.3)")
    add("--seeds", type=whole, default=SEEDS, metavar="N", help=f"planned seeds, at least {LEAST_SEEDS} ({SEEDS})")
    add("--seed_rows", type=whole, metavar="N", help="rows of one seed at most (12000)")
    add("--judge", default="bigram", metavar="MODEL", help="the proxy model: bigram or transformer (bigram)")
    add("--words", type=whole, metavar="N", help="words of each selection to train the bigram model on (150000)")
    add("--train_bytes", type=whole, metavar="N", help="bytes of each selection to train the transformer on (150000)")
    add(
        "--confirm",
        action="store_true",
        help="then run the second proxy model, the transformer, on the first seeds; says its minutes first",
    )
    add("--seed", type=whole, metavar="N", help="of rows dealt, random selections and ties (0)")
    add("--device", default="auto", metavar="DEVICE", help="auto, cpu, cuda or cuda:K (auto)")
    add("--output", metavar="OUT.json", help="the whole result")
    add_runs_dir(group)
    add_json(group)


def _which_lambda(parser: Parser) -> None:
    _ablate(parser)
    parser.add_argument("--ratios", metavar="SHARE,SHARE", help="select ratios, an ablation each (0.1)")
    parser.set_defaults(
        target="random", select_ratio=0.1, objectives="facility,pairwise", lambdas=",".join(map(str, LAMBDAS))
    )


def _explain(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run id, as `runs list` shows it")
    parser.add_argument("sample", metavar="ID", nargs="*", help="ids of the samples to explain")
    parser.add_argument("--ids", metavar="FILE", help="explain the ids in a parquet, CSV or .txt file instead")
    parser.add_argument("--all", action="store_true", help="explain every row of the corpus instead")
    parser.add_argument("--output", metavar="OUT.parquet|OUT.csv", help="one row per sample, one column per part")
    _add_own(parser)
    add_runs_dir(parser)
    add_json(parser)


def _open(parser: Parser) -> None:
    add_corpus(parser)
    group = parser.add_argument_group("the server")
    group.add_argument("--port", type=whole, metavar="N", help="where it listens (STREAMLIT_SERVER_PORT, else 8501 on)")
    add_runs_dir(group, "--runs")


def _check_objective(parser: Parser) -> None:
    parser.add_argument("name", metavar="module:Class", help="an objective of your own, as docs/own-objective.md tells")
    add_json(parser)


def _task(parser: Parser) -> None:
    parser.add_argument(
        "call", metavar="CALL", help="a file FOLDER/NAME.call, or the folder, whose open calls are then done in turn"
    )
    parser.add_argument(
        "--wait",
        action="store_true",
        help="of a folder: wait for further calls until no run is at work in it any more; for the first, ten minutes",
    )
    add_json(parser)


def _runs_list(parser: Parser) -> None:
    add_runs_dir(parser)
    add_json(parser)


def _runs_show(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run id, as `runs list` shows it")
    add_runs_dir(parser)
    add_json(parser)


def _runs_stop(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run id, as `runs list` shows it")
    add_runs_dir(parser)
    add_json(parser)


def _runs_export(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run id, as `runs list` shows it")
    for export in EXPORTS:
        parser.add_argument(f"--{export.name}", metavar=export.metavar, help=export.about)
    _add_repeats(parser)
    add_runs_dir(parser)
    add_json(parser)


def _recipe(parser: Parser) -> None:
    parser.add_argument(
        "run", metavar="RUN", help="a run id, as `runs list` shows it, or a file that this wrote before"
    )
    parser.add_argument("--output", metavar="RECIPE.json", help="where the recipe goes")
    parser.add_argument("--sql", metavar="OUT.sql", help="the same rule as a query for DuckDB (pairwise)")
    add_runs_dir(parser)
    add_json(parser)


def _apply(parser: Parser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="a file that `recipe` wrote")
    add_inputs(parser)
    parser.add_argument("--output", required=True, metavar="FOLDER", help="where a file for each shard goes")
    parser.add_argument(
        "--as",
        dest="kind",
        default="ids",
        metavar="KIND",
        help=f"one of {', '.join(KINDS)}: the kept ids with their scores; 0 or 1 for each row; the kept rows with all "
        "columns (ids)",
    )
    parser.add_argument(
        "--refit",
        action="store_true",
        help="first estimate direction and threshold anew on all rows, in two passes, and say what that reaches",
    )
    group = parser.add_argument_group("which columns and rows")
    for name in ("id_column", "feature_column"):
        group.add_argument(f"--{name}", metavar="NAME", help="where the shards call it otherwise (as the recipe says)")
    add_option(group, CORPUS_OPTIONS["drop_invalid"])
    add_json(parser)


def _runs_import(parser: Parser) -> None:
    parser.add_argument(
        "ids", metavar="IDS", help="a parquet or CSV file with the id column, or a .txt file with one id per line"
    )
    add_corpus(parser)
    group = parser.add_argument_group("how to measure it")
    add = group.add_argument
    add_options(group, "objective", "lamb", "scale")
    add("--ignore_unknown", action="store_true", help="leave out ids that are not in the corpus instead of refusing")
    add("--seed", type=whole, metavar="N", help="of ties in the ranks (0)")
    add("--device", metavar="DEVICE", help="auto, cpu, cuda or cuda:K (auto)")
    add_run(parser)


COMMANDS: dict[str, tuple[Callable[[Parser], None], str]] = {
    "open": (_open, "Serve the dashboard on this machine, with the map of a corpus where one is named."),
    "select": (_select, "Learn which rows of a corpus to keep, and write them with ranks and marginals."),
    "plan": (_plan, "What a run over all rows of a corpus will take, from a probe of its first rows."),
    "sweep": (_sweep, "Many runs of one corpus: every combination of the options that are varied."),
    "study": (_study, "Repeat one of the paper's experiments on a corpus: a table and a figure, with spreads."),
    "resume": (_resume, "Go on with a run that was stopped, killed or failed, from its last checkpoint."),
    "prepare": (
        _prepare,
        "Make a corpus from texts: quality by rules, features by TF-IDF, a static model or your own.",
    ),
    "score": (_score, "Values of all objectives for any list of ids, and how far several lists overlap."),
    "copies": (
        _copies,
        "How many rows nearly repeat another, here and in a larger corpus; which cosine to collapse at.",
    ),
    "ablate": (_ablate, "Which methods help on which targets: selections compared by held-out text."),
    "which-lambda": (_which_lambda, "Another name of ablate, with the defaults that which-lambda had."),
    "explain": (_explain, "Why samples are in a run's selection or not: parts that add up, and what lies behind them."),
    "check-objective": (_check_objective, "Check an objective of your own on small random problems."),
    "recipe": (_recipe, "The rule behind a run's selection (pairwise, disf_fixed), as JSON of a few numbers."),
    "apply": (_apply, "Keep rows of any number of shards by a recipe: ids, masks or filtered shards."),
    "task": (_task, "Do a piece of a run over a whole corpus, from its file, on any machine (--engine files)."),
    "runs list": (_runs_list, "All runs, newest first."),
    "runs show": (_runs_show, "One run: its settings, how it stands, what it found."),
    "runs stop": (_runs_stop, "Ask a run to stop, whatever process does it; it keeps a checkpoint."),
    "runs export": (_runs_export, "Files to take home from a finished run."),
    "runs import": (_runs_import, "A list of ids from anywhere as a finished run, measured like any other."),
}
"""Command -> its options and what it is for."""


# -- words -------------------------------------------------------------------------------------------------------------


def _underscored(words: Sequence[str]) -> list[str]:
    """Option names with underscores; values, and everything after a bare ``--``, as they came."""
    out: list[str] = []
    for place, word in enumerate(words):
        if word == "--":
            return [*out, *words[place:]]
        name, equals, value = word.partition("=")
        out.append(f"--{name[2:].replace('-', '_')}{equals}{value}" if word.startswith("--") else word)
    return out


def _without_command(words: list[str]) -> NoReturn:
    """No command was given: print help or version, or say which commands there are.

    Raises:
        OptionError: a word that is no command, or none at all.
        SystemExit: after printing help or version.
    """
    width = max(map(len, COMMANDS))
    table = "\n".join(f"  {name:<{width}}  {about}" for name, (_, about) in COMMANDS.items())
    parser = Parser(
        prog="datamask",
        usage="datamask COMMAND [options]",
        allow_abbrev=False,
        formatter_class=HelpLines,
        description=f"Choose a high-quality, diverse subset of a corpus by mask learning.\n\n{table}",
        epilog="`datamask COMMAND --help` lists a command's options.",
    )
    parser.add_argument("--version", action="version", version=f"datamask {__version__}")
    if words and words[0].startswith("-"):
        parser.parse_args(words)
    given = " ".join(words[: 2 if words[:1] == ["runs"] else 1])
    near = difflib.get_close_matches(given, COMMANDS, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise OptionError(f"a command is required, one of {', '.join(COMMANDS)}; got {given!r}{hint}")
