package nn

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/elementary"
)

// resultsBy rounds rows of results to a format by its definition.
func resultsBy(f NarrowFormat, x []float32, cols int) []float32 {
	switch f {
	case NarrowE4M3:
		return roundedTo(fp8E4M3, 128, powerOfTwoMultiplier, x, cols)
	case NarrowBF16:
		bf16 := format{7, -126, math.MaxFloat32}
		one := func(format, float64) float32 { return 1 }
		return roundedTo(bf16, 128, one, x, cols)
	}
	panic(f)
}

var resultFormats = []NarrowFormat{NarrowE4M3, NarrowBF16}

func TestRoundedNormalization(t *testing.T) {
	const rows, dim = 5, 150 // two tiles
	x, dy := randoms(1, rows*dim), randoms(2, rows*dim)
	results := func(f NarrowFormat) (n *RMSNorm, y, dx []float32) {
		n, err := NewRMSNorm("norm.weight", dim, 0, Options{Operators: Operators{Normalization: f}})
		require.NoError(t, err)
		copy(n.Gain.Value, randoms(3, dim))
		y, dx = make([]float32, len(x)), make([]float32, len(x))
		require.NoError(t, n.Forward(t.Context(), y, x))
		require.NoError(t, n.Backward(t.Context(), dx, dy))
		return n, y, dx
	}
	plain, y, dx := results("")
	for _, f := range resultFormats {
		n, gotY, gotDX := results(f)
		require.Equal(t, resultsBy(f, y, dim), gotY, f)
		require.Equal(t, resultsBy(f, dx, dim), gotDX, f)
		require.Equal(t, plain.Gain.Grad, n.Gain.Grad, f)
	}
}

func TestRoundedEmbedding(t *testing.T) {
	const vocab, dim = 7, 131
	tokens := []int32{3, 1, 3, 6}
	for _, f := range resultFormats {
		e, err := NewEmbedding("table.weight", vocab, dim, Options{Operators: Operators{Embedding: f}})
		require.NoError(t, err)
		copy(e.Table.Value, randoms(1, vocab*dim))
		table := resultsBy(f, e.Table.Value, dim)
		y, dy := make([]float32, len(tokens)*dim), randoms(2, len(tokens)*dim)
		given := slices.Clone(dy)
		require.NoError(t, e.Forward(t.Context(), y, tokens))
		require.NoError(t, e.Backward(t.Context(), dy))
		require.Equal(t, given, dy, "it is the caller's")
		want, rounded := make([]float32, vocab*dim), resultsBy(f, dy, dim)
		for i, token := range tokens {
			row := int(token) * dim
			require.Equal(t, table[row:row+dim], y[i*dim:(i+1)*dim], f)
			for j := range dim {
				want[row+j] += rounded[i*dim+j]
			}
		}
		require.Equal(t, want, e.Table.Grad, f)
	}
}

// TestRoundedResidual hears what a block adds, and what comes of it.
func TestRoundedResidual(t *testing.T) {
	const batch, seq, dim = 2, 3, 136
	for _, f := range resultFormats {
		shared := new(Shared)
		o := Options{Shared: shared, Operators: Operators{Residual: f}, Workers: 2}
		b, err := NewBlock("b.", BlockConfig{AttentionConfig: AttentionConfig{Dim: dim, Heads: 2}, Hidden: 20}, o)
		require.NoError(t, err)
		for i, p := range b.Params() {
			copy(p.Value, randoms(uint64(i), len(p.Value)))
		}
		heard := map[string][]float32{}
		shared.Tap = func(name string, values []float32, _, _ int) {
			heard[name] = slices.Clone(values)
			heard["dNormed at "+name] = slices.Clone(shared.scratch.dNormed)
		}
		sum := func(a, b []float32) []float32 {
			c := make([]float32, len(a))
			for i := range c {
				c[i] = a[i] + b[i]
			}
			return resultsBy(f, c, dim)
		}
		x, dy := randoms(50, batch*seq*dim), randoms(51, batch*seq*dim)
		y, dx := make([]float32, len(x)), make([]float32, len(x))
		require.NoError(t, b.Forward(t.Context(), y, x, batch, seq))
		require.Equal(t, sum(x, heard["b.self_attn.o_proj.output"]), heard["b.middle"], f)
		require.Equal(t, sum(heard["b.middle"], heard["b.mlp.down_proj.output"]), y, f)
		require.Equal(t, y, heard["b.output"], f)

		require.NoError(t, b.Backward(t.Context(), dx, dy))
		middle := heard["b.middle_gradient"]
		require.Equal(t, sum(dy, heard["dNormed at b.middle_gradient"]), middle, f)
		require.Equal(t, sum(middle, shared.scratch.dNormed), dx, f)
	}
}

