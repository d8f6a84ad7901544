package granularity

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

func TestGranularity(t *testing.T) {
	labtest.Slow(t)
	r := labtest.Run(t, Experiment, labtest.Shakespeare(t))
	labtest.Judged(t, r, 0, len(declared().Names()))
	for _, row := range labtest.Table(t, r, "ratios").Rows {
		above := row[2].(float64)
		switch isWeight := roleOf(row[0].(string)) == scaling.Weight; {
		case isWeight || row[1] == blockLong.name:
		case row[1] == blockLast.name:
			require.True(t, above > 35 && above < 65, row)
		case row[1] == blockFew.name:
			require.Less(t, above, 20.0, row)
		}
	}
	for _, row := range labtest.Table(t, r, "seeds").Rows {
		if row[0] != "weights-last" { // of which none may saturate
			require.NotEqual(t, row[1], row[2], "seeds are different: %v", row[0])
		}
	}
	require.Len(t, labtest.Table(t, r, "scales").Rows, len(lookedAt)*len(schemes))
	require.Len(t, labtest.Table(t, r, "scales-steps").Rows, 3*len(lookedAt)*len(schemes))
	require.Len(t, labtest.Table(t, r, "amax").Rows, 2*7*3)
	require.Len(t, labtest.Table(t, r, "amax-steps").Rows, 7*2*7*3)
	require.Len(t, labtest.Table(t, r, "recipes").Rows, 2*len(compared)*(len(scaling.ProfilesFor(fp8.E4M3))+len(grains)))
}

// TestProbeInput: what goes into the first layer is the embedding, normalized.
func TestProbeInput(t *testing.T) {
	cfg := nn.Config{Vocab: 8, Dim: 10, Layers: 1, Heads: 1, Hidden: 5, Context: 3}
	recipes := nn.DefaultFP8()
	cfg.FP8 = &recipes
	m, err := nn.NewLlama(cfg, 1)
	require.NoError(t, err)
	p := newProbe(m, 2)
	random := rand.New(rand.NewPCG(1, 1))
	gain := m.Param("model.layers.0.input_layernorm.weight").Value
	for i := range gain {
		gain[i] = random.Float32() + 0.5
	}
	embedding := m.Param("model.embed_tokens.weight").Value
	input := p.watch("model.layers.0.self_attn.q_proj", scaling.Input)
	weight := p.watch("model.layers.0.mlp.down_proj", scaling.Weight)
	tokens := []int32{3, 4, 5, 1, 2, 0, 7, 7, 7}
	_, err = m.Loss(t.Context(), tokens, tokens, 3, 3)
	require.NoError(t, err)

	require.Equal(t, []int{6, 10}, []int{input.rows, input.cols}, "all but the last sequence")
	for row := range 6 {
		x := embedding[10*tokens[row] : 10*tokens[row]+10]
		squares := 0.0
		for _, v := range x {
			squares += float64(v) * float64(v)
		}
		root := math.Sqrt(squares/10 + 1e-5)
		for i, v := range x {
			want := float64(v) * float64(gain[i]) / root
			require.InDelta(t, want, float64(input.values[10*row+i]), 1e-5*math.Abs(want), "row %d, value %d", row, i)
		}
	}
	down := m.Param("model.layers.0.mlp.down_proj.weight").Value
	require.Equal(t, make([]float32, len(down)), weight.values)
	p.keepWeights()
	require.Equal(t, down, weight.values)
	down[3] = 7
	require.NotEqual(t, down, weight.values, "those of before")
}

