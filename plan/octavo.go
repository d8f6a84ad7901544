package plan

import (
	"strings"

	"github.com/octavo-fp8/octavo/internal/recompute"
	"github.com/octavo-fp8/octavo/nn"
)

// ClassBytes is what of a class of activations is kept.
type ClassBytes struct {
	Class string `json:"class"`
	Bytes int64  `json:"bytes"`
}

// activations returns how package nn would keep activations of a precision, whether products
// are in FP8, and its policy where none is given.
func (p Precision) activations() (f nn.ActivationFormat, inFP8 bool, own nn.Policy, err error) {
	inFP8 = p.Inputs != p.Stream
	apart := p.AttentionOut.or(p.Inputs) != p.Inputs
	switch {
	case p.FromSwiGLU && !inFP8:
		return f, inFP8, own, jobf("precision.fromSwiglu: with library octavo it goes with inputs in FP8")
	case apart && !p.FromSwiGLU:
		return f, inFP8, own, jobf("precision.attentionOut: library octavo keeps it apart from inputs " +
			"only with fromSwiglu")
	case apart:
		f = nn.ActivationsDeepSeekV3
	case p.FromSwiGLU:
		f = nn.ActivationsFP8SwiGLU
	case inFP8:
		return f, inFP8, nn.ActivationsFP8.Policy(), nil
	}
	return f, inFP8, f.Policy(), nil
}

// Policy returns how library octavo keeps the activations of a precision where a job has no
// policies. The error is [ErrJob].
func (p Precision) Policy() (nn.Policy, error) {
	p, err := p.complete()
	if err != nil {
		return nn.Policy{}, err
	}
	_, _, own, err := p.activations()
	return own, err
}

// completePolicies fills in the policies of library octavo, and checks them.
func (j TrainJob) completePolicies() (TrainJob, error) {
	if !j.Library.Octavo {
		if j.Policies != nil {
			return j, jobf("policies: only library octavo has them")
		}
		return j, nil
	}
	if j.Library != (Library{Octavo: true}) {
		return j, jobf("library: octavo keeps nothing of what another does: leave the rest out")
	}
	if j.Recompute != (Recompute{}) {
		return j, jobf("recompute: library octavo has policies instead: leave it out")
	}
	f, inFP8, own, err := j.Precision.activations()
	if err != nil {
		return j, err
	}
	if j.Policies == nil {
		for range j.Model.Layers {
			j.Policies = append(j.Policies, own)
		}
	}
	if len(j.Policies) != j.Model.Layers {
		return j, jobf("policies has %d: want one for each of %d layers, or none",
			len(j.Policies), j.Model.Layers)
	}
	for i, p := range j.Policies {
		if err := p.Check(f, inFP8); err != nil {
			text := strings.TrimPrefix(err.Error(), "nn: ")
			return j, jobf("policies[%d] with precision %s: %s", i, j.Precision.called(), text)
		}
	}
	return j, j.checkOperations()
}

func (p Precision) called() string {
	if p.Name == "" {
		return "of its own"
	}
	return p.Name
}

// checkOperations refuses operations and probabilities that an int64 could not count.
func (j TrainJob) checkOperations() error {
	p, err := j.Model.Parameters()
	if err != nil {
		return err
	}
	m := j.Model
	tokens, layers := float64(j.Sequence)*float64(j.Batch), float64(m.Layers)
	scores := float64(m.Heads) * float64(j.Sequence) * float64(2*(m.queryDim()+m.valueDim())+64)
	each := 8 * (float64(p.Active) + layers*scores + float64(m.Vocab)*64)
	if n := 8 * tokens * each; !(n < 8e18) {
		return jobf("sequence is %d: a micro-batch takes some %.2g operations, too many to be counted",
			j.Sequence, n)
	}
	return nil
}

// layerPlan has the sizes of a layer's activations on a rank, as package nn keeps them, and the
// operations that make them.
type layerPlan struct {
	stream, router int64 // bytes that are kept whatever policies say
	sharedKey      int64 // bytes, kept where projections are computed again from latents
	classes        [recompute.Classes]classSize

	work recompute.Work
}

