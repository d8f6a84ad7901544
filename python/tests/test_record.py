"""What is recorded of a model, by a stand-in for PyTorch and, where it is there, by PyTorch."""

import json
import math
import pathlib
import struct
import subprocess

import numpy as np
import pytest

import octavo

LLAMA = pathlib.Path(__file__).resolve().parents[3] / "shared" / "models" / "llama"


def read(path):
    """Returns the metadata and the tensors of a safetensors file."""
    raw = pathlib.Path(path).read_bytes()
    (n,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + n])
    metadata = header.pop("__metadata__", {})
    held = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8"}
    tensors = {}
    for name, t in header.items():
        lo, hi = t["data_offsets"]
        data = np.frombuffer(raw[8 + n + lo : 8 + n + hi], held[t["dtype"]]).reshape(t["shape"])
        tensors[name] = (t["dtype"], data)
    return metadata, tensors


class Module:
    """Has of a module of PyTorch what record uses."""

    def __init__(self, **children):
        self.hooks, self.children = [], children

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, child in self.children.items():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def register_forward_hook(self, hook):
        self.hooks.append(hook)
        hooks = self.hooks

        class Handle:
            def remove(self):
                hooks.remove(hook)

        return Handle()

    def __call__(self, *args):
        output = self.forward(*args)
        for hook in self.hooks:
            hook(self, args, output)
        return output


class FusedLinear(Module):
    def __init__(self, weight, pair=False):
        super().__init__()
        self.weight, self.pair = weight, pair

    def forward(self, x):
        y = x @ self.weight.T
        return (y, None) if self.pair else y


class Norm(Module):
    weight = np.ones(4, np.float32)


def test_stand_in(tmp_path):
    up = FusedLinear(np.arange(8, dtype=np.float32).reshape(2, 4))
    qkv = FusedLinear(np.ones((3, 4), np.float32), pair=True)
    model = Module(module=Module(mlp=Module(up_proj=up), qkv_proj=qkv, norm=Norm()))
    path = tmp_path / "a.safetensors"
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
    with octavo.record(model, path, recipe="bf16", exclude=["lm_head", "gate"], engine="me", prefix="model.") as r:
        up(x)
        up(x[:, :1])
        qkv(x.astype(np.float32))
        logits = np.log(np.array([[0.25, 0.75], [0.5, 0.5]], np.float32))
        r.tokens([[1, 0]], logits=logits)
    up(x)
    assert not up.hooks
    metadata, tensors = read(path)
    assert metadata == {"recipe": "bf16", "exclude": "lm_head, gate", "engine": "me"}
    assert set(tensors) == {
        "model.mlp.up_proj.input", "model.mlp.up_proj.output", "model.mlp.up_proj.passes",
        "model.qkv_proj.input", "model.qkv_proj.output", "model.qkv_proj.passes", "tokens", "logprobs",
    }  # fmt: skip
    assert tensors["model.mlp.up_proj.passes"][1].tolist() == [3, 1]
    rows = np.concatenate([x[0], x[0, :1]])
    assert (tensors["model.mlp.up_proj.input"][1] == rows).all()
    assert (tensors["model.mlp.up_proj.output"][1] == rows @ up.weight.T).all()
    assert tensors["tokens"][1].tolist() == [1, 0]
    assert tensors["logprobs"][1].tolist() == pytest.approx([math.log(0.25)])


def test_errors(tmp_path):
    up = FusedLinear(np.ones((2, 4)))
    with pytest.raises(ValueError, match="no linear layer"):
        octavo.record(Module(norm=Norm()), tmp_path / "a")
    with pytest.raises(ValueError, match="no linear layer"):
        octavo.record(Module(up_proj=up), tmp_path / "a", only=["down_proj"])
    with pytest.raises(TypeError, match="F64"):
        with octavo.record(Module(up_proj=up), tmp_path / "a"):
            up(np.ones((1, 4)))
    with pytest.raises(ValueError, match="want 3"):
        with octavo.record(Module(up_proj=up), tmp_path / "a") as r:
            r.tokens([1, 2, 3], logits=np.ones((2, 5), np.float32))
    assert not list(tmp_path.iterdir()), "nothing is written"


