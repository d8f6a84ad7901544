"""Tests of FP8 kernels that can fail.

    import octavo

    def test_kernel():
        x = octavo.quantize(octavo.generate(64, 4096, seed=1), block="1x128")
        w = octavo.quantize(octavo.generate(96, 4096, seed=2), block="128x128")
        c = kernel(x.codes, x.scales, w.codes, w.scales)
        octavo.check(c, a=x, b=w)

check raises an AssertionError with a report that says how C is wrong, where first, and what
explains it. It demands the exact product within a derived bound or, with model="hopper-wgmma"
or another GPU, the bits that its tensor cores give. check_attention does the same for flash
attention, and check_quantizer for what makes codes and scales.

Arrays are NumPy's, of ml_dtypes' types too, or tensors of PyTorch on any device. The work is
done by the command octavo: that which the environment variable OCTAVO names, or octavo on
PATH, or what Go builds of the clone of the repository that this package lies in. It is
started once and stays as a process behind this package, which may be used by several threads
and after a fork.
"""

from ._arrays import unpack
from ._attention import check_attention
from ._audit import Audit, audit
from ._command import CommandError
from ._command import find as find_command
from ._generate import cancelling, generate, operands
from ._judge import Mismatch, Sample, Verdict, check, judge, multiply
from ._process import CrashError, InputError
from ._quantizer import check_quantizer
from ._record import Recorder, record
from ._tensor import FORMATS, Encoded, Tensor, decode, dequantize, encode, quantize

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "CommandError",
    "CrashError",
    "Encoded",
    "FORMATS",
    "InputError",
    "Mismatch",
    "Recorder",
    "Sample",
    "Tensor",
    "Verdict",
    "audit",
    "cancelling",
    "check",
    "check_attention",
    "check_quantizer",
    "decode",
    "dequantize",
    "encode",
    "find_command",
    "generate",
    "judge",
    "multiply",
    "operands",
    "quantize",
    "record",
    "unpack",
]
