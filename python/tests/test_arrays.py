"""What arrays are taken as. PyTorch and ml_dtypes are not there: what has their ways stands
in for them."""

import sys
import types

import numpy as np
import pytest

import octavo
from octavo._arrays import take


class FakeTensor:
    """Has of a tensor of PyTorch what octavo uses."""

    def __init__(self, bits, dtype):
        self.bits, self.dtype = bits, f"torch.{dtype}"
        self.asked = []

    def _same(self, what):
        self.asked.append(what)
        return self

    def detach(self):
        return self._same("detach")

    def cpu(self):
        return self._same("cpu")

    def contiguous(self):
        return self._same("contiguous")

    @property
    def shape(self):
        return self.bits.shape

    def view(self, dtype):
        assert np.dtype(dtype).itemsize == self.bits.dtype.itemsize
        return FakeTensor(self.bits.view(dtype), np.dtype(dtype).name)

    def numpy(self):
        if "float8" in self.dtype or "bfloat16" in self.dtype:
            raise TypeError(f"Got unsupported ScalarType {self.dtype}")
        return self.bits


@pytest.fixture
def torch(monkeypatch):
    fake = types.SimpleNamespace(uint8=np.uint8, int16=np.int16)
    monkeypatch.setitem(sys.modules, "torch", fake)


def test_tensors_of_pytorch(torch):
    codes = np.arange(6, dtype=np.uint8).reshape(2, 3)
    for dtype, known in [
        ("float8_e4m3fn", "F8_E4M3"),
        ("float8_e5m2", "F8_E5M2"),
        ("float8_e4m3fnuz", "F8_E4M3FNUZ"),
        ("float8_e5m2fnuz", "F8_E5M2FNUZ"),
        ("float8_e8m0fnu", "F8_E8M0"),
        ("uint8", "U8"),
    ]:
        x = FakeTensor(codes, dtype)
        got = take(x, "x")
        assert got.dtype == known and np.array_equal(got.data, codes)
        assert x.asked == ["detach", "cpu", "contiguous"]
    bits = np.array([0x3F80, 0xC000], np.uint16)
    got = take(FakeTensor(bits, "bfloat16"), "x")
    assert got.dtype == "BF16" and np.array_equal(got.data, bits)
    got = take(FakeTensor(np.float32(2.5).reshape(()), "float32"), "x")
    assert got.dtype == "F32" and got.data.shape == () and got.data == 2.5
    sparse = FakeTensor(bits, "float16")
    sparse.layout = "torch.sparse_csr"
    with pytest.raises(TypeError, match="x is of layout torch.sparse_csr"):
        take(sparse, "x")
    with pytest.raises(TypeError, match="x is of type torch.complex64"):
        take(FakeTensor(bits, "complex64"), "x")


def test_a_product_of_tensors(torch):
    x = octavo.quantize(octavo.generate(8, 64, seed=1), "mx-floor", block="1x32")
    c = octavo.multiply(a=x, b=x, dtype="bfloat16")
    codes, scales = FakeTensor(x.codes, "float8_e4m3fn"), FakeTensor(x.scales, "float8_e8m0fnu")
    octavo.check(FakeTensor(c, "bfloat16"), codes, scales, codes, scales)
    with pytest.raises(octavo.InputError, match="^c is bfloat16 and not float16$"):
        octavo.check(FakeTensor(c, "bfloat16"), codes, scales, codes, scales, c_dtype="float16")
    with pytest.raises(octavo.InputError, match="is F8_E4M3 and not"):
        octavo.check(FakeTensor(c, "bfloat16"), codes, scales, codes, scales, a_format="E5M2")
    assert np.array_equal(octavo.dequantize(codes, scales), x.values())


def test_strides_and_byte_orders():
    x = np.arange(24, dtype=">i8").reshape(4, 6)
    for array in (x, x.T, x[::2, ::-1], np.asfortranarray(x)):
        got = take(array.astype(">f8"), "x")
        assert got.data.dtype == np.dtype("<f8") and got.data.flags.c_contiguous
        assert np.array_equal(got.data, array)
    w = octavo.generate(6, 4)
    assert np.array_equal(octavo.encode(w.T).codes, octavo.encode(w).codes.T)
    assert take(1.5, "x").data.shape == () and take([1.5], "x").dtype == "F64"
    with pytest.raises(TypeError, match="x is a masked array"):
        take(np.ma.array([1.0, 2.0], mask=[False, True]), "x")
    with pytest.raises(TypeError, match="x is of type <U3"):
        take("abc", "x")
    with pytest.raises(TypeError, match="x is of type object"):
        take([{}], "x")


def test_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = octavo.quantize(octavo.generate(8, 64), block="1x32")
    codes = x.codes.view(ml_dtypes.float8_e4m3fn)
    assert take(codes, "x").dtype == "F8_E4M3"
    c = octavo.multiply(a=x, b=x, dtype="bfloat16").view(ml_dtypes.bfloat16)
    octavo.check(c, codes, x.scales, codes, x.scales)
