"""The engine for any scheduler: calls are files in a folder, and who does them comes from elsewhere.

The driver puts ``NAME.call`` into the folder for each task and waits for ``NAME.reply``. ``datamask task FOLDER`` takes
one open call after another, on whatever machine it is started, and ``datamask task FOLDER/NAME.call`` does one: an
array of jobs of a batch system, a loop over ssh, a second terminal. A call that is being done is locked, and the kernel
frees the lock when its process ends, so what a machine that went down was at is taken up by another. In the same way
a driver at work holds a ``driver-*.lock`` (`driving`): those who wait for calls end when none is held any more, however
the last driver ended, and the folder can be used again, also by several runs at once.

The driver cannot end what others do: on Stop it takes the open calls away, and those that are being done are finished
by whoever does them. The folder must lie where all machines can read and write, as must shards and scratch, on a file
system with flock (NFS from version 4).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from datamask.errors import InputError, Stopped, StoreError
from datamask.files import read_bounded, regular_handle, write_text
from datamask.out_of_core.engines.contract import ASKED_SECONDS, TRIES, Engine, OnDone, Result, lost_for_good
from datamask.out_of_core.engines.replies import LARGEST, call_text, error_reply, is_reply, result_of, result_reply
from datamask.polling import Poll, no_poll

CALL, REPLY, BEGUN = ".call", ".reply", ".begun"
"""Ends of names. The last one has a byte for each time that a call was begun and not given back."""

DRIVER, LOCK = "driver-", ".lock"
"""How names of the locks of drivers begin and end."""

DRIVER_SECONDS = 600.0
"""So long those who wait for calls wait for a driver that is at work in the folder."""

TASKS = frozenset(
    f"datamask.out_of_core.{name}"
    for name in (
        "block_swaps:swap",
        "gains:gains",
        "gains:nearest_members",
        "neighbour_lists:descended",
        "neighbour_lists:lists",
        "neighbour_lists:needed",
        "neighbour_lists:probes",
        "neighbour_lists:reverse",
        "neighbour_lists:searched",
        "partition:assign",
        "partition:atlas",
        "partition:block",
        "partition:centres",
        "partition:layout",
        "partition:part",
        "rounds:again",
        "rounds:alone",
        "rounds:cover",
        "rounds:merge",
        "rounds:turn",
        "rounds:value",
        "sampled_rows:nearest",
        "sampled_rows:random",
        "sampled_rows:recall",
        "sampled_rows:sample",
        "sampled_rows:selected",
        "sampled_rows:shortfalls",
        "sampled_rows:true_lists",
        "scratch_passes:part",
    )
)
"""A call may name these tasks alone: its file says what is to be done, and may come from anywhere."""


class NoCall(InputError):
    """A file in the place of a call is not one."""


class FilesEngine(Engine):
    """Puts calls into a folder and waits for their replies."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """The folder is made with the first call: whoever only asks whether settings go together leaves nothing."""
        self._folder = Path(folder).absolute()
        self._driving, self._held = contextlib.ExitStack(), False

    @property
    def workers(self) -> int:
        """As many as there are, which this end does not know: 1 at least."""
        return 1

    def run(
        self,
        task: str,
        arguments: Sequence[Mapping[str, Any]],
        *,
        poll: Poll,
        on_done: OnDone | None = None,
    ) -> list[Result]:
        """As `Engine.run` says, but for those at work, who finish what they are at.

        Raises also:
            StoreError: the folder cannot be made, nothing can be written or locked in it, or a reply is damaged.
        """
        places: dict[str, list[int]] = defaultdict(list)
        results: dict[int, Result] = {}
        calls = [call_text(task, argument) for argument in arguments]
        try:
            self._drive()
            for place, call in enumerate(calls):
                poll()
                name = hashlib.blake2b(call.encode(), digest_size=16).hexdigest()
                places[name].append(place)
                if len(places[name]) == 1:
                    # of an attempt before, whose files may be gone
                    for end in (REPLY, BEGUN):
                        _remove(self._folder / f"{name}{end}")
                    write_text(self._folder / f"{name}{CALL}", call)
            while places:
                for name in self._replied(places):
                    result = _result_in(self._folder / f"{name}{REPLY}")
                    self._take_away(name)
                    for place in places.pop(name):
                        results[place] = result
                        if on_done is not None:
                            on_done(place, result)
                poll()
                if places:
                    time.sleep(ASKED_SECONDS)
        except BaseException:
            for name in places:
                self._take_away(name)
            raise
        return [results[place] for place in range(len(calls))]

    def close(self) -> None:
        """Be no driver any more: those who wait end, unless another is at work in the folder."""
        self._driving.close()
        self._held = False

    def _drive(self) -> None:
        """Be a driver from the first call to `close`, so that nobody leaves between two phases."""
        if not self._held:
            self._driving.enter_context(driving(self._folder))
            self._held = True

    def _replied(self, names: Mapping[str, object]) -> list[str]:
        """Those of the open calls that have a reply."""
        with os.scandir(self._folder) as entries:
            stems = [entry.name.removesuffix(REPLY) for entry in entries if entry.name.endswith(REPLY)]
        return sorted(stem for stem in stems if stem in names)

    def _take_away(self, name: str) -> None:
        for end in (CALL, REPLY, BEGUN):
            with contextlib.suppress(OSError):
                (self._folder / f"{name}{end}").unlink(missing_ok=True)


@contextlib.contextmanager
def driving(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a lock that tells those who wait for calls in a folder to go on waiting; the folder is made.

    Raises:
        StoreError: the folder cannot be made, or nothing can be written or locked in it.
    """
    place = _made(folder)
    try:
        handle, path = _locked(place)
    except OSError as error:
        raise StoreError(f"--address {folder} cannot be written: {error.strerror or error}") from error
    try:
        # only now: whoever looks while a lock of the dead is tried takes it for a driver, and there is one
        _remove_free(place, path)
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        os.close(handle)


