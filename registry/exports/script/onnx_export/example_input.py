"""The example input of a model, and random inputs of the same kind in other sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from .request import DeclaredInput

# By how much the sizes of dynamic axes exceed the example's; then, where it is larger, a size of 1.
EXTRA_SIZES = (0, 1, 5)


@dataclass(frozen=True)
class Argument:
    """One input of a model. `dynamic`: axis -> name of the axis. `declared`: the line in the form that it was
    made from."""

    name: str
    tensor: Any
    dynamic: dict[int, str]
    declared: DeclaredInput | None = None

    def sized(self, sizes: dict[str, int]) -> object:
        """Returns the example tensor with its dynamic axes repeated or cut to `sizes` (name of the axis ->
        size)."""
        out = self.tensor
        for axis, name in self.dynamic.items():
            out = out.index_select(axis, torch.arange(sizes.get(name, out.shape[axis])) % out.shape[axis])
        return out

    def random(self, sizes: dict[str, int], generator: object) -> object:
        """Returns a random tensor of these sizes: within the declared bounds, or distributed like the
        example's values."""
        shape = [sizes.get(self.dynamic.get(axis, ""), size) for axis, size in enumerate(self.tensor.shape)]
        if self.declared is not None:
            return random_tensor(replace(self.declared, shape=tuple(shape)), generator)
        dtype, values = self.tensor.dtype, self.tensor
        if dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=generator).bool()
        if not (dtype.is_floating_point or dtype.is_complex):
            low, high = int(values.min()), int(values.max())
            return torch.randint(low, high + 1, shape, generator=generator).to(dtype)
        spread = float(values.float().std()) if values.numel() > 1 else 1.0
        return (torch.randn(shape, generator=generator) * spread + float(values.float().mean())).to(dtype)


@dataclass(frozen=True)
class ExampleInput:
    """All inputs of a model. `by_name`: every name is a parameter of the module, so inputs are passed by
    name."""

    arguments: tuple[Argument, ...]
    by_name: bool

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the dynamic axes in the example, by the axes' names."""
        return {
            name: item.tensor.shape[axis] for item in self.arguments for axis, name in item.dynamic.items()
        }

    @property
    def tensors(self) -> tuple[object, ...]:
        return tuple(item.tensor for item in self.arguments)

    def call(self, module: Any, tensors: tuple[object, ...]) -> object:
        if not self.by_name:
            return module(*tensors)
        return module(**{item.name: tensor for item, tensor in zip(self.arguments, tensors, strict=True)})

    def description(self, tensors: tuple[Any, ...]) -> str:
        pairs = zip(self.arguments, tensors, strict=True)
        return ", ".join(
            f"{item.name} {'x'.join(map(str, value.shape)) or 'scalar'} {kind(value)}"
            for item, value in pairs
        )

    def batches(self) -> Iterator[tuple[str, tuple[object, ...]]]:
        """Yields a description and the tensors of at least three random batches; those of dynamic axes have
        other sizes too."""
        generator = torch.Generator().manual_seed(0)
        own = self.sizes
        grown = [{name: size + extra for name, size in own.items()} for extra in EXTRA_SIZES]
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


def random_tensor(declared: DeclaredInput, generator: object) -> object:
    dtype = getattr(torch, declared.dtype)
    if dtype == torch.bool:
        return torch.randint(0, 2, declared.shape, generator=generator).bool()
    if dtype.is_floating_point:
        if declared.low is None or declared.high is None:
            return torch.randn(declared.shape, generator=generator).to(dtype)
        return (
            torch.rand(declared.shape, generator=generator) * (declared.high - declared.low) + declared.low
        ).to(dtype)
    low, high = int(declared.low or 0), int(1 if declared.high is None else declared.high)
    return torch.randint(low, high + 1, declared.shape, generator=generator).to(dtype)
