"""Records what the linear layers of a model of PyTorch are given and what they make of it, for
the command octavo agree."""

from __future__ import annotations

import json
import os
import struct
from types import TracebackType
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type, Union

import numpy as np
import numpy.typing as npt

from ._arrays import take

#: What wrappers put into names of modules.
_WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")

_FLOATS = ("F32", "F16", "BF16")

_Stored = Tuple[str, npt.NDArray[Any]]


def record(
    model: Any,
    path: Union[str, "os.PathLike[str]"],
    *,
    recipe: Optional[str] = None,
    exclude: Optional[List[str]] = None,
    engine: Optional[str] = None,
    only: Optional[List[str]] = None,
    prefix: str = "",
) -> "Recorder":
    """Records the linear layers of model, a torch.nn.Module, while a with block runs, and then
    writes them to path, a safetensors file that octavo agree reads.

        with octavo.record(model, "train.safetensors", recipe="bf16") as r:
            logits = model(ids).logits
            r.tokens(ids, logits=logits)

    A layer is a module one of whose classes has Linear in its name and whose weight has two
    dimensions: torch.nn.Linear, and those of serving engines, which fuse q, k and v to
    qkv_proj and gate and up to gate_up_proj. Each call adds its tokens, as a pass of its own.
    Names are those of the modules behind prefix, without what wrappers put in; only, unless
    None, is the ends of the names of those that are recorded. recipe and exclude say what the
    engine claims to compute, and engine what it is; octavo agree has flags for them as well.

    Everything that was recorded is in memory until the file is written, in the types that the
    model has, which are float32, float16 or bfloat16: TypeError is of another. If the block
    raises, nothing is written. Layers that are cut into pieces on several devices are recorded
    as they are on this one, which octavo agree does not judge.
    """
    return Recorder(model, path, recipe, exclude, engine, only, prefix)


class Recorder:
    """What record returns."""

    def __init__(
        self,
        model: Any,
        path: Union[str, "os.PathLike[str]"],
        recipe: Optional[str],
        exclude: Optional[List[str]],
        engine: Optional[str],
        only: Optional[List[str]],
        prefix: str,
    ) -> None:
        self._path = os.fspath(path)
        self._metadata: Dict[str, str] = {}
        for key, value in (("recipe", recipe), ("exclude", ", ".join(exclude or [])), ("engine", engine)):
            if value:
                self._metadata[key] = value
        self._layers = [
            (prefix + _plain(name), module)
            for name, module in model.named_modules()
            if _is_linear(module) and (only is None or _plain(name).endswith(tuple(only)))
        ]
        if not self._layers:
            raise ValueError("the model has no linear layer to record")
        self._hooks: List[Any] = []
        self._seen: Dict[str, List[Tuple[_Stored, _Stored]]] = {}
        self._others: Dict[str, _Stored] = {}

    def __enter__(self) -> "Recorder":
        for name, module in self._layers:
            self._hooks.append(module.register_forward_hook(self._hook(name)))
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        if kind is None:
            write(self._path, self._tensors(), self._metadata)

    def tokens(self, ids: Any, logits: Any = None, logprobs: Any = None) -> None:
        """Adds the tokens of one sequence, and the log-probability of the token that followed
        each: logprobs, or what follows from logits, [tokens, vocabulary]."""
        stored = take(ids, "ids").data.reshape(-1).astype("<i8")
        self._others["tokens"] = ("I64", stored)
        if logits is not None:
            rows = _values(take(logits, "logits"))
            rows = rows.reshape(-1, rows.shape[-1])[: len(stored)].astype(np.float64)
            if len(rows) != len(stored):
                raise ValueError(f"logits have {len(rows)} rows: want {len(stored)}, one for each token")
            rows = rows - rows.max(axis=1, keepdims=True)
            rows = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
            following = rows[np.arange(len(stored) - 1), stored[1:]]
            self._others["logprobs"] = ("F32", following.astype("<f4"))
        if logprobs is not None:
            self._others["logprobs"] = ("F32", _values(take(logprobs, "logprobs")).reshape(-1).astype("<f4"))

    def _hook(self, name: str) -> Any:
        def hook(_module: Any, args: Tuple[Any, ...], output: Any) -> None:
            if not args:
                raise TypeError(f"{name} is called without a positional argument")
            if isinstance(output, tuple):  # and a bias that is added later
                output = output[0]
            self._seen.setdefault(name, []).append((_matrix(args[0], name), _matrix(output, name)))

        return hook

    def _tensors(self) -> Dict[str, _Stored]:
        tensors: Dict[str, _Stored] = {}
        for name, passes in self._seen.items():
            for end, which in ((".input", 0), (".output", 1)):
                types = {p[which][0] for p in passes}
                if len(types) > 1:
                    raise TypeError(f"{name}{end} is of several types: {', '.join(sorted(types))}")
                tensors[name + end] = (types.pop(), np.concatenate([p[which][1] for p in passes]))
            lengths = np.array([len(p[0][1]) for p in passes], "<i8")
            tensors[name + ".passes"] = ("I64", lengths)
        tensors.update(self._others)
        return tensors


def _plain(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def _is_linear(module: Any) -> bool:
    named = any("Linear" in c.__name__ for c in type(module).__mro__)
    return named and len(getattr(getattr(module, "weight", None), "shape", ())) == 2


def _matrix(x: Any, name: str) -> _Stored:
    """Copies x as [tokens, columns]."""
    array = take(x, name)
    if array.dtype not in _FLOATS:
        raise TypeError(f"{name} has values of {array.dtype}: want float32, float16 or bfloat16")
    return array.dtype, array.data.reshape(-1, array.data.shape[-1]).copy()


def _values(array: Any) -> npt.NDArray[Any]:
    """Returns the numbers of an array, bfloat16 too."""
    if array.dtype == "BF16":
        wide: npt.NDArray[Any] = (array.data.astype("<u4") << 16).view("<f4")
        return wide
    if array.dtype not in ("F64", "F32", "F16"):
        raise TypeError(f"values of {array.dtype}: want floats")
    data: npt.NDArray[Any] = array.data
    return data


def write(path: str, tensors: Mapping[str, _Stored], metadata: Mapping[str, str]) -> None:
    """Writes a safetensors file, which is complete or absent."""
    header: Dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    at = 0
    for name, (dtype, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(data.shape), "data_offsets": [at, at + data.nbytes]}
        at += data.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    partial = f"{path}.{os.getpid()}.partial"
    try:
        with open(partial, "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            for _, data in tensors.values():
                f.write(np.ascontiguousarray(data).tobytes())
        os.replace(partial, path)
    finally:
        if os.path.exists(partial):
            os.remove(partial)
