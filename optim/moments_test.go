package optim

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/tensor"
)

// plainMoment is how a moment is kept, by definition: it returns what is left of
// values.
type plainMoment func(t *testing.T, values []float32, block int, policy fp8.Policy, second bool) []float32

var plainMoments = map[MomentFormat]plainMoment{
	MomentsFP32: func(_ *testing.T, values []float32, _ int, _ fp8.Policy, _ bool) []float32 { return values },
	MomentsBF16: func(_ *testing.T, values []float32, _ int, policy fp8.Policy, _ bool) []float32 {
		kept := make([]float32, len(values))
		for i, v := range values {
			bits := math.Float32bits(v)
			if policy.Rounding == fp8.Stochastic {
				bits += uint32(random.Hash(policy.Seed, uint64(i), 0) >> 48)
			} else {
				bits = math.Float32bits(nearestBF16(v))
			}
			kept[i] = math.Float32frombits(bits &^ 0xFFFF)
		}
		return kept
	},
	MomentsFP8: func(t *testing.T, values []float32, block int, policy fp8.Policy, second bool) []float32 {
		format := fp8.E4M3
		if second {
			format = fp8.E5M2
		}
		q := tensor.Tensor{Format: format, Shape: []int{len(values)}, Block: tensor.Block{Rows: 1, Cols: block}}
		require.NoError(t, tensor.Quantize(t.Context(), &q, values, tensor.Quantizer{Policy: policy, Scale: func(_ int, amax float32, _ bool) fp8.Scale {
			if amax == 0 {
				return fp8.Scale{Stored: 1, Multiplier: 1}
			}
			multiplier := min(format.Max()/amax, math.MaxFloat32)
			return fp8.Scale{Stored: 1 / multiplier, Multiplier: multiplier}
		}}))
		return plainKeep(&q, values, second)
	},
	MomentsFP8Expanded: plainExpanded,
}

// nearestBF16 rounds a finite value to 8 significant bits, ties to even.
func nearestBF16(v float32) float32 {
	if v == 0 {
		return v
	}
	exponent := math.Ilogb(float64(v))
	step := math.Ldexp(1, max(exponent, -126)-7)
	return float32(math.RoundToEven(float64(v)/step) * step)
}

// plainKeep decodes q, of which a second moment has no zeros but those of values.
func plainKeep(q *tensor.Tensor, values []float32, second bool) []float32 {
	for i, c := range q.Codes {
		if second && c == 0 && values[i] != 0 {
			q.Codes[i] = 1
		}
	}
	kept := make([]float32, len(values))
	tensor.Dequantize(kept, q)
	return kept
}

// plainExpanded tries every k.
func plainExpanded(t *testing.T, values []float32, block int, policy fp8.Policy, second bool) []float32 {
	kept := make([]float32, len(values))
	expanded := make([]float32, len(values))
	amax, k := make([]float64, len(values)), make([]float64, len(values))
	for lo := 0; lo < len(values); lo += block {
		hi := min(lo+block, len(values))
		var a, b float64
		for _, v := range values[lo:hi] {
			if x := math.Abs(float64(v)); x > 0 {
				a = max(a, x)
				if b == 0 || x < b {
					b = x
				}
			}
		}
		power := 1
		for power < 255 && a > 0 && elementary.Pow(a/b, float64(power+1)/16) <= 448*448/2 {
			power++
		}
		for i := lo; i < hi; i++ {
			amax[i], k[i] = a, float64(power)/16
			if v := values[i]; v != 0 {
				expanded[i] = float32(math.Copysign(448*elementary.Pow(math.Abs(float64(v))/a, k[i]), float64(v)))
			}
		}
	}
	q := tensor.Tensor{Format: fp8.E4M3, Shape: []int{len(values)}}
	require.NoError(t, tensor.Quantize(t.Context(), &q, expanded, tensor.Quantizer{Policy: policy, Scale: func(int, float32, bool) fp8.Scale { return fp8.Scale{} }}))
	for i, c := range plainKeep(&q, expanded, second) {
		if c != 0 {
			root := elementary.Pow(math.Abs(float64(c))/448, 1/k[i])
			kept[i] = float32(math.Copysign(amax[i], float64(c)) * root)
		}
	}
	return kept
}

