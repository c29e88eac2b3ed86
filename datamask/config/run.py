"""A run: a corpus, a selection and a name; and the command line that repeats it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from datamask import catalogue
from datamask.config.amounts import tokens_text
from datamask.config.checks import number_text
from datamask.config.corpus import CorpusConfig
from datamask.config.selection import SelectionConfig


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
        return {"corpus": self.corpus.to_dict(), "selection": self.selection.to_dict(), "name": self.name,
                "notes": self.notes, "ids": self.ids, "ignore_unknown": self.ignore_unknown}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunConfig:
        return cls(CorpusConfig.from_dict(data["corpus"]), SelectionConfig.from_dict(data["selection"]),
                   str(data.get("name", "")), str(data.get("notes", "")), data.get("ids"),
                   bool(data.get("ignore_unknown", False)))

    def renamed(self, name: str | None = None, notes: str | None = None) -> RunConfig:
        return replace(self, name=self.name if name is None else name, notes=self.notes if notes is None else notes)

    def arguments(self, output: str = "selection.parquet") -> list[str]:
        """The words after ``python -m datamask`` that repeat this run; only what differs from the defaults."""
        corpus, selection = self.corpus, self.selection
        words = ["select"] if self.ids is None else ["runs", "import", self.ids]

        def add(option: str, value: Any, default: Any = None) -> None:
            if value != default:
                text = number_text(value) if isinstance(value, float) else str(value)
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
        add("objective", selection.objective)
        add("lamb", float(selection.lamb))
        if self.ids is None:
            self._add_search(add, words)
        else:
            add("scale", selection.scale, "calibrated")
        add("seed", selection.seed, 0)
        add("device", selection.device, "auto")
        add("name", self.name, "")
        add("notes", self.notes, "")
        return words

    def _add_search(self, add: Callable[..., None], words: list[str]) -> None:
        """The words of how a selection is found, which an imported one has not."""
        selection = self.selection
        if selection.budget is None:
            add("select_ratio", float(selection.select_ratio))
        else:
            add("budget", tokens_text(selection.budget))
        defaults = dict(catalogue.estimator(selection.estimator).defaults)
        if selection.preset == "paper":
            add("preset", "paper")
        else:
            add("estimator", selection.estimator)
            add("scale", selection.scale, "calibrated")
            for option, default in defaults.items():
                add(option, getattr(selection, option), default)
        if selection.center:
            words.append("--center")
        add("prune", float(selection.prune), 0.0)
        add("collapse", selection.collapse, "none")
        add("pin", selection.pin)
        add("ban", selection.ban)
        add("given", selection.given)
        for quota in selection.quotas:
            add("quota", str(quota))
        add("neighbors", selection.neighbors, "auto")
