"""Operands of tests."""

from __future__ import annotations

from typing import Tuple

import numpy as np
import numpy.typing as npt

from . import _process
from ._tensor import Tensor, tensors


def operands(
    m: int, n: int, k: int, *, format: str = "E4M3", block: str = "tensor", seed: int = 0
) -> Tuple[Tensor, Tensor]:
    """Returns operands A [m, k] and B [n, k] of whose product every sum in float32, in any
    order, is exact: a correct kernel returns the bits of the exact product, and any fault
    that changes them shows in the element that it changes.

    block: rows and columns that share a scale, which is 1 or 2.
    Raises InputError for sizes that are negative or too large: k is 2^24 at most.
    """
    result, arrays = _process.shared.ask(
        "operands", {}, {"m": m, "n": n, "k": k, "format": format, "block": block, "seed": seed}
    )
    return tensors(result, arrays)


def cancelling(m: int, n: int, k: int, *, format: str = "E4M3", seed: int = 0) -> Tuple[Tensor, Tensor]:
    """Returns operands A [m, k] and B [n, k] in blocks of 1x32 whose products cancel but for
    very little: with k even every exact element is 0. Errors are those of operands."""
    result, arrays = _process.shared.ask(
        "cancelling", {}, {"m": m, "n": n, "k": k, "format": format, "seed": seed}
    )
    return tensors(result, arrays)


def generate(
    rows: int, cols: int, pattern: str = "bell", *, block: str = "tensor", format: str = "E4M3", seed: int = 0
) -> npt.NDArray[np.float32]:
    """Returns a matrix of float32 to be quantized, the same bits on every machine.

    pattern: bell (nothing special: mean 0, variance 1), ties (midpoints between codes of
        the format, and their neighbours), outlier (one value of each block 4096 times as
        large), tiny (times 2^-130), subnormals, zeros, powers (largest magnitudes next to
        powers of two), nans or infs (in some rows).
    block: the blocks that patterns go by; take that of the recipe. Each is multiplied by a
        power of two from 2^-7 to 1, neighbours by others, so that swapped scales are seen.
    Raises InputError for a pattern, format or block that is none, and sizes that are
    negative or too large.
    """
    _, arrays = _process.shared.ask(
        "generate",
        {},
        {"rows": rows, "cols": cols, "pattern": pattern, "block": block, "format": format, "seed": seed},
    )
    return arrays["values"].data
