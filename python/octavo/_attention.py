"""The verdict on a kernel's attention."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Tuple, Union

import numpy as np

from ._arrays import Array, take
from ._judge import Mismatch, Verdict, result_of, verdict_of
from ._process import InputError, Progress
from ._tensor import Tensor, operand


def check_attention(
    out: Any,
    q: Any,
    q_scales: Any = None,
    k: Any = None,
    k_scales: Any = None,
    v: Any = None,
    v_scales: Any = None,
    *,
    lse: Any = None,
    scale: Optional[float] = None,
    causal: bool = False,
    window: Optional[Tuple[int, int]] = None,
    sinks: Any = None,
    layout: str = "bhsd",
    value_dim: int = 0,
    keys: int = 0,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
    seqlens_k: Any = None,
    block_table: Any = None,
    kernel: Optional[str] = None,
    bits: bool = False,
    p_format: Optional[str] = None,
    offset: Optional[float] = None,
    p_scale: Optional[float] = None,
    threshold: Optional[float] = None,
    tile: Optional[int] = None,
    splits: Optional[int] = None,
    descending: Optional[bool] = None,
    sums: Optional[str] = None,
    promote: int = 0,
    lse_base_2: bool = False,
    out_dtype: Optional[str] = None,
    q_format: Optional[str] = None,
    q_block: int = 0,
    k_format: Optional[str] = None,
    k_block: int = 0,
    v_format: Optional[str] = None,
    v_block: int = 0,
    queries: int = 0,
    page: Union[None, str, "os.PathLike[str]"] = None,
    workers: int = 0,
    progress: Optional[Progress] = None,
) -> Verdict:
    """Raises Mismatch, an AssertionError with the report, unless out and lse are what a
    kernel of flash attention is claimed to have made of Q, K and V: within bounds that are
    derived from the operands and from the claim. Otherwise it returns the verdict. It raises
    it too where that is undecided, and the report says what would decide it.

    out: [batch, heads, queries, columns of V], float32, float16 or bfloat16; without a batch
        the first dimension of all is left out.
    q, k, v: [batch, heads, queries, dim], [batch, KV heads, keys, dim] and [batch, KV heads,
        keys, columns]: bfloat16, or codes, as check takes them, with q_format and so on.
        Query head h uses head h / (heads / KV heads) of K and V. Or each an octavo.Tensor,
        which has its scales, format and block: check_attention(out, q=q, k=k, v=v).
    q_scales, k_scales, v_scales: of codes, of the types that check takes: one number; [heads]
        or [batch, heads], for Q also by the heads of K; or the dimensions of the codes, with
        one scale for each token or block of tokens, and the last dimension left out or one
        for each block of it. Of V one for each column, too, without tokens.
    q_block, k_block, v_block: tokens that share a scale, where several numbers fit the shapes.
    lse: [batch, heads, queries], float32: the log-sum-exps, in base 2 with lse_base_2.
    scale: of scores; by default 1/sqrt(dim).
    causal, window: the mask, aligned to the last query and key; window is the numbers of keys
        before and after a query's place that it sees, -1 for all.
    sinks: [heads], a score of each query head that takes part in sums and has no value.
    layout: "bhsd", or "bshd" where tokens are before heads.
    value_dim: V is so many first columns of K, as in MLA, and v is left out.
    keys: the first keys that count, if not all; seqlens_k: [batch], those of each sequence.
    cu_seqlens_q, cu_seqlens_k: where packed sequences, without a batch, begin, and the end.
    block_table: [batch, pages], where the first dimension of k and v is of pages.
    kernel: the name of a kernel, which octavo verify attention --help lists, to compare bits
        with; with bits, others are wrong.
    p_format, offset, p_scale, threshold, tile, splits, descending: how the kernel differs from
        that: what P is cast to ("float32", "bf16", "fp16", "e4m3" or "e5m2"), times 2^offset
        and p_scale before; how far the maximum may lag, in base 2; keys of a tile; parts of
        the keys that are merged; whether the last tile of a part is the first to be taken.
        By default P is E4M3 times 2^8, or bfloat16 where V is, and the others are any.
    sums, promote: how the kernel adds: "float32" in any order (the default), "exact" or a
        GPU, such as "hopper-wgmma", promoted to float32 after so many products of P V.
    out_dtype: "bfloat16" where out is the bits of bfloat16 in uint16; so for q_format.
    queries: judges so many of each head, evenly spread; 0 is all.
    page, workers and progress are those of check; so are the errors.
    """
    __tracebackhide__ = True
    arrays: Dict[str, Array] = {"out": result_of(out, "out", out_dtype, "out_dtype")}
    options: Dict[str, Any] = {}
    for name, x, scales, format, block in (
        ("q", q, q_scales, q_format, q_block),
        ("k", k, k_scales, k_format, k_block),
        ("v", v, v_scales, v_format, v_block),
    ):
        if x is not None:
            of_x, options_of_x = _operand(name, x, scales, format, block)
            arrays.update(of_x)
            options.update(options_of_x)
        elif name != "v" or not value_dim:
            raise TypeError(f"{name} is missing: want out, q, q_scales, k, k_scales, v, v_scales, or q=, k= and v=")
        elif scales is not None or format is not None or block:
            raise TypeError("with value_dim v is of k: leave out what is said of it")
    for name, x in (
        ("lse", lse),
        ("sinks", sinks),
        ("cu_seqlens_q", cu_seqlens_q),
        ("cu_seqlens_k", cu_seqlens_k),
        ("seqlens_k", seqlens_k),
        ("block_table", block_table),
    ):
        if x is not None:
            arrays[name] = take(x, name)
    if window is not None:
        if len(window) != 2:
            raise InputError(f"window is {window}: want the keys before and after")
        options["window"] = {"left": window[0], "right": window[1]}
    options.update(
        scale=scale,
        causal=causal,
        layout=layout,
        value_dim=value_dim,
        keys=keys,
        kernel=kernel,
        bits=bits,
        p_format=p_format,
        offset=offset,
        p_scale=p_scale,
        threshold=threshold,
        tile=tile,
        splits=splits,
        descending=descending,
        sums=sums,
        promote=promote,
        lse_base_2=lse_base_2,
        queries=queries,
        workers=workers,
    )
    verdict = verdict_of("check_attention", arrays, options, page, progress)
    if not verdict:
        raise Mismatch(verdict, None if page is None else os.fspath(page), "attention")
    return verdict


def _operand(
    name: str, x: Any, scales: Any, format: Optional[str], block: int
) -> Tuple[Dict[str, Array], Dict[str, Any]]:
    """Returns the arrays and the options of Q, K or V."""
    if isinstance(x, Tensor):
        if block:
            raise TypeError(f"{name} is an octavo.Tensor, which has its block: leave that of {name} out")
        if x.outer is not None:
            raise InputError(f"{name} has outer scales, which attention has not")
        arrays, options = operand(name, x, scales, format, None)
        grid = arrays[f"{name}_scales"]
        arrays[f"{name}_scales"], options[f"{name}_block"] = _by_head(name, x, grid)
        return arrays, options
    if format is not None and format.lower() == "bfloat16":
        given = result_of(x, name, "bfloat16")
    else:
        given = take(x, name)
    if given.dtype == "BF16" and scales is None:
        return {name: given}, {}
    arrays, options = operand(name, x, scales, format, None)
    options[f"{name}_block"] = block
    return arrays, options


def _by_head(name: str, x: Tensor, grid: Array) -> Tuple[Array, int]:
    """Returns the scales of a tensor, whose heads and tokens are the rows of a matrix, with its
    dimensions, and how many tokens share one; 0 is all."""
    if grid.data.size == 1:
        return Array(grid.dtype, grid.data.reshape(1)), 0
    if len(x.shape) < 2 or 0 in x.shape:
        raise InputError(f"{name} of shape {x.shape} has {grid.data.size} scales: want tokens and columns, or heads of them")
    heads, tokens, columns = int(np.prod(x.shape[:-2])), x.shape[-2], x.shape[-1]
    extents = {"row": "1xall", "tensor": "allxall"}.get(x.block, x.block).split("x")
    rows, cols = (whole if n == "all" else int(n) for n, whole in zip(extents, (heads * tokens, columns)))
    if heads > 1 and tokens % rows != 0:
        raise InputError(f"{name} of shape {x.shape} is in blocks of {x.block}, which do not end where a head does")
    if cols < columns and columns % cols != 0:
        raise InputError(f"{name} of shape {x.shape} is in blocks of {x.block}: want some that divide a row")
    blocks = grid.data.shape[0] // heads
    data = grid.data.reshape(*x.shape[:-2], blocks, grid.data.shape[1])
    return Array(grid.dtype, data), rows if blocks > 1 else 0
