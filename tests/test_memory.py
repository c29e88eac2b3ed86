"""How much memory there is: the smallest limit of the process's control groups, of both versions, however mounted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from datamask.memory import file_system, lies_in_memory, memory_bytes

MIB = 1 << 20
MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
V2 = "30 23 0:26 {top} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "31 23 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:29 {top} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)
UNLIMITED = 9223372036854771712


def machine(root: Path, own: str, mounts: str | None, limits: dict[str, object]) -> Path:
    """A root with ``/proc/self`` and the files of groups, by their path below ``/sys/fs/cgroup``."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(own)
    if mounts is not None:
        (root / "proc/self/mountinfo").write_text(mounts)
    for name, limit in limits.items():
        file = root / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{limit}\n")
    return root


CASES: dict[str, tuple[str, str | None, dict[str, object], int]] = {
    "v2, a systemd slice above the service": (
        "0::/system.slice/datamask.service\n",
        V2.format(top="/"),
        {"system.slice/memory.max": 64 * MIB, "system.slice/datamask.service/memory.max": "max"},
        64 * MIB,
    ),
    "v2, the process's own group": (
        "0::/a/b\n",
        V2.format(top="/"),
        {"a/memory.max": 64 * MIB, "a/b/memory.max": 32 * MIB},
        32 * MIB,
    ),
    "v2, throttled": ("0::/a\n", V2.format(top="/"), {"a/memory.max": "max", "a/memory.high": 8 * MIB}, 8 * MIB),
    "v2, a group of somebody else": (
        "0::/a\n",
        V2.format(top="/"),
        {"a/memory.max": "max", "b/memory.max": MIB},
        MACHINE,
    ),
    "v2, a container that sees itself as the root": (
        "0::/\n",
        V2.format(top="/"),
        {"memory.max": 16 * MIB},
        16 * MIB,
    ),
    "v2, a part of the tree is mounted": (
        "0::/docker/abc/inner\n",
        V2.format(top="/docker/abc"),
        {"memory.max": 64 * MIB, "inner/memory.max": 32 * MIB},
        32 * MIB,
    ),
    "v2, the process is above what is mounted": (
        "0::/../other\n",
        V2.format(top="/"),
        {"memory.max": 16 * MIB, "other/memory.max": MIB},
        16 * MIB,
    ),
    "v1, a Slurm job": (
        "11:cpu,cpuacct:/slurm/job_7\n4:memory:/slurm/uid_0/job_7/step_0\n0::/\n",
        V1.format(top="/"),
        {
            "memory/memory.limit_in_bytes": UNLIMITED,
            "memory/slurm/uid_0/job_7/memory.limit_in_bytes": 48 * MIB,
            "memory/slurm/uid_0/job_7/step_0/memory.limit_in_bytes": UNLIMITED,
            "cpu,cpuacct/slurm/job_7/memory.limit_in_bytes": MIB,
        },
        48 * MIB,
    ),
    "v1, docker with the groups of the host": (
        "4:memory:/docker/abc\n",
        V1.format(top="/docker/abc"),
        {"memory/memory.limit_in_bytes": 24 * MIB},
        24 * MIB,
    ),
    "v1, a limit above all that is mounted": (
        "4:memory:/\n",
        V1.format(top="/"),
        {
            "memory/memory.limit_in_bytes": UNLIMITED,
            "memory/memory.stat": f"cache 0\nhierarchical_memory_limit {20 * MIB}\ntotal_cache 0",
        },
        20 * MIB,
    ),
    "both, memory in v1": (
        "4:memory:/a\n0::/b\n",
        V2.format(top="/").replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified") + V1.format(top="/"),
        {"unified/b/cgroup.procs": 1, "memory/a/memory.limit_in_bytes": 12 * MIB},
        12 * MIB,
    ),
    "mounts unknown": ("0::/a\n", None, {"memory.max": 64 * MIB, "a/memory.max": 40 * MIB}, 40 * MIB),
    "mounts unknown, v1": ("4:memory:/a\n", None, {"memory/a/memory.limit_in_bytes": 40 * MIB}, 40 * MIB),
    "a folder with a space": (
        "0::/a b\n",
        V2.format(top="/").replace("/sys/fs/cgroup", "/sys/fs/cgroup/x\\040y"),
        {"x y/a b/memory.max": 4 * MIB},
        4 * MIB,
    ),
    "no limit": ("0::/a\n", V2.format(top="/"), {"a/memory.max": "max", "memory.max": UNLIMITED}, MACHINE),
    "nonsense": ("what\n::\n", "nothing\n - cgroup2\n", {"memory.max": "-1", "memory.high": ""}, MACHINE),
}


@pytest.mark.parametrize("case", CASES)
def test_the_smallest_limit_on_the_way_to_the_root_counts(tmp_path, case):
    own, mounts, limits, expected = CASES[case]
    assert memory_bytes(machine(tmp_path, own, mounts, limits)) == expected


def test_without_control_groups_it_is_the_machines(tmp_path):
    assert memory_bytes(tmp_path) == MACHINE
    assert 0 < memory_bytes() <= MACHINE


def test_a_folder_on_a_file_system_in_memory_is_known(tmp_path):
    mounts = (
        "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "21 20 0:5 / /tmp rw - tmpfs tmpfs rw\n"
        "22 21 8:2 / /tmp/disk\\040one rw - xfs x rw\n"
    )
    root = machine(tmp_path, "0::/\n", mounts, {})
    in_memory = {"/tmp": True, "/tmp/a/b": True, "/tmp/disk one/a": False, "/var": False, "/tmpfs": False}
    assert {place: lies_in_memory(place, root) for place in in_memory} == in_memory
    assert file_system("/var", root) == "ext4" and file_system("/tmp/a", root) == "tmpfs"
    assert not lies_in_memory("/tmp", machine(tmp_path / "silent", "0::/\n", None, {}))
