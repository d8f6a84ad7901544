"""Codes with scales, and what makes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

import numpy as np
import numpy.typing as npt

from . import _process
from ._arrays import Array, take
from ._process import InputError


#: The formats of codes: see octavo encode --help.
FORMATS = (
    "E4M3",
    "E5M2",
    "E4M3FNUZ",
    "E5M2FNUZ",
    "E2M1",
    "E2M3",
    "E3M2",
    "E4M3IEEE",
    "E3M4",
    "E4M3B11FNUZ",
    "MXINT8",
)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A matrix of codes and the scales that give them meaning: the value of an element is
    that of its code times the scale of its block and, where there are any, times or divided
    by an outer scale.

    A tensor of any rank is seen as a matrix whose columns are its last dimension.
    """

    codes: npt.NDArray[np.uint8]
    #: A grid [rows, columns] of one scale for each block: float32, or uint8 for E8M0 and
    #: UE4M3.
    scales: npt.NDArray[Any]
    #: E4M3, E2M1 and so on: see FORMATS.
    format: str
    #: Rows and columns that share a scale, such as "1x128", "row" or "tensor".
    block: str
    #: What quantizing did; empty where nothing was quantized. See :func:`encode`.
    stats: Mapping[str, Any] = field(default_factory=dict, repr=False)
    #: What scales that are uint8 are: "E8M0" or "UE4M3".
    scale_format: str = "E8M0"
    #: float32, of one scale for all blocks, one for each row, or one for each matrix of a
    #: stack; None: there is none.
    outer: Optional[npt.NDArray[np.float32]] = None
    #: Whether outer scales are divisors, as those of compressed-tensors are.
    outer_divides: bool = False

    @property
    def shape(self) -> Tuple[int, ...]:
        """The shape of the codes."""
        return self.codes.shape

    def values(self) -> npt.NDArray[np.float32]:
        """Returns the values, code times scales, rounded once to float32."""
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
    zero: str = "keep-sign",
    rounding: str = "nearest-even",
    seed: int = 0,
) -> Encoded:
    """Converts floats to FP8 codes, without a scale.

    values: float32, float64, float16 or bfloat16, of any shape; rounded once.
    format: one of FORMATS. A code of less than eight bits lies in the low bits of its byte.
    overflow: what becomes of a finite value beyond the largest code: "saturate" or
        "non-finite" (Inf where the format has one, otherwise NaN, if it has that).
    inf: what becomes of an infinity: "saturate" or "propagate".
    nan: what becomes of a NaN's sign: "keep-sign" or "canonical"; in a format that has no
        NaN these give the largest value, "zero" gives +0 and "opposite-zero" a zero of the
        other sign.
    zero: the sign of zeros: "keep-sign", "positive", "negative", or "unsigned": +0 also of
        what becomes zero.
    rounding: "nearest-even", "nearest-toward-zero" (of ties), "toward-zero" or "stochastic",
        whose bits depend on seed and on the element's place alone.

    Returns codes, uint8 of the shape of values, and stats: the numbers of elements that
    were saturated, flushed to zero, became subnormal, and so on.
    Raises InputError for a name that is none, and TypeError for what are no floats.
    """
    result, arrays = _process.shared.ask(
        "encode",
        {"values": take(values, "values")},
        {
            "format": format,
            "overflow": overflow,
            "inf": inf,
            "nan": nan,
            "zero": zero,
            "rounding": rounding,
            "seed": seed,
        },
    )
    return Encoded(arrays["codes"].data, result["stats"])


def decode(codes: Any, format: Optional[str] = None) -> npt.NDArray[np.float32]:
    """Returns the values of codes, exactly, as float32 of the same shape; of PyTorch's
    float4_e2m1fn_x2, two codes a byte, the last dimension is twice as long.

    codes: uint8, or of a type of PyTorch or ml_dtypes, which says its format.
    format: of codes that are uint8: one of FORMATS.
    Raises InputError where the format is missing or another than the type says, and where a
    byte has more bits than a code.
    """
    given = take(codes, "codes")
    _, arrays = _process.shared.ask("decode", {"codes": given}, {"format": _format(format, given, "codes")})
    return arrays["values"].data


def _format(said: Optional[str], codes: Array, name: str) -> Optional[str]:
    """Returns the format of codes, which their type may say."""
    if said is not None and codes.format is not None and said.upper() != codes.format:
        raise InputError(f"{name} is of the type of {codes.format} and not {said}: leave the format out")
    return said if codes.format is None else codes.format


