"""What the study's results say: docs/evidence.md with its picture, and the README's section.

The document is a function of the results and of the plan, so a test holds it to them. No torch.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evidence_picture import picture
from benchmarks.evidence_results import (
    BETTER,
    FOLDER,
    LEAST_SEEDS,
    LEVEL,
    RANDOM,
    WORSE,
    Contest,
    Difference,
    Evidence,
    Target,
    by_lambda,
    holm,
    read_results,
)
from datamask.files import write_text

ROOT = Path(__file__).parents[1]
DOCUMENT, PICTURE, README = ROOT / "docs" / "evidence.md", ROOT / "docs" / "evidence.svg", ROOT / "README.md"
EARLIER = {proxy: FOLDER / f"evidence-earlier-{proxy}.json" for proxy in ("bigram", "transformer")}
README_SECTION = re.compile(r"(?<=^## Measured\n\n).*?(?=\n\nHow fast\?)", re.DOTALL | re.MULTILINE)
WIDTH = 120
SPOKEN = {
    "random": "random",
    "exact-duplicates": "exact duplicates removed",
    "semdedup": "SemDeDup",
    "soft-quality": "soft quality",
    "top-quality": "top quality",
    "cluster-balanced": "cluster-balanced",
    "masks": "learned masks",
    "greedy": "greedy on facility",
    "facility": "facility",
    "pairwise": "pairwise",
    "vendi": "Vendi",
}
WHY = {
    "packages: rust": " The descriptions of this section follow one template, and a method that avoids redundancy "
    "keeps few of them."
}
"""What is known of a target that decides largest regrets."""

PROXY_WORDS = {"bigram": "bigram model", "transformer": "small transformer"}


def title(name: str) -> str:
    """Return a method as people read it, such as ``facility λ 0.5``."""
    word, _, lamb = name.partition(" ")
    return f"{SPOKEN[word]} λ {lamb}" if lamb else SPOKEN[word]


def signed(value: float, digits: int) -> str:
    """Return a number with its sign, a minus of its own."""
    # no minus before a zero
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", "−")


def table(rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the first row is the head."""
    head, *body = [[*row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body))


def counted(counts: Counter[str]) -> str:
    """Return ``better / worse / neither``."""
    return " / ".join(str(counts[side]) for side in (BETTER, WORSE, LEVEL))


def arm_title(arm: str, asked: Mapping[str, Any]) -> str:
    """Return an arm as people read it, such as ``films by ratings``."""
    corpus, quality, features = arm.split("/")
    own = asked["corpora"][corpus].get("features", "stored")
    other = "" if features == own else ", TF-IDF features"
    return f"{asked['corpora'][corpus]['title']} by {quality}{other}"


def span(values: Iterable[float], digits: int = 0) -> str:
    """Return ``least to most``, or the one value."""
    every = [f"{value:,.{digits}f}" for value in sorted(values)]
    return every[0] if every[0] == every[-1] else f"{every[0]} to {every[-1]}"


