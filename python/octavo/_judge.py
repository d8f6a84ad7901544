"""The verdict on a kernel's product."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from dataclasses import asdict, dataclass
from typing import Any, Dict, Optional, Sequence, Tuple, Union

import numpy.typing as npt

from . import _process
from ._arrays import Array, take
from ._process import InputError, Progress
from ._tensor import operand

_C_TYPES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}


@dataclass(frozen=True)
class Sample:
    """Which elements of a large C are looked at, each as exactly as if it were all.

    C is cut into equal tiles, and in each one element is chosen at random. All of C is
    compared with octavo's own product, and the elements that are farthest from it are
    looked at too. The verdict says with what probability wrong elements would be missed.
    """

    #: At random, about; 0 is 65536, negative is none.
    elements: int = 0
    #: The farthest from octavo's product; 0 is 4096, negative is none.
    suspects: int = 0
    #: Rows and columns of C to look at whole.
    rows: Sequence[int] = ()
    cols: Sequence[int] = ()
    #: Parts of C to look at whole: row and column of the first element, height, width.
    tiles: Sequence[Tuple[int, int, int, int]] = ()
    seed: int = 0

    def _options(self) -> Dict[str, Any]:
        o = asdict(self)
        o["rows"], o["cols"] = [int(i) for i in self.rows], [int(j) for j in self.cols]
        o["tiles"] = []
        for tile in self.tiles:
            if len(tile) != 4:
                raise InputError(f"tile {tile} of a sample: want row, column, height and width")
            o["tiles"].append(dict(zip(("row", "col", "height", "width"), map(int, tile))))
        return o


@dataclass(frozen=True)
class Verdict:
    """What was found of a kernel's C, or of its attention."""

    passed: bool
    #: In what it failed, or why it is undecided, in a line; "" if it passed.
    failure: str
    #: The report that octavo verify, or octavo verify attention, prints.
    text: str
    #: The keys of their --json. NaN and infinities are the strings "NaN", "+Inf"
    #: and "-Inf".
    json: Dict[str, Any]

    @property
    def outcome(self) -> str:
        """The word pass, fail or undecided: the last where no element that could be judged
        is wrong and the bounds of some say nothing."""
        return str(self.json["outcome"])

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        first = re.sub(r"\n +", " ", self.text).splitlines()[0]  # which may go on in the next line
        return f"<octavo.Verdict: {first}>"


class Mismatch(AssertionError):
    """A kernel's C, or its attention, is not what it is claimed to be, or that is undecided.
    Its text is the report."""

    def __init__(self, verdict: Verdict, page: Optional[str] = None, made: str = "C") -> None:
        what = f"the kernel's {made} is wrong"
        if verdict.outcome == "undecided":
            what = f"it is undecided whether the kernel's {made} is right"
        text = f"{what}\n\n{verdict.text}"
        super().__init__(text + (f"\npage: {page}\n" if page else ""))
        self.verdict = verdict
        self.page = page
        self.made = made

    def __reduce__(self) -> Tuple[Any, ...]:
        return Mismatch, (self.verdict, self.page, self.made)  # to be raised in another process


def judge(
    c: Any,
    a: Any,
    a_scales: Any = None,
    b: Any = None,
    b_scales: Any = None,
    *,
    model: str = "exact",
    promote: int = 0,
    scale_order: str = "any",
    bound: Optional[str] = None,
    bias: Any = None,
    old: Any = None,
    c_dtype: Optional[str] = None,
    a_format: Optional[str] = None,
    a_block: Optional[str] = None,
    b_format: Optional[str] = None,
    b_block: Optional[str] = None,
    sample: Union[None, bool, int, Sample] = None,
    alarms: str = "fail",
    page: Union[None, str, "os.PathLike[str]"] = None,
    workers: int = 0,
    progress: Optional[Progress] = None,
) -> Verdict:
    """Returns the verdict on C, which a kernel is claimed to have made of A and B; raises
    nothing where it is wrong. Otherwise as check."""
    arrays, options = product_of(a, a_scales, b, b_scales, a_format, a_block, b_format, b_block, bias)
    arrays["c"] = result_of(c, "c", c_dtype)
    if old is not None:
        arrays["old"] = result_of(old, "old", c_dtype)
    options.update(
        model=model,
        promote=promote,
        scale_order=scale_order,
        bound=bound,
        alarms=alarms,
        workers=workers,
    )
    if sample is not None and sample is not False:
        if not isinstance(sample, Sample):
            sample = Sample(0 if sample is True else sample)
        options["sample"] = sample._options()
    return verdict_of("check", arrays, options, page, progress)


