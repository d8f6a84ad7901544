package plan

// split is how a weight is divided among ranks.
type split uint8

const (
	whole   split = iota // each rank has all of it
	columns              // tensor parallel, by outputs
	rows                 // tensor parallel, by inputs
	experts              // by experts, and each of them by expert-tensor ranks
)

// kind is what a weight is for.
type kind uint8

const (
	vector kind = iota // a norm, a bias
	embedding
	head
	router
	linear       // of a layer, which recipes quantize
	expertLinear // one of each expert
	expertVector
)

// weight is a matrix [out, in] of a layer, or count of them.
type weight struct {
	name    string
	kind    kind
	split   split
	out, in int
	count   int  // of experts; else 1
	byRows  bool // of an expert: its ranks divide inputs, not outputs
}

func (w weight) total() int64 { return int64(w.out) * int64(w.in) * int64(w.count) }

// active is how many of its parameters a token uses.
func (w weight) active(m Model) int64 {
	if w.kind == expertLinear || w.kind == expertVector {
		return w.total() / int64(m.MoE.Experts) * int64(m.MoE.TopK)
	}
	return w.total()
}

// multiplies reports whether tokens are multiplied with it.
func (w weight) multiplies() bool {
	return w.kind == head || w.kind == router || w.kind == linear || w.kind == expertLinear
}

func one(name string, k kind, s split, out, in int) weight {
	return weight{name: name, kind: k, split: s, out: out, in: in, count: 1}
}

func (m Model) embedding() []weight {
	return []weight{one("embedding", embedding, columns, m.Vocab, m.Hidden)}
}

// end has what comes after the layers.
func (m Model) end() []weight {
	all := []weight{one("final norm", vector, whole, 1, m.Hidden)}
	if !m.TiedHead {
		all = append(all, one("head", head, columns, m.Vocab, m.Hidden))
	}
	return all
}

// layer returns the weights of a layer.
func (m Model) layer(i int) []weight {
	all := []weight{one("attention norm", vector, whole, 1, m.Hidden)}
	if m.hasMLA() {
		all = append(all, m.latentAttention()...)
	} else {
		all = append(all, m.attention()...)
	}
	all = append(all, one("mlp norm", vector, whole, 1, m.Hidden))
	if m.isMoE(i) {
		return append(all, m.mixture()...)
	}
	return append(all, m.mlp("mlp", m.FFN)...)
}

func (m Model) attention() []weight {
	q, kv := m.Heads*m.HeadDim, m.KVHeads*m.HeadDim
	all := []weight{one("qkv", linear, columns, q+2*kv, m.Hidden), one("out", linear, rows, m.Hidden, q)}
	if m.QKNorm {
		all = append(all, one("q norm", vector, whole, 1, m.HeadDim), one("k norm", vector, whole, 1, m.HeadDim))
	}
	if m.QKVBias {
		all = append(all, one("qkv bias", vector, columns, q+2*kv, 1))
	}
	if m.OutBias {
		all = append(all, one("out bias", vector, whole, m.Hidden, 1))
	}
	if m.Sinks {
		all = append(all, one("sinks", vector, columns, m.Heads, 1))
	}
	return all
}

func (m Model) latentAttention() []weight {
	a, n := m.MLA, m.Heads
	var all []weight
	if a.QRank > 0 {
		all = append(all, one("q down", linear, whole, a.QRank, m.Hidden), one("q norm", vector, whole, 1, a.QRank),
			one("q up", linear, columns, n*m.queryDim(), a.QRank))
	} else {
		all = append(all, one("q", linear, columns, n*m.queryDim(), m.Hidden))
	}
	return append(all, one("kv down", linear, whole, a.KVRank+a.RoPE, m.Hidden), one("kv norm", vector, whole, 1, a.KVRank),
		one("kv up", linear, columns, n*(a.NoPE+a.Value), a.KVRank), one("out", linear, rows, m.Hidden, n*a.Value))
}

// mlp returns a SwiGLU, whose first two projections are one matrix.
func (m Model) mlp(name string, ffn int) []weight {
	all := []weight{one(name+" up", linear, columns, 2*ffn, m.Hidden), one(name+" down", linear, rows, m.Hidden, ffn)}
	if m.MLPBias {
		all = append(all, one(name+" up bias", vector, columns, 2*ffn, 1), one(name+" down bias", vector, whole, m.Hidden, 1))
	}
	return all
}

func (m Model) mixture() []weight {
	moe := m.MoE
	all := []weight{one("router", router, whole, moe.Experts, m.Hidden)}
	if moe.RouterBias {
		all = append(all, one("router bias", vector, whole, moe.Experts, 1))
	}
	if moe.Shared > 0 {
		all = append(all, m.mlp("shared expert", moe.Shared)...)
	}
	expert := func(name string, k kind, out, in int, byRows bool) weight {
		return weight{name: name, kind: k, split: experts, out: out, in: in, count: moe.Experts, byRows: byRows}
	}
	all = append(all, expert("experts up", expertLinear, 2*moe.FFN, m.Hidden, false),
		expert("experts down", expertLinear, m.Hidden, moe.FFN, true))
	if moe.Bias {
		all = append(all, expert("experts up bias", expertVector, 2*moe.FFN, 1, false),
			expert("experts down bias", expertVector, m.Hidden, 1, false))
	}
	return all
}
