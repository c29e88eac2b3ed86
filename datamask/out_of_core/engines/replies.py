"""A task's call and its reply as text, the same for every engine: what goes to another process, and what comes back.

A task that fails replies with its error, so that the kind of it and its sentence come through as they are: what a
person can mend stays one sentence, and only what nobody expected has a traceback.
"""

from __future__ import annotations

import importlib
import json
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from datamask import errors
from datamask.errors import DatamaskError, out_of_memory
from datamask.out_of_core.engines.contract import Result

LARGEST = 1 << 18
"""Bytes of a call or a reply. Whatever is larger belongs into a file, whose path is sent."""


class TaskFault(RuntimeError):
    """A task raised what nobody expected; its traceback is a note of this exception."""


def call_text(task: str, argument: Mapping[str, Any]) -> str:
    """The call of a task, on one line.

    Raises:
        TypeError: the argument is not JSON. ValueError: it is larger than `LARGEST`.
    """
    return _text({"task": task, "argument": dict(argument)}, f"an argument of {task}")


def reply_to(call: str) -> str:
    """Do what a call says; the reply, on one line. Raises no `Exception`."""
    try:
        asked = json.loads(call)
        task, argument = asked["task"], asked["argument"]
        answer = function_of(task)(argument)
        if not isinstance(answer, dict):
            raise TypeError(f"a task must give a dict back, and {task} gave {type(answer).__name__}")
        return _text({"result": answer}, f"what {task} gives back")
    # the worker's last door: whatever it is, it belongs to whoever waits for the reply
    except Exception as error:
        return json.dumps({"error": _described(error)})


def result_of(reply: str) -> Result:
    """What a reply gives back.

    Raises:
        DatamaskError, OSError, MemoryError, TaskFault: what the task raised.
    """
    record = json.loads(reply)
    if "error" in record:
        raise _restored(record["error"])
    result: Result = record["result"]
    return result


def function_of(task: str) -> Callable[[dict[str, Any]], Any]:
    """The function that ``package.module:function`` names.

    Raises:
        ValueError: it is no such name, or names nothing that can be called.
        ImportError: there is no such module.
    """
    module, _, name = task.partition(":")
    function = getattr(importlib.import_module(module), name, None) if name else None
    if not callable(function):
        raise ValueError(f"a task is named package.module:function, and {task!r} names none")
    named: Callable[[dict[str, Any]], Any] = function
    return named


def _text(record: Mapping[str, Any], what: str) -> str:
    try:
        text = json.dumps(record)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be JSON: {error}") from error
    if len(text) > LARGEST:
        raise ValueError(f"{what} has {len(text):,} bytes, above {LARGEST:,}: write it to a file and send its path")
    return text


def _described(error: Exception) -> dict[str, Any]:
    """An exception as JSON, by the nearest class that the other side knows too."""
    if isinstance(error, DatamaskError):
        known = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
        return {"kind": known, "sentence": str(error)}
    if out_of_memory(error):
        return {"kind": "MemoryError", "sentence": str(error)}
    if isinstance(error, OSError) and error.errno is not None:
        name = error.filename if isinstance(error.filename, str) else None
        return {"kind": "OSError", "errno": error.errno, "sentence": error.strerror or str(error), "file": name}
    return {"kind": "TaskFault", "sentence": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}


def _restored(record: Mapping[str, Any]) -> Exception:
    kind, sentence = record["kind"], record["sentence"]
    if kind == "OSError":
        # the errno chooses the class: FileNotFoundError and its siblings
        return OSError(record["errno"], sentence, record["file"])
    if kind == "MemoryError":
        return MemoryError(sentence)
    if kind == "TaskFault":
        fault = TaskFault(sentence)
        fault.add_note(record["trace"])
        return fault
    known = getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, DatamaskError):
        return known(sentence)
    return DatamaskError(sentence)
