"""How much memory this process may use: the machine's, or less where a control group of Linux says so.

A group limits all groups below it, so the smallest limit on the way from the process's own group up to the root counts.
``/proc/self/cgroup`` names the group, ``/proc/self/mountinfo`` the folders where its limits lie; a container may see
the whole tree, or a part of it as if that were the root.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = "/"
"""Below it lie ``proc`` and the folders of the control groups; a test names another."""

LIMITS = {"cgroup2": ("memory.max", "memory.high"), "cgroup": ("memory.limit_in_bytes",)}
"""By the type of the file system, which is the version: files of a group that hold a limit. The kernel slows a process
down beyond ``memory.high`` until it hardly moves."""

IN_MEMORY = ("tmpfs", "ramfs")
ACROSS_A_NETWORK = (
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "ceph", "lustre", "beegfs", "gpfs", "glusterfs"),
    *("fuse.ceph", "fuse.glusterfs", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone"),
)
"""Types of file systems."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""As in ``malloc.h``."""

USUAL_MOUNTS = (("cgroup2", "/", "/sys/fs/cgroup"), ("cgroup", "/", "/sys/fs/cgroup/memory"))
"""Type, root and folder of the mounts where ``mountinfo`` cannot be read."""


def memory_bytes(root: str | os.PathLike[str] | None = None) -> int:
    """Return the bytes of memory that this process and all others of its control groups may use together.

    Args:
        root: what to read in place of `ROOT`.
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *group_limits(Path(root or ROOT))])


def file_system(folder: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> str:
    """The type of the file system of a folder, such as ``ext4``; "" where ``mountinfo`` says nothing.

    Args:
        folder: it, or the part of its path that is there. root: what to read in place of `ROOT`.
    """
    place = PurePosixPath(os.path.realpath(folder))
    kinds = {PurePosixPath(fields[4]): system[0] for fields, system in _mount_entries(Path(root or ROOT))}
    mount = next((above for above in (place, *place.parents) if above in kinds), None)
    return "" if mount is None else kinds[mount]


def lies_in_memory(folder: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> bool:
    """Whether a folder lies on a file system in memory. Args: as `file_system`."""
    return file_system(folder, root) in IN_MEMORY


def group_limits(root: Path) -> Iterator[int]:
    """Yield the limits of the process's control groups, in bytes, from its own group up to the highest it can see."""
    groups = _groups(_text(root / "proc/self/cgroup"))
    for mount in _mounts(root):
        folder = _below(root, mount.folder)
        own = groups.get(mount.version)
        if own is not None and own.is_relative_to(mount.root):
            inside = own.relative_to(mount.root)
            # a group above the namespace's root is spelled with "..", and its folder cannot be seen
            parts = () if ".." in inside.parts else inside.parts
        else:
            parts = ()
        for length in range(len(parts), -1, -1):
            group = folder.joinpath(*parts[:length])
            for name in LIMITS[mount.version]:
                yield from map(int, re.findall(r"\A\d+\s*\Z", _text(group / name)))
            # version 1 tells the smallest limit of the groups above, also of those that cannot be seen
            yield from map(int, re.findall(r"^hierarchical_memory_limit (\d+)$", _text(group / "memory.stat"), re.M))


def collect() -> None:
    """Collect garbage, also what was set aside by ``gc.freeze``; what is left is set aside again."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    gc.collect()
    if frozen:
        gc.freeze()


def give_back() -> None:
    """Return memory to the system that was freed and that the allocator of C keeps between blocks still in use.

    Without this a process that freed 1.9 GiB of buffers of some MiB each still holds nearly all of it. Does nothing
    where the C library is not glibc.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def reuse_large_blocks() -> None:
    """Have freed blocks serve the next request: up to 256 MiB of them do not go back to the system at once.

    Solvers make and drop arrays of one number a row all the time. A run on 10,000,000 rows was else given 60 GB of
    cleared pages, one by one: a fifth of its processor time. Does nothing where the C library is not glibc.
    """
    option = getattr(ctypes.CDLL(None), "mallopt", None)
    # older ones refuse a threshold above 32 MiB, and to set the other alone would be worse than nothing
    if option is not None and option(M_MMAP_THRESHOLD, 2**30):
        option(M_TRIM_THRESHOLD, 2**28)


class _Mount(NamedTuple):
    """A mounted tree of control groups. version: its type. root: the group that is mounted. folder: where."""

    version: str
    root: PurePosixPath
    folder: str


def _groups(text: str) -> dict[str, PurePosixPath]:
    """The process's group by the version that limits memory, from ``/proc/self/cgroup``."""
    groups = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            groups["cgroup2"] = PurePosixPath(path)
        elif "memory" in controllers.split(","):
            groups["cgroup"] = PurePosixPath(path)
    return groups


def _mounts(root: Path) -> list[_Mount]:
    """The trees that may limit memory."""
    mounts = [
        _Mount(kind, PurePosixPath(fields[3]), fields[4])
        for fields, (kind, _, options) in _mount_entries(root)
        if kind == "cgroup2" or (kind == "cgroup" and "memory" in options.split(","))
    ]
    return mounts or [_Mount(version, PurePosixPath(top), folder) for version, top, folder in USUAL_MOUNTS]


def _mount_entries(root: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Each mount of ``/proc/self/mountinfo``: the fields before the dash, of which 3 and 4 are its root and folder, and
    three behind it: type, source and options."""
    for line in _text(root / "proc/self/mountinfo").splitlines():
        mounted, _, system = line.partition(" - ")
        fields, kind = [_unescaped(field) for field in mounted.split(" ")], system.split(" ")
        if len(fields) > 4 and len(kind) > 2:
            yield fields, kind[:3]


def _unescaped(field: str) -> str:
    """A field of ``mountinfo`` with its spaces, tabs, line breaks and backslashes, which stand there as ``\\040``."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), field)


def _below(root: Path, folder: str) -> Path:
    return root / folder.lstrip("/")


def _text(path: Path) -> str:
    """What a file of the kernel says; nothing where it is missing or may not be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
