package plan

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// ServeJob is a model to serve, of which [ServeJob.Memory] is asked.
type ServeJob struct {
	Model     Model     `json:"model"`
	Layout    Layout    `json:"layout"` // Virtual, Group and Zero mean nothing here
	Precision Precision `json:"precision"`

	Sequences int `json:"sequences"` // at once on each data-parallel rank; 0: 1
	Tokens    int `json:"tokens"`    // of each, prompt and answer

	// Chunk is how many tokens are computed at once: prompts are cut to that. 0: the smaller
	// of 8192 and what all sequences have.
	Chunk int `json:"chunk"`
}

// KVBytes returns what the keys and values of sequences of so many tokens take in all layers,
// or their latents with MLA: not divided among ranks. Layers with a window keep no more than
// that.
func (m Model) KVBytes(p Precision, sequences, tokens int64) (int64, error) {
	m, err := m.complete()
	if err != nil {
		return 0, err
	}
	if p, err = p.complete(); err != nil {
		return 0, err
	}
	if sequences < 0 || tokens < 0 || float64(sequences)*float64(tokens) > 1e12 {
		return 0, sentinel.Errorf(ErrJob, "plan: %d sequences of %d tokens: want 0 or more, and at most 1e12 tokens", sequences, tokens)
	}
	var n int64
	for i := range m.Layers {
		n += m.cacheOf(p, i, sequences, tokens, 1)
	}
	return n, nil
}

// cacheOf is what a layer caches when heads are divided among so many ranks.
func (m Model) cacheOf(p Precision, layer int, sequences, tokens, ranks int64) int64 {
	rows := sequences * m.context(layer, tokens)
	if m.hasMLA() {
		return p.KV.Bytes(rows, int64(m.MLA.KVRank+m.MLA.RoPE))
	}
	heads := max(int64(m.KVHeads)/ranks, 1)
	return 2 * p.KV.Bytes(rows, heads*int64(m.HeadDim))
}

// Memory counts what serving needs on the ranks of each stage: weights, the cache of keys and
// values, and what the largest step of the computation has live. KV heads are divided among
// tensor-parallel ranks, or are there several times where there are more ranks than heads;
// latents of MLA are there on each. Context-parallel ranks divide tokens.
//
// The error is [ErrModel] or [ErrJob] and names the field and its value.
func (j ServeJob) Memory() (Memory, error) {
	j, err := j.Complete()
	if err != nil {
		return Memory{}, err
	}
	return memoryOf(j.Layout, j.stage), nil
}

// usualChunk is how many tokens servers compute at once, unless told otherwise.
const usualChunk = 8192

// Complete returns the job with what is left to defaults filled in, or what is wrong with it.
func (j ServeJob) Complete() (ServeJob, error) {
	var err error
	if j.Model, err = j.Model.complete(); err != nil {
		return j, err
	}
	l, t := j.Layout, j.Layout.Tensor
	if l.Virtual > 1 || l.Zero > 0 {
		return j, jobf("layout.virtual is %d and layout.zero %d: serving has neither", max(l.Virtual, 1), l.Zero)
	}
	whole := j.Model
	if heads := j.Model.KVHeads; t > heads && heads > 0 && t%heads == 0 {
		whole.KVHeads = t // each head is there t/heads times
	}
	if j.Layout, err = l.complete(whole); err != nil {
		return j, err
	}
	if j.Precision, err = j.Precision.complete(); err != nil {
		return j, err
	}
	if j.Sequences == 0 {
		j.Sequences = 1
	}
	for _, f := range []struct {
		name        string
		value, most int
	}{{"tokens", j.Tokens, math.MaxInt32}, {"sequences", j.Sequences, 1 << 24}} {
		if f.value < 1 || f.value > f.most {
			return j, jobf("%s is %d: want 1 to %d", f.name, f.value, f.most)
		}
	}
	all := int64(j.Sequences) * int64(j.Tokens)
	if j.Chunk == 0 {
		j.Chunk = int(min(usualChunk, all))
	}
	if j.Chunk < 0 || int64(j.Chunk) > all {
		return j, jobf("chunk is %d: want 1 to the %d tokens of all sequences", j.Chunk, all)
	}
	return j, j.Model.checkTokens(float64(j.Chunk))
}

func (j ServeJob) stage(s int) Stage {
	l, m := j.Layout, j.Model
	st := l.describe(s)
	layers := l.chunks(s, m.Layers)
	st.Layers = len(layers[0])
	for _, layer := range m.stageWeights(l, s, layers) {
		for _, w := range layer {
			out, in, count := l.local(m.shared(w, l))
			st.Parameters += out * in * count
			st.Weights += count * j.Precision.weight(w).Bytes(out, in)
		}
	}
	tokens := ceil(int64(j.Tokens), int64(l.Context))
	for _, i := range layers[0] {
		st.Cache += m.cacheOf(j.Precision, i, int64(j.Sequences), tokens, int64(l.Tensor))
	}
	st.Workspace, st.At = j.workspace(s, layers[0])
	return st
}

// shared widens the projection of keys and values whose heads are there on several ranks.
func (m Model) shared(w weight, l Layout) weight {
	if t := l.Tensor; (w.name == "qkv" || w.name == "qkv bias") && t > m.KVHeads {
		w.out += 2 * (t - m.KVHeads) * m.HeadDim
	}
	return w
}

// workspace is what the largest op of a stage has live, with the stream beside it. Of the
// logits there is one row for each sequence, in FP32.
func (j ServeJob) workspace(stage int, layers []int) (most int64, at string) {
	o := ops{m: j.Model, l: j.Layout, p: j.Precision}
	o.l.Context = 1 // a chunk is not divided
	o.tokens = int64(j.Chunk)
	stream := o.p.Stream.Bytes(o.tokens, int64(j.Model.Hidden))
	for i, layer := range layers {
		for _, op := range o.layer(layer, i) {
			if op.forward+stream > most {
				most, at = op.forward+stream, op.name
			}
		}
	}
	if stage == j.Layout.Pipeline-1 {
		logits := 4 * int64(j.Sequences) * o.l.vocabulary(j.Model.Vocab) / o.tensor()
		if logits+stream > most {
			most, at = logits+stream, "head"
		}
	}
	return most, at
}
