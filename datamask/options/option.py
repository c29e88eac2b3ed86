"""What is known about one option, and how a dataclass field carries it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import MappingProxyType
from typing import Any

from datamask.errors import VersionError
from datamask.options.checks import check
from datamask.options.kinds import Flag, Kind


@dataclass(frozen=True)
class Control:
    """How a form draws an option, beside what its kind says.

    Attributes:
        limits: of a number its limits, step and format; of a text what stands there while it is empty.
        more: whether the control is folded away, among others of its kind. slider: whether a number is one.
    """

    limits: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    more: bool = True
    slider: bool = False


@dataclass(frozen=True)
class Option:
    """One setting of a corpus or of a selection.

    Attributes:
        name: how it is called everywhere; on the command line, with a hyphen or an underscore, and `flags` besides.
        kind: which values it takes.
        label: what a form shows. listed: what a list of settings calls it, where that is something else.
        line: its line in the command line's help, without the default. metavar: what stands for its value there.
        group: under which title it stands there.
        help: the form's help for a newcomer.
        default: of every estimator; None: there is none.
        owners: for an option that only some estimators have, each of them with its default there; else empty.
        also: estimators that may be given it besides, and have no default of it.
        varied: what a sweep calls it, as in ``λ 0.3``; empty: its values speak for themselves; None: not varied.
        control: how a form draws it; None: the form has its own place for it, or none.
        always: whether the command line that repeats a run names it even at its default.
        unset: what the help says in the place of the default, where a value that is not given is found.
        flags: on the command line, in the place of ``--name``.
        common: whether the short help of a command shows it; ``--help-all`` shows every option.
    """

    name: str
    kind: Kind
    label: str
    line: str
    metavar: str
    group: str
    help: str = ""
    listed: str = ""
    default: Any = None
    owners: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    also: tuple[str, ...] = ()
    varied: str | None = None
    control: Control | None = None
    always: bool = False
    unset: str = ""
    flags: tuple[str, ...] = ()
    common: bool = False

    @property
    def word(self) -> str:
        """What the command line calls it, without hyphens in front."""
        return self.flags[0].removeprefix("--") if self.flags else self.name

    def of(self, estimator: str) -> bool:
        """Whether that estimator may be given it."""
        return not self.owners or estimator in self.owners or estimator in self.also

    @property
    def title(self) -> str:
        """What a list of settings calls it."""
        return self.listed or self.label

    def shown(self, value: Any) -> str:
        """A value of it in a list of settings."""
        if isinstance(self.kind, Flag):
            return "yes" if value else "no"
        return ", ".join(map(self.kind.text, value)) if self.kind.many else self.kind.text(value)

    def words(self, value: Any) -> list[str]:
        """The words of a command line that give it this value."""
        if isinstance(self.kind, Flag):
            return [f"--{self.word}"]
        return [
            word
            for part in (value if self.kind.many else (value,))
            for word in option_words(self.word, self.kind.text(part))
        ]

    def checked(self, value: Any, settings: object) -> Any:
        """A value in its one spelling. `settings`: all values of the record, by name.

        Raises:
            OptionError: it is none of the option's kind; the sentence names the option, what was expected and what
            came.
        """
        value = self.kind.canonical(value, self.word)
        if not self.kind.fits(value, settings):
            check(False, self.word, self.kind.expected(value, settings), value)
        return value


def option(
    kind: Kind,
    label: str,
    line: str,
    metavar: str,
    group: str,
    *,
    default: Any = None,
    required: bool = False,
    **about: Any,
) -> Any:
    """A dataclass field that is this `Option`; its name is the field's. `required`: the record has no default."""
    return field(
        default=MISSING if required else default,
        metadata={
            "option": {
                "kind": kind,
                "label": label,
                "line": line,
                "metavar": metavar,
                "group": group,
                "default": default,
                **about,
            }
        },
    )


def options_of(record: type) -> dict[str, Option]:
    """The options of a dataclass whose fields are made by `option`, in its order."""
    return {entry.name: Option(name=entry.name, **entry.metadata["option"]) for entry in fields(record)}


def option_words(word: str, text: str) -> list[str]:
    """An option and its value on a command line; a value that begins with a hyphen would be read as another option."""
    return [f"--{word}={text}"] if text.startswith("-") else [f"--{word}", text]


def check_options(record: object, options: Mapping[str, Option]) -> None:
    """Check the fields of a frozen dataclass that are `options`, and put each in its one spelling.

    Raises:
        OptionError: a value is none of its option's kind; None is one where the option has no default.
    """
    for name, entry in options.items():
        value = getattr(record, name)
        if value is not None or entry.default is not None or entry.owners:
            object.__setattr__(record, name, entry.checked(value, record))


def restored_options(data: Mapping[str, Any], options: Mapping[str, Option]) -> dict[str, Any]:
    """The values that a record on disk holds; what it lacks has its default.

    Raises:
        VersionError: it holds what is no option.
    """
    if data.keys() - options.keys():
        raise VersionError
    return {name: options[name].kind.restored(value) for name, value in data.items()}
