"""A run: a corpus, a selection and a name; and the command line that repeats it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from datamask import catalogue
from datamask.config.corpus import CorpusConfig
from datamask.config.selection import PAPER_PRESET, SelectionConfig
from datamask.options import OPTIONS, Flag, Quotas

MEASURING = ("objective", "lamb", "scale", "seed", "device")
"""Options of a selection by which a list of ids is measured."""


@dataclass(frozen=True)
class RunConfig:
    """A run: a corpus, a selection, a name and notes.

    Attributes:
        ids: for a selection that was imported, the file it was read from; ignore_unknown: whether ids of that file
            that are not in the corpus were left out instead of refused.
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
        corpus, selection = self.corpus, self.selection
        words = ["select"] if self.ids is None else ["runs", "import", self.ids]

        def add(option: str, value: Any, default: Any = None) -> None:
            if value != default:
                text = str(value)
                # a value that begins with a hyphen would be read as an option of its own
                words.extend([f"--{option}={text}"] if text.startswith("-") else [f"--{option}", text])

        if any(path.startswith("-") for path in corpus.inputs):
            for path in corpus.inputs:
                add("input", path)
        else:
            words.extend(corpus.inputs)
        if self.ids is None:
            add("output", output)
        if self.ignore_unknown:
            words.append("--ignore_unknown")

        for column in ("id_column", "feature_column", "length_column"):
            add(column, getattr(corpus, column))
        for quality in corpus.quality_columns:
            add("quality_column", str(quality))
        for side in ("features", "scores"):
            for path in getattr(corpus, side):
                add(side, path)
        add("rows", corpus.rows)
        add("row_seed", corpus.seed, selection.seed)
        if corpus.drop_invalid:
            words.append("--drop_invalid")
        self._add_selection(add, words)
        add("name", self.name, "")
        add("notes", self.notes, "")
        return words

    def _add_selection(self, add: Callable[..., None], words: list[str]) -> None:
        """The options of the selection; of an imported one, which was not searched for, those that measure it."""
        selection = self.selection
        left_out = {name for name in OPTIONS if self.ids is not None and name not in MEASURING}
        left_out |= set(PAPER_PRESET) if selection.preset == "paper" else set()
        left_out |= set() if selection.budget is None else {"select_ratio"}
        own = catalogue.estimator(selection.estimator).defaults
        for name, option in OPTIONS.items():
            value, default = getattr(selection, name), own.get(name, option.default)
            of_another = bool(option.owners) and name not in own
            if name in left_out or of_another or value is None or (value == default and not option.always):
                continue
            if isinstance(option.kind, Flag):
                words.append(f"--{option.word}")
            else:
                for item in value if isinstance(option.kind, Quotas) else (value,):
                    add(option.word, option.kind.text(item))
