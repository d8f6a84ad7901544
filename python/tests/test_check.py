"""The verdict on products, against products computed otherwise."""

import pickle

import numpy as np
import pytest
import reference

import octavo


def random_operand(rows, k, block, seed):
    """Codes of E4M3 without NaN, and scales that are powers of two, for each row and block."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 256, (rows, k), dtype=np.uint8)
    codes[codes & 0x7F == 0x7F] = 0x38
    blocks = -(-k // block)
    return codes, (2.0 ** rng.integers(-6, 6, (rows, blocks))).astype(np.float32)


M, N, K, BLOCK = 9, 7, 160, 64


@pytest.fixture(scope="module")
def product():
    a, sa = random_operand(M, K, BLOCK, 1)
    b, sb = random_operand(N, K, BLOCK, 2)
    return a, sa, b, sb


OPTIONS = dict(a_format="E4M3", b_format="E4M3", a_block="1x64", b_block="1x64")


def exact(product):
    a, sa, b, sb = product
    wide = [reference.spread(s, (1, BLOCK), (len(s), K)) for s in (sa, sb)]
    return reference.exact_product(a, wide[0], b, wide[1])


def test_exact(product):
    want = exact(product).astype(np.float32)
    got = octavo.multiply(*product, **OPTIONS)
    assert got.dtype == np.float32 and got.shape == (M, N)
    assert np.array_equal(got, want)
    verdict = octavo.check(want, *product, **OPTIONS)
    assert verdict and verdict.passed and verdict.failure == ""
    assert verdict.json["report"]["equal"] is True
    assert str(verdict).startswith("PASS: all 63 elements are the exact result, bit for bit")


def test_canonical(product):
    a, sa, b, sb = product
    want = reference.canonical_product(a, sa, b, sb, BLOCK)
    assert np.array_equal(octavo.multiply(*product, model="canonical", **OPTIONS), want)
    octavo.check(want, *product, model="canonical", **OPTIONS)
    octavo.check(want, *product, **OPTIONS)  # within the bound of any order
    want[1, 2] = np.nextafter(want[1, 2], np.float32(np.inf))
    with pytest.raises(octavo.Mismatch, match="1 of 63 elements differ from octavo's canonical result"):
        octavo.check(want, *product, model="canonical", **OPTIONS)


@pytest.mark.parametrize("model", ["hopper-wgmma", "ada-mma", "blackwell-tcgen05"])
def test_gpu(product, model):
    c = octavo.multiply(*product, model=model, promote=32, scale_order="b-then-a", **OPTIONS)
    octavo.check(c, *product, model=model, promote=32, scale_order="b-then-a", **OPTIONS)
    octavo.check(c, *product, bound=model, promote=32, **OPTIONS)
    with pytest.raises(AssertionError, match="differ from the prediction of " + model):
        octavo.check(c + np.float32(1), *product, model=model, promote=32, scale_order="b-then-a", **OPTIONS)


def test_bounds_of_readme():
    x = octavo.quantize(octavo.generate(64, 4096, seed=1), "deepseek", block="1x128")
    w = octavo.quantize(octavo.generate(96, 4096, seed=2), "deepseek", block="128x128")
    deepgemm = dict(model="hopper-wgmma", promote=128, scale_order="product-then-fma")
    c = octavo.multiply(a=x, b=w, **deepgemm)
    octavo.check(c, a=x, b=w, **deepgemm)
    octavo.check(c, a=x, b=w, bound="hopper-wgmma", promote=128)
    with pytest.raises(octavo.Mismatch):
        octavo.check(c, a=x, b=w)


def test_bias_and_old(product):
    bias = np.arange(N, dtype=np.float32) * 64
    old = np.arange(M * N, dtype=np.float32).reshape(M, N)
    want = (exact(product) + bias + old).astype(np.float32)
    assert np.array_equal(octavo.multiply(*product, bias=bias, old=old, **OPTIONS), want)
    octavo.check(want, *product, bias=bias, old=old, **OPTIONS)
    for wrong in (dict(bias=bias), dict(old=old), {}):
        with pytest.raises(octavo.Mismatch):
            octavo.check(want, *product, **wrong, **OPTIONS)


def test_narrow_results(product):
    with np.errstate(over="ignore"):
        half = exact(product).astype(np.float16)
        assert np.array_equal(octavo.multiply(*product, dtype="float16", **OPTIONS), half)
    bits = octavo.multiply(*product, dtype="bfloat16", **OPTIONS)
    assert bits.dtype == np.uint16
    octavo.check(bits, *product, c_dtype="bfloat16", **OPTIONS)
    with pytest.raises(octavo.InputError, match='c is uint16: say c_dtype="bfloat16"'):
        octavo.check(bits, *product, **OPTIONS)
    with pytest.raises(octavo.InputError, match="c is float16 and not bfloat16"):
        octavo.check(half, *product, c_dtype="bfloat16", **OPTIONS)
    with pytest.raises(octavo.InputError, match="float64"):
        octavo.multiply(*product, dtype="float64", **OPTIONS)


def quantized():
    x = octavo.quantize(octavo.generate(64, 512, seed=1), block="1x128")
    w = octavo.quantize(octavo.generate(128, 512, seed=2), block="128x128")
    return x, w


def honest(x, w):
    """A kernel in NumPy: dequantized, and added in float32 as BLAS likes."""
    return x.values() @ w.values().T


def lost_block(x, w):
    """Without products 256 to 384."""
    a, b = x.values(), w.values()
    a[:, 256:384] = 0
    return a @ b.T


def shifted_scales(x, w):
    scales = np.roll(x.scales, 1, 0)
    return honest(octavo.Tensor(x.codes, scales, x.format, x.block), w)


def test_honest_kernel_passes():
    x, w = quantized()
    octavo.check(honest(x, w), a=x, b=w, bound="dequantized")


@pytest.mark.parametrize(
    "kernel, named",
    [(lost_block, "products 256"), (shifted_scales, "scales of A")],
)
def test_faults_are_named(kernel, named):
    x, w = quantized()
    with pytest.raises(octavo.Mismatch) as error:
        octavo.check(kernel(x, w), a=x, b=w, bound="dequantized")
    report = str(error.value)
    assert report.startswith("the kernel's C is wrong\n\nFAIL: ")
    assert "First outside the bound: row" in report and "What explains them" in report
    causes = error.value.verdict.json["explanation"]["findings"]
    assert causes, report
    assert named in report, report
    assert error.value.verdict.failure in report


def test_a_mismatch_goes_to_another_process():
    x, w = quantized()
    with pytest.raises(octavo.Mismatch) as error:
        octavo.check(lost_block(x, w), a=x, b=w)
    copy = pickle.loads(pickle.dumps(error.value))
    assert str(copy) == str(error.value) and copy.verdict == error.value.verdict


def test_exact_operands_show_the_lowest_bit():
    a, b = octavo.operands(16, 24, 512, block="1x128", seed=3)
    c = octavo.multiply(a=a, b=b)
    octavo.check(c, a=a, b=b, model="hopper-wgmma", promote=128)
    c[5, 6] = np.nextafter(c[5, 6], np.float32(np.inf))
    with pytest.raises(octavo.Mismatch, match="row 5, column 6"):
        octavo.check(c, a=a, b=b, model="canonical")


def test_cancelling():
    a, b = octavo.cancelling(4, 5, 128, seed=1)
    assert a.block == "1x32" and a.shape == (4, 128) and b.shape == (5, 128)
    assert not octavo.multiply(a=a, b=b).any()


def test_sample():
    x, w = quantized()
    c = honest(x, w)
    verdict = octavo.check(c, a=x, b=w, sample=512)
    assert verdict.json["sample"]["random"] >= 512
    assert octavo.check(c, a=x, b=w, sample=True).json["sample"]["of"] == c.size
    c[7, 9] += 1
    for sample, passed in [
        (octavo.Sample(-1, -1, rows=[7]), False),
        (octavo.Sample(-1, -1, cols=(9,)), False),
        (octavo.Sample(-1, -1, tiles=[(7, 9, 1, 1)]), False),
        (octavo.Sample(-1, -1, rows=[6], tiles=[(0, 0, 7, 128)]), True),
        (octavo.Sample(-1, 4), False),
    ]:
        assert octavo.judge(c, a=x, b=w, sample=sample).passed is passed, sample
    with pytest.raises(octavo.InputError, match="row 64 of a sample: C has 64"):
        octavo.judge(c, a=x, b=w, sample=octavo.Sample(rows=[64]))
    for tile in ((0, 0, 2), (0, 0, 2, 2, 2)):
        with pytest.raises(octavo.InputError, match="want row, column, height and width"):
            octavo.judge(c, a=x, b=w, sample=octavo.Sample(tiles=[tile]))


def test_page(tmp_path):
    x, w = quantized()
    c = honest(x, w)
    c[0, 0] = np.nan
    page = tmp_path / "errors.html"
    with pytest.raises(octavo.Mismatch, match="page: .*errors.html"):
        octavo.check(c, a=x, b=w, page=page)
    assert "</html>" in page.read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["errors.html"]
    with pytest.raises(FileNotFoundError):
        octavo.judge(c, a=x, b=w, page=tmp_path / "no" / "page.html")


def test_one_number_for_scales(product):
    a, _, b, _ = product
    want = reference.exact_product(a, np.full(a.shape, 2.0), b, np.full(b.shape, 0.25)).astype(np.float32)
    for two, quarter in [(2, 0.25), (np.float32(2), np.float64(0.25)), (np.array([2], "f4"), np.array([[0.25]], "f4"))]:
        octavo.check(want, a, two, b, quarter, a_format="E4M3", b_format="E4M3")


BAD = [
    (dict(a_format=None), 'tensor "a" is U8, which does not say a format: add the option a_format'),
    (dict(b_format="E9M9"), "E9M9"),
    (dict(a_block="1x50"), "in blocks of 1x50"),
    (dict(model="tpu"), "tpu"),
    (dict(model="canonical", bound="float32"), "bound is for model exact"),
    (dict(promote=64), "promote is for GPU models"),
    (dict(promote=-1), "promote is -1"),
    (dict(scale_order="sideways"), "sideways"),
    (dict(workers=-2), "-2 workers"),
    (dict(bias=np.zeros(3, np.float32)), r'"bias", the bias, is F32 of shape \[3\]: want F32 and 7'),
    (dict(old=np.zeros((M, N), np.float16)), "old C"),
]


@pytest.mark.parametrize("wrong, text", BAD)
def test_bad_options(product, wrong, text):
    with pytest.raises(octavo.InputError, match=text) as error:
        octavo.check(np.zeros((M, N), np.float32), *product, **{**OPTIONS, **wrong})
    assert isinstance(error.value, ValueError) and "\n" not in str(error.value)


def test_bad_arrays(product):
    a, sa, b, sb = product
    c = np.zeros((M, N), np.float32)
    bad = sa.copy()
    bad[3, 1] = np.nan
    with pytest.raises(octavo.InputError, match=r'"a".*\(3, 1\).*NaN'):
        octavo.check(c, a, bad, b, sb, **OPTIONS)
    with pytest.raises(octavo.InputError, match=r'tensor "c" of shape \[7 9\] is not C: want 9x7'):
        octavo.check(c.T, a, sa, b, sb, **OPTIONS)
    with pytest.raises(octavo.InputError, match='"c" is F64: C is F32, BF16 or F16'):
        octavo.check(c.astype(np.float64), a, sa, b, sb, **OPTIONS)
    with pytest.raises(octavo.InputError, match="along which products are summed, differ"):
        octavo.check(c, a[:, :64], sa[:, :1], b, sb, **OPTIONS)
    with pytest.raises(octavo.InputError, match='"a" is F32 and no codes'):
        octavo.check(c, a.astype(np.float32), sa, b, sb)
    with pytest.raises(TypeError, match="a_scales is missing"):
        octavo.check(c, a, None, b, sb)
    with pytest.raises(TypeError, match="b is missing"):
        octavo.check(c, a, sa)
    with pytest.raises(TypeError, match="c is of type complex64"):
        octavo.check(c.astype(np.complex64), a, sa, b, sb, **OPTIONS)
    x = octavo.Tensor(a, sa, "E4M3", "1x64")
    with pytest.raises(TypeError, match="octavo.Tensor, which has its scales"):
        octavo.check(c, a=x, a_scales=sa, b=x)


def test_empty():
    none = octavo.quantize(np.zeros((0, 32), np.float32), block="1x32")
    assert none.scales.shape == (0, 1)
    octavo.check(np.zeros((0, 0), np.float32), a=none, b=none)
    one = octavo.quantize(np.ones((1, 32), np.float32), block="1x32")
    octavo.check(np.zeros((0, 1), np.float32), a=none, b=one)
    with pytest.raises(octavo.InputError, match="is not C: want 0x1"):
        octavo.check(np.zeros((0, 2), np.float32), a=none, b=one)
