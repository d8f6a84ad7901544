"""Codes and scales, against definitions in NumPy."""

import numpy as np
import pytest
import reference

import octavo

FORMATS = list(reference.FORMATS)


@pytest.mark.parametrize("format", FORMATS)
def test_decode_every_code(format):
    got = octavo.decode(np.arange(256, dtype=np.uint8), format)
    assert np.array_equal(got, reference.table(format).astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("format", FORMATS)
def test_encode(format):
    values = reference.table(format)
    finite = np.sort(values[np.isfinite(values)])
    middle = (finite[1:] + finite[:-1]) / 2
    rng = np.random.default_rng(4)
    x = np.concatenate([finite, middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf), rng.normal(0, 10, 200), [1e9, -1e9]])
    for dtype in (np.float64, np.float32, np.float16, ">f4"):
        with np.errstate(over="ignore"):
            given = x.astype(dtype)
        given = given[np.isfinite(given)]
        got = octavo.encode(given, format)
        assert got.codes.dtype == np.uint8
        assert np.array_equal(got.codes, reference.encode(given, format)), dtype
    assert got.stats["elements"] == len(given)
    assert octavo.encode(np.zeros((2, 0, 3)), format).codes.shape == (2, 0, 3)


def test_encode_policy():
    x = [500.0, np.inf, -np.inf, -np.nan]
    assert octavo.encode(x).codes.tolist()[:3] == [0x7E, 0x7E, 0xFE]
    assert octavo.encode(x).stats["saturated"] == 1
    got = octavo.encode(x, overflow="non-finite", inf="propagate", nan="canonical")
    assert got.codes.tolist() == [0x7F, 0x7F, 0xFF, 0x7F]
    assert octavo.encode([1.1], rounding="toward-zero").codes[0] == 0x38
    many = octavo.encode(np.full(1000, 1.0625, np.float32), rounding="stochastic", seed=5).codes
    assert set(many) == {0x38, 0x39} and 400 < np.sum(many == 0x39) < 600
    again = octavo.encode(np.full(1000, 1.0625, np.float32), rounding="stochastic", seed=5).codes
    assert np.array_equal(many, again)


