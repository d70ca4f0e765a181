"""Inputs of a model: the example, and more of its kind at other sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from .wanted import Input

MORE = (0, 1, 5)
"""By how much the sizes of dynamic axes exceed the example's; then, where it is larger, a size of 1."""


@dataclass(frozen=True)
class Argument:
    """One input. `dynamic`: axis -> its name."""

    name: str
    tensor: Any
    dynamic: dict[int, str]
    given: Input | None = None

    def sized(self, sizes: dict[str, int]) -> Any:
        """The example itself with its dynamic axes repeated or cut to `sizes`."""
        out = self.tensor
        for axis, name in self.dynamic.items():
            out = out.index_select(axis, torch.arange(sizes.get(name, out.shape[axis])) % out.shape[axis])
        return out

    def random(self, sizes: dict[str, int], generator: Any) -> Any:
        """Other values of the same kind: within the bounds given, else like the example's own."""
        shape = [sizes.get(self.dynamic.get(axis, ""), size) for axis, size in enumerate(self.tensor.shape)]
        if self.given is not None:
            return random_of(replace(self.given, shape=tuple(shape)), generator)
        dtype, values = self.tensor.dtype, self.tensor
        if dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=generator).bool()
        if not (dtype.is_floating_point or dtype.is_complex):
            low, high = int(values.min()), int(values.max())
            return torch.randint(low, high + 1, shape, generator=generator).to(dtype)
        spread = float(values.float().std()) if values.numel() > 1 else 1.0
        return (torch.randn(shape, generator=generator) * spread + float(values.float().mean())).to(dtype)


@dataclass(frozen=True)
class Example:
    """`by_name`: every name is one of a parameter of the module, so the inputs are passed by it."""

    arguments: tuple[Argument, ...]
    by_name: bool

    @property
    def sizes(self) -> dict[str, int]:
        """Of the dynamic axes, by name."""
        return {
            name: item.tensor.shape[axis] for item in self.arguments for axis, name in item.dynamic.items()
        }

    @property
    def tensors(self) -> tuple[Any, ...]:
        return tuple(item.tensor for item in self.arguments)

    def call(self, module: Any, tensors: tuple[Any, ...]) -> Any:
        if not self.by_name:
            return module(*tensors)
        return module(**{item.name: tensor for item, tensor in zip(self.arguments, tensors, strict=True)})

    def shown(self, tensors: tuple[Any, ...]) -> str:
        pairs = zip(self.arguments, tensors, strict=True)
        return ", ".join(
            f"{item.name} {'x'.join(map(str, value.shape)) or 'scalar'} {kind(value)}"
            for item, value in pairs
        )

    def batches(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """At least three random batches and how each is called; of other sizes too where an axis is
        dynamic."""
        generator = torch.Generator().manual_seed(0)
        own = self.sizes
        grown: list[dict[str, int]] = [{name: size + more for name, size in own.items()} for more in MORE]
        if own and max(own.values()) > 1:
            grown.append(dict.fromkeys(own, 1))
        for sizes in grown:
            at = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            yield (
                f"random{f', {at}' if at else ''}",
                tuple(item.random(sizes, generator) for item in self.arguments),
            )


def kind(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def random_of(given: Input, generator: Any) -> Any:
    dtype = getattr(torch, given.dtype)
    if dtype == torch.bool:
        return torch.randint(0, 2, given.shape, generator=generator).bool()
    if dtype.is_floating_point:
        if given.low is None or given.high is None:
            return torch.randn(given.shape, generator=generator).to(dtype)
        return (torch.rand(given.shape, generator=generator) * (given.high - given.low) + given.low).to(dtype)
    low, high = int(given.low or 0), int(1 if given.high is None else given.high)
    return torch.randint(low, high + 1, given.shape, generator=generator).to(dtype)
