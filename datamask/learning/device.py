"""Which device does the work."""

from __future__ import annotations

import torch

from datamask.errors import OptionError


def resolve(device: str) -> torch.device:
    """Turn ``auto``, ``cpu``, ``cuda[:k]`` or ``mps`` into a device that is there.

    ``auto`` is a CUDA device or the CPU: Apple's mps has no float64 numbers, in which values are reported and proved.

    Raises:
        OptionError: the device is not there; names those that are.
    """
    cuda = [f"cuda:{k}" for k in range(torch.cuda.device_count())]
    mps = ["mps"] if torch.backends.mps.is_available() else []
    if device == "auto":
        return torch.device(cuda[0] if cuda else "cpu")
    there = cuda + mps + ["cpu"]
    wanted = "cuda:0" if device == "cuda" else device
    if wanted not in there:
        raise OptionError(f"--device {device} is not on this machine, which has: {', '.join(there)}")
    return torch.device(wanted)
