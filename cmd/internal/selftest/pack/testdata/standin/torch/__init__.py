"""As much of PyTorch as selftest_torch.py needs, on NumPy, for tests where there is none."""

import types

import numpy as np

__version__ = "stand-in"
uint8, int32, int64 = np.uint8, np.int32, np.int64
float32, float64 = np.float32, np.float64


class _BFloat16:
    """Values are kept as float32."""


class _Float8:
    def __init__(self, mantissa, bias, top):
        exponent, fraction = np.arange(top + 1) >> mantissa, np.arange(top + 1) & ((1 << mantissa) - 1)
        normal = exponent > 0
        self.values = (fraction + (normal << mantissa)) * 2.0 ** (exponent - normal + 1.0 - bias - mantissa)

    def encode(self, x):
        low = np.searchsorted(self.values, np.abs(x), side="right") - 1
        high = np.minimum(low + 1, len(self.values) - 1)
        down, up = np.abs(x) - self.values[low], self.values[high] - np.abs(x)
        code = np.where((up < down) | ((up == down) & (low & 1 == 1)), high, low)
        return (code | np.where(np.signbit(x), 0x80, 0)).astype(np.uint8)

    def decode(self, codes):
        return (self.values[codes & 0x7F] * np.where(codes & 0x80, -1.0, 1.0)).astype(np.float32)


bfloat16 = _BFloat16()
float8_e4m3fn, float8_e5m2 = _Float8(3, 7, 0x7E), _Float8(2, 15, 0x7B)


class Tensor(np.ndarray):
    form = None
    device = "cpu"

    def to(self, what):
        if isinstance(what, _Float8):
            return _tensor(what.encode(np.asarray(self)), what)
        if isinstance(what, _BFloat16):
            bits = np.asarray(self, np.float32).view(np.uint32)
            return _tensor(((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32))
        if isinstance(what, type):
            x = np.asarray(self) if self.form is None else self.form.decode(np.asarray(self))
            return _tensor(x.astype(what))
        return self

    def view(self, what):
        return _tensor(np.asarray(self), what if isinstance(what, _Float8) else None)

    def t(self):
        return self.T

    def abs(self):
        return _tensor(np.abs(np.asarray(self)))

    def transpose(self, a, b):
        return self.swapaxes(a, b)

    def repeat_interleave(self, n, dim):
        return self.repeat(n, dim)


def _tensor(x, form=None):
    t = np.ndarray.view(np.ascontiguousarray(x) if np.ndim(x) else np.asarray(x), Tensor)
    t.form = form
    return t


def frombuffer(data, dtype, count, offset):
    if dtype is bfloat16:
        bits = np.frombuffer(data, np.uint16, count, offset).astype(np.uint32) << 16
        return _tensor(bits.view(np.float32))
    return _tensor(np.frombuffer(data, dtype, count, offset))


def tensor(x, dtype):
    return _tensor(np.array(x, dtype))


def arange(n):
    return _tensor(np.arange(n))


def cat(parts):
    return _tensor(np.concatenate(parts))


def where(condition, a, b):
    return _tensor(np.where(condition, a, b))


def zeros_like(x):
    return _tensor(np.zeros_like(np.asarray(x)))


def exp(x):
    with np.errstate(over="ignore"):
        return _tensor(np.exp(np.asarray(x)))


def sqrt(x):
    return _tensor(np.sqrt(np.asarray(x)))


def softmax(x, dim):
    e = np.exp(np.asarray(x) - np.max(np.asarray(x), dim, keepdims=True))
    return _tensor(e / e.sum(dim, keepdims=True))


def device(name):
    return types.SimpleNamespace(type=name)


nn = types.SimpleNamespace(functional=types.SimpleNamespace())
cuda = types.SimpleNamespace(is_available=lambda: False)
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=types.SimpleNamespace()))
