"""What the study's results say: docs/evidence.md, and the README's table and its sentence.

The document is a function of the results and of the plan, so a test can hold it to them. Torch is not needed for it.
"""

from __future__ import annotations

import itertools
import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evidence_results import (
    BETTER,
    LEVEL,
    QUALITY_OF,
    SHORT,
    WORSE,
    Contest,
    Difference,
    Evidence,
    Results,
    Target,
    contests,
)
from datamask.files import write_text

ROOT = Path(__file__).parents[1]
DOCUMENT, README = ROOT / "docs" / "evidence.md", ROOT / "README.md"
RANDOM, TOP = "random", "top-quality"
QUALITY_WORDS = {"rules": "by rules", "classifier": "by a classifier"}
UNITS = {"bigram": "word", "transformer": "byte"}
DIGITS = {"bigram": 3, "transformer": 4}
NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
WIDTH = 120

README_HEAD = "| at equal tokens, against random |"
ASKED = "Does a joint method beat the best simple one?"
"""How the sentence begins that says who wins, in the README and in the document."""


def target_title(name: str, facts: Mapping[str, Any]) -> str:
    """What a target is, in a few words."""
    return {
        "random": "drawn as the pool's are",
        "reference": facts["reference_says"],
        "kind": "of one kind",
    }[name]


def title(name: str) -> str:
    """A selection as people read it."""
    word, _, lamb = name.partition(" ")
    spoken = {
        "greedy": "greedy on facility",
        "facility": "facility location",
        "pairwise": "pair-wise similarity",
        "disf": "DiSF",
        "semdedup": "SemDeDup",
        "cluster-balanced": "cluster-balanced",
    }
    label = spoken.get(word, word.replace("-", " "))
    return f"{label}, lambda {lamb}" if lamb else label


def cell(outcome: Difference | None, digits: int) -> str:
    """A difference with its interval, bold where that does not hold 0."""
    if outcome is None:
        return "too few seeds"
    mean, low, high = (signed(value, digits) for value in (outcome.mean, outcome.low, outcome.high))
    shown = mean if outcome.verdict == LEVEL else f"**{mean}**"
    return f"{shown} [{low}, {high}]"


def signed(value: float, digits: int) -> str:
    """With its sign, a minus of its own."""
    return f"{value:+.{digits}f}".replace("-", "−")


def table(rows: Iterable[Sequence[str]]) -> str:
    """The first row is the head."""
    head, *body = [[*row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body))


def table_of_differences(evidence: Evidence, judge: str, quality: str, baseline: str) -> str:
    """A row per selection, a column per target."""
    rows = [["", *(target.title for target in evidence.targets)]]
    for name in evidence.selections[judge]:
        if name != baseline:
            outcomes = [evidence.difference(judge, quality, target, name, baseline) for target in evidence.targets]
            rows.append([title(name), *(cell(outcome, DIGITS[judge]) for outcome in outcomes)])
    return table(rows)


def sentence(evidence: Evidence, judge: str, quality: str, name: str, baseline: str) -> str:
    """On which targets a selection is better than a baseline, worse, and neither; targets by name."""
    sides = evidence.verdicts(judge, quality, name, baseline)
    of = sum(map(len, sides.values()))
    subject = title(name)[0].upper() + title(name)[1:]
    if not of:
        return f"{subject}: too few seeds are done."

    def where(targets: list[Target]) -> str:
        named = "; ".join(target.title for target in targets)
        return f"{NUMBERS[len(targets)]} of {NUMBERS[of]}" + (f" ({named})" if targets else "")

    return (
        f"{subject} was better than {title(baseline)} on {where(sides[BETTER])}, worse on {where(sides[WORSE])}, and "
        f"cannot be told apart from it on {where(sides[LEVEL])}."
    )


def headline(evidence: Evidence, judge: str) -> list[str]:
    """The selections of the short table that the plan asks of a judge."""
    lamb = f"{evidence.asked['headline']['lambda']:g}"
    shown = [
        TOP,
        "soft-quality",
        "cluster-balanced",
        "semdedup",
        *(f"{n} {lamb}" for n in ("greedy", "pairwise", "facility")),
    ]
    return [name for name in shown if name in evidence.selections[judge]]


