"""Quality of a text by rules that can be read: the filters of Gopher and C4 as smooth scores instead of cut-offs.

Gopher (Rae et al. 2021, table A1) and C4 (Raffel et al. 2020) keep or drop a document at thresholds. A selection
needs an order, not a verdict, so each rule here is a ramp from 0 (about where those papers drop) to 1 (where nothing is
left to wish), and `scored` gives their weighted mean on a scale of 0 to 10. Ten rules, one function each; the first
paragraph of its docstring is what a table of the rules shows. Three of them know English alone: texts of other scripts,
and texts in which the function words of another language are the more frequent, are scored by the seven others.

To add a rule: write a function from `TextFacts` to [0, 1] and give it a weight in `RULES`. Scores of different rules
are comparable only within one version of this table.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from datamask.corpus.token_counts import script_of

STOP_WORDS = frozenset(("the", "be", "to", "of", "and", "that", "have", "with"))
"""Gopher's eight; a document must hold two of them there."""

FUNCTION_WORDS = {
    language: frozenset(words.split())
    for language, words in {
        "English": "the of and to in is that for it with",
        "German": "der die und das ist nicht ein zu mit den",
        "French": "le la les et des est une que dans pour",
        "Spanish": "el los las que y en una por con del",
        "Portuguese": "o que do da em um uma para com não",
        "Italian": "il che di la un per una non con sono",
        "Dutch": "de het een van en dat op te met zijn",
        "Swedish": "och att det som en på är av för med",
        "Polish": "w i na z nie się do to że jest",
        "Turkish": "ve bir bu için ile da de olarak ne çok",
    }.items()
}
"""Ten frequent words of languages that are written in Latin letters."""

_WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]{1,4}|[\u3005-\u30ff\u3400-\u9fff]{1,2}|\w+(?:['’]\w+)*")
"""Scripts that are written without spaces count by pieces as long as their words are on average, about."""
_SYMBOL = re.compile(r"[#=|<>{}\[\]_`*\\~^@$%&+/]|\.\.\.|…")
_BULLET = re.compile(r"(?:[-*+•‣●▪]|\d{1,2}[.)])(?:\s|$)")
_SENTENCE_ENDS = (".", "!", "?", '."', ".”", ".)", "!)", "?)", "。", "！", "？")


@dataclass(frozen=True)
class TextFacts:
    """What the rules count in one text, each counted once.

    Attributes:
        text: the text itself. script: of its letters; None: it is looked at.
    """

    text: str
    script: str | None = None

    @cached_property
    def words(self) -> list[str]:
        """Runs of letters, digits and underscores, an inner apostrophe included; lower case."""
        return _WORD.findall(self.text.lower())

    @cached_property
    def is_english(self) -> bool:
        """Whether nothing speaks against English: another script, or the function words of another language."""
        if (self.script or script_of(self.text)) != "Latin":
            return False
        counts = Counter(self.words)
        found = {name: sum(counts[word] for word in words) for name, words in FUNCTION_WORDS.items()}
        return found["English"] >= max(found.values())

    @cached_property
    def lines(self) -> list[str]:
        """Lines that are not blank, stripped."""
        return [line for line in map(str.strip, self.text.splitlines()) if line]


def _ramp(value: float, zero: float, full: float) -> float:
    """0 at `zero` and beyond, 1 at `full` and beyond, linear between; either may be the larger."""
    return min(1.0, max(0.0, (value - zero) / (full - zero)))


def word_count(facts: TextFacts) -> float:
    """Words: 0 at 5, 1 at 400, rising with the logarithm of their number.

    Gopher wants 50 to 100 000; below 50 words a text is worth little, but a short one is not worth nothing.
    """
    return _ramp(math.log(max(1, len(facts.words))), math.log(5), math.log(400))


def mean_word_length(facts: TextFacts) -> float:
    """Mean word length in characters: 1 from 4 to 6, 0 below 3 and above 10.

    The ends are Gopher's; the plateau is where running English text lies.
    """
    if not facts.words:
        return 0.0
    mean = sum(map(len, facts.words)) / len(facts.words)
    return min(_ramp(mean, 3, 4), _ramp(mean, 10, 6))


def alphabetic_share(facts: TextFacts) -> float:
    """Share of words with at least one letter: 0 at 60 %, 1 at 100 %.

    Gopher drops below 80 %.
    """
    if not facts.words:
        return 0.0
    return _ramp(sum(any(map(str.isalpha, word)) for word in facts.words) / len(facts.words), 0.6, 1.0)


def stop_words(facts: TextFacts) -> float:
    """Different stop words out of Gopher's eight: 0 at none, 1 at six.

    Gopher wants two; tables, lists and code hold few.
    """
    return _ramp(len(STOP_WORDS.intersection(facts.words)), 0, 6)


def symbol_ratio(facts: TextFacts) -> float:
    """Symbols (``# = | < > { } [ ] _ ` * ...``) per word: 1 at none, 0 at one in two words.

    Gopher counts only hash signs and ellipses and drops above one in ten; code and markup show in the others.
    """
    return _ramp(len(_SYMBOL.findall(facts.text)) / max(1, len(facts.words)), 0.5, 0.0)


def bullet_lines(facts: TextFacts) -> float:
    """Share of lines that begin with a bullet or a list number: 1 at none, 0 at 90 %.

    The end is Gopher's.
    """
    return _ramp(sum(bool(_BULLET.match(line)) for line in facts.lines) / max(1, len(facts.lines)), 0.9, 0.0)


def ellipsis_lines(facts: TextFacts) -> float:
    """Share of lines that end in an ellipsis: 1 at none, 0 at 30 %.

    The end is Gopher's; such lines are cut-off teasers or prompts of a console.
    """
    return _ramp(sum(line.endswith(("...", "…")) for line in facts.lines) / max(1, len(facts.lines)), 0.3, 0.0)


def repeated_lines(facts: TextFacts) -> float:
    """Share of lines that repeat an earlier one: 1 at none, 0 at 30 %.

    The end is Gopher's duplicate-line fraction.
    """
    return _ramp(1 - len(set(facts.lines)) / max(1, len(facts.lines)), 0.3, 0.0)


def sentence_ends(facts: TextFacts) -> float:
    """Sentences: ends of lines and of sentences, per 20 words, 0 at none, 1 at one.

    C4 keeps only lines that end in a terminal mark; a text wrapped at 80 characters would lose most of its lines so,
    hence marks followed by white space or the end of the text count wherever they stand.
    """
    ends = sum(word.endswith(_SENTENCE_ENDS) and not word.endswith("...") for word in facts.text.split())
    return _ramp(20 * ends / max(20, len(facts.words)), 0, 1)


def distinct_words(facts: TextFacts) -> float:
    """Distinct words over the root of twice all words: 0 at 1.5, 1 at 6.

    Carroll's corrected type-token ratio: the plain share of distinct words falls with length whatever the text. Low in
    templates and in tables of the same few names.
    """
    if not facts.words:
        return 0.0
    return _ramp(len(Counter(facts.words)) / math.sqrt(2 * len(facts.words)), 1.5, 6.0)


RULES: dict[Callable[[TextFacts], float], float] = {
    word_count: 2.0,
    mean_word_length: 1.0,
    alphabetic_share: 1.0,
    stop_words: 1.5,
    symbol_ratio: 1.5,
    bullet_lines: 0.5,
    ellipsis_lines: 0.5,
    repeated_lines: 0.5,
    sentence_ends: 1.5,
    distinct_words: 1.5,
}
"""Each rule and its weight."""

ANY_LANGUAGE = {
    rule: weight for rule, weight in RULES.items() if rule not in (mean_word_length, stop_words, sentence_ends)
}
"""The rules that hold for texts of every language: of length, repetition and kinds of characters."""


def scored(text: str, script: str | None = None) -> tuple[float, bool]:
    """Score a text: ten times the weighted mean of the rules, from 0 to 10, and whether the rules for English held.

    Args:
        script: of its letters; None: it is looked at.
    """
    facts = TextFacts(text, script)
    rules = RULES if facts.is_english else ANY_LANGUAGE
    return 10 * sum(weight * rule(facts) for rule, weight in rules.items()) / sum(rules.values()), facts.is_english