def do_calls(
    where: str | os.PathLike[str],
    engine: Engine,
    *,
    wait: bool = False,
    poll: Poll = no_poll,
    tell: Callable[[Path], None] = lambda path: None,
    warn: Callable[[NoCall], None] = lambda error: None,
) -> int:
    """Do one call, or of a folder one open call after another; how many were done.

    What is no call of a task of datamask is left alone in a folder, and refused where it is named.

    Args:
        where: a file of a call, or a folder of them. engine: does them.
        wait: whether to wait for further calls, and for the folder, until every driver that was at work in it has
            ended; where none comes, for `DRIVER_SECONDS`.
        poll: called some ten times a second. tell: called with each call that is done. warn: called once with
            each file of the folder that is no call.

    Raises:
        InputError: there is no such file or folder, also after waiting for it, or another process does this call.
        NoCall: the file is no call of a task of datamask. Stopped: from `poll`; its call stays open.
    """
    path = Path(where)
    if os.path.lexists(path) and not path.is_dir():
        if not _do(path, engine, poll):
            raise InputError(f"{path} is in work by another process, or is done")
        tell(path)
        return 1
    if not path.is_dir() and (not wait or path.suffix == CALL):
        raise InputError(f"{path} does not exist; name a call or the folder that --engine files was given as --address")
    done, driven, deadline = 0, False, time.monotonic() + DRIVER_SECONDS
    left_alone: set[Path] = set()
    while True:
        # before the calls are looked at: what it put there before it ended must not be missed
        driver = wait and _is_driven(path)
        before = done
        for call in _open_calls(path):
            if call in left_alone:
                continue
            try:
                if _do(call, engine, poll):
                    done += 1
                    tell(call)
            except NoCall as error:
                left_alone.add(call)
                warn(error)
        if done > before:
            continue
        if not wait or (driven and not driver):
            return done
        driven = driven or driver
        if not driven and time.monotonic() > deadline:
            if not path.is_dir():
                raise InputError(f"{path} does not exist, and no run made it in {DRIVER_SECONDS / 60:.0f} minutes")
            return done
        poll()
        time.sleep(ASKED_SECONDS)


def _open_calls(folder: Path) -> list[Path]:
    """The calls that have no reply yet, by name; each machine begins with another."""
    names = _names(folder)
    calls = sorted(name for name in names if name.endswith(CALL) and name.removesuffix(CALL) + REPLY not in names)
    first = os.getpid() % len(calls) if calls else 0
    return [folder / name for name in calls[first:] + calls[:first]]


def _names(folder: Path) -> set[str]:
    """What lies in a folder; nothing where it is not there yet."""
    try:
        return {path.name for path in folder.iterdir()}
    except FileNotFoundError:
        return set()