def llama(torch, dtype):
    """The model of shared/models/llama, without transformers."""
    _, weights = read(LLAMA / "model.safetensors")

    def tensor(name):
        bits = weights[name][1].astype("<u4") << 16
        return torch.from_numpy(bits.view("<f4").copy()).to(dtype)

    class Block(torch.nn.Module):
        def __init__(self, at):
            super().__init__()
            self.self_attn, self.mlp = torch.nn.Module(), torch.nn.Module()
            for parent, kinds in ((self.self_attn, "qkvo"), (self.mlp, ("gate", "up", "down"))):
                where = "self_attn" if parent is self.self_attn else "mlp"
                for kind in kinds:
                    w = tensor(f"{at}.{where}.{kind}_proj.weight")
                    linear = torch.nn.Linear(w.shape[1], w.shape[0], bias=False).to(dtype)
                    linear.weight.data = w
                    setattr(parent, kind + "_proj", linear)
            self.norms = tensor(at + ".input_layernorm.weight"), tensor(at + ".post_attention_layernorm.weight")

        def forward(self, x):
            a, (n, _) = self.self_attn, x.shape
            h = norm(x, self.norms[0])
            q, k, v = (p(h).view(n, -1, 16) for p in (a.q_proj, a.k_proj, a.v_proj))
            q, k = rotate(q), rotate(k).repeat_interleave(2, 1)
            v = v.repeat_interleave(2, 1)
            scores = torch.einsum("ihd,jhd->hij", q.float(), k.float()) / 4
            scores = scores + torch.full((n, n), -math.inf).triu(1)
            mixed = torch.einsum("hij,jhd->ihd", scores.softmax(-1), v.float())
            x = x + a.o_proj(mixed.reshape(n, -1).to(dtype))
            h, m = norm(x, self.norms[1]), self.mlp
            return x + m.down_proj(torch.nn.functional.silu(m.gate_proj(h)) * m.up_proj(h))

    def norm(x, gain):
        y = x.float()
        return gain * (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(dtype)

    def rotate(x):
        angles = torch.outer(torch.arange(len(x)).float(), 10000 ** (-torch.arange(0, 16, 2) / 16))
        c, s = angles.cos()[:, None].to(dtype), angles.sin()[:, None].to(dtype)
        a, b = x[..., :8], x[..., 8:]
        return torch.cat([a * c - b * s, b * c + a * s], -1)

    class Llama(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = torch.nn.Module()
            self.model.layers = torch.nn.ModuleList(Block(f"model.layers.{i}") for i in range(3))
            w = tensor("lm_head.weight")
            self.lm_head = torch.nn.Linear(64, len(w), bias=False).to(dtype)
            self.lm_head.weight.data = w

        def forward(self, ids):
            x = tensor("model.embed_tokens.weight")[ids]
            for block in self.model.layers:
                x = block(x)
            return self.lm_head(norm(x, tensor("model.norm.weight")))

    return Llama()


def test_torch(tmp_path):
    """A model in float32, and one with a layer whose weights are not those of the model."""
    torch = pytest.importorskip("torch")
    if not LLAMA.exists():
        pytest.skip("there are no models")
    ids = torch.arange(1, 40) * 7 % 320
    paths = []
    with torch.no_grad():
        for name, change in (("a", False), ("b", True)):
            model = llama(torch, torch.float32)
            if change:
                down = model.model.layers[1].mlp.down_proj
                down.weight.data = down.weight.data.half().float() * 1.03
            path = tmp_path / f"{name}.safetensors"
            with octavo.record(model, path, engine="torch " + torch.__version__) as r:
                r.tokens(ids, logits=model(ids))
            paths.append(str(path))
    command = [octavo.find_command(), "agree", "--model", str(LLAMA), *paths, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    words = [{m["name"] for m in report["modules"] if m["sides"][i]["outcome"] == "fail"} for i in (0, 1)]
    assert words == [set(), {"model.layers.1.mlp.down_proj"}]
    assert len(report["modules"]) == 22
    assert report["first"] == "model.layers.1.mlp.down_proj"
    before = [m for m in report["modules"] if ".layers.0." in m["name"]]
    assert all(m["input"] == m["output"] == "same" for m in before)
    assert report["nextToken"]["measured"]["mean"] != 0
