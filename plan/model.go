package plan

import (
	"cmp"
	"errors"
	"math"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

var (
	// ErrModel is a shape that no model has, or a config.json that does not describe one
	// that this package counts.
	ErrModel = errors.New("plan: model")

	// ErrJob is a layout, a batch or a precision that does not fit the model.
	ErrJob = errors.New("plan: layout")
)

// Model is the shape of a decoder-only transformer. It is what [Model.Parameters], memory
// and FLOPs are counted from. The layers of a Multi-Token Prediction head are not counted.
type Model struct {
	Name   string `json:"name,omitempty"`
	Source string `json:"source,omitempty"` // where the figures are published

	// Published is the recipe ([NamedPrecision]) that its weights are published in, or of a
	// configuration the name of a quantization that none of them counts. "": it is not said.
	Published string `json:"published,omitempty"`

	Layers int `json:"layers"`
	Hidden int `json:"hidden"` // the width of the residual stream
	Vocab  int `json:"vocab"`

	Heads   int `json:"heads"`
	KVHeads int `json:"kvHeads,omitempty"` // 0: Heads
	HeadDim int `json:"headDim,omitempty"` // 0: Hidden/Heads
	MLA     MLA `json:"mla,omitzero"`      // takes the place of KVHeads and HeadDim

	FFN int `json:"ffn,omitempty"` // of SwiGLU in dense layers
	MoE MoE `json:"moe,omitzero"`  // the zero value: all layers are dense

	TiedHead bool `json:"tiedHead,omitempty"` // the head is the embedding
	QKNorm   bool `json:"qkNorm,omitempty"`   // queries and keys are normalised by head
	QKVBias  bool `json:"qkvBias,omitempty"`
	OutBias  bool `json:"outBias,omitempty"` // of the projection after attention
	MLPBias  bool `json:"mlpBias,omitempty"`
	Sinks    bool `json:"sinks,omitempty"` // a learned logit for each head

	// Window is how many tokens layers with a sliding window see: all layers, or all but
	// every FullEvery-th. 0: there is no window.
	Window    int `json:"window,omitempty"`
	FullEvery int `json:"fullEvery,omitempty"`
}

// MLA is multi-head latent attention (DeepSeek-V2, arXiv 2405.04434). The zero value is none.
type MLA struct {
	QRank  int `json:"qRank,omitempty"` // 0: queries are projected at once
	KVRank int `json:"kvRank"`
	NoPE   int `json:"noPE"`  // of a head's query and key, without rotary embedding
	RoPE   int `json:"roPE"`  // with it; the key's is shared by all heads
	Value  int `json:"value"` // of a head
}

// MoE is a mixture of experts. The zero value is none.
type MoE struct {
	Experts int `json:"experts"`
	TopK    int `json:"topK"`             // experts of a token
	FFN     int `json:"ffn"`              // of one expert
	Shared  int `json:"shared,omitempty"` // FFN of all shared experts together
	Dense   int `json:"dense,omitempty"`  // so many first layers are dense

	RouterBias bool `json:"routerBias,omitempty"`
	Bias       bool `json:"bias,omitempty"` // of each expert's projections
}

// Parameters are exact counts.
type Parameters struct {
	Total int64 `json:"total"`

	// Active are those on the path of a token: of the experts TopK, and all else, both the
	// embedding and the head.
	Active int64 `json:"active"`

	Embedding int64 `json:"embedding"` // of the embedding alone; the head has as many, unless tied

	// Products are those of Active that a token is multiplied with: matrices without the
	// embedding. Forward and backward passes take 6 FLOPs of each.
	Products int64 `json:"products"`
}

// Parameters counts the parameters of a model. It is an error, [ErrModel], if there is no
// such model.
func (m Model) Parameters() (p Parameters, err error) {
	if m, err = m.complete(); err != nil {
		return p, err
	}
	add := func(all []weight) {
		for _, w := range all {
			p.Total += w.total()
			p.Active += w.active(m)
			if w.multiplies() {
				p.Products += w.active(m)
			}
		}
	}
	add(m.embedding())
	p.Embedding = p.Total
	for i := range m.Layers {
		add(m.layer(i))
	}
	add(m.end())
	if m.TiedHead {
		p.Products += p.Embedding
	}
	return p, nil
}

// isMoE reports whether a layer has experts.
func (m Model) isMoE(layer int) bool { return m.MoE.Experts > 0 && layer >= m.MoE.Dense }

// windowed reports whether a layer sees only a window.
func (m Model) windowed(layer int) bool {
	return m.Window > 0 && (m.FullEvery == 0 || (layer+1)%m.FullEvery != 0)
}

// context is what a token at the end of so many sees in a layer.
func (m Model) context(layer int, tokens int64) int64 {
	if m.windowed(layer) {
		return min(tokens, int64(m.Window))
	}
	return tokens
}

func (m Model) hasMLA() bool { return m.MLA.KVRank > 0 }

// Widths of a head's query (and key), and of its value.
func (m Model) queryDim() int {
	if m.hasMLA() {
		return m.MLA.NoPE + m.MLA.RoPE
	}
	return m.HeadDim
}

func (m Model) valueDim() int {
	if m.hasMLA() {
		return m.MLA.Value
	}
	return m.HeadDim
}

// Bounds that keep every count below an int64, and far above what there is.
const (
	mostLayers = 1 << 16
	mostWidth  = 1 << 24
	mostHeads  = 1 << 28
	mostParams = 1e15
)

// complete fills in what is left to defaults, and checks.
func (m Model) complete() (Model, error) {
	if m.KVHeads == 0 {
		m.KVHeads = m.Heads
	}
	if m.HeadDim == 0 && m.Heads > 0 && !m.hasMLA() {
		if m.Hidden%m.Heads != 0 {
			return m, m.errorf("hidden is %d, not a multiple of its %d heads: give the width of a head", m.Hidden, m.Heads)
		}
		m.HeadDim = m.Hidden / m.Heads
	}
	return m, cmp.Or(m.checkSizes(), m.checkTotal())
}

func (m Model) checkSizes() error {
	type size struct {
		name        string
		value       int
		least, most int
	}
	moe, mla := m.MoE, m.MLA
	sizes := []size{
		{"layers", m.Layers, 1, mostLayers},
		{"hidden", m.Hidden, 1, mostWidth},
		{"vocab", m.Vocab, 1, mostWidth},
		{"heads", m.Heads, 1, mostWidth},
		{"kvHeads", m.KVHeads, 1, mostWidth},
		{"window", m.Window, 0, math.MaxInt32},
		{"fullEvery", m.FullEvery, 0, mostLayers},
		{"moe.experts", moe.Experts, 0, mostWidth},
	}
	if m.hasMLA() {
		sizes = append(sizes, size{"mla.qRank", mla.QRank, 0, mostWidth}, size{"mla.kvRank", mla.KVRank, 1, mostWidth},
			size{"mla.noPE", mla.NoPE, 1, mostWidth}, size{"mla.roPE", mla.RoPE, 0, mostWidth}, size{"mla.value", mla.Value, 1, mostWidth})
	} else {
		sizes = append(sizes, size{"headDim", m.HeadDim, 1, mostWidth}, size{"mla.kvRank", mla.KVRank, 0, 0})
	}
	if moe.Experts > 0 {
		sizes = append(sizes, size{"moe.topK", moe.TopK, 1, moe.Experts}, size{"moe.ffn", moe.FFN, 1, mostWidth},
			size{"moe.shared", moe.Shared, 0, mostWidth}, size{"moe.dense", moe.Dense, 0, mostLayers})
	}
	if !m.isMoE(0) {
		sizes = append(sizes, size{"ffn", m.FFN, 1, mostWidth})
	}
	for _, s := range sizes {
		if s.value < s.least || s.value > s.most {
			return m.errorf("%s is %d: want %d to %d", s.name, s.value, s.least, s.most)
		}
	}
	if width := int64(m.Heads) * int64(max(m.queryDim(), m.valueDim())); width > mostHeads {
		return m.errorf("heads is %d: all together would be %d wide, want at most %d", m.Heads, width, mostHeads)
	}
	if !m.hasMLA() && m.Heads%m.KVHeads != 0 {
		return m.errorf("kvHeads is %d: want a divisor of its %d heads", m.KVHeads, m.Heads)
	}
	return nil
}

// checkTotal refuses a model whose counts might not fit 64 bits.
func (m Model) checkTotal() error {
	n := 2*float64(m.Vocab)*float64(m.Hidden) + float64(m.Layers)*m.layerEstimate()
	if !(n < mostParams) {
		return m.errorf("it would have about %.3g parameters: want at most %g", n, float64(mostParams))
	}
	return nil
}

func (m Model) layerEstimate() float64 {
	h := float64(m.Hidden)
	heads := 2 * h * float64(m.Heads) * float64(m.queryDim()+m.valueDim())
	latent := (float64(m.MLA.QRank) + float64(m.MLA.KVRank)) * (h + float64(m.Heads)*float64(m.queryDim()+m.valueDim()))
	ffn := 3 * h * float64(max(m.FFN, m.MoE.Shared))
	return heads + latent + ffn + 4*h*float64(m.MoE.Experts)*float64(max(m.MoE.FFN, 1))
}

func (m Model) errorf(format string, args ...any) error {
	name := m.Name
	if name == "" {
		name = "the model"
	}
	return sentinel.Errorf(ErrModel, "plan: %s: "+format, append([]any{name}, args...)...)
}