// TestRoundedSoftmax follows one head: probabilities are those of FP32, rounded, and so are
// gradients of scores.
func TestRoundedSoftmax(t *testing.T) {
	const seq, dim = 140, 6 // rows of two tiles
	x, dy := randoms(5, seq*dim), randoms(6, seq*dim)
	attention := func(f NarrowFormat) *Attention {
		a, err := NewAttention("a.", AttentionConfig{Dim: dim, Heads: 1}, Options{Operators: Operators{Softmax: f}})
		require.NoError(t, err)
		for i, p := range a.Params() {
			copy(p.Value, randoms(uint64(i), len(p.Value)))
		}
		require.NoError(t, a.Forward(t.Context(), make([]float32, len(x)), x, 1, seq))
		require.NoError(t, a.Backward(t.Context(), make([]float32, len(x)), dy))
		return a
	}
	plain := attention("")
	for _, f := range resultFormats {
		a := attention(f)
		dQ, mixed := make([]float64, seq*dim), make([]float64, seq*dim)
		row := func(x []float32, i int) []float32 { return x[i*dim : (i+1)*dim] }
		for i := range seq {
			p := a.probs[i*seq:][:i+1]
			require.Equal(t, resultsBy(f, plain.probs[i*seq:][:i+1], i+1), p, "%v, row %d", f, i)
			d := make([]float32, i+1)
			for j := range d {
				d[j] = canonical.Dot(row(a.scratch.dMixed, i), row(a.v, j))
			}
			mean := canonical.Dot(d, p)
			for j := range d {
				d[j] = (d[j] - mean) * p[j] * float32(1/math.Sqrt(dim))
			}
			d = resultsBy(f, d, i+1)
			for j := range d {
				for c := range dim {
					mixed[i*dim+c] += float64(p[j]) * float64(row(a.v, j)[c])
					dQ[i*dim+c] += float64(d[j]) * float64(row(a.k, j)[c])
				}
			}
		}
		for i := range dQ {
			require.InDelta(t, mixed[i], (*a.mixed)[i], 1e-5*(1+math.Abs(mixed[i])), "%v, %d", f, i)
			require.InDelta(t, dQ[i], a.scratch.dq[i], 1e-5*(1+math.Abs(dQ[i])), "%v, %d", f, i)
		}
	}
}

// toBits rounds the FP32 sum of two values to a number of bits behind the first.
func toBits(f NarrowFormat, a, b float32) float32 {
	return float32(format{map[NarrowFormat]int{NarrowE4M3: 3, NarrowBF16: 7}[f], -126, math.MaxFloat32}.nearest(float64(a + b)))
}

// dotTo adds products up in the order of FP32.
func dotTo(f NarrowFormat, a, b []float32) (p float32) {
	for ; len(a) > 0; a, b = a[min(32, len(a)):], b[min(32, len(a)):] {
		var even, odd float32
		for i := range min(32, len(a)) {
			if product := float32(a[i] * b[i]); i%2 == 0 {
				even = toBits(f, even, product)
			} else {
				odd = toBits(f, odd, product)
			}
		}
		p = toBits(f, p, toBits(f, even, odd))
	}
	return p
}