def quantize(
    values: Any,
    recipe: str = "te-block-pow2",
    *,
    format: Optional[str] = None,
    block: Optional[str] = None,
    epsilon: float = 0,
    overflow: str = "saturate",
    inf: str = "saturate",
    nan: str = "keep-sign",
    zero: str = "keep-sign",
    rounding: str = "nearest-even",
    seed: int = 0,
) -> Tensor:
    """Quantizes a matrix: chooses a scale for each block, and encodes its values under it.

    values: float32, float64, float16 or bfloat16, of any shape.
    recipe: what is made of weights: "fp8", "mxfp8", "nvfp4" and others, or the arithmetic of a
        library, such as "te-current" or "mx-floor": see octavo help recipes.
    format: one of FORMATS; by default the recipe's, and only its own where that has one.
    block: rows and columns that share a scale: "1x128", "128x128", "1x32", "row", "tensor"
        and so on; by default that which the recipe gives to weights.
    epsilon: a smaller largest magnitude is raised to it; te-current and te-block only.
    The others are those of encode; the default is the library's.

    Scales are multipliers that dequantize: float32, or uint8, E8M0 of the mx profiles and
    UE4M3 of the nvfp4 ones, most of which have an outer scale as well. Of a tensor of zeros
    values are zeros, but for nvfp4-torchao-global and nvfp4-modelopt, whose scales are then
    0/0 and values NaN.
    Raises InputError for a recipe, block or format that is none.
    """
    result, arrays = _process.shared.ask(
        "quantize",
        {"values": take(values, "values")},
        {
            "recipe": recipe,
            "format": format,
            "block": block,
            "epsilon": epsilon,
            "overflow": overflow,
            "inf": inf,
            "nan": nan,
            "zero": zero,
            "rounding": rounding,
            "seed": seed,
        },
    )
    outer = arrays.get("outer")
    return Tensor(
        arrays["codes"].data,
        arrays["scales"].data,
        result["format"],
        result["block"],
        result["stats"],
        result["scale_format"],
        None if outer is None else outer.data,
        result["outer_divides"],
    )


def dequantize(
    codes: Any, scales: Any = None, *, format: Optional[str] = None, block: Optional[str] = None
) -> npt.NDArray[np.float32]:
    """Returns code times scales of each element, rounded once to float32.

    codes: a Tensor, which may have outer scales; or codes as decode takes them, with scales,
        a grid of float32, of E8M0 or of PyTorch's float8_e4m3fn (which is UE4M3) or one
        number, which is rounded to float32, and the block where several fit the shapes.
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
    arrays: Dict[str, Array] = {}
    options: Dict[str, Any] = {}
    scale_type = "F8_E8M0"
    if isinstance(codes, Tensor):
        if scales is not None or format is not None or block is not None:
            raise TypeError(f"{name} is an octavo.Tensor, which has its scales, format and block: leave those of {name} out")
        if codes.scale_format == "UE4M3":
            scale_type = "F8_E4M3"
        if codes.outer is not None:
            arrays[f"{prefix}outer"] = take(np.asarray(codes.outer, np.float32), f"{prefix}outer")
            options[f"{prefix}outer_divides"] = codes.outer_divides
        codes, scales, format, block = codes.codes, codes.scales, codes.format, codes.block
    if scales is None:
        raise TypeError(f"{prefix}scales is missing: an array, or 1.0 for one scale of the whole tensor")
    given = take(codes, name)
    grid = take(rounded(scales, f"{prefix}scales") if isinstance(scales, (int, float)) else scales, f"{prefix}scales")
    if grid.dtype == "U8":
        grid = Array(scale_type, grid.data)
    arrays.update({name: given, f"{prefix}scales": grid})
    options.update({f"{prefix}format": _format(format, given, name), f"{prefix}block": block})
    return arrays, options


def rounded(x: float, name: str) -> np.float32:
    """Returns a number as float32, which has to hold it."""
    try:
        with np.errstate(all="ignore"):
            near = np.float32(x)
    except OverflowError:
        near = np.float32("inf")
    if near != x and (near == 0 or np.isinf(near)):
        raise InputError(f"{name} is {x}, which float32 does not hold")
    return near


def tensors(result: Mapping[str, Any], arrays: Mapping[str, Array]) -> Tuple[Tensor, Tensor]:
    """Returns the operands of an answer."""
    a, b = (
        Tensor(arrays[x].data, arrays[f"{x}_scales"].data, result["format"], result["block"]) for x in ("a", "b")
    )
    return a, b