// classSize is the size of a class.
type classSize struct {
	kept   int64 // as it was computed
	narrow int64 // in FP8
	turns  int64 // what layers share of it unless it is kept as it was computed
}

// single is the size of a number that recipes do not narrow: one a row of norms and of losses,
// scores and weights of routers.
const single = 4

// layerMeter measures a layer.
type layerMeter struct {
	*layerPlan
	o        *ops
	sequence int64
	inTiles  bool // as nn.ActivationsDeepSeekV3 says
	work     recompute.Meter
}

// plan measures a layer.
func (o *ops) plan(layer int, sequence int64) layerPlan {
	var p layerPlan
	f, inFP8, _, _ := o.p.activations()
	own, h := o.own(), int64(o.m.Hidden)
	m := layerMeter{
		layerPlan: &p, o: o, sequence: sequence, inTiles: f == nn.ActivationsDeepSeekV3,
		work: recompute.Meter{Narrow: inFP8, Own: own, Tokens: o.tokens, Dim: h},
	}
	p.stream = o.p.Stream.Bytes(own, h) + 2*single*own
	m.add(recompute.Norms, own, h)
	m.add(recompute.Norms, own, h)
	m.add(recompute.Middle, own, h)
	m.work.Norm = recompute.NormOps * own * h
	if o.m.hasMLA() {
		m.latentAttention(h)
	} else {
		m.attention(h)
	}
	m.mixing(o.m.context(layer, sequence))
	if o.m.isMoE(layer) {
		m.experts(h)
	} else {
		m.mlp(h, int64(o.m.FFN)/o.tensor())
	}
	p.work = m.work.Work
	return p
}

// add adds rows of values to a class.
func (m *layerMeter) add(class int, rows, cols int64) {
	n := m.o.p.Stream.Bytes(rows, cols)
	m.classes[class].kept += n
	m.classes[class].turns += n
}

// normInput adds what layers keep in FP8 of what a norm has given.
func (m *layerMeter) normInput(rows, cols int64) { m.normInputs(1, rows, cols) }

// normInputs is normInput of so many matrices.
func (m *layerMeter) normInputs(count, rows, cols int64) {
	m.classes[recompute.Norms].narrow += count * m.o.p.Inputs.Bytes(rows, cols)
	if m.inTiles {
		m.work.Tiles += count * recompute.QuantizeOps * rows * cols
	}
}

func (m *layerMeter) attention(h int64) {
	q := int64(m.o.m.Heads*m.o.m.HeadDim) / m.o.tensor()
	kv := int64(m.o.m.KVHeads*m.o.m.HeadDim) / m.o.tensor()
	m.normInput(m.o.own(), h)
	m.work.AddProjections(q, kv)
	m.add(recompute.Projections, m.o.tokens, kv)
	m.add(recompute.Projections, m.o.tokens, kv)
}

// latentAttention adds MLA, of which keys and values are there by head.
func (m *layerMeter) latentAttention(h int64) {
	a, own := m.o.m.MLA, m.o.own()
	heads, rope := int64(m.o.m.Heads)/m.o.tensor(), int64(a.RoPE)
	key, value, rank := int64(m.o.m.queryDim()), int64(a.Value), int64(a.KVRank)
	m.normInput(own, h)
	m.latent(own, rank)
	m.sharedKey = m.o.p.Stream.Bytes(own, rope)
	if a.QRank > 0 {
		m.latent(own, int64(a.QRank))
	}
	m.work.AddLatents(recompute.MLA{
		Heads: heads, QRank: int64(a.QRank), KVRank: rank, NoPE: int64(a.NoPE), RoPE: rope, Value: value,
	})
	m.add(recompute.Projections, m.o.tokens, heads*key)
	m.add(recompute.Projections, m.o.tokens, heads*value)
}

// latent adds one of MLA and its norm.
func (m *layerMeter) latent(rows, rank int64) {
	m.stream += single * rows
	m.add(recompute.Latents, rows, rank)
	m.add(recompute.Norms, rows, rank)
	m.normInput(rows, rank)
}