def readme_table(evidence: Evidence) -> str:
    """Seven selections against random: on how many targets better, worse, neither."""
    columns = [(judge, quality) for judge, qualities in QUALITY_OF.items() for quality in qualities]
    heads = [f"{judge}, quality {QUALITY_WORDS[quality]}" for judge, quality in columns]
    lines = [f"{README_HEAD} {' | '.join(heads)} |", "|" + "---|" * (len(columns) + 1)]
    for name in headline(evidence, "bigram"):
        counts = []
        for judge, quality in columns:
            if name not in evidence.selections[judge]:
                counts.append("not planned")
                continue
            sides = evidence.verdicts(judge, quality, name, RANDOM)
            missing = len(evidence.targets) - sum(map(len, sides.values()))
            shown = " / ".join(str(len(sides[side])) for side in (BETTER, WORSE, LEVEL))
            some = f"{shown}, {missing} not done" if missing else shown
            counts.append("not done" if missing == len(evidence.targets) else some)
        lines.append(f"| {title(name)} | {' | '.join(counts)} |")
    return "\n".join(lines)


def who_wins(evidence: Evidence) -> str:
    """Whether a joint method beats the best simple one, by the bigram judge: a paragraph."""
    found = contests(evidence, "bigram", evidence.joint, evidence.simple)
    if not found:
        return f"{ASKED} Too few seeds are done."
    sides = {side: [one for one in found if one.outcome.verdict == side] for side in (BETTER, WORSE, LEVEL)}
    winners = Counter(title(name) for one in sides[WORSE] for name in one.simple)
    names = " or ".join(winners)
    wins = "" if not sides[WORSE] else f" ({names} wins each)" if len(winners) == 1 else f" ({names} wins)"
    return (
        f"{ASKED} {'In some cells' if sides[BETTER] else 'No'}. Of {len(found)} cells "
        f"({NUMBERS[len(QUALITY_OF['bigram'])]} qualities, {NUMBERS[len(evidence.targets)]} targets, bigram judge; "
        f"both chosen on {NUMBERS[len(evidence.asked['seeds']['bigram']) - 1]} seeds and judged on the one left out) "
        f"joint is better in {len(sides[BETTER])}, worse in {len(sides[WORSE])}{wins}, "
        f"undecided in {len(sides[LEVEL])}."
    )


def with_table(readme: str, made: str) -> str:
    """The README with this table in the place of the one under the same head.

    Raises:
        ValueError: there is no such table.
    """
    return _with(readme, rf"^{re.escape(README_HEAD)}.*\n(?:\|.*\n)+", made, f"table that begins {README_HEAD!r}")


def with_sentence(readme: str, made: str) -> str:
    """The README with this paragraph in the place of the one that begins alike.

    Raises:
        ValueError: there is no such paragraph.
    """
    return _with(readme, rf"^{re.escape(ASKED)}.*\n(?:.+\n)*", wrapped(made), f"paragraph that begins {ASKED!r}")


def _with(readme: str, pattern: str, made: str, what: str) -> str:
    replaced, times = re.subn(pattern, lambda _: f"{made}\n", readme, flags=re.MULTILINE)
    if times != 1:
        raise ValueError(f"README.md must hold one {what}, got {times}")
    return replaced


