"""Codes with scales, and what makes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

import numpy as np
import numpy.typing as npt

from . import _process
from ._arrays import Array, take
from ._process import InputError


@dataclass(frozen=True, eq=False)
class Tensor:
    """A matrix of FP8 codes and the scales that give them meaning: the value of an element
    is that of its code times the scale of its block.

    A tensor of any rank is seen as a matrix whose columns are its last dimension.
    """

    codes: npt.NDArray[np.uint8]
    #: A grid [rows, columns] of one scale for each block: float32, or uint8 for E8M0.
    scales: npt.NDArray[Any]
    #: E4M3, E5M2, E4M3FNUZ or E5M2FNUZ.
    format: str
    #: Rows and columns that share a scale, such as "1x128", "row" or "tensor".
    block: str
    #: What quantizing did; empty where nothing was quantized. See :func:`encode`.
    stats: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> Tuple[int, ...]:
        """The shape of the codes."""
        return self.codes.shape

    def values(self) -> npt.NDArray[np.float32]:
        """Returns the values, code times scale, rounded once to float32."""
        return dequantize(self)


class Encoded(NamedTuple):
    """Codes, and what happened to the values."""

    codes: npt.NDArray[np.uint8]
    stats: Dict[str, Any]


def encode(
    values: Any,
    format: str = "E4M3",
    *,
    overflow: str = "saturate",
    inf: str = "saturate",
    nan: str = "keep-sign",
    rounding: str = "nearest-even",
    seed: int = 0,
) -> Encoded:
    """Converts floats to FP8 codes, without a scale.

    values: float32, float64, float16 or bfloat16, of any shape; rounded once.
    format: E4M3, E5M2, E4M3FNUZ or E5M2FNUZ.
    overflow: what becomes of a finite value beyond the largest code: "saturate" or
        "non-finite" (Inf where the format has one, otherwise NaN).
    inf: what becomes of an infinity: "saturate" or "propagate".
    nan: what becomes of a NaN's sign: "keep-sign" or "canonical".
    rounding: "nearest-even", "toward-zero" or "stochastic", whose bits depend on seed and
        on the element's place alone.

    Returns codes, uint8 of the shape of values, and stats: the numbers of elements that
    were saturated, flushed to zero, became subnormal, and so on.
    Raises InputError for a name that is none, and TypeError for what are no floats.
    """
    result, arrays = _process.shared.ask(
        "encode",
        {"values": take(values, "values")},
        {"format": format, "overflow": overflow, "inf": inf, "nan": nan, "rounding": rounding, "seed": seed},
    )
    return Encoded(arrays["codes"].data, result["stats"])


def decode(codes: Any, format: Optional[str] = None) -> npt.NDArray[np.float32]:
    """Returns the values of FP8 codes, exactly, as float32 of the same shape.

    codes: uint8, or of an FP8 type of PyTorch or ml_dtypes, which says its format.
    format: of codes that are uint8: E4M3, E5M2, E4M3FNUZ or E5M2FNUZ.
    Raises InputError where the format is missing or another than the type says.
    """
    _, arrays = _process.shared.ask("decode", {"codes": take(codes, "codes")}, {"format": format})
    return arrays["values"].data


def quantize(
    values: Any,
    profile: str = "te-block-pow2",
    *,
    format: str = "E4M3",
    block: Optional[str] = None,
    epsilon: float = 0,
    overflow: str = "saturate",
    inf: str = "saturate",
    nan: str = "keep-sign",
    rounding: str = "nearest-even",
    seed: int = 0,
) -> Tensor:
    """Quantizes a matrix: chooses a scale for each block, and encodes its values under it.

    values: float32, float64, float16 or bfloat16, of any shape.
    profile: whose arithmetic of scales: te-current, te-block, torchao-tensorwise,
        torchao-rowwise, each also with -pow2, deepgemm and deepseek, each also with -ue8m0,
        mtfp8, mx-floor or mx-rceil. go doc octavo/scaling says what each computes.
    block: rows and columns that share a scale: "1x128", "128x128", "1x32", "row", "tensor"
        and so on; by default that which the profile's library gives to weights.
    epsilon: a smaller largest magnitude is raised to it; te-current and te-block only.
    The others are those of encode.

    Scales are multipliers that dequantize: float32, or uint8, E8M0, of the mx profiles.
    Raises InputError for a profile, block or format that is none.
    """
    result, arrays = _process.shared.ask(
        "quantize",
        {"values": take(values, "values")},
        {
            "profile": profile,
            "format": format,
            "block": block,
            "epsilon": epsilon,
            "overflow": overflow,
            "inf": inf,
            "nan": nan,
            "rounding": rounding,
            "seed": seed,
        },
    )
    return Tensor(arrays["codes"].data, arrays["scales"].data, result["format"], result["block"], result["stats"])


def dequantize(
    codes: Any, scales: Any = None, *, format: Optional[str] = None, block: Optional[str] = None
) -> npt.NDArray[np.float32]:
    """Returns code times scale of each element, rounded once to float32.

    codes: a Tensor; or codes as decode takes them, with scales, a grid of float32 or of
        E8M0 or one number, which is rounded to float32, and the block where several fit the
        shapes.
    Raises InputError where they do not fit each other.
    """
    arrays, options = operand("", codes, scales, format, block)
    _, arrays = _process.shared.ask("dequantize", arrays, options)
    return arrays["values"].data


def operand(
    name: str, codes: Any, scales: Any, format: Optional[str], block: Optional[str]
) -> Tuple[Dict[str, Array], Dict[str, Any]]:
    """Returns the arrays and the options of an operand of a request, which without a name
    is the only one."""
    prefix, name = (f"{name}_", name) if name else ("", "codes")
    if isinstance(codes, Tensor):
        if scales is not None or format is not None or block is not None:
            raise TypeError(f"{name} is an octavo.Tensor, which has its scales, format and block: leave those of {name} out")
        codes, scales, format, block = codes.codes, codes.scales, codes.format, codes.block
    if scales is None:
        raise TypeError(f"{prefix}scales is missing: an array, or 1.0 for one scale of the whole tensor")
    given = take(codes, name)
    grid = take(_rounded(scales, f"{prefix}scales") if isinstance(scales, (int, float)) else scales, f"{prefix}scales")
    if grid.dtype == "U8":
        grid = Array("F8_E8M0", grid.data)
    return {name: given, f"{prefix}scales": grid}, {f"{prefix}format": format, f"{prefix}block": block}


def _rounded(x: float, name: str) -> np.float32:
    """Returns a number as float32, which has to hold it."""
    try:
        with np.errstate(all="ignore"):
            rounded = np.float32(x)
    except OverflowError:
        rounded = np.float32("inf")
    if rounded != x and (rounded == 0 or np.isinf(rounded)):
        raise InputError(f"{name} is {x}, which float32 does not hold")
    return rounded


def tensors(result: Mapping[str, Any], arrays: Mapping[str, Array]) -> Tuple[Tensor, Tensor]:
    """Returns the operands of an answer."""
    a, b = (
        Tensor(arrays[x].data, arrays[f"{x}_scales"].data, result["format"], result["block"]) for x in ("a", "b")
    )
    return a, b
