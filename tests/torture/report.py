"""The report, made from a journal alone: what was tried, how many, what came, what was found, what was not reached."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from tests.torture.isolation import FINDING, Outcome
from tests.torture.parts import PARTS
from tests.torture.runner import read_journal, verdicts

EXAMPLES = 3
FAMILIES = 80


def write_report(journal: Path, path: Path) -> None:
    """Write the report of a journal as Markdown."""
    head, outcomes = read_journal(journal)
    path.write_text(report(head, outcomes), encoding="utf-8")


def report(head: dict, outcomes: Sequence[Outcome]) -> str:
    """The report as Markdown."""
    found, wrong = [outcome for outcome in outcomes if outcome.word == FINDING], verdicts(outcomes)
    lines = [
        "# Fault injection and fuzzing",
        "",
        "Written by `make torture ALL=1`; `python -m tests.torture --report` writes it anew from the journal of the "
        "cases that are done. A case is made from its number alone: `make torture CASE=inputs:123` does one again.",
        "",
        f"- Code: commit {head.get('commit', 'unknown')}",
        f"- Machine: {head.get('machine', 'unknown')}",
        f"- Cases: {len(outcomes):,} of {sum(entry.part.size for entry in PARTS.values()):,}, "
        f"{sum(outcome.seconds for outcome in outcomes) / 3600:.1f} hours of two workers together",
        f"- Findings: {len(found) + len(wrong):,}",
        "",
    ]
    for name, entry in PARTS.items():
        mine = [outcome for outcome in outcomes if outcome.part == name]
        lines += [f"## {name}: {entry.part.title}", ""]
        if not mine:
            lines += ["Not run.", ""]
            continue
        took = sum(outcome.seconds for outcome in mine) / len(mine)
        lines += [
            f"{len(mine):,} of {entry.part.size:,} cases, {took:.2f} s each.",
            "",
            "| what | tried | what came |",
            "|---|---|---|",
            *_rows(name, mine),
            "",
        ]
        if name in wrong:
            lines += [f"As a whole: {_cell(wrong[name])}", ""]
        if entry.beyond:
            lines += [f"Not reached: {entry.beyond}.", ""]
    lines += ["## Findings", "", *(_findings(found) or ["None."])]
    return "\n".join(lines).rstrip() + "\n"


def _rows(name: str, outcomes: Sequence[Outcome]) -> list[str]:
    """A line per kind of case; one for all where nearly every case is a kind of its own."""
    families: defaultdict[str, Counter] = defaultdict(Counter)
    for outcome in outcomes:
        families[_cell(PARTS[name].part.describe(outcome.number).partition(":")[0])][outcome.word] += 1
    if len(families) > FAMILIES:
        families = {"all": Counter(outcome.word for outcome in outcomes)}
    return [
        f"| {family} | {words.total():,} | "
        + ", ".join(f"{_cell(word)} {count:,}" for word, count in words.most_common())
        + " |"
        for family, words in families.items()
    ]


def _findings(outcomes: Sequence[Outcome]) -> list[str]:
    """What was found, alike ones together, the most frequent first."""
    kinds: defaultdict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        first = (outcome.finding.splitlines() or [""])[0]
        kinds[outcome.part, re.sub(r"\d[\d.,e+-]*|'[^']*'|\([^)]*\)", "#", first)[:110]].append(outcome)
    lines = []
    for (part, _), alike in sorted(kinds.items(), key=lambda kind: -len(kind[1])):
        examples = ", ".join(f"{part}:{outcome.number}" for outcome in alike[:EXAMPLES])
        lines.append(f"- {len(alike):,} times ({examples}): {_cell(alike[0].finding)[:300]}")
    return lines


def _cell(text: str) -> str:
    text = re.sub(r"/\S*/datamask-torture-[^/\s']*", "...", " ".join(text.split()))
    return text.replace("|", "\\|").replace("<", "&lt;")