// TestProbeGradient: of one token the gradient of a weight is the product of the
// output's gradient and the input.
func TestProbeGradient(t *testing.T) {
	cfg := nn.Config{Vocab: 8, Dim: 6, Layers: 1, Heads: 1, Hidden: 5, Context: 1}
	m, err := nn.NewLlama(cfg, 2)
	require.NoError(t, err)
	p := newProbe(m, 1)
	layer := "model.layers.0.mlp.down_proj"
	x, dy := p.watch(layer, scaling.Input), p.watch(layer, scaling.Gradient)
	require.Equal(t, []int{1, 5, 1, 6}, []int{x.rows, x.cols, dy.rows, dy.cols})
	_, err = m.Loss(t.Context(), []int32{3}, []int32{5}, 1, 1)
	require.NoError(t, err)
	require.NoError(t, m.Backward(t.Context()))
	var want []float32
	for _, a := range dy.values {
		for _, b := range x.values {
			want = append(want, a*b)
		}
	}
	require.Equal(t, want, m.Param(layer+".weight").Grad)
	require.NotZero(t, want[0])
}

// mixedOperand has values of many magnitudes, zeros among them.
func mixedOperand(rows, cols int, seed uint64) *operand {
	random := rand.New(rand.NewPCG(seed, 0))
	o := &operand{name: "x", rows: rows, cols: cols, values: make([]float32, rows*cols)}
	for i := range o.values {
		if random.IntN(9) > 0 {
			o.values[i] = float32(random.NormFloat64() * math.Exp2(float64(random.IntN(24)-20)))
		}
	}
	return o
}

// plainOutcome encodes value by value; scaleOf gives the multiplier of a block and
// what its codes are worth.
func plainOutcome(o *operand, b tensor.Block, f fp8.Format, scaleOf func(block int) fp8.Scale) (sqnr, saturated, flushed, blocks float64) {
	var signal, noise, nonzero float64
	some, hit := make(map[int]bool), make(map[int]bool)
	largest := float64(f.Max()) * 464 / 448 // beyond it E4M3 saturates
	if f == fp8.E5M2 {
		largest = 61440
	}
	for i, x := range o.values {
		block := blockAt(o, b, i)
		s := scaleOf(block)
		scaled := x * s.Multiplier
		code := fp8.EncodeOne(scaled, f, fp8.Policy{})
		e := float64(x) - float64(f.Float32(code))*float64(s.Stored)
		signal += float64(x) * float64(x)
		noise += e * e
		if over := math.Abs(float64(scaled)); over > largest || f == fp8.E5M2 && over == largest {
			saturated++
			hit[block] = true
		}
		if x != 0 {
			nonzero++
			some[block] = true
			if f.IsZero(code) {
				flushed++
			}
		}
	}
	return 10 * math.Log10(signal/noise), saturated / float64(len(o.values)), flushed / nonzero, float64(len(hit)) / float64(len(some))
}

// blockAt returns in which block of the grid value i is.
func blockAt(o *operand, b tensor.Block, i int) int {
	rows, cols := b.Rows, b.Cols
	if rows == 0 {
		rows = o.rows
	}
	if cols == 0 {
		cols = o.cols
	}
	perRow := (o.cols + cols - 1) / cols
	return i/o.cols/rows*perRow + i%o.cols/cols
}

var testBlocks = []tensor.Block{{}, {Rows: 1}, {Rows: 1, Cols: 5}, {Rows: 4, Cols: 4}, {Rows: 3, Cols: 100}}

func TestBlockAmaxes(t *testing.T) {
	o := mixedOperand(7, 13, 1)
	for _, b := range testBlocks {
		want := make([]float32, len(blockAmaxes(o.values, o.rows, o.cols, b)))
		for i, x := range o.values {
			at := blockAt(o, b, i)
			want[at] = max(want[at], float32(math.Abs(float64(x))))
		}
		require.Equal(t, want, blockAmaxes(o.values, o.rows, o.cols, b), b)
	}
}

// TestKeep: the last step is what recipes are compared on, and no past of it.
func TestKeep(t *testing.T) {
	o := &operand{name: "x", rows: 2, cols: 130, values: make([]float32, 260)}
	g := &study{scope: scope{steps: 3}, operands: []*operand{o}}
	for step := range 3 {
		o.values[0], o.values[259] = float32(step+1), 9
		g.keep(step)
	}
	require.Equal(t, []float32{9, 9}, o.past)
	require.Equal(t, amaxes{"x", 2, []float64{3, 9}, 2}, g.watched[2])
	require.Len(t, g.watched, 3)
}

