"""The verdict on what a quantizer made of an array."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Union

from ._arrays import Array, take
from ._judge import Mismatch, Verdict, result_of, verdict_of
from ._process import Progress
from ._tensor import Tensor, operand, rounded


def check_quantizer(
    x: Any,
    codes: Any,
    scales: Any = None,
    outer: Any = None,
    *,
    recipe: str,
    block: Optional[str] = None,
    rounding: Optional[str] = None,
    format: Optional[str] = None,
    packed: bool = False,
    scale_format: Optional[str] = None,
    scale_layout: Optional[str] = None,
    outer_divides: bool = False,
    x_dtype: Optional[str] = None,
    page: Union[None, str, "os.PathLike[str]"] = None,
    workers: int = 0,
    progress: Optional[Progress] = None,
) -> Verdict:
    """Raises Mismatch, an AssertionError with the report, unless codes, scales and outer scales
    have the bits that a recipe makes of x. The report says which element or scale is wrong
    first, and what explains it. Otherwise it returns the verdict. It raises it too where what
    differs is not defined by the recipe.

    x: [..., K], float32, float16 or bfloat16: what was quantized.
    codes: of the shape of x, as check takes them, or an octavo.Tensor, which has its scales,
        outer scales, format and block. With packed a byte of uint8 holds several, the first in
        the lowest bits.
    scales: one for each block, as check takes them, or int32 of four E8M0 each; row after row,
        or in the order that their number says or scale_layout: "row-major", "column-major",
        "aligned", "packed", "packed-reversed", "128x4" or "8x4".
    outer: float32, of profiles with scales on two levels; with outer_divides they are divisors.
    recipe: that is claimed, as quantize has them.
    block: rows and columns that share a scale; by default the recipe's of activations or, if
        only that fits, of weights.
    rounding: "nearest-even", "nearest-toward-zero", "toward-zero" or "stochastic", which is
        judged by statistics; by default the recipe's.
    format: of codes that are uint8: one of FORMATS.
    scale_format: "e8m0" or "ue4m3", of scales that are uint8; by default the recipe's.
    x_dtype: "bfloat16" where x is the bits of bfloat16 in uint16.
    page, workers and progress are those of check; so are the errors.
    """
    __tracebackhide__ = True
    arrays: Dict[str, Array] = {}
    options: Dict[str, Any] = {}
    if isinstance(codes, Tensor):
        if outer is not None:
            raise TypeError("codes is an octavo.Tensor, which has its outer scales: leave outer out")
        arrays, options = operand("", codes, scales, format, None)
        options["block"] = block or options["block"]
    else:
        if scales is None:
            raise TypeError("scales is missing: an array, or a number for one scale of the whole tensor")
        given = take(codes, "codes")
        arrays["codes"] = given
        arrays["scales"] = take(rounded(scales, "scales") if isinstance(scales, (int, float)) else scales, "scales")
        if outer is not None:
            arrays["outer"] = take(rounded(outer, "outer") if isinstance(outer, (int, float)) else outer, "outer")
        options = {"block": block, "format": format or given.format, "outer_divides": outer_divides}
    arrays["x"] = result_of(x, "x", x_dtype, "x_dtype")
    options.update(
        recipe=recipe,
        rounding=rounding,
        packed=packed,
        scale_format=scale_format,
        scale_layout=scale_layout,
        workers=workers,
    )
    verdict = verdict_of("check_quantizer", arrays, options, page, progress)
    if not verdict:
        raise Mismatch(verdict, None if page is None else os.fspath(page), "quantized tensor")
    return verdict
