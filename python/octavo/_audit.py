"""The verdict on a test of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from . import _process
from ._judge import product_of, result_of
from ._process import Progress


@dataclass(frozen=True)
class Audit:
    """Which faults of a kernel a test lets pass. True if none that no correct kernel could
    have, and if the test fails no correct kernel."""

    #: The verdict in a line.
    verdict: str
    #: The report that octavo audit prints.
    text: str
    #: The keys of octavo audit --json.
    json: Dict[str, Any]

    @property
    def survivors(self) -> List[str]:
        """The faults that the test lets pass, the worst first."""
        return [f["text"] for f in self.json["faults"] if f["verdict"] == "survives"]

    def __bool__(self) -> bool:
        return bool(self.json["survive"] == 0 and self.json["falseFailures"] == 0)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<octavo.Audit: {self.verdict}>"


def audit(
    a: Any,
    a_scales: Any = None,
    b: Any = None,
    b_scales: Any = None,
    *,
    rtol: Optional[float] = None,
    atol: Optional[float] = None,
    within: float = 1.0,
    equal_nan: bool = False,
    mean_error: Optional[float] = None,
    relative_mean: Optional[float] = None,
    relative_l2: Optional[float] = None,
    relative_max: Optional[float] = None,
    cosine: Optional[float] = None,
    calc_diff: Optional[float] = None,
    defaults: Optional[str] = None,
    reference: str = "exact",
    dtype: str = "float32",
    model: str = "exact",
    promote: int = 0,
    scale_order: str = "any",
    bound: Optional[str] = None,
    bias: Any = None,
    old: Any = None,
    a_format: Optional[str] = None,
    a_block: Optional[str] = None,
    b_format: Optional[str] = None,
    b_block: Optional[str] = None,
    propose: bool = True,
    all: bool = False,
    seed: int = 0,
    workers: int = 0,
    progress: Optional[Progress] = None,
) -> Audit:
    """Says which faults of kernels a test on these operands would let pass: every fault that
    octavo knows is put into their product, and the test is asked.

    The test passes where all criteria hold that are given, of C against the reference:
    rtol, atol: |C - R| <= atol + rtol |R| for every element, or, with within=0.99, for 99 %
        of them; that which is not given is 0. With equal_nan a NaN equals a NaN.
    mean_error, relative_mean, relative_l2, relative_max: the mean of |C - R|; the sum of it
        over that of |R|; the root of the sum of squares over that of R; the largest over
        that of |R|; at most.
    cosine: the cosine of the angle between C and R, at least.
    calc_diff: 1 - 2 CR / (CC + RR), DeepGEMM's, at most.
    defaults: the tolerances of "assert_close" (torch.testing), "allclose" or
        "assert_allclose" (numpy.testing).
    reference: R: "exact", "canonical" (octavo's own product), "dequantized" (to bfloat16),
        "itself" (what has the same fault) or a GPU.
    dtype: of C: float32, float16 or bfloat16.
    propose: proposes operands and tolerances that find more, as well.
    all: the text lists all faults and not only the worst.
    model, bound and so on say what a correct kernel may compute, and a, b and so on are the
    operands, as in check; so are the errors.
    """
    arrays, options = product_of(a, a_scales, b, b_scales, a_format, a_block, b_format, b_block, bias)
    if old is not None:
        arrays["old"] = result_of(old, "old", dtype)
    criteria: List[Dict[str, Any]] = []
    if rtol is None and atol is None and (within != 1 or equal_nan):
        raise TypeError("within and equal_nan are about rtol and atol, which are missing")
    if rtol is not None or atol is not None:
        criteria.append({"rtol": rtol or 0, "atol": atol or 0, "within": within, "equalNaN": equal_nan})
    limits = {
        "mean-error": mean_error,
        "relative-mean": relative_mean,
        "relative-l2": relative_l2,
        "relative-max": relative_max,
        "cosine-distance": None if cosine is None else 1 - cosine,
        "calc-diff": calc_diff,
    }
    criteria += [{"measure": name, "limit": limit} for name, limit in limits.items() if limit is not None]
    options.update(
        criteria=criteria,
        defaults=defaults,
        reference=reference,
        type=dtype,
        model=model,
        promote=promote,
        scale_order=scale_order,
        bound=bound,
        alone=not propose,
        all=all,
        seed=seed,
        workers=workers,
    )
    result, _ = _process.shared.ask("audit", arrays, options, progress)
    return Audit(result["verdict"], result["text"], result["report"])