func TestEncodeUnder(t *testing.T) {
	o := mixedOperand(7, 13, 2)
	clear(o.values[:26]) // blocks of zeros
	for _, b := range testBlocks {
		scales := make([]fp8.Scale, len(blockAmaxes(o.values, o.rows, o.cols, b)))
		for i := range scales {
			m := float32(math.Exp2(float64(9 - 2*(i%5))))
			scales[i] = fp8.Scale{Stored: 1 / m, Multiplier: m}
		}
		got := encodeUnder(o, b, scales)
		sqnr, saturated, flushed, blocks := plainOutcome(o, b, fp8.E4M3, func(i int) fp8.Scale { return scales[i] })
		require.InDelta(t, sqnr, got.sqnr(), 1e-9, b)
		require.Positive(t, saturated)
		require.Positive(t, flushed)
		require.Equal(t, []float64{saturated, flushed, blocks}, []float64{got.saturatedShare(), got.flushedShare(), got.saturatedBlocks()}, b)
	}
}

// TestTrack follows blocks with histories by their definition.
func TestTrack(t *testing.T) {
	const rows, cols, steps = 2, 256, 40
	random := rand.New(rand.NewPCG(3, 3))
	o := &operand{name: "x", role: scaling.Input, rows: rows, cols: cols, values: make([]float32, rows*cols)}
	for _, s := range []scheme{blockNow, blockLast, blockFew, blockLong} {
		k, err := newTrack(o, s)
		require.NoError(t, err)
		var past [4][]float32
		var want []float64
		total := newOutcome()
		for step := range steps {
			for i := range o.values {
				o.values[i] = float32(math.Exp2(6 * random.NormFloat64()))
			}
			if step%3 == 0 { // a block of zeros, at first and later
				clear(o.values[:128])
			}
			now := blockAmaxes(o.values, rows, cols, tensor.Block{Rows: 1, Cols: 128})
			scales := make([]fp8.Scale, 4)
			for i, amax := range now {
				history := past[i]
				switch s.name {
				case blockLast.name:
					history = history[max(len(history)-1, 0):]
				case blockFew.name:
					history = history[max(len(history)-16, 0):]
				case blockNow.name:
					history = []float32{amax}
				}
				scales[i] = fp8.Scale{Stored: 1, Multiplier: 1}
				if len(history) > 0 && slices.Max(history) > 0 {
					m := 448 / slices.Max(history)
					scales[i] = fp8.Scale{Stored: 1 / m, Multiplier: m}
					if amax > 0 && s.name != blockNow.name {
						want = append(want, float64(amax)/float64(slices.Max(history)))
					}
				}
			}
			total.add(encodeUnder(o, tensor.Block{Rows: 1, Cols: 128}, scales))
			k.measure(step)
			require.NoError(t, k.observe(t.Context()))
			for i, amax := range now {
				if amax > 0 {
					past[i] = append(past[i], amax)
				}
			}
		}
		require.InDeltaSlice(t, want, k.ratios, 1e-4*slices.Max(append(want, 1)), s.name)
		require.Equal(t, total, k.outcome, s.name)
		require.Len(t, k.points, steps)
		require.Equal(t, s.delayed != nil, k.saturatedShare() > 0, s.name)
		require.Equal(t, 7, k.points[7].step)
	}
}

func TestSchemesCoverWhatTheySay(t *testing.T) {
	require.Equal(t, tensor.Block{}, tensorLong.block(scaling.Weight))
	require.Equal(t, tensor.Block{Rows: 128, Cols: 128}, blockLong.block(scaling.Weight))
	require.Equal(t, tensor.Block{Rows: 1, Cols: 128}, blockNow.block(scaling.Gradient))
}