// wideGradients range over 2**±20 in each block, zeros among them.
func wideGradients(stream uint64, n int) []float32 {
	g := randoms(stream, n)
	for i := range g {
		switch h := random.Hash(5, stream, uint64(i)); {
		case h%7 == 0:
			g[i] = 0
		default:
			g[i] = float32(math.Ldexp(float64(g[i]), int(h>>32%41)-20))
		}
	}
	return g
}

// TestMomentsByDefinition compares values, step by step, with those of an
// optimizer that keeps its moments by the plain definition.
func TestMomentsByDefinition(t *testing.T) {
	const lr, decay, beta1, beta2, eps = 0.01, 0.1, 0.9, 0.95, 1e-8
	for _, format := range MomentFormats() {
		for _, m := range []Moments{
			{Format: format}, {Format: format, Block: 7}, {Format: format, Block: 20000},
			{Format: format, Stochastic: true, Seed: 3},
		} {
			block := m.Block
			if block == 0 {
				block = 128
			}
			params := []*nn.Param{zeros("a", 1, 9001), ones("b", 130), zeros("c", 1, 1)}
			o := AdamW{Moments: m, WeightDecay: decay, Workers: 3}
			want := make([][]float32, len(params))
			kept := make([][2][]float32, len(params))
			for i, p := range params {
				copy(p.Value, randoms(uint64(i), len(p.Value)))
				want[i] = append([]float32{}, p.Value...)
				kept[i] = [2][]float32{make([]float32, len(p.Value)), make([]float32, len(p.Value))}
			}
			power1, power2 := 1.0, 1.0
			for step := 1; step <= 4; step++ {
				power1, power2 = power1*beta1, power2*beta2
				for i, p := range params {
					copy(p.Grad, wideGradients(uint64(10*step+i), len(p.Grad)))
					shrink := float32(1)
					if p.Decay {
						shrink = float32(1 - lr*decay)
					}
					for j, g := range p.Grad {
						a := float32(kept[i][0][j]*beta1) + float32(g*float32(1-beta1))
						b := float32(kept[i][1][j]*beta2) + float32(float32(g*g)*float32(1-beta2))
						kept[i][0][j], kept[i][1][j] = a, b
						root := float32(math.Sqrt(float64(b)))
						move := float32(float32(lr/(1-power1))*a) / (float32(root*float32(1/math.Sqrt(1-power2))) + float32(eps))
						want[i][j] = float32(want[i][j]*shrink) - move
					}
					for w := range 2 {
						var policy fp8.Policy
						if m.Stochastic {
							policy = fp8.Policy{Rounding: fp8.Stochastic, Seed: random.Hash(3, uint64(step), uint64(2*i+w))}
						}
						kept[i][w] = plainMoments[format](t, kept[i][w], block, policy, w == 1)
					}
				}
				_, err := o.Step(t.Context(), params, lr)
				require.NoError(t, err)
				for i, p := range params {
					require.True(t, equalFloats(want[i], p.Value), "%+v: %s after step %d", m, p.Name, step)
					for w := range 2 {
						got := o.moments[i][w].load(make([]float32, len(p.Value)), 0, len(p.Value))
						require.True(t, equalFloats(kept[i][w], got), "%+v: %v moment of %s after step %d", m, which(w), p.Name, step)
					}
				}
			}
			require.EqualValues(t, 4, o.Steps())
		}
	}
}

