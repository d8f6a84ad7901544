"""Takes arrays of NumPy, of ml_dtypes and of PyTorch as what they are: bytes of a type and a shape."""

from __future__ import annotations

import sys
from typing import Any, Dict, NamedTuple, Optional, Sequence

import numpy as np
import numpy.typing as npt

#: Types by their names in NumPy, ml_dtypes and PyTorch, without the "torch.".
_TYPES: Dict[str, str] = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
    "uint8": "U8",
    "uint16": "U16",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "bool": "BOOL",
}

#: Types of ml_dtypes of which safetensors has none, or none of a byte for each code: such
#: codes are bytes with the name of their format.
_FORMATS: Dict[str, str] = {
    "float4_e2m1fn": "E2M1",
    "float6_e2m3fn": "E2M3",
    "float6_e3m2fn": "E3M2",
    "float8_e4m3": "E4M3IEEE",
    "float8_e3m4": "E3M4",
    "float8_e4m3b11fnuz": "E4M3B11FNUZ",
}

#: How the types are held that NumPy has not.
_HELD: Dict[str, npt.DTypeLike] = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "U16": "<u2",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
    "I8": "i1",
    "BOOL": "?",
}


class Array(NamedTuple):
    """An array: data is contiguous and little-endian, and of unsigned integers where NumPy
    has no such type."""

    dtype: str  # as safetensors names it
    data: npt.NDArray[Any]
    format: Optional[str] = None  # of codes whose dtype does not say it

    @staticmethod
    def of_bytes(dtype: str, shape: Sequence[int], raw: npt.NDArray[np.uint8]) -> "Array":
        """Returns the array of a type and a shape that raw bytes are."""
        return Array(dtype, raw.view(_HELD.get(dtype, "u1")).reshape(tuple(shape)))


def take(x: Any, name: str) -> Array:
    """Returns what x is: an array of NumPy, one of ml_dtypes' types among them, a tensor of
    PyTorch on any device, or what numpy.asarray makes an array of. Name is for the error."""
    dtype = str(getattr(x, "dtype", ""))
    if dtype.startswith("torch."):
        return _take_tensor(x, dtype[len("torch.") :], name)
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array: hand over its data, or filled()")
    array = np.asarray(x)
    format = _FORMATS.get(array.dtype.name)
    known = "U8" if format else _TYPES.get(array.dtype.name)
    if known is None:
        raise TypeError(f"{name} is of type {array.dtype}: octavo has no such arrays")
    held = np.dtype(_HELD.get(known, "u1"))
    if array.dtype.isbuiltin != 2:  # of NumPy itself, not of ml_dtypes
        array = array.astype(held, copy=False)  # in the order of bytes that is sent
    return Array(known, _viewed(array, held), format)


def _take_tensor(x: Any, dtype: str, name: str) -> Array:
    """Returns what a tensor of PyTorch is. One of FP8 or bfloat16, which NumPy has not, is
    viewed as integers first."""
    packed = dtype == "float4_e2m1fn_x2"
    known = "U8" if packed else _TYPES.get(dtype)
    if known is None:
        raise TypeError(f"{name} is of type torch.{dtype}: octavo has no such tensors")
    layout = str(getattr(x, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise TypeError(f"{name} is of layout {layout}: hand over to_dense()")
    x = x.detach().cpu().contiguous()
    if packed or dtype.startswith("float8"):
        x = x.view(sys.modules["torch"].uint8)
    elif dtype == "bfloat16":
        x = x.view(sys.modules["torch"].int16)
    data = _viewed(x.numpy(), np.dtype(_HELD.get(known, "u1")))
    return Array(known, unpack(data), "E2M1") if packed else Array(known, data)


def unpack(packed: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Returns the codes of four bits that lie two in a byte, the first in the low half, one
    a byte: the last dimension is twice as long."""
    codes: npt.NDArray[np.uint8] = np.repeat(packed, 2, axis=-1)
    codes[..., ::2] &= 15
    codes[..., 1::2] >>= 4
    return codes


def _viewed(array: npt.NDArray[Any], held: np.dtype[Any]) -> npt.NDArray[Any]:
    """Returns array, contiguous, as another type of the same size."""
    shape = array.shape  # ascontiguousarray makes a vector of a scalar
    return np.ascontiguousarray(array).reshape(-1).view(held).reshape(shape)