// TestReductionsInModel: the loss and the backward pass of softmax have them.
func TestReductionsInModel(t *testing.T) {
	const batch, seq = 1, 11
	for _, f := range resultFormats {
		cfg := ragged()
		cfg.Heads, cfg.KVHeads, cfg.Layers = 1, 1, 1
		ClassReductions.Round(&cfg, f)
		m := livelyModel(t, cfg)
		tokens := someTokens(1, seq, cfg.Vocab)
		got, err := m.Loss(t.Context(), tokens, tokens, batch, seq)
		require.NoError(t, err)
		want := 0.0
		for i, token := range tokens {
			row := m.logits[i*cfg.Vocab:][:cfg.Vocab]
			e := make([]float32, len(row))
			elementary.ExpTo(e, row, slices.Max(row), 1, 1)
			var sum float32
			for _, v := range e {
				sum = toBits(f, sum, v)
			}
			want += float64(slices.Max(row)+elementary.Log(sum)-row[token]) / seq
		}
		require.InEpsilon(t, want, got, 1e-6, f)

		require.NoError(t, m.Backward(t.Context()))
		a, dim := m.blocks[0].Attention, cfg.Dim
		row := func(x []float32, i int) []float32 { return x[i*dim : (i+1)*dim] }
		rotary, err := NewRotary(dim, cfg.Context, 0)
		require.NoError(t, err)
		rotary.rotate(a.scratch.dq, 1, 0, seq, seq, 1, 1)
		for i := range seq {
			p, d := a.probs[i*seq:][:i+1], make([]float32, i+1)
			for j := range d {
				d[j] = canonical.Dot(row(a.scratch.dMixed, i), row(a.v, j))
			}
			mean := dotTo(f, d, p)
			for c := range dim {
				want := 0.0
				for j := range d {
					ds := float64(d[j]-mean) * float64(p[j]) / math.Sqrt(float64(dim))
					want += ds * float64(row(a.k, j)[c])
				}
				require.InDelta(t, want, row(a.scratch.dq, i)[c], 1e-6*(1+math.Abs(want)), "%v, %d", f, i)
			}
		}
	}
}

// TestReductions adds up by hand, in the order of FP32, and rounds each sum.
func TestReductions(t *testing.T) {
	for _, f := range resultFormats {
		dot := func(a, b []float32) float32 { return dotTo(f, a, b) }
		s := newSums(f)
		a, b := randoms(1, 77), randoms(2, 77)
		for n := range len(a) {
			require.Equal(t, dot(a[:n], b[:n]), s.dot(a[:n], b[:n]), "%v, %d terms", f, n)
		}
		require.Equal(t, float32(math.Inf(1)), s.add(math.MaxFloat32, 0), f)
		require.True(t, math.IsNaN(float64(s.add(1, float32(math.NaN())))), f)

		scores := randoms(3, 150)
		e := make([]float32, len(scores))
		elementary.ExpTo(e, scores, slices.Max(scores), 1, 1)
		var sum float32
		for _, v := range e {
			sum = toBits(f, sum, v)
		}
		require.Equal(t, slices.Max(scores)+elementary.Log(sum), logSumExp(scores, s), f)
		inverse := 1 / sum
		for i := range e {
			e[i] *= inverse
		}
		softmax(scores, 1, noSink, s)
		require.Equal(t, e, scores, f)

		const dim = 77
		n, err := NewRMSNorm("norm.weight", dim, 0, Options{Operators: Operators{Reductions: f}})
		require.NoError(t, err)
		y, dx := make([]float32, dim), make([]float32, dim)
		require.NoError(t, n.Forward(t.Context(), y, a))
		r := float32(1 / math.Sqrt(float64(dot(a, a))/dim+1e-5))
		require.Equal(t, []float32{r}, n.inverse, f)
		require.NoError(t, n.Backward(t.Context(), dx, b))
		along := dot(b, a) * r * r / dim
		for i := range dx {
			require.Equal(t, (b[i]-float32(a[i]*along))*r, dx[i], "%v, %d", f, i)
		}
	}
}