// equalFloats compares bits, but for the sign of zeros.
func equalFloats(a, b []float32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// TestExpansionIsCOATs compares with the arithmetic of the released kernel, which
// divides by the root of the largest times the smallest magnitude first.
func TestExpansionIsCOATs(t *testing.T) {
	for stream := range uint64(20) {
		values := randoms(stream, 128)
		for i, v := range values {
			values[i] = float32(v * v * v)
		}
		largest, smallest := extremes(values)
		a, b := float64(largest), float64(smallest)
		k := math.Floor(math.Log2(448*448/2)/math.Log2(a/b)*16) / 16
		require.Equal(t, k, float64(expandPower(largest, smallest))/16)
		centre := math.Sqrt(a * b)
		scale := math.Pow(a/centre, k) / 448
		require.InDelta(t, 448/math.Pow(a/b, k), 448*math.Pow(b/a, k), 1e-9)
		for _, v := range values {
			coat := math.Copysign(math.Pow(math.Abs(float64(v))/centre, k), float64(v)) / scale
			require.InEpsilon(t, coat, expand(v, largest, k), 1e-6)
			code := fp8.EncodeOne(float32(coat), fp8.E4M3, fp8.Policy{})
			decoded := float64(fp8.E4M3.Float32(code)) * scale
			want := math.Copysign(math.Pow(math.Abs(decoded), 1/k), decoded) * centre
			var got [1]float32
			contract(got[:], []byte{code}, largest, uint8(k*16))
			require.InEpsilon(t, want, got[0], 1e-6)
		}
	}
}

func TestExpansionAtTheEnds(t *testing.T) {
	for _, test := range []struct {
		values []float32
		power  uint8
	}{
		{[]float32{0, 0, 0}, 255},
		{[]float32{3, -3, 0}, 255},
		{[]float32{math.MaxFloat32, 0x1p-140, -1}, 1},
		{[]float32{448, 1 / 224.0}, 16},
		{[]float32{448, 1 / 225.0}, 15},
	} {
		m := newExpandedMoment(firstMoment, len(test.values), 128)
		m.store(append([]float32{}, test.values...), 0, fp8.Policy{}, new(fp8.Stats))
		require.Equal(t, []uint8{test.power}, m.powers, "%v", test.values)
		got := m.load(make([]float32, len(test.values)), 0, len(test.values))
		for i, v := range test.values {
			if math.Abs(float64(v)) == float64(m.amax[0]) {
				require.Equal(t, v, got[i], "the largest is exact")
			}
			require.Equal(t, v == 0, got[i] == 0, "%v", test.values)
		}
	}
}

// TestSecondMomentsAreNotFlushed: with the gradient gone and the second moment
// flushed, what is left of the first would be divided by Eps.
func TestSecondMomentsAreNotFlushed(t *testing.T) {
	p := zeros("p", 1, 2)
	o := AdamW{Moments: Moments{Format: MomentsFP8}, Beta2: 0.999}
	copy(p.Grad, []float32{1, 1.0 / (1 << 17)})
	_, err := o.Step(t.Context(), []*nn.Param{p}, 0.01)
	require.NoError(t, err)
	_, second := o.MomentStats()
	require.EqualValues(t, 1, second.Flushed)
	before := p.Value[1]
	clear(p.Grad)
	_, err = o.Step(t.Context(), []*nn.Param{p}, 0.01)
	require.NoError(t, err)
	require.Less(t, math.Abs(float64(p.Value[1]-before)), 0.05, "not 0.01·(2^-17/10)/1e-8")
}

func TestMomentBytes(t *testing.T) {
	const n = 128 * 100
	for format, want := range map[MomentFormat]float64{
		MomentsFP32: 8, MomentsBF16: 4, MomentsFP8: 2 + 8.0/128, MomentsFP8Expanded: 2 + 10.0/128,
	} {
		p := zeros("p", 1, n)
		copy(p.Grad, randoms(1, n))
		o := AdamW{Moments: Moments{Format: format}}
		require.Zero(t, o.MomentBytes())
		_, err := o.Step(t.Context(), []*nn.Param{p}, 1)
		require.NoError(t, err)
		require.Equal(t, want, float64(o.MomentBytes())/n, "%v", format)
	}
	require.Equal(t, 2+4*2, newFP8Moment(fp8.E4M3, firstMoment, 2, 1).bytes(), "a scale for each")
}

func TestMomentStats(t *testing.T) {
	p := zeros("p", 1, 9000)
	copy(p.Grad, wideGradients(1, len(p.Grad)))
	var zeros int64
	for _, g := range p.Grad {
		if g == 0 {
			zeros++
		}
	}
	for _, format := range []MomentFormat{MomentsFP8, MomentsFP8Expanded} {
		for _, workers := range []int{1, 4} {
			o := AdamW{Moments: Moments{Format: format}, Workers: workers}
			for range 2 {
				_, err := o.Step(t.Context(), []*nn.Param{p}, 1)
				require.NoError(t, err)
			}
			first, second := o.MomentStats()
			for _, s := range []fp8.Stats{first, second} {
				require.EqualValues(t, len(p.Grad), s.Elements, "of one step")
				require.Equal(t, zeros, s.Zeros)
				require.Zero(t, s.Lost()-s.Flushed)
			}
			largest := 0.0
			for _, g := range p.Grad {
				largest = max(largest, math.Abs(float64(g)))
			}
			require.InEpsilon(t, 0.19*largest, first.Amax, 1e-6)
			require.InEpsilon(t, 0.0975*largest*largest, second.Amax, 1e-6)
		}
	}
}

func TestMomentOptions(t *testing.T) {
	params := []*nn.Param{zeros("p", 1, 1)}
	for want, m := range map[string]Moments{
		"unknown moment format 9":        {Format: 9},
		"AdamW.Moments.Block is -1":      {Block: -1},
		"AdamW.Moments.Block is 1048577": {Block: 1<<20 + 1},
	} {
		_, err := (&AdamW{Moments: m}).Step(t.Context(), params, 1)
		require.ErrorContains(t, err, want)
	}
	for _, f := range MomentFormats() {
		var parsed MomentFormat
		require.NoError(t, parsed.UnmarshalText([]byte(f.String())))
		require.Equal(t, f, parsed)
	}
	require.ErrorContains(t, new(MomentFormat).UnmarshalText([]byte("fp4")), `unknown moment format "fp4": want one of fp32`)
}

// TestStochasticMomentsAreUnbiased: a second moment that decays by less than half a
// step stands still when rounded to nearest, beside one that keeps the scale.
func TestStochasticMomentsAreUnbiased(t *testing.T) {
	const n, left = 4096, 0.8
	for _, format := range []MomentFormat{MomentsBF16, MomentsFP8} {
		decayed := func(stochastic bool) (sum float64) {
			p := zeros("p", 1, n)
			o := AdamW{Beta2: 0.998, Moments: Moments{Format: format, Stochastic: stochastic}}
			for step := range 112 {
				for i := range p.Grad {
					p.Grad[i] = 1
					if step > 0 && i%2 == 1 {
						p.Grad[i] = 0
					}
				}
				_, err := o.Step(t.Context(), []*nn.Param{p}, 0)
				require.NoError(t, err)
			}
			second := o.moments[0][secondMoment].load(make([]float32, n), 0, n)
			for i := 1; i < n; i += 2 {
				sum += float64(second[i]) / 0.002 / (n / 2)
			}
			return sum
		}
		require.InDelta(t, left, decayed(true), 0.03, "%v", format)
		require.Greater(t, decayed(false), 0.97, "%v", format)
	}
}

// TestMomentsSameBitsEverywhere compares with what was computed once, on amd64.
func TestMomentsSameBitsEverywhere(t *testing.T) {
	for _, test := range []struct {
		Moments
		want uint32
	}{
		{Moments{}, 0x114e0fba},
		{Moments{Format: MomentsBF16, Stochastic: true}, 0xd26a504},
		{Moments{Format: MomentsFP8}, 0x937bbb83},
		{Moments{Format: MomentsFP8, Stochastic: true}, 0x94a2a7d8},
		{Moments{Format: MomentsFP8Expanded}, 0x67f9b8f5},
	} {
		p := zeros("p", 1, 3000)
		copy(p.Value, randoms(1, len(p.Value)))
		o := AdamW{Moments: test.Moments, WeightDecay: 0.1, Clip: 1}
		for step := range uint64(5) {
			copy(p.Grad, wideGradients(step, len(p.Grad)))
			_, err := o.Step(t.Context(), []*nn.Param{p}, 0.1)
			require.NoError(t, err)
		}
		sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		moments, err := o.Tensors([]*nn.Param{p})
		require.NoError(t, err)
		require.NoError(t, binary.Write(sum, binary.LittleEndian, p.Value))
		for _, size := range []int{4, 2, 1} { // the largest elements first, as in a checkpoint
			for _, m := range moments {
				if m.DType.Size() == size {
					_, err := m.WriteTo(sum)
					require.NoError(t, err)
				}
			}
		}
		require.Equal(t, test.want, sum.Sum32(), "%+v: %#x", test.Moments, sum.Sum32())
	}
}