def document(evidence: Evidence) -> str:
    """docs/evidence.md."""
    asked = evidence.asked
    quality = asked["headline"]["quality"]
    parts = [
        "# Does selecting help, what does it help, and against whom?",
        "This page is made by `python -m benchmarks.evidence --write` from the raw results in "
        "[benchmarks/results](../benchmarks/results); a test holds it to them. The targets, the "
        "selections, the seeds and what the short table shows were [named and committed]"
        "(../benchmarks/evidence_targets.toml) before anything was run, with two exceptions that came after the "
        "results: SemDeDup and greedy in the short table, which had been judged and were left out of it, and the "
        "comparison of joint with simple methods.",
        "## In short",
        who_wins(evidence),
        _in_short(evidence, quality),
        "## Joint against simple methods",
        *_joint_against_simple(evidence).split("\n\n"),
        "## What was measured",
        *_method(evidence).split("\n\n"),
        *_samples(evidence).split("\n\n"),
        "## How to read the intervals",
        *_intervals(evidence).split("\n\n"),
        "## What is circular",
        *_circular(evidence).split("\n\n"),
    ]
    for judge, qualities in QUALITY_OF.items():
        for of_quality in qualities:
            parts.append(f"## The {judge} judge, quality {QUALITY_WORDS[of_quality]}")
            for baseline in (RANDOM, TOP):
                parts.append(
                    f"Difference to {title(baseline)}, in nats per {UNITS[judge]}, with its interval; below 0 is "
                    "better, "
                    "bold is told apart."
                )
                parts.append(table_of_differences(evidence, judge, of_quality, baseline))
    parts += ["## On what it was made", _made_on(evidence)]
    return "\n\n".join(map(wrapped, parts)) + "\n"