func TestEncodeBy(t *testing.T) {
	o := mixedOperand(9, 100, 4)
	o.past = []float32{1, 0.25, 0.5}
	for _, f := range recipeFormats {
		for _, b := range testBlocks {
			amaxes := blockAmaxes(o.values, o.rows, o.cols, b)
			got, err := encodeBy(t.Context(), o, scaling.Recipe{Profile: scaling.TEBlock, Format: f, Block: b})
			require.NoError(t, err)
			sqnr, _, flushed, _ := plainOutcome(o, b, f, func(i int) fp8.Scale {
				m := f.Max() / amaxes[i]
				return fp8.Scale{Stored: 1 / m, Multiplier: m}
			})
			require.InDelta(t, sqnr, got.sqnr(), 1e-9)
			require.Equal(t, flushed, got.flushedShare())
			require.Zero(t, got.saturatedShare())
			require.Equal(t, 4*float64(len(amaxes))/900, got.scaleBytes)
		}
		delayed, err := encodeBy(t.Context(), o, scaling.Recipe{Profile: scaling.TEDelayed, Format: f})
		require.NoError(t, err)
		sqnr, saturated, _, _ := plainOutcome(o, tensor.Block{}, f, func(int) fp8.Scale {
			return fp8.Scale{Stored: 1 / f.Max(), Multiplier: f.Max()} // over the largest of the past, 1
		})
		require.InDelta(t, sqnr, delayed.sqnr(), 1e-9)
		require.Positive(t, saturated)
		require.Equal(t, saturated, delayed.saturatedShare())
	}
	micro, err := encodeBy(t.Context(), o, scaling.MXRCeil.Recipe(scaling.Input))
	require.NoError(t, err)
	require.Equal(t, 9*4.0/900, micro.scaleBytes, "a byte for each 1x32")
	_, err = encodeBy(t.Context(), &operand{rows: -1}, scaling.Recipe{})
	require.Error(t, err)
}

func TestAmaxLog(t *testing.T) {
	l := amaxLog{by: make(map[string][]float64)}
	for _, b := range []struct {
		op, name string
		amax     float64
	}{
		{"forward", "b.input", 4}, {"forward", "b.input", 0}, {"weight-gradient", "b.input", 9}, {"forward", "b.input", 0x1p-20},
		{"forward", "b.weight", 1}, {"input-gradient", "b.weight", 9},
		{"input-gradient", "a.gradient", 0}, {"weight-gradient", "a.gradient", 9}, {"forward", "b.input", 1},
	} {
		l.Block(b.op, b.name, 0, 0, 1, &fp8.Stats{Amax: b.amax})
	}
	require.Equal(t, []amaxes{
		{"a.gradient", 5, []float64{}, 1},
		{"b.input", 5, []float64{0x1p-20, 1, 4}, 1},
		{"b.weight", 5, []float64{1}, 0},
	}, l.take(5))
	require.Empty(t, l.take(6))
}

func TestSummarize(t *testing.T) {
	quiet, loud := 4*0x1p-10/448, 4*0x1p-6/448 // where blocks are lost, and subnormal, beside 4
	all := []amaxes{
		newAmaxes("x", 0, []float64{4, 0, 0.9 * quiet, 1.1 * quiet, 0.9 * loud, 1.1 * loud, 2, 1}),
		newAmaxes("none", 0, []float64{0, 0}),
		newAmaxes("x", 5, []float64{8, 8, 8, 8, 8, 8, 8, 8}),
		newAmaxes("x", 10, []float64{2, 1, 1, 1, 1, 1, 1, 9e-5}),
	}
	got := summarize(all)
	require.Equal(t, amaxSummary{name: "none", blocks: 2, zeros: 1}, got[0])
	x := got[1]
	require.Equal(t, []float64{4, 2, 2, 8}, []float64{x.first, x.last, x.least, x.most})
	require.Equal(t, 8, x.blocks)
	require.InDelta(t, math.Log2(2/9e-5), x.binades, 1e-12, "the median")
	require.InDelta(t, 1.0/24, x.zeros, 1e-12)
	require.InDelta(t, 1.0/24, x.lost, 1e-12)
	require.InDelta(t, 3.0/24, x.subnormals, 1e-12)
	require.InDelta(t, 3.0/24, x.clamped, 1e-12, "two of the first step and one of the last")
}

