"""``python -m tests.torture``, behind `make torture`; the Makefile says what it takes."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.torture.isolation import FINDING, Outcome
from tests.torture.parts import PARTS
from tests.torture.report import write_report
from tests.torture.runner import ROOT, Journal, orders, run, verdicts

MINUTES, ALL_MINUTES = 28.0, 175.0
EVERY = 60.0
"""Seconds from one line about how far it is to the next."""

JOURNAL, REPORT = ROOT / "build" / "torture.jsonl", ROOT / "docs" / "torture.md"


def main() -> int:
    """Exit code 1 where something was found."""
    options = _options()
    names = options.parts.split(",") if options.parts else list(PARTS)
    if unknown := [name for name in names if name not in PARTS]:
        raise SystemExit(f"--parts knows {', '.join(PARTS)}, got {', '.join(unknown)}")
    if options.report:
        write_report(options.journal, REPORT)
        return 0
    if options.case:
        name, _, number = options.case.partition(":")
        print(f"{options.case}: {PARTS[name].part.describe(int(number))}")
        outcomes = run({name: iter([int(number)])}, workers=1, done=Progress())
        print(outcomes[0].word)
        return int(outcomes[0].word == FINDING)
    if options.all:
        return _all(names, options)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    minutes = MINUTES if options.minutes is None else options.minutes
    print(f"seed {seed}, at most {minutes:g} minutes; `make torture SEED={seed}` repeats it", flush=True)
    return _told(run(orders(names, seed), seconds=60 * minutes, done=Progress()))


def _all(names: list[str], options: argparse.Namespace) -> int:
    journal = Journal(options.journal)
    left = sum(PARTS[name].part.size for name in names) - len([case for case in journal.done if case[0] in names])
    minutes = ALL_MINUTES if options.minutes is None else options.minutes
    print(f"{left:,} cases to go, at most {minutes:g} minutes; journal {journal.path}", flush=True)

    progress = Progress()

    def done(outcome: Outcome) -> None:
        journal.add(outcome)
        progress(outcome)

    run(orders(names, 0, journal.done), seconds=60 * minutes, done=done)
    write_report(journal.path, REPORT)
    return _told(journal.outcomes)


class Progress:
    """Prints each finding when it comes and, where a case ends in a new minute, how many are done."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begun, self._minute = clock, clock(), 0
        self._cases = self._findings = 0

    def __call__(self, outcome: Outcome) -> None:
        """Take in what a case came to."""
        self._cases += 1
        if outcome.word == FINDING:
            self._findings += 1
            about = PARTS[outcome.part].part.describe(outcome.number)
            print(f"FINDING {outcome.part}:{outcome.number} ({about}): {outcome.finding}", flush=True)
        minute = int((self._clock() - self._begun) // EVERY)
        if minute > self._minute:
            self._minute = minute
            findings = f"{self._findings:,}" if self._findings else "nothing"
            print(f"{minute} min: {self._cases:,} done, {findings} found so far", flush=True)


def _told(outcomes: list[Outcome]) -> int:
    """Print how many cases came to what; 1 where something was found."""
    for name in dict.fromkeys(outcome.part for outcome in outcomes):
        mine = [outcome for outcome in outcomes if outcome.part == name]
        words = Counter(outcome.word for outcome in mine)
        took = sum(outcome.seconds for outcome in mine)
        print(
            f"{name}: {len(mine):,} cases of {PARTS[name].part.size:,}, {took / len(mine):.2f} s each: "
            + ", ".join(f"{count:,} {word}" for word, count in words.most_common())
        )
    bad = [outcome for outcome in outcomes if outcome.word == FINDING]
    for outcome in bad[:20]:
        print(
            f"{outcome.part}:{outcome.number}: {outcome.finding.splitlines()[0][:300]}\n"
            f"    once more: make torture CASE={outcome.part}:{outcome.number}"
        )
    wrong = verdicts(outcomes)
    for name, text in wrong.items():
        print(f"{name} as a whole: {text}")
    print(f"{len(bad) + len(wrong):,} findings" if bad or wrong else "nothing found")
    return 1 if bad or wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description="Fault injection and fuzzing.")
    parser.add_argument("--parts", help=f"names, separated by commas, of {', '.join(PARTS)} (all)")
    parser.add_argument("--seed", type=int, help="which part of the cases, and in what order (drawn, and printed)")
    parser.add_argument("--minutes", type=float, help=f"at most ({MINUTES:g}; {ALL_MINUTES:g} with --all)")
    parser.add_argument("--all", action="store_true", help="every case, going on with the journal")
    parser.add_argument("--journal", type=Path, default=JOURNAL, help="of the cases that are done")
    parser.add_argument("--case", metavar="PART:NUMBER", help="one case alone")
    parser.add_argument("--report", action="store_true", help=f"write {REPORT.name} from the journal and do nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