def joined(names: Sequence[str], last: str = "and") -> str:
    """Return ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


class Hypothesis:
    """The outcome of the hypothesis.

    Attributes:
        regrets: largest regret of each method over the targets tested. wins: (lambda's method, baseline) -> counts of
            targets, after Holm's correction and without. robust, ahead: of each lambda's method, whether its largest
            regret is smaller than every simple baseline's, and whether it wins against each on more targets than it
            loses.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.regrets = evidence.largest_regrets(evidence.tested)
        self.methods = [name for name in evidence.supposed if name in self.regrets]
        self.simple = [name for name in evidence.simple if name in self.regrets]
        self.wins = {(m, b): evidence.counts(evidence.tested, m, b) for m in self.methods for b in self.simple}
        self.robust = {m: all(self.regrets[m] < self.regrets[b] for b in self.simple) for m in self.methods}
        self.ahead = {
            m: all(self.wins[m, b][0][BETTER] > self.wins[m, b][0][WORSE] for b in self.simple) for m in self.methods
        }

    @property
    def holds(self) -> bool:
        return all(self.robust[m] and self.ahead[m] for m in self.methods)

    @property
    def most_robust(self) -> str:
        return min(self.regrets, key=lambda name: self.regrets[name])

    @property
    def most_robust_simple(self) -> str:
        return min(self.simple, key=lambda name: self.regrets[name])


def corrected(found: Sequence[Contest], level: float) -> list[str]:
    """Return the verdict of each contest after Holm's correction over them."""
    return [verdict for verdict in holm([one.outcome for one in found], level) if verdict is not None]


def in_short(evidence: Evidence) -> list[str]:
    """Return the five lines that the document begins with."""
    tested, hypothesis = evidence.tested, Hypothesis(evidence)
    found = evidence.contests(tested)
    verdicts = corrected(found, evidence.level)
    n = len(found)
    counts = {name: evidence.counts(tested, name)[0] for name in hypothesis.regrets if name != RANDOM}
    helped = max(counts, key=lambda name: counts[name][BETTER] - counts[name][WORSE])
    effects = [one.outcome.smallest_effect(evidence.level / n, evidence.asked["power"]) for one in found]
    return [
        f"**Does it help?** {_null(Counter(verdicts), n)} Against random, {title(helped)} does most: better on "
        f"{counts[helped][BETTER]}, worse on {counts[helped][WORSE]} of {n}.",
        f"**Which method is robust?** {_robust(evidence, hypothesis)}",
        f"**Which is best for which target?** {_best_for(evidence, tested)}",
        f"**By how much?** {_how_much(found, verdicts)} The smallest effect that could have been seen is "
        f"{span(effects, 3)} nats per word, {np.median(effects):.3f} in the median.",
        f"**What is unknown?** {_unknown(evidence)}",
    ]


def _robust(evidence: Evidence, hypothesis: Hypothesis) -> str:
    """Say whether the hypothesis holds, and which method is the safest."""
    regrets, name = hypothesis.regrets, evidence.asked["hypothesis"]["method"]
    lambdas = joined([m.split(" ")[1] for m in hypothesis.methods])
    ours = joined([f"{regrets[m]:.3f}" for m in hypothesis.methods])
    best, simple = hypothesis.most_robust, hypothesis.most_robust_simple
    outcome = "holds" if hypothesis.holds else "fails"
    first = f"{title(best)}, at most {regrets[best]:.3f} nats per word behind the best method of a target"
    if simple != best:
        first += f"; of the simple baselines {title(simple)}, at most {regrets[simple]:.3f}"
    return (
        f"The hypothesis that {name} at λ 0.35 to 0.7 is more robust than every simple baseline {outcome}. The safest "
        f"method is {first}. Random is at most {regrets[RANDOM]:.3f} behind, {name} {ours} (λ {lambdas}). "
        f"{_decides(evidence, hypothesis)}"
    )


def deciding(evidence: Evidence) -> Target:
    """Return the target on which most methods have their largest regret."""
    tested = [target for target in evidence.tested if evidence.seeds(target.arm)]
    places = Counter(int(of.argmax()) for of in evidence.regrets(tested).values())
    return tested[places.most_common(1)[0][0]]


def _decides(evidence: Evidence, hypothesis: Hypothesis) -> str:
    """Say what the largest regrets are without the target that decides most of them."""
    one = deciding(evidence)
    rest = evidence.largest_regrets([target for target in evidence.tested if target != one])
    ours = joined([f"{rest[m]:.3f}" for m in hypothesis.methods])
    simple = min(hypothesis.simple, key=lambda name: rest[name])
    return (
        f"One target, {one.title}, decides most of this; without it (looked at after the run) "
        f"{evidence.asked['hypothesis']['method']} has {ours}, {title(simple)} {rest[simple]:.3f}, random "
        f"{rest[RANDOM]:.3f}."
    )


def _null(sides: Counter[str], n: int) -> str:
    return (
        f"On {sides[LEVEL]} of {n} new targets the best joint method cannot be told apart from the best simple "
        f"baseline; it is worse on {sides[WORSE]} and better on {sides[BETTER]}."
    )


def _outcome(hypothesis: Hypothesis) -> str:
    """Say whether the hypothesis holds, and where it does not."""
    if hypothesis.holds:
        return (
            f"The hypothesis holds: {joined([title(m) for m in hypothesis.methods])} each have a smaller largest "
            "regret than every simple baseline, and beat each on more targets than they lose."
        )
    parts = []
    for m in hypothesis.methods:
        if hypothesis.robust[m] and hypothesis.ahead[m]:
            parts.append(f"{title(m)} fulfills both parts")
            continue
        words = []
        if not hypothesis.robust[m]:
            below = [b for b in hypothesis.simple if hypothesis.regrets[b] <= hypothesis.regrets[m]]
            words.append(f"has no smaller largest regret than {joined([title(b) for b in below], 'or')}")
        if not hypothesis.ahead[m]:
            behind = [
                f"{title(b)} ({hypothesis.wins[m, b][0][BETTER]} won, {hypothesis.wins[m, b][0][WORSE]} lost)"
                for b in hypothesis.simple
                if hypothesis.wins[m, b][0][BETTER] <= hypothesis.wins[m, b][0][WORSE]
            ]
            words.append(f"does not beat {joined(behind, 'or')}")
        parts.append(f"{title(m)} {' and '.join(words)}")
    return f"The hypothesis fails: {'; '.join(parts)}."


def _best_for(evidence: Evidence, targets: Sequence[Target]) -> str:
    """Say which family of methods has the best mean, corpus by corpus."""
    words = []
    for arm in dict.fromkeys(target.arm for target in targets):
        names = evidence.complete(arm)
        if not names:
            continue
        means = evidence.means(arm, names)
        best = Counter(
            SPOKEN[names[int(means[:, target.place].argmin())].split(" ")[0]] for target in targets if target.arm == arm
        )
        families = joined([f"{family} on {times}" for family, times in best.most_common()])
        words.append(f"{arm_title(arm, evidence.asked)}: {families}")
    return f"None is the best everywhere. By the mean, any λ: {'; '.join(words)}." if words else ""


def _how_much(found: Sequence[Contest], verdicts: Sequence[str]) -> str:
    words = []
    for side in (BETTER, WORSE):
        sizes = [abs(one.outcome.mean) for one, verdict in zip(found, verdicts, strict=True) if verdict == side]
        words.append(f"by {span(sizes, 3)} where it is {side}" if sizes else f"nowhere {side}")
    return f"The best joint method against the best simple baseline, in nats per word: {', '.join(words)}."


def _unknown(evidence: Evidence) -> str:
    arms = evidence.asked["hypothesis"]["arms"]
    seeds = span(len(evidence.seeds(arm)) for arm in arms)
    corpora = joined([evidence.asked["corpora"][arm.split("/")[0]]["title"] for arm in arms])
    missing = sum(map(len, evidence.not_run().values()))
    absent = list(dict.fromkeys(SPOKEN[name.split(" ")[0]] for name in evidence.absent))
    gaps = [f"{missing} cells of the plan"] if missing else []
    gaps += [joined(absent, "or")] if absent else []
    ranks = transformer_ranks(evidence)
    arm = arm_title(evidence.asked["methods"]["transformer_arm"], evidence.asked)
    second = (
        "" if ranks is None else f" On {arm} a small transformer ranks the methods at correlation {signed(ranks, 2)}."
    )
    not_run = f" [Not run](#what-was-measured): {joined(gaps)}." if gaps else ""
    return (
        f"What a large model learns: this is a bigram model on three corpora ({corpora}), {seeds} seeds, select ratio "
        f"{evidence.asked['ratio']:g}.{second}{not_run} Other corpora, ratios and sizes are not answered."
    )


def _planned(evidence: Evidence) -> int:
    return len(evidence.asked["seeds"]["first"]) + len(evidence.asked["seeds"]["then"])


def methods_table(evidence: Evidence, targets: Sequence[Target]) -> str:
    """Return a row per method: against random over the targets, mean, worst target, largest regret."""
    regrets, one = evidence.regrets(targets), deciding(evidence)
    rest = evidence.largest_regrets([target for target in targets if target != one])
    there = [target for target in targets if evidence.seeds(target.arm)]
    head = ["method", "better / worse / neither", "by bare intervals", "mean", "worst target", "largest regret"]
    rows = [[*head, f"without {one.title}"]]
    for name in evidence.methods:
        outcomes = [one for one in evidence.differences(there, name) if one is not None]
        if not outcomes:
            continue
        holms, bare = evidence.counts(there, name)
        means = np.array([one.mean for one in outcomes])
        worst = signed(means.max(), 3)
        regret = without = "too few seeds"
        if name in regrets:
            without = f"{rest[name]:.3f}"
            place = int(regrets[name].argmax())
            regret = f"{regrets[name][place]:.3f} ({there[place].title})"
        some = f", of {len(outcomes)}" if len(outcomes) < len(there) else ""
        beside = ["", ""] if name == RANDOM else [counted(holms) + some, counted(bare)]
        seeds = [len(evidence.values(target, name)) for target in there]
        fewer = any(have < len(evidence.seeds(target.arm)) for have, target in zip(seeds, there, strict=True))
        label = title(name) + (f" ({span(filter(None, seeds))} seeds)" if fewer else "")
        rows.append([label, *beside, signed(means.mean(), 3), worst, regret, without])
    return table(rows)


def hypothesis_table(evidence: Evidence) -> str:
    """Return a row per lambda and simple baseline: who wins on how many targets, and whose regret is smaller."""
    hypothesis = Hypothesis(evidence)
    head = ["method", "against", "won / lost / neither", "by bare intervals", "largest regret", "smaller in resamples"]
    rows = [head]
    resampled = evidence.resampled(evidence.tested)
    for (m, b), (holms, bare) in hypothesis.wins.items():
        share = float(np.mean(resampled[m] < resampled[b]))
        pair = f"{hypothesis.regrets[m]:.3f} against {hypothesis.regrets[b]:.3f}"
        rows.append([title(m), title(b), counted(holms), counted(bare), pair, f"{100 * share:.0f} %"])
    return table(rows)


def contest_table(evidence: Evidence, targets: Sequence[Target]) -> str:
    """Return a row per target: the best joint method against the best simple baseline."""
    head = ["target", "best by the mean", "joint", "simple", "joint less simple", "after Holm", "smallest effect"]
    rows = [head]
    found = evidence.contests(targets)
    for one, verdict in zip(found, corrected(found, evidence.level), strict=True):
        names = evidence.complete(one.target.arm)
        best = names[int(evidence.means(one.target.arm, names)[:, one.target.place].argmin())]
        effect = one.outcome.smallest_effect(evidence.level / len(found), evidence.asked["power"])
        sides = (
            ", ".join(f"{title(name)} ({n})" for name, n in side.most_common()) for side in (one.joint, one.simple)
        )
        said = {BETTER: "**joint better**", WORSE: "**joint worse**", LEVEL: "undecided"}[verdict]
        rows.append([one.target.title, title(best), *sides, interval(one.outcome), said, f"{effect:.3f}"])
    return table(rows)


def named(found: Sequence[Contest], level: float) -> str:
    """Return on how many targets joint is better, worse, and undecided; the decided ones by name."""
    verdicts = corrected(found, level)
    parts = []
    for side in (BETTER, WORSE, LEVEL):
        targets = [one.target.name for one, verdict in zip(found, verdicts, strict=True) if verdict == side]
        shown = f" ({', '.join(targets)})" if targets and side != LEVEL else ""
        parts.append(f"{len(targets)}{shown}")
    return " / ".join(parts)


def interval(outcome: Difference) -> str:
    """Return a mean with its interval."""
    mean, low, high = (signed(value, 3) for value in (outcome.mean, outcome.low, outcome.high))
    return f"{mean} [{low}, {high}]"


def arms_table(evidence: Evidence) -> str:
    """Return a row per arm: joint against simple, the lowest of the largest regrets, the hypothesis's methods."""
    head = [
        "arm",
        "seeds",
        "targets",
        "joint better / worse / undecided",
        "largest regret of the safest method",
        "of simple ones",
    ]
    rows = [[*head, *(title(name) for name in evidence.supposed), title(RANDOM)]]
    for arm in evidence.arms:
        targets, seeds = evidence.targets(arm), evidence.seeds(arm)
        regrets = evidence.largest_regrets(targets) if seeds else {}
        if not regrets:
            rows.append([arm_title(arm, evidence.asked), str(len(seeds)), *["not run"] * (len(rows[0]) - 2)])
            continue
        found = evidence.contests(targets)
        least = [
            min(names, key=lambda name: regrets[name])
            for names in (list(regrets), [name for name in evidence.simple if name in regrets])
        ]
        shown = [f"{title(name)}: {regrets[name]:.3f}" for name in least]
        of = [f"{regrets[name]:.3f}" if name in regrets else "" for name in (*evidence.supposed, RANDOM)]
        cells = [
            arm_title(arm, evidence.asked),
            str(len(seeds)),
            str(len(targets)),
            named(found, evidence.level),
            *shown,
            *of,
        ]
        rows.append(cells)
    return table(rows)


def differences_table(evidence: Evidence, arm: str) -> str:
    """Return a row per method, a column per target: the difference to random, bold after Holm's correction."""
    targets = evidence.targets(arm)
    rows = [["", *(target.name for target in targets)]]
    for name in evidence.methods:
        outcomes = evidence.differences(targets, name)
        if name == RANDOM or not any(outcomes):
            continue
        cells = []
        for outcome, verdict in zip(outcomes, holm(outcomes, evidence.level), strict=True):
            shown = "" if outcome is None else signed(outcome.mean, 3)
            cells.append(f"**{shown}**" if verdict in (BETTER, WORSE) else shown)
        rows.append([title(name), *cells])
    return table(rows)


def samples_table(evidence: Evidence) -> str:
    """Return a row per corpus: pool, exact duplicates by text, held-out texts, shared rows."""
    samples = evidence.results.get("samples", {})
    rows = [
        ["corpus", "what", "pool", "same text as another", "held-out texts of a target", "words trained on", "shared"]
    ]
    for corpus, facts in evidence.asked["corpora"].items():
        of_seeds = [of for key, of in samples.items() if key.rpartition("/")[0] == corpus]
        cells = [cell for key, cell in evidence.cells.items() if key.split("/")[0] == corpus]
        if not of_seeds or not cells:
            rows.append([facts["title"], facts["what"], *["not run"] * (len(rows[0]) - 2)])
            continue
        shared = samples.get(corpus, {}).get("shared_by_two_seeds")
        rows.append(
            [
                facts["title"],
                facts["what"],
                span(of["pool"] for of in of_seeds),
                span(of["copies"] for of in of_seeds),
                span(texts for of in of_seeds for texts in of["targets"].values()),
                span(cell["budget"] for cell in cells),
                "" if shared is None else f"{100 * shared:.0f} %",
            ]
        )
    return table(rows)


def bands(evidence: Evidence, names: Iterable[str]) -> list[list[str]]:
    """Return methods in bands of a kind, for the picture."""
    there = set(names)
    kinds = [
        evidence.simple,
        [evidence.asked["methods"]["masks"], *evidence.asked["methods"]["others"]],
        *(
            [name for name in by_lambda(evidence.asked) if name.startswith(kind)]
            for kind in evidence.asked["methods"]["by_lambda"]
        ),
    ]
    shown = [[name for name in kind if name in there] for kind in kinds]
    return [kind for kind in shown if kind]


def drawn(evidence: Evidence) -> str:
    """Return the picture."""
    arms = [arm for arm in evidence.asked["hypothesis"]["arms"] if evidence.seeds(arm)]
    groups = [(arm_title(arm, evidence.asked), evidence.targets(arm)) for arm in arms]
    titles = {name: title(name) for name in evidence.methods}
    regrets = evidence.largest_regrets(evidence.tested)
    return picture(evidence, groups, bands(evidence, evidence.methods), titles, regrets)


def document(evidence: Evidence) -> str:
    """Return docs/evidence.md."""
    asked, n = evidence.asked, len(evidence.tested)
    arms = asked["hypothesis"]["arms"]
    parts = [
        "# Which method should select?",
        "\n".join(f"- {line}" for line in in_short(evidence)),
        "![Methods by targets: better and worse than a random selection, told apart or not](evidence.svg)",
        "This page is made by `python -m benchmarks.evidence --write` from "
        "[the raw results](../benchmarks/results/evidence.json); a test holds it to them. The hypothesis, the targets, "
        "the methods, the statistic and the seeds were [committed](../benchmarks/evidence_plan.toml) before the first "
        "run; since then only the order of the cells has changed, so that the cheapest ran first. All differences are "
        "in nats per word of held-out text; below 0 is better. λ 1 is top quality.",
        "## The hypothesis",
        f"Facility location at λ 0.35 to 0.7 has a smaller largest regret than every simple baseline, and beats each "
        f"of them on more targets than it loses: on {n} targets that no pilot has seen, with scores that are not made "
        f"from the text. {_outcome(Hypothesis(evidence))}",
        "Won and lost are paired t-tests over the seeds after Holm's correction over the targets; next to them the "
        f"bare {100 * (1 - evidence.level):.0f} % intervals. The last column resamples the seeds of each corpus: in "
        "how many resamples the method has the smaller largest regret.",
        hypothesis_table(evidence),
        f"## Methods over the {n} targets",
        "Against random. The regret of a method is its mean on a target minus that of the best method there. For "
        "an unknown target the safest method is the one that is never far behind. The last column "
        f"leaves out {deciding(evidence).title}, where most methods have their largest regret; it was added after the "
        "run." + WHY.get(deciding(evidence).title, ""),
        methods_table(evidence, evidence.tested),
        "## Joint against the best simple baseline",
        "Joint methods weigh quality and diversity: facility, pairwise, Vendi and greedy on facility, at every λ of "
        "the plan. The best of either side is chosen on the other seeds and evaluated on the seed left out; behind a "
        "name stands how often it was chosen. The smallest effect is what the test finds with probability "
        f"{asked['power']:g} at the strictest step of Holm. First the {n} targets of the hypothesis, then the others "
        "of the same corpora.",
        contest_table(evidence, evidence.tested),
        contest_table(evidence, [t for arm in arms for t in evidence.targets(arm) if t not in set(evidence.tested)]),
        "## Every arm",
        "Other scores and other features on the same rows, and two corpora without a score of their own. An arm's "
        "regrets are over all its targets, and its results are corrected over them.",
        arms_table(evidence),
        *_transformer(evidence),
        "## What was measured",
        *_method(evidence),
        samples_table(evidence),
        "Shared: rows of a seed's pool that another seed's holds too.",
        *_cells(evidence),
        "## How to read it",
        *_reading(evidence),
        "## An earlier study",
        _earlier(),
        "## Every difference to random",
        "The numbers of the picture, in nats per word; bold is told apart after Holm's correction over the targets of "
        "the table.",
    ]
    for arm in arms:
        if evidence.seeds(arm):
            parts += [
                f"### {arm_title(arm, asked)[0].upper()}{arm_title(arm, asked)[1:]}",
                differences_table(evidence, arm),
            ]
    parts += ["## Made on", _made_on(evidence)]
    return "\n\n".join(map(wrapped, filter(None, parts))) + "\n"


def wrapped(part: str) -> str:
    """Return lines of prose no longer than `WIDTH`; tables, headings and pictures as they are."""
    if part.startswith(("|", "#", "!")):
        return part
    return "\n".join(
        textwrap.fill(
            line,
            WIDTH,
            subsequent_indent="  " if line.startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in part.split("\n")
    )


def transformer_ranks(evidence: Evidence) -> float | None:
    """Return the rank correlation of the two proxy models' mean losses over the transformer's methods and seeds.

    None: fewer than three seeds or four methods are done.
    """
    from scipy.stats import spearmanr

    arm = evidence.asked["methods"]["transformer_arm"]
    other = Evidence(evidence.results, evidence.asked, "transformer")
    seeds, there = other.seeds(arm), evidence.complete(arm)
    names = [name for name in other.complete(arm) if name in there]
    if len(seeds) < LEAST_SEEDS or len(names) < 4:
        return None
    losses = [side.means(arm, names, seeds).mean(axis=1) for side in (evidence, other)]
    return float(spearmanr(*losses).statistic)


def _transformer(evidence: Evidence) -> list[str]:
    """Say what the small transformer says of its one arm, and whether it ranks the methods as the bigram model does."""
    arm = evidence.asked["methods"]["transformer_arm"]
    other, ranks = Evidence(evidence.results, evidence.asked, "transformer"), transformer_ranks(evidence)
    heading = "## The small transformer"
    if ranks is None:
        done = sum(len(cell["nats"]) for cell in other.cells.values())
        of = len(evidence.asked["seeds"]["transformer"]) * len(evidence.asked["methods"]["transformer"])
        return [
            heading,
            f"Not run to an answer: {done} of {of} trainings on {arm_title(arm, evidence.asked)} are done.",
        ]
    targets = other.targets(arm)
    rows = [["", *(target.name for target in targets), "better / worse / neither"]]
    for name in other.methods:
        outcomes = other.differences(targets, name)
        if name != RANDOM and any(outcomes):
            cells = ["" if one is None else signed(one.mean, 4) for one in outcomes]
            rows.append([title(name), *cells, counted(other.counts(targets, name)[0])])
    return [
        heading,
        f"On {arm_title(arm, evidence.asked)}, {len(other.seeds(arm))} seeds, in nats per byte against random. Over "
        f"its {len(other.methods)} methods its mean losses and the bigram model's on the same seeds have rank "
        f"correlation {signed(ranks, 2)}.",
        table(rows),
    ]


def _method(evidence: Evidence) -> list[str]:
    asked = evidence.asked
    scores = "; ".join(
        f"{facts['title']}: " + ", ".join(f"{name} ({words})" for name, words in facts["scores"].items())
        for facts in asked["corpora"].values()
        if "like" not in facts
    )
    return [
        f"Of each corpus every seed draws up to {asked['rows']:,} rows, the pool, after the held-out texts of every "
        f"target. Rows with a held-out text's words, or a cosine of {asked['near']:g} or more to one, leave the "
        "pool: all its rows were compared with all held-out rows, so none near one was left to select. "
        f"Every method keeps {asked['ratio']:g} of it. The bigram model trains on equally many words of each "
        "selection, as many as the shortest has and at most 150,000, in an order that is the same for all, and "
        "predicts the held-out texts. Random and exact duplicates removed are means of four draws; the second draws "
        "the same rows and replaces those of which an earlier one has the same text. These cells compared texts as "
        "they are, up to the 2,000 characters that the bigram model reads; in full, in Unicode's NFC and without white "
        "space around them, the same rows of every pool of films, papers, packages and texts are duplicates. Learned "
        "masks are the paper's preset with pair-wise similarity, 5,000 steps; its DiSF would take hours and was not "
        "planned. All else is at the program's defaults; features are not centered.",
        f"Scores: {scores}. The classifier learns from the texts alone, each half of the pool from the other half.",
    ]


def _cells(evidence: Evidence) -> list[str]:
    planned, missing = _planned(evidence), evidence.not_run()
    done = sum(planned - len(missing.get(arm, [])) for arm in evidence.arms)
    spent = sum(
        cell.get("cpu_seconds", 0.0) for proxy in PROXY_WORDS for cell in evidence.results.get(proxy, {}).values()
    )
    lines = [
        f"The plan has {planned} seeds of {len(evidence.arms)} arms: {done} of {planned * len(evidence.arms)} cells "
        f"ran, in {spent / 3600:.1f} CPU hours."
    ]
    none = [arm_title(arm, evidence.asked) for arm, seeds in missing.items() if len(seeds) == planned]
    some = [
        f"{arm_title(arm, evidence.asked)} (seeds {numbered(seeds)})"
        for arm, seeds in missing.items()
        if len(seeds) < planned
    ]
    lacks: dict[tuple[str, ...], list[str]] = {}
    for name, cells in evidence.lacking().items():
        lacks.setdefault(tuple(cells), []).append(name)
    without = [f"{joined(_families(names, evidence))}: {_places(cells, evidence)}" for cells, names in lacks.items()]
    for words, names in (
        ("No cell ran of", none),
        ("Some did not run of", some),
        ("No cell has", _families(evidence.absent, evidence)),
    ):
        if names:
            lines.append(f"{words}: {'; '.join(names)}.")
    return [*lines, *(f"Cells without {one}." for one in without)]


def numbered(numbers: Sequence[int]) -> str:
    """Return ``5 to 9`` or ``1, 4``."""
    if len(numbers) > 2 and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _families(names: Sequence[str], evidence: Evidence) -> list[str]:
    """Return methods by title; one word where a method lacks every lambda of the plan."""
    shown = []
    for word in dict.fromkeys(name.split(" ")[0] for name in names):
        of = [name for name in names if name.split(" ")[0] == word]
        whole = [name for name in by_lambda(evidence.asked) if name.split(" ")[0] == word]
        shown += [f"{SPOKEN[word]} at every λ"] if whole and set(whole) == set(of) else [title(name) for name in of]
    return shown


def _places(cells: Sequence[str], evidence: Evidence) -> str:
    """Return the arms of cells, and the seeds where they are not all that ran."""
    words = []
    for arm in dict.fromkeys(key.rpartition("/")[0] for key in cells):
        seeds = [int(key.rpartition("/")[2]) for key in cells if key.rpartition("/")[0] == arm]
        some = "" if seeds == evidence.seeds(arm) else f" (seeds {numbered(seeds)})"
        words.append(f"{arm_title(arm, evidence.asked)}{some}")
    return "; ".join(words)


def _reading(evidence: Evidence) -> list[str]:
    spread = [
        float(np.std(np.array(cell["random_draws"])[:, place], ddof=1))
        for cell in evidence.cells.values()
        for place in range(len(cell["targets"]))
    ]
    return [
        "Intervals and tests are paired by seed: the same pool, the same held-out texts, equally many words. Undecided "
        "means that so few seeds cannot tell, not that there is no difference. Seeds are draws from one corpus: rows "
        "that they share make intervals too narrow, most for films, and nothing here speaks of other corpora. Two "
        f"random selections of one seed differ by a standard deviation of {np.mean(spread):.3f} nats per word in the "
        "mean."
        if spread
        else "",
        "The best method of a target is the best of many by the same seeds, so every regret is somewhat too large, for "
        "all methods alike. One target can decide a largest regret; the table names it. A method that some seeds of an "
        "arm lack is compared on the others, and is no candidate there for the best joint one.",
        "Ratings, citations and use are other people's choices, and the embeddings come from models trained elsewhere. "
        "Scores by rules and by the classifier are made from the text that the bigram model reads, and so are TF-IDF "
        "features: those arms are circular. A target of the pool's own held-out text favors random by construction.",
        "The bigram model counts pairs of words. It does not say what a large model learns, least of all over many "
        "epochs.",
    ]


def earlier_study(path: Path) -> Evidence:
    """Return the results of an earlier study, which had other targets, with a plan made from themselves."""
    cells = read_results(path)["pieces"]
    arms = list(dict.fromkeys(key.rpartition("/")[0] for key in cells))
    names = list(dict.fromkeys(name for cell in cells.values() for name in cell["nats"]))
    targets: dict[str, Any] = {key.split("/")[0]: {name: {} for name in cell["targets"]} for key, cell in cells.items()}
    asked = {
        "level": 0.05,
        "arms": [{"names": arms}],
        "seeds": {"first": sorted({int(key.rpartition("/")[2]) for key in cells}), "then": []},
        "corpora": {corpus: {"targets": of} for corpus, of in targets.items()},
        "methods": {
            "simple": [name for name in names if " " not in name],
            "masks": "",
            "others": [name for name in names if " " in name],
            "by_lambda": [],
            "lambdas": [],
        },
    }
    return Evidence({"bigram": cells}, asked)


def _earlier() -> str:
    words = []
    for proxy, path in EARLIER.items():
        study = earlier_study(path)
        found = study.contests(target for arm in study.arms for target in study.targets(arm))
        sides = Counter(one.outcome.verdict for one in found)
        words.append(
            f"by the {PROXY_WORDS[proxy]} joint was better in {sides[BETTER]}, worse in {sides[WORSE]} and undecided "
            f"in {sides[LEVEL]} of {len(found)} cells"
        )
    return (
        "An earlier study asked package descriptions, texts and docstrings about six targets, with scores by rules "
        "and by a classifier that had seen reference texts, so that most of it was circular. Best joint against best "
        f"simple method, bare intervals: {'; '.join(words)}. Its raw results are "
        "[here](../benchmarks/results/evidence-earlier-bigram.json) and "
        "[here](../benchmarks/results/evidence-earlier-transformer.json)."
    )


def _made_on(evidence: Evidence) -> str:
    about = evidence.results.get("about", {})
    if not about:
        return "Nothing has run."
    packages = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
    return (
        f"Python {about['python']} on {about['machine']}, {packages}, one thread. Vendi ran in its first version, "
        "before its single swaps were made exact."
    )


def readme_section(evidence: Evidence) -> str:
    """Return the README's sentences; the table is in the document."""
    asked, tested = evidence.asked, evidence.tested
    hypothesis = Hypothesis(evidence)
    found = evidence.contests(tested)
    sides = Counter(corrected(found, evidence.level))
    seeds = span(len(evidence.seeds(arm)) for arm in asked["hypothesis"]["arms"])
    outcome = "held" if hypothesis.holds else "failed"
    said = (
        "Which method should select when the target, the kind of text that a model will be tested on, is unknown? "
        "The hypothesis that facility at λ 0.35 to 0.7 is more "
        f"robust than every simple baseline {outcome} on {len(tested)} targets of three corpora whose scores are not "
        f"made from the text ({seeds} seeds, a bigram model; [every target](docs/evidence.md)). The safest "
        f"method is {title(hypothesis.most_robust)}. The best joint method is better than the best "
        f"simple baseline on {sides[BETTER]} targets, worse on {sides[WORSE]}, undecided on {sides[LEVEL]}."
    )
    return wrapped(said)


def with_section(readme: str, made: str) -> str:
    """Return the README with this section in the place of the one there.

    Raises:
        ValueError: it has no such place.
    """
    replaced, times = README_SECTION.subn(lambda _: made, readme)
    if times != 1:
        raise ValueError(f"README.md must hold one section Measured that ends before 'How fast?', got {times}")
    return replaced


def write(asked: Mapping[str, Any]) -> None:
    """Make docs/evidence.md, its picture, and the README's section."""
    evidence = Evidence(read_results(), asked)
    write_text(DOCUMENT, document(evidence))
    write_text(PICTURE, drawn(evidence))
    write_text(README, with_section(README.read_text(encoding="utf-8"), readme_section(evidence)))
