"""A second device for tests without a GPU: tensors that lie in this machine's memory and say that they are on `cuda:0`.

Inside `second_device`, torch refuses what it refuses on a GPU: operations on tensors of two devices, indices on the GPU
into a tensor on the CPU, and arrays of numpy that read a tensor of the GPU. What a GPU computes, and how exactly, it
cannot show. `benchmarks/gpu.py` compares that on a card.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

DEVICE = torch.device("cuda", 0)
CPU = torch.device("cpu")
CROSSING = {Tensor.to, Tensor.cpu, Tensor.copy_, Tensor.type_as}
"""What moves values from one device to another, and so may meet tensors of both."""
INDEXING = {Tensor.__getitem__, Tensor.__setitem__}


class SecondTensor(Tensor):
    """A tensor on `DEVICE`."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # the mode below handles every function

    device = property(lambda self: DEVICE)  # type: ignore[assignment]
    is_cuda, is_cpu = property(lambda self: True), property(lambda self: False)  # type: ignore[assignment]

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")

    numpy = __array__  # type: ignore[assignment]


class SecondGenerator(torch.Generator):
    """A source of random numbers that says which device it draws for."""

    draws_for = CPU


def make_generator(device: torch.device | str = "cpu") -> SecondGenerator:
    """Take the place of `torch.Generator`."""
    generator = SecondGenerator()
    generator.draws_for = DEVICE if torch.device(device).type == "cuda" else CPU
    return generator


def leaves(value: Any) -> Iterator[Tensor]:
    """All tensors in nested lists, tuples and dictionaries."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from leaves(part)
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))


def place(value: Any, on: torch.device) -> Any:
    """The same tensors, saying that they are on a device; names of tuples stay."""
    if isinstance(value, Tensor):
        return value.as_subclass(SecondTensor if on == DEVICE else Tensor)
    if isinstance(value, list | tuple):
        parts = [place(part, on) for part in value]
        return type(value)(parts) if not hasattr(value, "_fields") else type(value)(*parts)
    return value


class Devices(TorchFunctionMode):
    """Give each tensor a device, and refuse what torch refuses on a GPU."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func is Tensor.to:
            on, args = move_arguments(args)
        elif func in CROSSING:
            on = CPU if func is Tensor.cpu else device_of(args[0])
        elif func in INDEXING:
            on = device_of(args[0])
            check_index(on, *args[1:])
        else:
            on = common_device([*leaves(args), *leaves(kwargs)], func)
        if kwargs.get("device") is not None:
            on, kwargs["device"] = parse_device(kwargs["device"]), CPU
        generator = kwargs.get("generator")
        if isinstance(generator, SecondGenerator) and generator.draws_for != on:
            raise RuntimeError(f"Expected a '{on}' device type for generator but found '{generator.draws_for}'")
        with torch._C.DisableTorchFunctionSubclass():
            return place(func(*args, **kwargs), on)


def device_of(tensor: Tensor) -> torch.device:
    """Where a tensor says that it is."""
    return DEVICE if isinstance(tensor, SecondTensor) else CPU


def parse_device(device: torch.device | str) -> torch.device:
    """`DEVICE` for every name of a GPU, else the CPU."""
    return DEVICE if torch.device(device).type == "cuda" else CPU


def common_device(tensors: list[Tensor], func: Callable[..., Any]) -> torch.device:
    """The one device of all tensors; single numbers on the CPU may stand beside others."""
    there = [isinstance(tensor, SecondTensor) for tensor in tensors]
    if any(there) and any(tensor.dim() for tensor in tensors if not isinstance(tensor, SecondTensor)):
        name = getattr(func, "__name__", func)
        raise RuntimeError(f"Expected all tensors to be on the same device, found cuda:0 and cpu ({name})")
    return DEVICE if any(there) else CPU


def check_index(on: torch.device, index: Any, value: Any = None) -> None:
    """An index on the GPU only leads into a tensor there; what is set by an index must be where the tensor is."""
    indices = list(leaves(index))
    if on == CPU and any(isinstance(tensor, SecondTensor) for tensor in indices):
        raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
    if indices and isinstance(value, Tensor) and value.dim() and device_of(value) != on:
        raise RuntimeError("Expected all tensors to be on the same device (__setitem__)")


def move_arguments(args: tuple[Any, ...]) -> tuple[torch.device, tuple[Any, ...]]:
    """Where ``Tensor.to`` moves a tensor, and its arguments for the CPU; one of them may be a tensor to follow."""
    on, given = device_of(args[0]), list(args[1:])
    for place_in, value in enumerate(given):
        if isinstance(value, torch.device | str):
            on, given[place_in] = parse_device(value), CPU
        elif isinstance(value, Tensor):
            on, given[place_in] = device_of(value), value.as_subclass(Tensor)
    return on, (args[0], *given)


@contextlib.contextmanager
def second_device() -> Iterator[torch.device]:
    """Inside, the device yielded exists beside the CPU."""
    with pytest.MonkeyPatch.context() as patch, Devices():
        patch.setattr(torch, "Generator", make_generator)
        patch.setattr(torch.cuda, "device_count", lambda: 1)
        patch.setattr(
            torch.cuda, "get_device_properties", lambda device=None: SimpleNamespace(total_memory=8 << 30, name="none")
        )
        yield DEVICE
