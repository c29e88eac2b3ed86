"""Which device does the work."""

from __future__ import annotations

import torch

from datamask.errors import OptionError


def resolve(device: str) -> torch.device:
    """Turn ``auto``, ``cpu`` or ``cuda[:k]`` into a device that is there; ``auto`` is a CUDA device or the CPU.

    Raises:
        OptionError: the device is not there; names those that are. Or it is Apple's mps, which has no float64 numbers.
    """
    if device == "mps":
        raise OptionError(
            "--device mps cannot be used: Apple's mps has no float64 numbers, in which values are "
            "reported and proved; use --device cpu"
        )
    cuda = [f"cuda:{k}" for k in range(torch.cuda.device_count())]
    if device == "auto":
        return torch.device(cuda[0] if cuda else "cpu")
    available = [*cuda, "cpu"]
    requested = "cuda:0" if device == "cuda" else device
    if requested not in available:
        raise OptionError(f"--device {device} is not on this machine, which has: {', '.join(available)}")
    return torch.device(requested)
