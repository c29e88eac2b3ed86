"""A run: a corpus, a selection and a name; and the command line that repeats it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from datamask import catalogue
from datamask.config.corpus import CorpusConfig
from datamask.config.selection import PAPER_PRESET, SelectionConfig
from datamask.options import CORPUS_OPTIONS, OPTIONS, option_words

MEASURING = ("objective", "lamb", "scale", "seed", "device")
"""Options of a selection by which a list of ids is measured."""


@dataclass(frozen=True)
class RunConfig:
    """The settings of a run: corpus, selection, name and notes.

    Attributes:
        corpus: files and columns.
        selection: objective, method and rules.
        name: for people; shown in the list of runs.
        notes: for people.
        ids: the file of an imported list of ids; None for a selection.
        ignore_unknown: whether ids that are not in the corpus are skipped instead of refused.

    Examples:
        >>> from datamask import CorpusConfig, RunConfig
        >>> RunConfig(CorpusConfig(["shards/"]), name="first").selection.select_ratio
        0.3
    """

    corpus: CorpusConfig
    selection: SelectionConfig = field(default_factory=SelectionConfig.from_options)
    name: str = ""
    notes: str = ""
    ids: str | None = None
    ignore_unknown: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "corpus": self.corpus.to_dict(),
            "selection": self.selection.to_dict(),
            "name": self.name,
            "notes": self.notes,
            "ids": self.ids,
            "ignore_unknown": self.ignore_unknown,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunConfig:
        return cls(
            CorpusConfig.from_dict(data["corpus"]),
            SelectionConfig.from_dict(data["selection"]),
            str(data.get("name", "")),
            str(data.get("notes", "")),
            data.get("ids"),
            bool(data.get("ignore_unknown", False)),
        )

    def renamed(self, name: str | None = None, notes: str | None = None) -> RunConfig:
        return replace(self, name=self.name if name is None else name, notes=self.notes if notes is None else notes)

    def arguments(self, output: str = "selection.parquet") -> list[str]:
        """The words after ``python -m datamask`` that repeat this run; only what differs from the defaults."""
        inputs, given = self._input_words(), _option_words(self.corpus_given())
        words = ["select"] if self.ids is None else ["runs", "import", self.ids]
        words += inputs
        if self.ids is None:
            words += option_words("output", output)
        if self.ignore_unknown:
            words.append("--ignore_unknown")
        words += [*given, *self._selection_words()]
        for name in ("name", "notes"):
            if text := getattr(self, name):
                words += option_words(name, text)
        return words

    def corpus_words(self) -> list[str]:
        """The words that name the corpus to a command without a selection: its inputs and options."""
        given = self.corpus_given()
        if self.corpus.rows is not None:  # another command samples them by no seed of a selection
            given["seed"] = self.corpus.seed
        return [*self._input_words(), *_option_words(given)]

    def _input_words(self) -> list[str]:
        # an input that begins with a hyphen would be read as an option of its own
        inputs = self.corpus.inputs
        hyphen = any(path.startswith("-") for path in inputs)
        return CORPUS_OPTIONS["inputs"].words(inputs) if hyphen else list(inputs)

    def corpus_given(self) -> dict[str, Any]:
        """Options of the corpus, beside its inputs, that are not at their defaults: name to value."""
        # rows are sampled by the seed of the selection where they have none of their own
        defaults = {name: option.default for name, option in CORPUS_OPTIONS.items()} | {"seed": self.selection.seed}
        values = {name: getattr(self.corpus, name) for name in CORPUS_OPTIONS if name != "inputs"}
        return {name: value for name, value in values.items() if value != defaults[name]}

    def _selection_words(self) -> list[str]:
        """The options of the selection; of an imported one, which was not searched for, those that measure it."""
        selection, words = self.selection, []
        left_out = {name for name in OPTIONS if self.ids is not None and name not in MEASURING}
        left_out |= set(PAPER_PRESET) if selection.preset == "paper" else set()
        left_out |= set() if selection.budget is None else {"select_ratio"}
        own = catalogue.estimator(selection.estimator).defaults
        for name, option in OPTIONS.items():
            value, default = getattr(selection, name), own.get(name, option.default)
            of_another = not option.of(catalogue.estimator(selection.estimator).name)
            if name in left_out or of_another or value is None or (value == default and not option.always):
                continue
            words += option.words(value)
        return words


def _option_words(given: Mapping[str, Any]) -> list[str]:
    return [word for name, value in given.items() for word in CORPUS_OPTIONS[name].words(value)]