// TestJustInTimeNeverSaturates: the largest value of a block is the largest code, whatever the
// values; that is no question to an experiment.
func TestJustInTimeNeverSaturates(t *testing.T) {
	o := mixedOperand(40, 300, 6)
	o.role = scaling.Input
	for _, s := range []scheme{tensorNow, blockNow} {
		k, err := newTrack(o, s)
		require.NoError(t, err)
		k.measure(0)
		require.Zero(t, k.saturatedShare(), s.name)
		require.Equal(t, fp8.E4M3.Max(), float32(448))
	}
}

func TestGivenOperands(t *testing.T) {
	none, err := givenOperands(lab.Options{})
	require.NoError(t, err)
	require.Empty(t, none)

	gate, up := []float32{1, -1, 2, 3, 0.5, 2}, []float32{2, 2, -2, 1, 1, -1}
	file := func(tensors map[string][]float32) *safetensors.File {
		var all []safetensors.Tensor
		for _, name := range []string{"layers.0.gate", "layers.0.up", "layers.1.gate", "layers.1.up"} {
			if values, ok := tensors[name]; ok {
				all = append(all, float32Tensor(name, 3, len(values)/3, values))
			}
		}
		path := filepath.Join(t.TempDir(), "a.safetensors")
		require.NoError(t, safetensors.WriteFile(path, all, nil))
		f, err := safetensors.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { f.Close() })
		return f
	}
	zeros := make([]float32, 6)
	got, err := givenOperands(lab.Options{Activations: file(map[string][]float32{
		"layers.0.gate": zeros, "layers.0.up": zeros, "layers.1.gate": gate, "layers.1.up": up,
	})})
	require.NoError(t, err)
	require.Len(t, got, 1)
	o := got[0]
	require.Equal(t, "given.1.mlp.down.input", shortName(o.name))
	require.Equal(t, []int{2, 2}, []int{o.rows, o.cols})
	var want []float64
	for i := range gate {
		want = append(want, float64(up[i])*float64(gate[i])/(1+math.Exp(-float64(gate[i]))))
	}
	for i, v := range want[2:] {
		require.InEpsilon(t, v, float64(o.values[i]), 1e-6)
	}
	require.InEpsilon(t, max(math.Abs(want[0]), math.Abs(want[1])), float64(o.past[0]), 1e-6)

	_, err = givenOperands(lab.Options{Activations: file(map[string][]float32{"layers.0.gate": nil, "layers.0.up": nil})})
	require.ErrorContains(t, err, "no layers.0.gate of [tokens, channels]")
	_, err = givenOperands(lab.Options{Activations: file(map[string][]float32{"layers.0.up": up})})
	require.ErrorContains(t, err, "layers.0.gate")
	_, err = givenOperands(lab.Options{Activations: file(map[string][]float32{"layers.0.gate": gate})})
	require.ErrorContains(t, err, "layers.0.up")
	_, err = givenOperands(lab.Options{Activations: file(map[string][]float32{"layers.0.gate": gate, "layers.0.up": up[:3]})})
	require.ErrorContains(t, err, "6 and 3 values")
}

func float32Tensor(name string, rows, cols int, values []float32) safetensors.Tensor {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return safetensors.Tensor{Info: safetensors.Info{Name: name, DType: safetensors.F32, Shape: []int{rows, cols}}, Data: data}
}

func TestNames(t *testing.T) {
	require.Equal(t, "1.attention.q.gradient", shortName("model.layers.1.self_attn.q_proj.gradient"))
	require.Equal(t, "down input", label(&operand{name: "model.layers.0.mlp.down_proj.input"}))
	require.Equal(t, scaling.Weight, roleOf("a.weight"))
	require.Equal(t, scaling.Gradient, roleOf("a.gradient"))
	require.Equal(t, scaling.Input, roleOf("a.input"))
}
