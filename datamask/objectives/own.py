"""Objectives of one's own: ``mypackage.mymodule:MyObjective``, imported only where a person typed that name.

Loading one runs its code. So it is loaded only after `permit` was called for its very name, and the command line is
what calls it, for names typed there: a run folder, a page, a link or a stored sweep can name such an objective, and
even show what it found, but never make this process import it.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
from pathlib import Path

from datamask import catalogue
from datamask.errors import OptionError
from datamask.objectives.contract import SetFunction
from datamask.process import import_from_working_folder

_permitted: set[str] = set()


def permit(name: str) -> type[SetFunction]:
    """Allow ``module:Class`` to be loaded by this process from now on, and load it.

    For the command line, and for programs that name their own code: call it only with names that the person in front
    of the machine gave. The working directory counts as a place to import from, after all others.

    Raises:
        OptionError: the name is none of that kind, or what it names cannot be imported or is no objective.
    """
    if not catalogue.is_own(name):
        raise OptionError(
            f"an objective of your own is named module:Class, such as mypackage.mymodule:MyObjective, got {name!r}"
        )
    import_from_working_folder()
    _permitted.add(name)
    try:
        return load(name)
    except OptionError:
        _permitted.discard(name)
        raise


def load(name: str) -> type[SetFunction]:
    """The class of a permitted objective.

    Raises:
        OptionError: the name was not permitted, or what it names cannot be imported or is no objective.
    """
    if name not in _permitted:
        raise OptionError(
            f"{name} is a custom objective, and loading it runs its code; datamask does that only if its name is typed "
            f"on the command line, never because a run, a page, a link or a sweep names it: use "
            f"`python -m datamask select ... --objective {name}`, or `resume RUN --objective {name}`"
        )
    module_name, _, class_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # code of a stranger to us: whatever it raises, the way out is the same
        raise OptionError(
            f"--objective {name}: {module_name} cannot be imported ({type(error).__name__}: {error}); "
            "it is looked for where Python looks, and in the folder you are in"
        ) from error
    candidate = getattr(module, class_name, None)
    if not (isinstance(candidate, type) and issubclass(candidate, SetFunction)):
        raise OptionError(
            f"--objective {name}: {module_name} must have a class {class_name} derived from "
            f"datamask.objectives.contract.SetFunction, got {candidate!r}"
        )
    if missing := sorted(candidate.__abstractmethods__):
        raise OptionError(
            f"--objective {name}: {class_name} lacks {', '.join(missing)}; "
            f"`python -m datamask check-objective {name}` checks the rest once they are there"
        )
    return candidate


def code_digest(name: str) -> str:
    """A digest of the file that a permitted objective is written in: another code is another objective."""
    try:
        source = Path(inspect.getfile(load(name))).read_bytes()
    except (OSError, TypeError):  # typed into a session: good for this process only
        source = repr(id(load(name))).encode()
    return hashlib.sha256(name.encode() + b"\0" + source).hexdigest()