// mixing adds queries and what attention makes of them, of keys and of values. Tokens at the
// end of a sequence see so many.
func (m *layerMeter) mixing(seen int64) {
	heads := int64(m.o.m.Heads) / m.o.tensor()
	key, value := int64(m.o.m.queryDim()), int64(m.o.m.valueDim())
	m.add(recompute.Projections, m.o.tokens, heads*key)
	m.classes[recompute.Probabilities].kept = m.o.p.Stream.Bytes(m.o.tokens*heads, seen)
	m.add(recompute.Mixed, m.o.tokens, heads*value)
	m.classes[recompute.Mixed].narrow = m.o.p.AttentionOut.or(m.o.p.Inputs).Bytes(m.o.tokens, heads*value)
	scores := m.o.tokens * heads * (seen * (2*m.sequence - seen + 1) / m.sequence) / 2
	m.work.AddMixing(scores, heads, key, value)
}

// mlp adds an MLP.
func (m *layerMeter) mlp(h, f int64) {
	m.normInput(m.o.own(), h)
	m.feedForward(m.o.tokens, f)
	m.classes[recompute.Product].narrow += m.o.p.Inputs.Bytes(m.o.tokens, f)
}

// feedForward adds what SwiGLU is given and gives.
func (m *layerMeter) feedForward(rows, f int64) {
	n := m.o.p.Stream.Bytes(rows, f)
	for _, of := range []struct{ class, count int64 }{{recompute.Branches, 2}, {recompute.Product, 1}} {
		c := &m.classes[of.class]
		c.kept += of.count * n
		c.turns = max(c.turns, of.count*n) // an MLP and experts take turns, too
	}
	if m.o.p.FromSwiGLU {
		m.classes[recompute.Branches].narrow += 2 * m.o.p.SwiGLU.Bytes(rows, f)
	}
	m.work.AddFeedForward(rows, f, m.o.p.FromSwiGLU)
}

// experts adds those of a rank, with equal loads, and the shared one.
func (m *layerMeter) experts(h int64) {
	moe := m.o.m.MoE
	etp := int64(m.o.l.ExpertTensor)
	count, f := int64(moe.Experts/m.o.l.Expert), int64(moe.FFN)/etp
	rows := m.o.own() * int64(moe.TopK) * etp
	m.router = single * m.o.own() * int64(moe.Experts+moe.TopK)
	m.add(recompute.Norms, rows, h)
	if m.work.Narrow {
		m.classes[recompute.Norms].narrow += m.o.p.Stream.Bytes(m.o.own(), h) // of the router
	}
	m.feedForward(rows, f)
	m.work.AddExperts(rows, int64(moe.Experts))
	more := rows % count // experts with a row more
	for _, of := range []struct{ experts, rows int64 }{{more, rows/count + 1}, {count - more, rows / count}} {
		m.normInputs(of.experts, of.rows, h)
		m.classes[recompute.Product].narrow += of.experts * m.o.p.Inputs.Bytes(of.rows, f)
	}
	m.add(recompute.Outputs, rows, h)
	if moe.Shared > 0 {
		m.mlp(h, int64(moe.Shared)/m.o.tensor())
	}
}

// kept returns what a policy keeps of each class.
func (l *layerPlan) kept(p nn.Policy) (kept [recompute.Classes]int64) {
	for class, of := range p.Classes() {
		switch *of.Kept {
		case nn.Keep:
			kept[class] = l.classes[class].kept
		case nn.KeepFP8:
			kept[class] = l.classes[class].narrow
		}
	}
	if p.Latents == nn.Keep && p.Projections == nn.Recompute {
		kept[recompute.Projections] += l.sharedKey
	}
	return kept
}

// again returns the operations that compute again what a policy does not keep.
func (l *layerPlan) again(p nn.Policy) int64 {
	var ways [recompute.Classes]recompute.Way
	for class, of := range p.Classes() {
		ways[class] = recompute.Way(*of.Kept)
	}
	return l.work.Again(ways)
}