def _remove(path: Path) -> None:
    """Remove a file, if it is there.

    Raises:
        StoreError: it cannot be removed, or is a folder.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{path} cannot be removed: {error.strerror or error}; remove it") from error


def _result_in(reply: Path) -> Result:
    """What a reply gives back.

    Raises:
        StoreError: it is damaged. Also what the task raised.
    """
    text = _read(reply)
    if not is_reply(text):
        raise StoreError(f"{reply} must be a reply of `datamask task`, and is damaged; resume the run")
    return result_of(text)


def _made(folder: str | os.PathLike[str]) -> Path:
    """The folder, which is made where it is not there.

    Raises:
        StoreError: it cannot be made.
    """
    path = Path(folder).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"--address {folder} cannot be made a folder: {error.strerror or error}") from error
    return path


def _locked(folder: Path) -> tuple[int, Path]:
    """A lock of a driver, held: its open file and its path."""
    while True:
        handle, name = tempfile.mkstemp(LOCK, DRIVER, folder)
        try:
            # those of any user look whether it is held
            os.fchmod(handle, 0o644)
            fcntl.flock(handle, fcntl.LOCK_EX)
            # another driver may have taken it for one of the dead before it was locked
            if os.fstat(handle).st_nlink:
                return handle, Path(name)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _locks(folder: Path) -> list[Path]:
    """The locks of drivers, those of the dead too."""
    return [folder / name for name in _names(folder) if name.startswith(DRIVER) and name.endswith(LOCK)]


def _is_driven(folder: Path) -> bool:
    """Whether a driver is at work in a folder."""
    return any(not _free(path, fcntl.LOCK_SH) for path in _locks(folder))


def _remove_free(folder: Path, ours: Path) -> None:
    """Remove the locks of drivers that were killed."""
    for path in _locks(folder):
        if path != ours:
            _free(path, fcntl.LOCK_EX, remove=True)


def _free(path: Path, kind: int, *, remove: bool = False) -> bool:
    """Whether nobody holds that lock, or it is gone; `remove` it if so."""
    try:
        # an exclusive lock needs a file that is open for writing where the folder is of NFS
        handle = os.open(path, (os.O_RDWR if remove else os.O_RDONLY) | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
        if remove:
            path.unlink(missing_ok=True)
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        os.close(handle)


def _do(path: Path, engine: Engine, poll: Poll) -> bool:
    """Do a call, unless somebody else does or has done it."""
    with _claimed(path) as ours:
        reply = path.with_suffix(REPLY)
        if not ours or reply.exists() or not path.exists():
            return False
        try:
            asked = _checked(path)
        except FileNotFoundError:
            # its driver took it away in this moment
            return False
        try:
            if not _begin(path):
                raise lost_for_good(asked["task"], "with all of the `datamask task` that was at it")
            (result,) = engine.run(asked["task"], [asked["argument"]], poll=poll)
            text = result_reply(result)
        except Stopped:
            _give_back(path)
            raise
        # it belongs to the driver, who waits for the reply
        except Exception as error:
            text = error_reply(error)
        # a reply to nobody would be left for good
        if path.exists():
            write_text(reply, text)
    return True


def _begin(path: Path) -> bool:
    """Count that a call is begun; false where that was done `TRIES` times, and no worker is at it. Its lock is held.

    Raises:
        StoreError: what counts is a pipe, a link or the like. OSError: it cannot be written.
    """
    with _count_of(path, os.O_CREAT) as handle:
        if os.fstat(handle).st_size >= TRIES:
            return False
        os.write(handle, b".")
    return True


def _give_back(path: Path) -> None:
    """Count a call as not begun: who was at it was stopped, and did not die of it."""
    with contextlib.suppress(OSError), _count_of(path) as handle:
        os.ftruncate(handle, max(0, os.fstat(handle).st_size - 1))


@contextlib.contextmanager
def _count_of(path: Path, flags: int = 0) -> Iterator[int]:
    """The open file that counts how often a call was begun."""
    handle = regular_handle(path.with_suffix(BEGUN), os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | flags)
    try:
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _claimed(path: Path) -> Iterator[bool]:
    """Hold the lock of a call; false where another process does, or where it is gone.

    Raises:
        NoCall: it is a folder, a pipe, a link or the like, or belongs to another user.
    """
    try:
        handle = regular_handle(path, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield False
        return
    except (StoreError, PermissionError) as error:
        raise NoCall(f"{path} cannot be done: {error}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(handle)


def _checked(path: Path) -> dict[str, Any]:
    """What a file asks for.

    Raises:
        NoCall: it is no call of a task of datamask.
    """
    try:
        asked = json.loads(_read(path))
        if isinstance(asked["argument"], dict) and asked["task"] in TASKS:
            return dict(asked)
    except FileNotFoundError:
        raise
    except (StoreError, ValueError, TypeError, KeyError, RecursionError):
        pass
    raise NoCall(f"{path} must be a call of a task of datamask, as --engine files puts them into its folder")


def _read(path: Path) -> bytes:
    return read_bounded(path, 2 * LARGEST, follow=False)
