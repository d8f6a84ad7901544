"""The verdict on attention, against attention computed otherwise."""

import pickle

import numpy as np
import pytest
import reference

import octavo

HEADS, KV, QUERIES, KEYS, DIM, COLUMNS = 4, 2, 5, 90, 64, 32


def values(codes, scales):
    return reference.table("E4M3")[codes] * scales


def attend(q, k, v, causal=True, kv_head=lambda h: h * KV // HEADS, ends=lambda i: i + KEYS - QUERIES):
    """Attention in float64 and its log-sum-exps. ends says the last key that query i sees."""
    out, lse = np.zeros((HEADS, len(q[0]), v.shape[-1])), np.zeros((HEADS, len(q[0])))
    for h in range(HEADS):
        s = q[h] @ k[kv_head(h)].T / np.sqrt(q.shape[-1])
        if causal:
            s[np.arange(s.shape[1]) > np.array([[ends(i)] for i in range(len(s))])] = -np.inf
        top = s.max(1, keepdims=True)
        p = np.exp(s - top)
        total = p.sum(1, keepdims=True)
        out[h], lse[h] = p @ v[kv_head(h)] / total, (top + np.log(total))[:, 0]
    return out.astype(np.float32), lse.astype(np.float32)


@pytest.fixture(scope="module")
def problem():
    """Codes of Q, K and V, with a scale for each head, and their values."""
    rng = np.random.default_rng(5)
    x = {}
    for name, heads, tokens, columns in (("q", HEADS, QUERIES, DIM), ("k", KV, KEYS, DIM), ("v", KV, KEYS, COLUMNS)):
        wide = rng.standard_normal((heads, tokens, columns))
        if name != "v":  # scores rise from key to key
            wide += np.arange(tokens)[:, None] / tokens
        x[name] = reference.encode(wide, "E4M3")
        x[f"{name}_scales"] = (2.0 ** rng.integers(-1, 2, heads)).astype(np.float32)
        x[f"{name}_format"] = "E4M3"
    return x


def of(problem):
    return [values(problem[x], problem[f"{x}_scales"][:, None, None]) for x in "qkv"]


def test_right(problem):
    out, lse = attend(*of(problem))
    verdict = octavo.check_attention(out, lse=lse, causal=True, **problem)
    assert verdict and verdict.passed and verdict.failure == "" and verdict.outcome == "pass"
    assert str(verdict).startswith("PASS: all 640 elements are within their bounds")
    assert [verdict.json[x] for x in ("heads", "kvHeads", "queries", "keys", "dim", "valueDim")] == [HEADS, KV, QUERIES, KEYS, DIM, COLUMNS]
    octavo.check_attention(out, lse=lse / np.float32(np.log(2)), lse_base_2=True, causal=True, **problem)
    heard = []
    some = octavo.check_attention(out, causal=True, queries=2, progress=lambda *said: heard.append(said), **problem)
    assert some.json["sequences"][0]["looked"] == [0, 2]
    assert all(0 <= done <= total for _, done, total in heard)
    for wrong in (dict(lse=lse + np.float32(1)), dict(scale=0.5), dict(window=(3, 0)), dict(sinks=np.full(HEADS, 8, "f4"))):
        with pytest.raises(octavo.Mismatch):
            octavo.check_attention(out, causal=True, **problem, **wrong)


def test_orders_and_types(problem):
    """Tokens before heads, a batch, scales as E8M0, and results of 16 bits."""
    out, _ = attend(*of(problem), causal=False)
    turned = {**problem, **{x: problem[x].swapaxes(0, 1)[None] for x in "qkv"}}
    for x in "qkv":
        turned[f"{x}_scales"] = (np.log2(problem[f"{x}_scales"]) + 127).astype(np.uint8)[None]
    octavo.check_attention(out.swapaxes(0, 1)[None], layout="bshd", **turned)
    octavo.check_attention(out.astype(np.float16), **problem)
    bits = ((out.view(np.uint32).astype(np.uint64) + 0x8000) >> 16).astype(np.uint16)
    verdict = octavo.check_attention(bits, out_dtype="bfloat16", **problem)
    assert verdict.json["type"] == "bf16"
    with pytest.raises(octavo.InputError, match='out is uint16: say out_dtype="bfloat16"'):
        octavo.check_attention(bits, **problem)
    # What E4M3 holds bfloat16 holds too: no scales are needed.
    wide = [x.astype(np.float32).view(np.uint32) for x in of(problem)]
    assert not any((x & 0xFFFF).any() for x in wide)
    q, k, v = [(x >> 16).astype(np.uint16) for x in wide]
    plain = octavo.check_attention(out, q=q, k=k, v=v, q_format="bfloat16", k_format="bfloat16", v_format="bfloat16")
    assert plain.json["q"] == "BF16"


@pytest.mark.parametrize(
    "q_block, k_block, v_block",
    [("1x32", "row", "tensor"), (f"{QUERIES}xall", "30x64", f"{KEYS}x8"), ("row", f"{KEYS}xall", "9xall")],
)
def test_tensors(problem, q_block, k_block, v_block):
    wide = [(x * 0.3).astype(np.float32) for x in of(problem)]
    q, k, v = [octavo.quantize(x, "te-block", block=b) for x, b in zip(wide, (q_block, k_block, v_block))]
    out, lse = attend(*[x.values().astype(np.float64) for x in (q, k, v)])
    octavo.check_attention(out, q=q, k=k, v=v, lse=lse, causal=True)
    # Other scales are noticed: these, too, are read as those of their blocks.
    for x in (q, k, v):
        if x.scales.size > 1:
            other = octavo.Tensor(x.codes, np.roll(x.scales, 1, 0) * np.float32(2), x.format, x.block)
            with pytest.raises(octavo.Mismatch):
                octavo.check_attention(out, q=other if x is q else q, k=other if x is k else k, v=other if x is v else v, lse=lse, causal=True)


def test_tensors_whose_blocks_are_of_several_heads(problem):
    q = octavo.quantize(np.ones((HEADS, 6, DIM), "f4"), block="4x32")
    with pytest.raises(octavo.InputError, match="q of shape .4, 6, 64. is in blocks of 4x32, which do not end where a head does"):
        octavo.check_attention(np.zeros((HEADS, 6, COLUMNS), "f4"), q=q, **{x: problem[x] for x in problem if x[0] != "q"})
    q = octavo.quantize(np.ones((HEADS, 6, DIM), "f4"), block="1x48")
    with pytest.raises(octavo.InputError, match="blocks of 1x48: want some that divide a row"):
        octavo.check_attention(np.zeros((HEADS, 6, COLUMNS), "f4"), q=q, **{x: problem[x] for x in problem if x[0] != "q"})
    q = octavo.quantize(np.ones((HEADS, 6, DIM), "f4"), "nvfp4-modelopt")
    with pytest.raises(octavo.InputError, match="q has outer scales"):
        octavo.check_attention(np.zeros((HEADS, 6, COLUMNS), "f4"), q=q, **{x: problem[x] for x in problem if x[0] != "q"})


def test_one_head_may_end_in_a_part_of_a_block():
    rng = np.random.default_rng(6)
    q, k, v = [octavo.quantize(rng.standard_normal((1, n, 64)).astype("f4"), block="32x64") for n in (3, 70, 70)]
    s = q.values()[0].astype(float) @ k.values()[0].T.astype(float) / 8
    p = np.exp(s - s.max(1, keepdims=True))
    out = (p / p.sum(1, keepdims=True) @ v.values()[0]).astype(np.float32)[None]
    octavo.check_attention(out, q=q, k=k, v=v)


def test_latent(problem):
    """V is the first columns of K."""
    q, k, _ = of(problem)
    out, _ = attend(q, k, k[..., :16])
    said = {x: problem[x] for x in problem if x[0] != "v"}
    octavo.check_attention(out, value_dim=16, causal=True, **said)
    with pytest.raises(TypeError, match="v is of k: leave out what is said of it"):
        octavo.check_attention(out, value_dim=16, v_scales=1, **said)
    with pytest.raises(octavo.InputError, match="with value_dim V is of K: leave out v"):
        octavo.check_attention(out, value_dim=16, **problem)


def test_lengths(problem):
    """Sequences of a batch that differ in how many keys count, packed and in pages."""
    q, k, v = of(problem)
    lengths = [KEYS, 33]
    parts = [attend(q, k[:, :n], v[:, :n], ends=lambda i: i + n - QUERIES)[0] for n in lengths]
    batch = {**problem, **{x: np.stack([problem[x]] * 2) for x in "qkv"}}
    for seqlens in (lengths, np.array(lengths, np.int32)):
        octavo.check_attention(np.stack(parts), seqlens_k=seqlens, causal=True, **batch)
    with pytest.raises(octavo.Mismatch, match="sequence 1"):
        octavo.check_attention(np.stack(parts), seqlens_k=[KEYS, 34], causal=True, **batch)
    packed = {**problem, "q": np.concatenate([problem["q"]] * 2, 1)}
    for x in "kv":
        packed[x] = np.concatenate([problem[x], problem[x][:, :33]], 1)
    starts = dict(cu_seqlens_q=[0, QUERIES, 2 * QUERIES], cu_seqlens_k=[0, KEYS, KEYS + 33])
    octavo.check_attention(np.concatenate(parts, 1), causal=True, **starts, **packed)
    paged = dict(batch)
    for x in "kv":  # the first page is of nobody
        pages = np.split(problem[x], KEYS // 15, 1)
        paged[x] = np.stack([np.zeros_like(pages[0])] + pages)
    table = np.array([[1, 2, 3, 4, 5, 6], [1, 2, 3, -1, -1, -1]], np.int32)
    octavo.check_attention(np.stack(parts), block_table=table, seqlens_k=lengths, causal=True, **paged)
    with pytest.raises(octavo.InputError, match='tensor "block_table": page 2 of sequence 1 is number 7: tensor "k" has 7 pages'):
        table[1, 2] = 7
        octavo.check_attention(np.stack(parts), block_table=table, seqlens_k=lengths, causal=True, **paged)


def test_bits(problem):
    """Bits are those of a kernel that has a name, and other bits are no error unless they are
    demanded."""
    out, lse = attend(*of(problem))
    same = octavo.check_attention(out, lse=lse, causal=True, kernel="fa3-hopper", **problem).json["sequences"][0]["sameBits"]
    assert same["elements"] == out.size and same["same"] < out.size
    with pytest.raises(octavo.Mismatch, match=r"not all have the bits of\s+fa3-hopper"):
        octavo.check_attention(out, lse=lse, causal=True, kernel="fa3-hopper", bits=True, **problem)


@pytest.mark.parametrize(
    "fault, named",
    [
        (dict(ends=lambda i: i), "top-left"),
        (dict(ends=lambda i: i + KEYS - QUERIES + 1), "right-off"),
        (dict(kv_head=lambda h: h % KV), "head-modulo"),
    ],
)
def test_faults_are_named(problem, fault, named, tmp_path):
    out, lse = attend(*of(problem), **fault)
    page = tmp_path / "errors.html"
    with pytest.raises(octavo.Mismatch) as error:
        octavo.check_attention(out, lse=lse, causal=True, page=page, **problem)
    report = str(error.value)
    assert report.startswith("the kernel's attention is wrong\n\nFAIL: ")
    assert error.value.verdict.json["sequences"][0]["explanation"]["findings"][0]["fault"]["kind"] == named, report
    assert f"fault {named}: " in report
    assert error.value.verdict.failure.split(",")[0] in report
    assert "</html>" in page.read_text() and f"page: {page}" in report
    copy = pickle.loads(pickle.dumps(error.value))
    assert str(copy) == report and copy.verdict == error.value.verdict
    assert repr(copy.verdict).endswith("log-sum-exps are outside of their bounds, in 20 rows>") == (named == "top-left")


def test_a_wrong_element_has_a_place(problem):
    out, lse = attend(*of(problem))
    out[2, 3, 7] += 5
    with pytest.raises(octavo.Mismatch, match="FAIL: 1 of 640 elements(?s:.*)head 2, row 3, column 7: got "):
        octavo.check_attention(out, lse=lse, causal=True, **problem)


def test_undecided(problem):
    """Options are named that would decide it."""
    rng = np.random.default_rng(7)
    k, v = [octavo.quantize(rng.standard_normal((KV, 1000, n)).astype("f4"), block="tensor") for n in (DIM, COLUMNS)]
    q = {x: problem[x] for x in problem if x[0] == "q"}
    with pytest.raises(octavo.Mismatch) as error:
        octavo.check_attention(np.zeros((HEADS, QUERIES, COLUMNS), "f4"), k=k, v=v, scale=1e-3, **q)
    report = str(error.value)
    assert report.startswith("it is undecided whether the kernel's attention is right\n\nUNDECIDED: ")
    assert "say with sums how the kernel adds" in " ".join(report.split()) and "--" not in report
    assert error.value.verdict.outcome == "undecided"


BAD = [
    (dict(q_format=None), 'tensor "q" is U8, which does not say a format: add q_format e4m3 or another'),
    (dict(k_format="E9M9"), "E9M9"),
    (dict(q_block=2), r'tensor "q_scales" of shape \[4\] has 1 scales for 5 tokens, and not one for 2 tokens each: change q_block'),
    (dict(layout="bsd"), "no layout"),
    (dict(kernel="fa9"), "fa9"),
    (dict(bits=True), "names no kernel"),
    (dict(sums="abacus"), "abacus"),
    (dict(promote=64), "promote is for GPU models: name one with sums or kernel"),
    (dict(promote=-1), "promote is -1: want 0 to"),
    (dict(tile=0), "tile is 0: want 1 to"),
    (dict(p_format="e9"), "e9"),
    (dict(offset=1e300), "offset is 1e.?300: want a number"),
    (dict(offset=float("nan")), "offset of check_attention is nan: want finite numbers"),
    (dict(scale=0), "scale is 0: want a number above 0"),
    (dict(window=(1, 2, 3)), "window is .*: want the keys before and after"),
    (dict(window=(1, 0.5)), "right is number 0.5|right is 0.5: want a whole number"),
    (dict(keys=91), 'keys 91: sequence 0 of tensor "k" has 90 keys'),
    (dict(seqlens_k=[5], keys=5), "keys is of all sequences and seqlens_k of each: leave one out"),
    (dict(seqlens_k=[91]), 'tensor "seqlens_k": the length of sequence 0 is 91: tensor "k" has room for 90 keys of it'),
    (dict(block_table=[[0]]), "how many keys count with seqlens_k"),
    (dict(cu_seqlens_q=[0, 3, 2]), 'tensor "cu_seqlens_q": place 2 is 2'),
    (dict(sinks=np.array([0, 1, np.nan, 0], "f4")), "the sink of head 2 is NaN"),
    (dict(workers=-2), "-2 workers"),
    (dict(queries=-1), "-1 queries"),
]


@pytest.mark.parametrize("wrong, text", BAD)
def test_bad_options(problem, wrong, text):
    with pytest.raises(octavo.InputError, match=text) as error:
        octavo.check_attention(np.zeros((HEADS, QUERIES, COLUMNS), np.float32), **{**problem, **wrong})
    assert "\n" not in str(error.value) and "--" not in str(error.value)


def test_bad_arrays(problem):
    out = np.zeros((HEADS, QUERIES, COLUMNS), np.float32)
    bad = np.ones(KV, np.float32)
    bad[1] = np.nan
    with pytest.raises(octavo.InputError, match='tensor "k_scales": scale 1 of K is NaN: scales are positive and finite'):
        octavo.check_attention(out, **{**problem, "k_scales": bad})
    with pytest.raises(octavo.InputError, match=r'tensor "v": the scale of head 1, token 0, column 0 is 0 and the code there 0x'):
        octavo.check_attention(out, **{**problem, "v_scales": np.array([1, 0], "f4")})
    with pytest.raises(octavo.InputError, match=r'tensor "out" has shape \[4 5 31\]: the output of Q, K and V is \[heads, tokens, dim\], \[4 5 32\]'):
        octavo.check_attention(out[..., 1:], **problem)
    with pytest.raises(octavo.InputError, match=r'tensor "lse" has shape \[4 4\]: log-sum-exps are \[4 5\]'):
        octavo.check_attention(out, lse=np.zeros((4, 4), np.float32), **problem)
    with pytest.raises(octavo.InputError, match='tensor "out" is F64: want F32, BF16 or F16'):
        octavo.check_attention(out.astype(np.float64), **problem)
    with pytest.raises(octavo.InputError, match='tensor "q" is F32 and no codes: want FP8 or BF16'):
        octavo.check_attention(out, **{**problem, "q": problem["q"].astype(np.float32), "q_format": None})
    with pytest.raises(octavo.InputError, match="k is uint8 and not bfloat16"):
        octavo.check_attention(out, **{**problem, "k_format": "bfloat16"})
    with pytest.raises(octavo.InputError, match='tensor "sinks" is U16: say that it is bfloat16'):
        octavo.check_attention(out, sinks=np.zeros(HEADS, np.uint16), **problem)
    with pytest.raises(TypeError, match="q_scales is missing"):
        octavo.check_attention(out, **{**problem, "q_scales": None})
    with pytest.raises(TypeError, match="v is missing: want out, q, q_scales"):
        octavo.check_attention(out, **{**problem, "v": None})
    x = octavo.Tensor(problem["q"], np.ones((1, 1), np.float32), "E4M3", "tensor")
    for wrong in (dict(q_scales=1), dict(q_format="E4M3"), dict(q_block=1)):
        with pytest.raises(TypeError, match="octavo.Tensor, which has its"):
            octavo.check_attention(out, q=x, **{y: problem[y] for y in problem if y[0] != "q"}, **wrong)
