"""Devices by name: what is there, and a reason for what is not."""

from __future__ import annotations

import pytest
import torch

from datamask.errors import OptionError
from datamask.learning.device import resolve


def test_a_device_is_there_or_the_reason_says_which_are():
    assert resolve("cpu") == torch.device("cpu") and resolve("auto").type in ("cpu", "cuda")
    with pytest.raises(OptionError, match=r"cuda:99 is not on this machine, which has: .*cpu"):
        resolve("cuda:99")
    with pytest.raises(OptionError, match=r"float64.*--device cpu"):
        resolve("mps")