// TestRoundedHead: the head of a model is the layer that rounds as a DefaultRounding.
func TestRoundedHead(t *testing.T) {
	const batch, seq = 2, 5
	for _, f := range resultFormats {
		for _, tie := range []bool{false, true} {
			cfg := ragged()
			cfg.TieHead = tie
			ClassHead.Round(&cfg, f)
			m := livelyModel(t, cfg)
			tokens := someTokens(1, batch*seq, cfg.Vocab)
			_, err := m.Loss(t.Context(), tokens, tokens, batch, seq)
			require.NoError(t, err)
			table := m.params[0]
			if !tie {
				table = m.Param(headName)
			}
			weight := newParam("alone", cfg.Vocab, cfg.Dim)
			copy(weight.Value, table.Value)
			r := DefaultRounding(f)
			alone, err := NewLinearOf("alone", weight, Options{Rounding: &r})
			require.NoError(t, err)
			logits := make([]float32, len(m.logits))
			require.NoError(t, alone.Forward(t.Context(), logits, m.normed, batch*seq))
			require.Equal(t, logits, m.logits, f)
			require.NoError(t, m.Backward(t.Context()))
			dx := make([]float32, len(m.normed))
			require.NoError(t, alone.Backward(t.Context(), dx, m.dLogits))
			if !tie {
				require.Equal(t, weight.Grad, table.Grad, f)
			}
		}
	}
}

// TestOperatorClasses: each class has an effect of its own, in both passes, on any number of
// workers.
func TestOperatorClasses(t *testing.T) {
	const batch, seq = 2, 9
	seen := map[float32]string{}
	pass := func(cfg Config) (loss float32, gradients [][]float32) {
		m := livelyModel(t, cfg)
		tokens := someTokens(1, batch*seq, cfg.Vocab)
		loss, err := m.Loss(t.Context(), tokens, tokens, batch, seq)
		require.NoError(t, err)
		require.NoError(t, m.Backward(t.Context()))
		for _, p := range m.Params() {
			gradients = append(gradients, p.Grad)
		}
		return loss, gradients
	}
	plain, _ := pass(ragged())
	seen[plain] = "FP32"
	for _, c := range OperatorClasses() {
		for _, f := range resultFormats {
			cfg := ragged()
			c.Round(&cfg, f)
			require.NoError(t, cfg.Validate())
			loss, gradients := pass(cfg)
			name := c.String() + " " + string(f)
			require.Empty(t, seen[loss], name)
			seen[loss] = name
			if c != ClassReductions {
				require.InDelta(t, plain, loss, 0.5, name)
			}
			if c != ClassProducts {
				require.Equal(t, name, cfg.Operators.String())
			}
			cfg.Workers = 3
			again, same := pass(cfg)
			require.Equal(t, loss, again, name)
			require.Equal(t, gradients, same, name)
		}
		var back OperatorClass
		require.NoError(t, back.UnmarshalText([]byte(c.String())))
		require.Equal(t, c, back)
	}
	require.Equal(t, "FP32", Operators{}.String())
	both := Operators{Softmax: NarrowE4M3, Residual: NarrowBF16}
	require.Equal(t, "softmax E4M3, residual E8M7", both.String())
}

func TestOperatorsRefuse(t *testing.T) {
	for i, f := range new(Operators).fields() {
		var o Operators
		*o.fields()[i].format = "E9M9"
		cfg := small()
		cfg.Operators = o
		err := cfg.Validate()
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, "Config.Operators."+f.name+`: format "E9M9": want one from E1M1 to E5M10`)
	}
}

// TestRoundRows rounds as operators do, and refuses what is no format and what are no rows.
func TestRoundRows(t *testing.T) {
	values := []float32{1, 1 + 1.0/256, -3, 0.1}
	NarrowFormat("").RoundRows(values, 2, 1)
	require.Equal(t, []float32{1, 1 + 1.0/256, -3, 0.1}, values)
	NarrowBF16.RoundRows(values, 2, 1)
	require.Equal(t, []float32{1, 1, -3, 0.10009765625}, values)
	require.Panics(t, func() { NarrowBF16.RoundRows(values, 3, 1) })
	require.Panics(t, func() { NarrowFormat("x").RoundRows(values, 2, 1) })
}
