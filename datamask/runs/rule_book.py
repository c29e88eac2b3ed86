"""Rules for the next selection: pins, bans, rows one already has, quotas; kept beside the runs. Loads no torch.

A rule that names rows keeps their ids in a parquet file of its own, called by its content, and a list of rules is a
file called by its content too: the same rules always have the same names, so a link can carry them, nobody overwrites
another's, and two runs under the same rules have equal settings.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from datamask.config import Quota, SelectionConfig
from datamask.errors import DatamaskError, InputError, OptionError
from datamask.files import check_regular, read_bounded, write_text
from datamask.options.duplicates import duplicates_named, left_words
from datamask.parquet import UNREADABLE, read_table, reason
from datamask.quotas import check_groups, quota_groups
from datamask.runs.formats import MOST_BYTES, parse_json, write_table

if TYPE_CHECKING:
    from datamask.corpus.corpus import Corpus

PIN, BAN, GIVEN, QUOTA = "pin", "ban", "given", "quota"

FOLDER = ".rules"
_NAME = re.compile(r"[0-9a-f]{20}")


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        kind: ``pin`` (must be in), ``ban`` (must not be), ``given`` (one has them already) or ``quota``.
        said: which samples, in words.
        count: how many they are.
        ids: name of the list of their ids; "" for a quota.
        quota: a quota's share; None for the others.
    """

    kind: str
    said: str
    count: int
    ids: str = ""
    quota: Quota | None = None


@dataclass(frozen=True)
class RuleBook:
    """The rules for selections from one corpus, by fingerprint, in the order they were made."""

    fingerprint: str
    rules: tuple[Rule, ...] = ()

    def adding(self, rule: Rule) -> RuleBook:
        """With one more, in place of the one of the same rows."""
        others = (other for other in self.rules if (other.kind, other.ids) != (rule.kind, rule.ids))
        return replace(self, rules=(*others, rule))

    def mixing(self, quotas: Iterable[Quota]) -> RuleBook:
        """With these quotas, in place of its own."""
        others = (rule for rule in self.rules if rule.kind != QUOTA)
        made = (Rule(QUOTA, f"{quota.column} {quota.value}", 0, quota=quota) for quota in quotas)
        return replace(self, rules=(*others, *made))

    def without(self, place: int) -> RuleBook:
        """Without the rule at that place."""
        return replace(self, rules=self.rules[:place] + self.rules[place + 1 :])

    def of(self, kind: str) -> tuple[Rule, ...]:
        """The rules of one kind."""
        return tuple(rule for rule in self.rules if rule.kind == kind)


class RuleStore:
    """Rules on disk, in a folder beside the runs. Files are written whole or not at all, and never changed."""

    def __init__(self, runs_dir: str | Path) -> None:
        self._folder = Path(runs_dir) / FOLDER

    def keep_rows(self, corpus: Corpus, rows: np.ndarray) -> str:
        """Keep the ids of some rows, int64 ``(k,)``; the name of the list.

        Raises:
            StoreError: it cannot be written.
        """
        rows = np.unique(np.asarray(rows, np.int64))
        name = _digest(corpus.fingerprint.encode() + rows.tobytes())
        path = self._path(name, ".parquet")
        if not path.is_file():
            # the same rows give the same file, so whoever writes it at the same time does no harm
            column = str(corpus.provenance.columns.get("id", "id"))
            write_table(path, pa.table({column: corpus.ids.take(pa.array(rows))}))
        return name

    def rows(self, corpus: Corpus, name: str) -> np.ndarray:
        """The rows of a list, int64, rising.

        Raises:
            InputError: it is gone, or of another corpus.
        """
        import pyarrow.compute as pc

        path = self._path(name, ".parquet")
        try:
            check_regular(path)
            ids = read_table(path).column(0)
        except UNREADABLE as error:
            raise InputError(
                f"the ids of a rule cannot be read ({reason(error)}); remove the rule and add it again"
            ) from error
        places = pc.index_in(ids, value_set=corpus.ids)
        if places.null_count:
            raise InputError("a rule names rows that are not in this corpus; remove it and add it again")
        return np.sort(places.to_numpy()).astype(np.int64)

    def save(self, book: RuleBook) -> str:
        """Keep a list of rules; its name.

        Raises:
            StoreError: it cannot be written.
        """
        text = json.dumps(asdict(book), sort_keys=True, indent=1)
        name = _digest(text.encode())
        path = self._path(name, ".json")
        if not path.is_file():
            write_text(path, text + "\n")
        return name

    def load(self, name: str) -> RuleBook | None:
        """The list of rules of that name; None where there is none that can be read, or it has been altered."""
        try:
            text = read_bounded(self._path(name, ".json"), MOST_BYTES)
            if _digest(text.removesuffix(b"\n")) != name:
                return None
            record = parse_json(text)
            rules = tuple(
                Rule(**{**rule, "quota": None if rule["quota"] is None else Quota(**rule["quota"])})
                for rule in record["rules"]
            )
            return RuleBook(str(record["fingerprint"]), rules)
        except (OSError, ValueError, KeyError, TypeError, DatamaskError):
            return None

    def applied(self, config: SelectionConfig, book: RuleBook, corpus: Corpus) -> SelectionConfig:
        """The settings under the rules, after making sure that something can obey them.

        Pruned rows and collapsed copies are not looked at here, so a selection may still turn out to be impossible
        when it is posed.

        Raises:
            OptionError: nothing can obey them, with the reason. InputError: a list is gone. StoreError: disk.
        """
        masks = {kind: self._mask(book.of(kind), corpus) for kind in (PIN, BAN, GIVEN)}
        options: dict[str, Any] = {
            kind: str(self._path(self.keep_rows(corpus, np.flatnonzero(mask)), ".parquet").absolute())
            for kind, mask in masks.items()
            if mask.any()
        }
        options["quotas"] = tuple(rule.quota for rule in book.of(QUOTA))
        ruled = replace(config, **options)
        check(ruled, corpus, masks[PIN], masks[BAN], masks[GIVEN])
        return ruled

    def _mask(self, rules: Iterable[Rule], corpus: Corpus) -> np.ndarray:
        mask = np.zeros(len(corpus), bool)
        for rule in rules:
            mask[self.rows(corpus, rule.ids)] = True
        return mask

    def _path(self, name: str, suffix: str) -> Path:
        if not _NAME.fullmatch(name):
            raise InputError(f"{name!r} is no name of rules; they are twenty digits from 0 to f")
        return self._folder / f"{name}{suffix}"


