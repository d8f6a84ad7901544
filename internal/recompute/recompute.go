// Package recompute counts the operations that make the activations of a transformer block, and
// those that make them again in the backward pass where they are not kept. A multiplication and
// an addition are two, and functions of one element count as on paper.
package recompute

// The classes of activations, in the order of the method Classes of Policy in package nn.
const (
	Norms = iota
	Latents
	Projections
	Probabilities
	Mixed
	Middle
	Branches
	Product
	Outputs
	Classes
)

// Way is how a class comes from the forward to the backward pass, as Keeping in package nn
// numbers them.
type Way uint8

const (
	Keep  Way = iota // as it was computed
	Again            // computed again
	InFP8            // kept in FP8
)

// Operations of functions of one element.
const (
	ExpOps      = 16
	NormOps     = 4
	RotateOps   = 3
	QuantizeOps = 8 // of an operand: its amax, its scale and rounding
)

// Work are the operations of a block, of which a rank may have a share.
type Work struct {
	Norm        int64 // of both norms apart
	Tiles       int64 // what makes tiles of norms again
	Latents     int64
	LatentNorms int64
	Project     int64 // queries, keys and values
	Attend      int64 // probabilities
	Weigh       int64 // their products with values
	Output      int64 // the projection after them
	Gather      int64 // rows for experts
	Branch      int64 // both inputs of SwiGLU
	Decode      int64 // these from FP8
	SwiGLU      int64
	Down        int64 // what follows SwiGLU
	Outputs     int64 // that of routed experts apart
}

// Meter adds up the work of a block.
type Meter struct {
	Work
	Narrow      bool  // operands of products are quantized
	Own, Tokens int64 // rows of the residual stream, and rows that products of heads have
	Dim         int64
}

// Linear returns the operations of a linear layer's forward pass.
func (m *Meter) Linear(rows, out, in int64) int64 {
	n := 2 * rows * out * in
	if m.Narrow {
		n += QuantizeOps * (rows*in + out*in)
	}
	return n
}

// AddProjections adds attention's projections of the input, to so many columns of queries, and of keys
// and values each.
func (m *Meter) AddProjections(q, kv int64) {
	m.Project = m.Linear(m.Tokens, q, m.Dim) + 2*m.Linear(m.Tokens, kv, m.Dim) + RotateOps*m.Tokens*(q+kv)
}

// MLA are the sizes of latent attention: the rank of queries may be 0.
type MLA struct{ Heads, QRank, KVRank, NoPE, RoPE, Value int64 }

// AddLatents adds latents, their norms, and the queries, keys and values of them.
func (m *Meter) AddLatents(a MLA) {
	m.Latents = m.Linear(m.Own, a.KVRank+a.RoPE, m.Dim) + RotateOps*m.Own*a.RoPE
	m.LatentNorms = NormOps * m.Own * a.KVRank
	from := m.Dim
	if a.QRank > 0 {
		from = a.QRank
		m.Latents += m.Linear(m.Own, a.QRank, m.Dim)
		m.LatentNorms += NormOps * m.Own * a.QRank
	}
	m.Project = m.Linear(m.Tokens, a.Heads*(a.NoPE+a.RoPE), from) + RotateOps*m.Tokens*a.Heads*a.RoPE +
		m.Linear(m.Tokens, a.Heads*(a.NoPE+a.Value), a.KVRank)
}

// AddMixing adds attention of so many scores, of all heads.
func (m *Meter) AddMixing(scores, heads, key, value int64) {
	m.Attend = scores * (2*key + ExpOps)
	m.Weigh = scores * 2 * value
	m.Output = m.Linear(m.Tokens, m.Dim, heads*value) + m.Own*m.Dim
}

// AddFeedForward adds a SwiGLU and its projections. decoded says that its inputs may be kept in
// FP8.
func (m *Meter) AddFeedForward(rows, hidden int64, decoded bool) {
	if decoded {
		m.Decode += 2 * rows * hidden
	}
	m.Branch += 2 * m.Linear(rows, hidden, m.Dim)
	m.SwiGLU += (ExpOps + 4) * rows * hidden
	m.Down += m.Linear(rows, m.Dim, hidden)
}

// AddExperts adds to the feed-forward of routed experts, the first of the block, the router and
// how rows get to the experts.
func (m *Meter) AddExperts(rows, experts int64) {
	m.Gather = rows * m.Dim
	m.Outputs = m.Down
	m.Down += 2 * m.Own * experts * m.Dim
}

// Forward returns the operations of the forward pass.
func (w *Work) Forward() int64 {
	return 2*w.Norm + w.Latents + w.LatentNorms + w.Project + w.Attend + w.Weigh + w.Output +
		w.Gather + w.Branch + w.SwiGLU + w.Down
}

// Again returns the operations that compute again what is not kept.
func (w *Work) Again(ways [Classes]Way) (n int64) {
	add := func(of int64, needed bool) {
		if needed {
			n += of
		}
	}
	again := func(class int) bool { return ways[class] == Again }
	norms := func(from bool) bool { return again(Norms) || ways[Norms] == InFP8 && from }
	mix := again(Mixed) || again(Middle) && ways[Mixed] != Keep
	add(w.Norm, norms(again(Projections) || again(Latents)))
	add(w.Tiles, again(Norms))
	add(w.Latents, again(Latents))
	add(w.LatentNorms, again(Norms) || again(Projections))
	add(w.Project, again(Projections))
	add(w.Attend, again(Probabilities))
	add(w.Attend, mix && again(Probabilities))
	add(w.Weigh, mix)
	add(w.Output, again(Middle))
	add(w.Norm+w.Gather, norms(again(Branches)))
	add(w.Branch, again(Branches))
	add(w.Decode, ways[Branches] == InFP8)
	add(w.SwiGLU, again(Product) || ways[Product] == InFP8 && again(Outputs))
	add(w.Outputs, again(Outputs))
	return n
}