def verdict_of(
    operation: str,
    arrays: Dict[str, Array],
    options: Dict[str, Any],
    page: Union[None, str, "os.PathLike[str]"],
    progress: Optional[Progress],
) -> Verdict:
    """Returns the verdict that an operation gives, and writes its page."""
    options["page"] = page is not None
    result, parts = _process.shared.ask(operation, arrays, options, progress)
    if page is not None:
        _write(page, parts["page"].data.tobytes())
    return Verdict(result["pass"], result["failure"], result["text"], result["verdict"])


def _write(path: Union[str, "os.PathLike[str]"], data: bytes) -> None:
    """Writes a file whole or not at all."""
    part = f"{os.fspath(path)}.{os.getpid()}.{threading.get_ident()}.part"
    try:
        with open(part, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(part)
        raise


def check(
    c: Any,
    a: Any,
    a_scales: Any = None,
    b: Any = None,
    b_scales: Any = None,
    *,
    model: str = "exact",
    promote: int = 0,
    scale_order: str = "any",
    bound: Optional[str] = None,
    bias: Any = None,
    old: Any = None,
    c_dtype: Optional[str] = None,
    a_format: Optional[str] = None,
    a_block: Optional[str] = None,
    b_format: Optional[str] = None,
    b_block: Optional[str] = None,
    sample: Union[None, bool, int, Sample] = None,
    alarms: str = "fail",
    page: Union[None, str, "os.PathLike[str]"] = None,
    workers: int = 0,
    progress: Optional[Progress] = None,
) -> Verdict:
    """Raises Mismatch, an AssertionError with the report, unless C is what a kernel is
    claimed to have made of A and B: C = A Bᵀ. Otherwise it returns the verdict. It raises it
    too where that is undecided, and the report says what would decide it.

    c: [M, N], float32, float16 or bfloat16.
    a, b: [M, K] and [N, K], codes: of an FP8 type of PyTorch or ml_dtypes, of PyTorch's
        float4_e2m1fn_x2, or uint8, one code a byte, with a_format and b_format, one of
        FORMATS. Or each an octavo.Tensor, which has its scales, outer ones too, format and
        block: check(c, a=x, b=w).
    a_scales, b_scales: multipliers that dequantize, a grid [rows, columns] of one for each
        block: float32, E8M0 as uint8 or PyTorch's float8_e8m0fnu, or PyTorch's
        float8_e4m3fn, which is UE4M3; or one number, which is rounded to float32.
    a_block, b_block: rows and columns that share a scale, such as "1x128", "row" or
        "tensor", where several fit the shapes.
    model: what C has to be.
        "exact": the exact product, rounded once, within a bound that is derived from the
            operands and from what is known of the kernel's sums.
        "canonical": the bits of octavo's own product.
        A GPU, such as "hopper-wgmma": the bits of its matrix instructions, promoted to
            float32 after so many products (promote; DeepGEMM: 128; 0: after each block of
            K), with scales applied in an order (scale_order: "product-then-fma", "a-then-b",
            "b-then-a", or "any", which is "a-then-b"). octavo verify --help lists GPUs.
    bound: how the kernel adds, for "exact": "float32" in any order (the default),
        "float32-truncated", "dequantized" or a GPU, with promote and scale_order.
    bias: [N], float32, that was added to every row.
    old: [M, N], of the type of c, the C that the product was added to.
    c_dtype: "bfloat16" where c, and old, are the bits of bfloat16 in uint16.
    sample: looks at some elements of a large C: True, about how many, or a Sample.
    alarms: what comes of a statistical alarm, where every element is within its bound but
        all errors together are not what the claimed sums would give: "fail" (a correct
        kernel raises one in a million results), "warn" in the report, or "ignore", which is
        faster and leaves more undecided.
    page: a file to write the report to as a page with a map of the errors.
    workers: threads at most; 0 is one for each processor.
    progress: is called with the name of an operation, what is done of it, and its total,
        at most ten times a second. An exception in it breaks the check off. It may not
        call octavo.

    Raises InputError for arrays that are no operands, which it names with the place and the
    value, TypeError for types that octavo has not, CommandError where there is no command
    octavo, and CrashError where it ended. KeyboardInterrupt ends the check; the next call
    starts another process.
    """
    __tracebackhide__ = True
    verdict = judge(
        c,
        a,
        a_scales,
        b,
        b_scales,
        model=model,
        promote=promote,
        scale_order=scale_order,
        bound=bound,
        bias=bias,
        old=old,
        c_dtype=c_dtype,
        a_format=a_format,
        a_block=a_block,
        b_format=b_format,
        b_block=b_block,
        sample=sample,
        alarms=alarms,
        page=page,
        workers=workers,
        progress=progress,
    )
    if not verdict:
        raise Mismatch(verdict, None if page is None else os.fspath(page))
    return verdict


def multiply(
    a: Any,
    a_scales: Any = None,
    b: Any = None,
    b_scales: Any = None,
    *,
    model: str = "exact",
    promote: int = 0,
    scale_order: str = "any",
    dtype: str = "float32",
    bias: Any = None,
    old: Any = None,
    a_format: Optional[str] = None,
    a_block: Optional[str] = None,
    b_format: Optional[str] = None,
    b_block: Optional[str] = None,
    workers: int = 0,
    progress: Optional[Progress] = None,
) -> npt.NDArray[Any]:
    """Returns C = A Bᵀ, [M, N], as a kernel has to that is checked under the same model: the
    exact product rounded once, octavo's own, or what a GPU would return.

    dtype: of C: float32, float16 or bfloat16, which is returned as uint16.
    The others, and errors, are those of check. old is not changed.
    """
    arrays, options = product_of(a, a_scales, b, b_scales, a_format, a_block, b_format, b_block, bias)
    if old is not None:
        arrays["old"] = result_of(old, "old", dtype)
    kind = _c_type(dtype)
    options.update(model=model, promote=promote, scale_order=scale_order, type=kind, workers=workers)
    _, parts = _process.shared.ask("multiply", arrays, options, progress)
    return parts["c"].data


def product_of(
    a: Any,
    a_scales: Any,
    b: Any,
    b_scales: Any,
    a_format: Optional[str],
    a_block: Optional[str],
    b_format: Optional[str],
    b_block: Optional[str],
    bias: Any,
) -> Tuple[Dict[str, Array], Dict[str, Any]]:
    """Returns the arrays and options of both operands and the bias."""
    if b is None:
        raise TypeError("b is missing: want c, a, a_scales, b, b_scales, or a= and b= that are octavo.Tensors")
    arrays, options = operand("a", a, a_scales, a_format, a_block)
    of_b, options_of_b = operand("b", b, b_scales, b_format, b_block)
    arrays.update(of_b)
    options.update(options_of_b)
    if bias is not None:
        arrays["bias"] = take(bias, "bias")
    return arrays, options


def _c_type(dtype: str) -> str:
    if dtype not in _C_TYPES:
        raise InputError(f"C of type {dtype!r}: want float32, float16 or bfloat16")
    return _C_TYPES[dtype]


def result_of(c: Any, name: str, dtype: Optional[str], argument: str = "c_dtype") -> Array:
    """Returns C, of which dtype, an argument, says that uint16 is bfloat16."""
    array = take(c, name)
    if dtype is None:
        if array.dtype == "U16":
            raise InputError(f'{name} is uint16: say {argument}="bfloat16" if it is the bits of that')
        return array
    want = _c_type(dtype)
    if array.dtype == "U16" and want == "BF16":
        return Array("BF16", array.data)
    if array.dtype != want:
        given = {of: known for known, of in _C_TYPES.items()}.get(array.dtype, array.data.dtype)
        raise InputError(f"{name} is {given} and not {dtype}")
    return array
