"""What is known about one option, and how a dataclass field carries it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import MappingProxyType
from typing import Any

from datamask.options.checks import check
from datamask.options.kinds import Kind


@dataclass(frozen=True)
class Control:
    """How the Run form draws an option that it draws as its kind says; a number has limits, a step and a format."""

    limits: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Option:
    """One setting of a selection.

    Attributes:
        name: how it is called everywhere; on the command line, with a hyphen or an underscore, and `flags` besides.
        kind: which values it takes.
        label: what a form shows. listed: what a list of settings calls it, where that is something else.
        line: its line in the command line's help, without the default. metavar: what stands for its value there.
        group: under which title it stands there.
        help: the form's help for a newcomer.
        default: of every estimator; None: there is none.
        owners: for an option that only some estimators have, each of them with its default there; else empty.
        varied: what a sweep calls it, as in ``λ 0.3``; empty: its values speak for themselves; None: not varied.
        control: it is on the form among others of its kind, drawn so; None: the form has its own place for it, or none.
        always: whether the command line that repeats a run names it even at its default.
        flags: on the command line, in the place of ``--name``.
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
    varied: str | None = None
    control: Control | None = None
    always: bool = False
    flags: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """What the command line calls it, without hyphens in front."""
        return self.flags[0].removeprefix("--") if self.flags else self.name

    @property
    def title(self) -> str:
        """What a list of settings calls it."""
        return self.listed or self.label

    def checked(self, value: Any, settings: object) -> Any:
        """A value in its one spelling. `settings`: all values of the selection, by name.

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