def wrapped(part: str) -> str:
    """Lines of prose no longer than `WIDTH`; tables and headings as they are."""
    if part.startswith(("|", "#")):
        return part
    lines = [
        textwrap.fill(
            line,
            WIDTH,
            subsequent_indent="  " if line.startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in part.split("\n")
    ]
    return "\n".join(lines)


def _in_short(evidence: Evidence, quality: str) -> str:
    lines = [
        f"Quality {QUALITY_WORDS[quality]}, against a random selection of equally many tokens, by the bigram judge "
        "(which targets these are stands in the table below):",
        "",
        *(f"- {sentence(evidence, 'bigram', quality, name, RANDOM)}" for name in headline(evidence, "bigram")),
        "",
        "The same with quality by rules:",
        "",
        *(f"- {sentence(evidence, 'bigram', 'rules', name, RANDOM)}" for name in headline(evidence, "bigram")),
        "",
        f"By the small transformer, quality {QUALITY_WORDS[quality]}:",
        "",
        *(
            f"- {sentence(evidence, 'transformer', quality, name, RANDOM)}"
            for name in headline(evidence, "transformer")
        ),
        "",
        f"Against top quality {QUALITY_WORDS[quality]}, by the bigram judge:",
        "",
        *(f"- {sentence(evidence, 'bigram', quality, name, TOP)}" for name in headline(evidence, "bigram")[1:]),
    ]
    return "\n".join(lines)


def _joint_against_simple(evidence: Evidence) -> str:
    parts = [
        "Joint methods maximize quality and diversity together: pair-wise similarity, facility location and DiSF, and "
        "greedy on facility location, each at every lambda of the plan. Simple ones are all others. The best of many "
        "is chosen on the other seeds and judged on the seed left out; chosen on the very seeds that judge it, it "
        "would look better than it is. The interval is that of the differences of all seeds, joint less simple, in "
        "nats per word or byte; below 0 joint is better. Behind a name stands how often it was chosen.",
    ]
    for judge in QUALITY_OF:
        found = contests(evidence, judge, evidence.joint, evidence.simple)
        counts = Counter(one.outcome.verdict for one in found)
        absent = ", ".join(title(name) for name in evidence.simple if name not in evidence.selections[judge])
        parts.append(
            f"The {judge} judge: of {len(found)} cells joint is better in {counts[BETTER]}, worse in {counts[WORSE]}, "
            f"and undecided in {counts[LEVEL]}." + (f" Its plan has no {absent}." if absent else "")
        )
        head = ["quality", "target", "joint method", "simple method", "joint less simple"]
        parts.append(table([head, *(_contest_row(one, DIGITS[judge]) for one in found)]))
    return "\n\n".join(parts)


def _contest_row(one: Contest, digits: int) -> list[str]:
    names = (", ".join(f"{title(name)} ({n})" for name, n in side.most_common()) for side in (one.joint, one.simple))
    return [QUALITY_WORDS[one.quality], one.target.title, *names, cell(one.outcome, digits)]


def _method(evidence: Evidence) -> str:
    asked = evidence.asked
    settings = evidence.results.get("bigram", {}).get("settings", {})
    parts = [
        f"Of each corpus every seed draws {asked['rows']:,} rows anew, the pool; beside it up to {asked['held']:,} "
        "texts "
        "of each target, and as many reference texts, those that a person would call good. Near-copies of a target "
        "(cosine 0.95 or above among the listed neighbours, or the same text) leave the pool and the reference, those "
        "of the reference the pool, before anything is selected. Every way to select then takes "
        f"{asked['ratio']:g} of the pool. Each selection trains the judge on equally many words, or bytes, in an order "
        "that is the same for all: on as many as the shortest of the selections compared has, and at most "
        f"{settings.get('words', 0):,} words or {settings.get('bytes', 0):,} bytes.",
        "Quality is by rules (the score that came with the package descriptions; that of `datamask prepare` for the "
        "others), or by a classifier trained as DCLM's is: logistic regression on hashed words and pairs of words, "
        "which tells reference texts from equally many rows of the pool. Each half of the pool is scored by the "
        "classifier that learned from the other half.",
        f"The transformer has {settings.get('parameters', 0):,} parameters, reads bytes, sees every byte of its "
        f"training text once, and is asked for at most {settings.get('asked', 0):,} bytes of a target; the bigram "
        "judge "
        f"is asked for all of it. Random is the mean of {settings.get('draws', 0)} random selections of a seed for the "
        "bigram judge, the first of them for the transformer. Greedy picks by facility location. DiSF is learned in "
        f"{settings.get('disf', {}).get('n_epochs', 0)} steps of exact credit, without swaps, which is short of its "
        "best by some thousandths of the scale. Temperature, clusters and all else are at the program's defaults.",
    ]
    for judge in QUALITY_OF:
        done, of = evidence.done(judge)
        seeds = NUMBERS[len(evidence.asked["seeds"][judge])]
        missing = "" if done == of else " Later seeds are missing, in whole or in part, for want of time alone."
        parts.append(
            f"The plan names {seeds} seeds for the {judge} judge: {done:,} of {of:,} selections are judged.{missing}"
        )
    return "\n\n".join(parts)


def _samples(evidence: Evidence) -> str:
    samples = evidence.results.get("bigram", {}).get("samples", {})
    head = ["corpus", "seeds", "pool", "near-copies that left it", "texts of each target"]
    rows = [[*head, "words that each selection trains on", "classifier", "shared"]]
    for corpus, facts in evidence.asked["corpora"].items():
        keys = [f"{corpus}/{seed}" for seed in evidence.asked["seeds"]["bigram"]]
        of_seeds = [samples[key] for key in keys if key in samples]
        pieces = [piece for quality in QUALITY_WORDS for piece in evidence.pieces("bigram", quality, corpus)]
        if not of_seeds or not pieces:
            rows.append([corpus, *["not run"] * (len(rows[0]) - 1)])
            continue
        targets = "; ".join(
            f"{SHORT.get(name) or facts['target_kind']} ({target_title(name, facts)}): "
            f"{_span(of['targets'][name]['texts'] for of in of_seeds)}"
            for name in facts["targets"]
        )
        aucs = [of["classifier_auc"] for of in of_seeds if "classifier_auc" in of]
        shared = samples.get(corpus, {}).get("shared_by_two_seeds")
        seeds = [len(evidence.pieces("bigram", quality, corpus)) for quality in QUALITY_WORDS]
        rows.append(
            [
                f"{corpus}: {facts['what']}",
                _span(seeds),
                _span(of["pool"] for of in of_seeds),
                _span(of["near_copies_left"] for of in of_seeds),
                targets,
                _span(piece["budget"] for piece in pieces),
                f"{np.mean(aucs):.2f}" if aucs else "",
                "" if shared is None else f"{100 * shared:.0f} %",
            ]
        )
    return (
        table(rows)
        + "\n\nClassifier: the chance that it scores a row of the reference's kinds above another row of the pool, "
        "none "
        "of which it has learned from. Shared: rows of a seed's pool that another seed's holds too."
    )


def _span(values: Iterable[int]) -> str:
    every = list(values)
    return f"{min(every):,}" if min(every) == max(every) else f"{min(every):,} to {max(every):,}"


def _intervals(evidence: Evidence) -> str:
    from scipy.stats import t

    asked = evidence.asked
    shown = [
        outcome
        for judge, qualities in QUALITY_OF.items()
        for quality, target, name in itertools.product(qualities, evidence.targets, evidence.selections[judge])
        if name != RANDOM and (outcome := evidence.difference(judge, quality, target, name, RANDOM)) is not None
    ]
    apart = sum(outcome.verdict != LEVEL for outcome in shown)
    reaches = ", ".join(
        f"with {NUMBERS[k]} seeds {float(t.ppf(0.5 + asked['confidence'] / 2, k - 1)) / k**0.5:.2f}"
        for k in sorted({outcome.seeds for outcome in shown}, reverse=True)
    )
    spread = [
        float(np.std(np.array(piece["random_draws"])[:, place], ddof=1))
        for corpus, facts in asked["corpora"].items()
        for piece in evidence.pieces("bigram", "rules", corpus)
        for place in range(len(facts["targets"]))
    ]
    drawn = (
        f" Two random selections of one seed differ too: their standard deviation is {np.mean(spread):.3f} nats per "
        "word "
        "in the mean over targets and seeds."
        if spread
        else ""
    )
    return (
        f"Each is a {100 * asked['confidence']:.0f} % t-interval of differences paired by seed: same sample, same "
        "target "
        "texts, same number of words. It reaches so many standard deviations of a seed's difference to each side: "
        f'{reaches}. That is wide, and "cannot be told apart" says that so few seeds cannot tell, not that there is no '
        "difference. Seeds are samples of one corpus: what two of them share makes intervals too narrow, most where "
        "the "
        f"last column above is large, and nothing here speaks of other corpora.{drawn}\n\n"
        f"Every interval holds by itself. Of the {len(shown)} against random on this page {apart} do not hold 0; if "
        f"nothing made any difference, some {(1 - asked['confidence']) * len(shown):.0f} would be expected not to."
    )


def _circular(evidence: Evidence) -> str:
    corpora = evidence.asked["corpora"].values()
    made = " and the ".join(facts["title"] for facts in corpora if facts["circular"])
    other = " and the ".join(facts["title"] for facts in corpora if not facts["circular"])
    return (
        f"Of the {made}, scores by rules and features are made of the very texts that the judge reads: words make the "
        "features, and words are what it is asked about. That is circular; it shows what a selection does to words, "
        "not "
        f"that features by another model would do the same. The features of the {other} come from a sentence embedding "
        "that was trained elsewhere; their scores by rules are made of their texts too.\n\n"
        "The classifier is shown reference texts, and a target of reference texts is more of the same: where top "
        "quality "
        "by it is better there, it does what it was made for.\n\n"
        "Both judges are small: one counts pairs of words, the other sees some tens of thousands of bytes. Neither "
        "says "
        "what a large model learns from a selection, least of all over many epochs."
    )


def _made_on(evidence: Evidence) -> str:
    lines = []
    for judge, of_judge in evidence.results.items():
        about = of_judge.get("about", {})
        if about:
            packages, docstrings = (
                ", ".join(f"{name} {version}" for name, version in about[part].items() if version is not None)
                for part in ("packages", "docstrings_of")
            )
            lines.append(
                f"The {judge} judge: Python {about['python']} on {about['machine']}, {packages}, one thread. "
                "Docstrings "
                f"of its standard library and of {docstrings}."
            )
    return "\n\n".join(lines)


def read_results(paths: Mapping[str, Path]) -> dict[str, Any]:
    """The results of each judge; of one that has none yet, nothing."""
    return {
        judge: json.loads(path.read_text(encoding="utf-8")) if path.exists() else {} for judge, path in paths.items()
    }


def write(results: Results, asked: Mapping[str, Any]) -> None:
    """Make docs/evidence.md, and of the README the table and the sentence on joint methods."""
    evidence = Evidence(results, asked)
    write_text(DOCUMENT, document(evidence))
    readme = with_table(README.read_text(encoding="utf-8"), readme_table(evidence))
    write_text(README, with_sentence(readme, who_wins(evidence)))