@pytest.mark.parametrize("block, shape", [("1x16", (1, 16)), ("4x8", (4, 8)), ("tensor", (6, 40)), ("row", (1, 40))])
def test_quantize(block, shape):
    x = octavo.generate(6, 40, seed=7)
    grid = (-(-6 // shape[0]), -(-40 // shape[1]))
    amax = np.zeros(grid, np.float32)
    for i in range(grid[0]):
        for j in range(grid[1]):
            tile = x[i * shape[0] : (i + 1) * shape[0], j * shape[1] : (j + 1) * shape[1]]
            amax[i, j] = np.abs(tile).max()
    # te-block: a multiplier of 448 over the largest magnitude, and its reciprocal to keep.
    multiplier = np.float32(448) / amax
    codes = reference.encode(x * reference.spread(multiplier, shape, x.shape), "E4M3")
    q = octavo.quantize(x, "te-block", block=block)
    assert np.array_equal(q.scales, np.float32(1) / multiplier)
    assert np.array_equal(q.codes, codes)
    assert (q.format, q.block, q.stats["elements"]) == ("E4M3", block, 240)
    assert np.array_equal(q.values(), reference.table("E4M3").astype("f4")[codes] * reference.spread(q.scales, shape, x.shape))
    # mx-floor: a power of two that brings the largest magnitude to that of the format.
    exponent = np.floor(np.log2(amax)).astype(int) - 8
    q = octavo.quantize(x, "mx-floor", block=block)
    assert q.scales.dtype == np.uint8 and np.array_equal(q.scales, exponent + 127)
    assert np.array_equal(q.codes, reference.encode(x / reference.spread(2.0**exponent, shape, x.shape), "E4M3"))
    octavo.check(octavo.multiply(a=q, b=q), a=q, b=q)


def test_quantize_mxfp4():
    x = octavo.generate(6, 80, seed=8)
    amax = np.stack([np.abs(x[:, k : k + 32]).max(1) for k in range(0, 80, 32)], 1)
    scales = np.floor(np.log2(amax)) - 2  # 4 is the largest power of two of E2M1
    wide = reference.spread(2.0**scales, (1, 32), x.shape)
    q = octavo.quantize(x, "mx-floor", format="E2M1", block="1x32")
    assert (q.format, q.scale_format, q.outer) == ("E2M1", "E8M0", None)
    assert q.scales.dtype == np.uint8 and np.array_equal(q.scales, scales + 127)
    assert np.array_equal(q.codes, reference.encode_e2m1(x / wide))
    assert np.array_equal(q.values(), reference.decode_e2m1(q.codes) * wide)
    octavo.check(octavo.multiply(a=q, b=q, model="canonical"), a=q, b=q)


def nvfp4(x, divisor):
    """Codes, scales and the outer scale of NVFP4 in float32: those of TransformerEngine or,
    with a divisor, of compressed-tensors."""
    f = np.float32
    largest = np.abs(x).max()
    amax = np.abs(x).reshape(len(x), -1, 16).max(2)
    encode = f(f(1) / largest * f(2688)) if divisor else f(2688) / largest
    scales = encode * (amax / f(6)) if divisor else amax * (encode * (f(1) / f(6)))
    codes = reference.encode(np.minimum(scales, f(448)), "E4M3")
    scales = reference.table("E4M3").astype("f4")[codes]
    outer = encode if divisor else f(1) / encode
    over = scales / encode if divisor else f(1) / (scales * outer)
    over = np.repeat(over, 16, 1)
    y = x / over if divisor else x * over
    return reference.encode_e2m1(y), codes, outer


@pytest.mark.parametrize("profile", ["nvfp4-te", "nvfp4-compressed-tensors"])
def test_quantize_nvfp4(profile):
    x = octavo.generate(6, 96, seed=9)
    divides = profile != "nvfp4-te"
    codes, scales, outer = nvfp4(x, divides)
    q = octavo.quantize(x, profile, block="1x16")
    assert (q.format, q.scale_format, q.outer_divides) == ("E2M1", "UE4M3", divides)
    assert np.array_equal(q.scales, scales)
    assert np.array_equal(q.outer, [outer])
    assert np.array_equal(q.codes, codes)
    wide = reference.decode_e2m1(codes) * reference.spread(reference.table("E4M3")[scales], (1, 16), x.shape)
    want = wide / np.float64(outer) if divides else wide * np.float64(outer)
    assert np.array_equal(q.values(), want.astype(np.float32))
    product = octavo.multiply(a=q, b=q)
    verdict = octavo.check(product, a=q, b=q)
    of_a = verdict.json["a"]
    assert (of_a["scaleFormat"], of_a["outer"]["divide"], of_a["outer"]["first"]) == ("UE4M3", divides, outer)
    factor = np.float32(1) / outer if divides else outer
    with pytest.raises(octavo.Mismatch, match=r"outer scales of A(?: and B)?\s+are not applied"):
        octavo.check(product / factor, a=q, b=q)


@pytest.mark.parametrize(
    "profile", ["mx-floor", "mx-rceil", "nvfp4-te", "nvfp4-torchao", "nvfp4-compressed-tensors", "nvfp4-fouroversix-mse"]
)
def test_quantize_zeros(profile):
    x = np.array([[0.0, -0.0] * 16] * 4, np.float32)
    q = octavo.quantize(x, profile, format="E2M1")
    assert not q.values().any() and q.stats["zeros"] == 128 and q.stats["nan"] == 0
    assert np.isfinite(q.values()).all()
    w = octavo.quantize(octavo.generate(4, 32, seed=1), profile, format="E2M1")
    assert not octavo.multiply(a=q, b=w).any()


def test_quantize_sign_of_zero():
    x = np.array([[6, -0.0, 0.0, -0.1] * 8], np.float32)
    for zero, codes in {"keep-sign": [7, 8, 0, 8], "positive": [7, 0, 0, 8], "negative": [7, 8, 8, 8], "unsigned": [7, 0, 0, 0]}.items():
        assert octavo.quantize(x, "mx-floor", format="E2M1", zero=zero).codes[0, :4].tolist() == codes, zero


def numbers(t):
    return t.format, t.block, t.codes.tobytes(), t.scales.tobytes(), None if t.outer is None else t.outer.tobytes()


@pytest.mark.parametrize(
    "recipe, profile, options",
    [
        ("fp8", "te-block-pow2", dict(format="E4M3", block="128x128")),
        ("mxfp8", "mx-rceil", dict(format="E4M3", block="1x32")),
        ("mxfp4", "mx-rceil", dict(format="E2M1", block="1x32")),
        ("nvfp4", "nvfp4-te", dict(format="E2M1", block="16x16")),
        ("nvfp4-4over6", "nvfp4-te-4over6-mse256", dict(format="E2M1", block="16x16")),
        ("deepseek-v3", "te-block", dict(format="E4M3", block="128x128")),
        ("mx-floor:e3m2", "mx-floor", dict(format="E3M2", block="1x32")),
    ],
)
def test_recipes(recipe, profile, options):
    """A recipe is what it is on the command line: format, block and scales of weights."""
    x = octavo.generate(144, 160, "bell", seed=2)
    t = octavo.quantize(x, recipe)
    assert numbers(t) == numbers(octavo.quantize(x, profile, **options))
    octavo.check_quantizer(x, t, recipe=recipe, block=t.block)


@pytest.mark.parametrize(
    "recipe, text",
    [
        ("fp4", "did you mean nvfp4 or mxfp4"),
        ("bf16", "has no codes"),
        ("te-delayed", "earlier steps"),
        ("none", "leave the recipe out"),
        ("octavo", "is a recipe of plan, and no recipe"),
        ("ct-nvfp4", "is a layout of checkpoints, and no recipe: did you mean nvfp4-compressed-tensors"),
        ("e4m3", "is a format of codes, and no recipe"),
        ("int8", "of plain integers"),
    ],
)
def test_no_recipes(recipe, text):
    x = np.ones((32, 32), np.float32)
    with pytest.raises(octavo.InputError, match=text):
        octavo.quantize(x, recipe)
    t = octavo.quantize(x)
    with pytest.raises(octavo.InputError, match=text):
        octavo.check_quantizer(x, t, recipe=recipe)


def test_recipes_with_formats():
    x = np.ones((32, 32), np.float32)
    with pytest.raises(octavo.InputError, match="recipe mxfp8 encodes to E4M3, not to E2M1"):
        octavo.quantize(x, "mxfp8", format="E2M1")
    with pytest.raises(octavo.InputError, match="the recipe that is claimed encodes to E2M1"):
        octavo.check_quantizer(x, octavo.quantize(x, "mxfp8"), recipe="mxfp4")
    with pytest.raises(octavo.InputError, match="nvfp4 is a recipe: did you mean e2m1"):
        octavo.encode(x, "nvfp4")


def test_quantize_refuses():
    x = np.ones((2, 2), np.float32)
    for wrong, text in [
        (dict(recipe="te-delayed"), "earlier steps"),
        (dict(recipe="mine"), "mine"),
        (dict(block="2"), "block"),
        (dict(format="E9"), "E9"),
        (dict(epsilon=-1), "epsilon"),
        (dict(rounding="up"), "up"),
    ]:
        with pytest.raises(octavo.InputError, match=text):
            octavo.quantize(x, **wrong)
    with pytest.raises(octavo.InputError, match="is U8: want floats"):
        octavo.quantize(x.astype(np.uint8))
    with pytest.raises(octavo.InputError, match="format is missing"):
        octavo.decode(x.astype(np.uint8))
    with pytest.raises(octavo.InputError, match='tensor "values" is I64'):
        octavo.encode([1, 2])
    with pytest.raises(octavo.InputError, match='tensor "codes" is F32: want codes'):
        octavo.decode(x)
    with pytest.raises(octavo.InputError, match='tensor "codes" is U8, .*: add the option format, E4M3'):
        octavo.dequantize(x.astype(np.uint8), 1.0)
    with pytest.raises(TypeError, match="^scales is missing"):
        octavo.dequantize(x.astype(np.uint8), format="E4M3")
    for scale in (1e-50, 1e39, 10**400, -1e39):
        with pytest.raises(octavo.InputError, match="^scales is .*, which float32 does not hold"):
            octavo.dequantize(x.astype(np.uint8), scale, format="E4M3")
    with pytest.raises(octavo.InputError, match="in blocks of"):
        octavo.dequantize(x.astype(np.uint8), np.ones((3, 3), "f4"), format="E4M3", block="1x1")


def test_generate():
    x = octavo.generate(64, 100, seed=1)
    assert x.shape == (64, 100) and abs(x.mean()) < 0.05 and abs(x.std() - 1) < 0.05
    assert np.array_equal(x, octavo.generate(64, 100, seed=1))
    assert not np.array_equal(x, octavo.generate(64, 100, seed=2))
    outlier = octavo.generate(4, 64, "outlier", block="1x32")
    assert (np.abs(outlier).reshape(4, 2, 32).max(2) > 50).sum() >= 6
    assert np.isnan(octavo.generate(4, 8, "nans")[3]).all()
    for wrong in (dict(rows=-1), dict(rows=1 << 40), dict(pattern="plaid"), dict(block="x")):
        with pytest.raises(octavo.InputError):
            octavo.generate(**{**dict(rows=2, cols=1 << 30), **wrong})


def test_operands_are_exact():
    a, b = octavo.operands(3, 4, 1000, seed=2, block="1x100")
    x, y = a.values().astype(np.float64), b.values().astype(np.float64)
    want = x @ y.T
    order = np.random.default_rng(1).permutation(1000)
    got = np.zeros((3, 4), np.float32)
    for k in order:  # in any order
        got += np.outer(x[:, k], y[:, k]).astype(np.float32)
    assert np.array_equal(got, want) and got.all()
    with pytest.raises(octavo.InputError, match="k is 16777217"):
        octavo.operands(1, 1, (1 << 24) + 1)