def check(config: SelectionConfig, corpus: Corpus, pinned: np.ndarray, banned: np.ndarray, given: np.ndarray) -> None:
    """Refuse rules that no selection can obey.

    Args:
        pinned, banned, given: bool ``(N,)``.

    Raises:
        OptionError: the reason.
    """
    named = ((PIN, pinned), (BAN, banned), (GIVEN, given))
    for (a, first), (b, second) in itertools.combinations(named, 2):
        if both := int((first & second).sum()):
            raise OptionError(f"--{a} and --{b} both name {both:,} rows; remove one of the two rules")
    for kind, mask in named:
        if mask.all():
            raise OptionError(f"--{kind} names all {len(mask):,} rows, so none is left to select")
    free, lengths = ~banned, None
    if config.budget is not None:
        lengths = corpus.lengths
        if lengths is None:
            raise OptionError("--budget needs the number of tokens of every row, and this corpus has no column for it")
        most = config.budget + float(lengths[given].sum())
    else:
        to_select = config.size(len(corpus))
        most = to_select + int(given.sum())
        left = int((free & ~given).sum())
        if left <= to_select:
            raise OptionError(
                f"--ban and --given leave {left:,} rows, but {to_select:,} are to be selected; ban fewer, or lower "
                "--select_ratio"
            )
    if config.budget is not None or config.ruled:
        groups = quota_groups(config.quotas, corpus, most, given, lengths)
        groups = groups._replace(group=groups.group[free])
        lengths = None if lengths is None else lengths[free]
        check_groups(groups, (pinned | given)[free], given[free], most, lengths)


def rule_words(config: SelectionConfig, facts: Mapping[str, Any]) -> list[str]:
    """What narrowed a run's choice, in words; empty where every selection of its size was allowed. A bound needs them.

    Args:
        facts: of the run; one that has not counted pins and bans yet says their files instead.
    """
    rules = []
    for path, fact, what in (
        (config.pin, "pinned", "pinned"),
        (config.ban, "banned", "banned"),
        (config.given, "given", "given"),
    ):
        if path is not None:
            count = facts.get(fact)
            rules.append(
                f"{what} as {Path(path).name} says"
                if count is None
                else f"{count:,} row{('' if count == 1 else 's')} {what}"
            )
    if config.prune:
        rules.append(f"the worst {100 * config.prune:.4g} % by quality skipped")
    if config.collapse != "none":
        left = duplicates_left_out(config, facts.get("n"), facts.get("eligible"))
        named = duplicates_named(config.collapse, facts.get("columns"))
        rules.append(f"of {named} only the best kept" + (f" ({left:,} left out)" if left is not None else ""))
        if found := facts.get("duplicates"):
            rules.append(left_words(found["recall"], found["judged"], found["left"]))
    rules += [f"{quota.column} {quota.value}: {share_words(quota)} of the selection" for quota in config.quotas]
    return rules


def duplicates_left_out(config: SelectionConfig, n: int | None, eligible: int | None) -> int | None:
    """How many duplicates were left out before a run selected; None where that is not known.

    Args:
        n: rows of the corpus. eligible: rows that could be selected.
    """
    if config.collapse == "none" or config.prune or config.ban or config.given or not n or eligible is None:
        return None
    return n - eligible


def share_words(quota: Quota) -> str:
    """A quota's share: ``10 % to 30 %``, or one number where it is exact."""
    low, high = f"{100 * quota.low:.4g} %", f"{100 * quota.high:.4g} %"
    return low if low == high else f"{low} to {high}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]
