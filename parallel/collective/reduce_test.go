package collective

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
)

// lost64 is what happened on the way to a mean.
type lost64 struct{ flushed, saturated, saturatedSums int64 }

// plainMean is the mean of [Reducer.Mean] by definition.
func plainMean(shards [][]float32, eight bool, f float64) (mean []float32, lost lost64) {
	n := float64(len(shards))
	scale := float32(1)
	if eight {
		scale = float32(math.Inf(1))
		for _, s := range shards {
			for _, v := range s {
				if v != 0 {
					scale = min(scale, 448/float32(math.Abs(float64(v))))
				}
			}
		}
	}
	round := func(x float32, saturated *int64) float32 {
		if !eight {
			if math.IsInf(float64(x), 0) {
				*saturated++
			}
			return x
		}
		if math.Abs(float64(x)) > 464 { // halfway to the number after 448; a tie goes down
			*saturated++
		}
		return fp8.E4M3.Float32(fp8.EncodeOne(x, fp8.E4M3, fp8.Policy{}))
	}
	mean = make([]float32, len(shards[0]))
	for i := range mean {
		for k, s := range shards {
			x := round(s[i]*float32(float64(scale)*f), &lost.saturated)
			if x == 0 && s[i] != 0 {
				lost.flushed++
			}
			if k > 0 {
				x = round(mean[i]+x, &lost.saturatedSums)
			}
			mean[i] = x
		}
	}
	for i := range mean {
		mean[i] *= float32(1 / (float64(scale) * (f * n)))
	}
	return mean, lost
}

func someShards(n, size int) [][]float32 {
	shards := make([][]float32, n)
	for i := range shards {
		shards[i] = wideGradients(uint64(i), size)
		for j := range shards[i] {
			if j%9 == 0 {
				shards[i][j] = 3e6 + float32(i) // all of one sign
			}
		}
	}
	return shards
}

func TestMeanByDefinition(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8} {
		shards := someShards(n, 5000)
		for _, eight := range []bool{false, true} {
			for division, f := range map[Division]float64{
				DividePost: 1, DividePre: 1 / float64(n), DivideRoot: 1 / math.Sqrt(float64(n)), DivideAuto: 0.375,
			} {
				want, lost := plainMean(shards, eight, f)
				for _, workers := range []int{1, 3} {
					r := Reducer{FP8: eight, Division: division, Workers: workers, Mu: []float64{1, 0.375}}
					got := make([]float32, len(want))
					reduction := r.Mean(1, got, shards)
					require.Equal(t, want, got, "%d shards, FP8 %v, division %d", n, eight, division)
					require.Equal(t, f, reduction.Factor)
					require.Equal(t, lost, lost64{reduction.Encode.Flushed, reduction.Encode.Saturated(), reduction.Sum.Saturated()})
					require.EqualValues(t, n*5000, reduction.Encode.Elements)
					require.EqualValues(t, (n-1)*5000, reduction.Sum.Elements)
				}
			}
		}
	}
}

// TestDivisionsLose: what each way of dividing is known for.
func TestDivisionsLose(t *testing.T) {
	const n = 4
	shards := make([][]float32, n)
	for i := range shards {
		shards[i] = []float32{448, 1.0 / 1024 * 1.5, 1}
	}
	mean := make([]float32, 3)
	for division, want := range map[Division]lost64{
		DividePost: {saturatedSums: n - 1},
		DividePre:  {flushed: n},
		DivideRoot: {flushed: n, saturatedSums: n - 2},
	} {
		r := Reducer{FP8: true, Division: division}
		got := r.Mean(0, mean, shards)
		require.EqualValues(t, 1, got.Scale)
		require.Equal(t, want, lost64{got.Encode.Flushed, got.Encode.Saturated(), got.Sum.Saturated()}, "division %d", division)
	}

	auto := Reducer{FP8: true, Division: DivideAuto}
	factors := []float64{1, 0.5, 0.25, 0.25 * math.Exp2(1.0/1000)}
	for i, want := range factors {
		got := auto.Mean(2, mean, shards)
		require.InEpsilon(t, want, got.Factor, 1e-12, "time %d", i)
		require.Equal(t, i < 2, got.Sum.Saturated() > 0)
	}
	require.Equal(t, []float64{1, 1}, auto.Mu[:2], "other tensors have their own")
	auto = Reducer{FP8: true, Division: DivideAuto, Threshold: 0.9, Mu: []float64{0.5}}
	small := [][]float32{{1, 0}, {-1, 0}}
	for range 1000 {
		auto.Mean(0, mean[:2], small)
	}
	require.InEpsilon(t, 1, auto.Mu[0], 1e-9, "doubled in 1000 steps")
	for range 10 {
		auto.Mean(0, mean[:2], small)
	}
	require.Equal(t, 1.0, auto.Mu[0], "and no more than 1")
}

func TestMeanInFP32Loses(t *testing.T) {
	huge, tiny := float32(3e38), float32(math.SmallestNonzeroFloat32)
	shards := [][]float32{{huge, -huge, tiny, 0, float32(math.NaN())}, {huge, -huge, tiny, 0, 1}}
	mean := make([]float32, 5)
	post := (&Reducer{}).Mean(0, mean, shards)
	require.Equal(t, []float32{float32(math.Inf(1)), float32(math.Inf(-1)), tiny, 0}, mean[:4])
	require.EqualValues(t, 1, post.Sum.SaturatedPos)
	require.EqualValues(t, 1, post.Sum.SaturatedNeg)
	require.Zero(t, post.Encode.Flushed)
	require.EqualValues(t, 1, post.Encode.NaN)
	require.EqualValues(t, 2, post.Encode.Zeros)
	require.Equal(t, float64(tiny), post.Encode.Smallest)
	require.Equal(t, float64(huge), post.Encode.Amax)
	pre := (&Reducer{Division: DividePre}).Mean(0, mean, shards)
	require.Equal(t, []float32{huge, -huge, 0, 0}, mean[:4])
	require.EqualValues(t, 2, pre.Encode.Flushed)
	require.Zero(t, pre.Sum.Saturated())
}

// TestMeanCountsByDefinition: subnormal numbers count where values are multiplied and where
// they are added, in FP32 as in E4M3, whose least normal number is 2^-6.
func TestMeanCountsByDefinition(t *testing.T) {
	const n = 4
	for eight, least := range map[bool]float64{false: 0x1p-126, true: 0x1p-6} {
		shards := make([][]float32, n)
		for i := range shards {
			for j := range 3000 {
				v := float32(math.Ldexp(1+float64(j%7)/8, -j%24)) * float32(least) * float32(1-2*(i*j%2))
				shards[i] = append(shards[i], v)
			}
			shards[i][0] = 448 // its scale is 1
		}
		round := func(x float32) float64 {
			if eight {
				x = fp8.E4M3.Float32(fp8.EncodeOne(x, fp8.E4M3, fp8.Policy{}))
			}
			return float64(x)
		}
		var encode, sum int64
		for j := range shards[0] {
			total := 0.0
			for i, s := range shards {
				x := round(s[j] / n)
				if x != 0 && math.Abs(x) < least {
					encode++
				}
				if total = round(float32(total + x)); i > 0 && total != 0 && math.Abs(total) < least {
					sum++
				}
			}
		}
		got := (&Reducer{FP8: eight, Division: DividePre}).Mean(0, make([]float32, 3000), shards)
		require.EqualValues(t, 1, got.Scale)
		require.True(t, encode > 300 && sum > 300)
		require.Equal(t, [2]int64{encode, sum}, [2]int64{got.Encode.Subnormal, got.Sum.Subnormal}, "FP8 %v", eight)
	}
}

// TestMeanHidesNothing: a worker's infinity or NaN is in the mean.
func TestMeanHidesNothing(t *testing.T) {
	for _, bad := range []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())} {
		for _, eight := range []bool{false, true} {
			mean := make([]float32, 2)
			got := (&Reducer{FP8: eight, Division: DividePre}).Mean(0, mean, [][]float32{{1, 1}, {1, bad}, {1, 1}})
			require.InDelta(t, 1, mean[0], 1e-6)
			require.True(t, isNonFinite(mean[1]))
			require.EqualValues(t, 1, got.Encode.NonFinite())
		}
	}
}

func TestMeanPanics(t *testing.T) {
	require.PanicsWithValue(t, noShards, func() { (&Reducer{}).Mean(0, nil, nil) })
	require.PanicsWithValue(t, unequalShards, func() { (&Reducer{}).Mean(0, make([]float32, 2), [][]float32{{1, 2}, {1}}) })
	require.PanicsWithValue(t, badReducer, func() { (&Reducer{Division: 4}).Mean(0, nil, [][]float32{{}}) })
	require.PanicsWithValue(t, badReducer, func() { (&Reducer{Threshold: -1}).Mean(0, nil, [][]float32{{}}) })
	a := []float32{1, 2}
	(&Reducer{}).Mean(0, a, [][]float32{{3, 4}, a})
	require.Equal(t, []float32{2, 3}, a, "in place")
}

// TestSavedReducer goes on where it was.
func TestSavedReducer(t *testing.T) {
	r := Reducer{FP8: true, Division: DivideAuto, Threshold: 0.1, Mu: []float64{1 / 3.0, 1}, Workers: 3}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.JSONEq(t, `{"fp8":true,"division":"auto","threshold":0.1,"mu":[0.3333333333333333,1]}`, string(text))
	back := Reducer{Workers: 5}
	require.NoError(t, json.Unmarshal(text, &back))
	r.Workers = 5
	require.Equal(t, r, back)
}

// TestReducerMisuse: options and arguments that are out of range are refused.
func TestReducerMisuse(t *testing.T) {
	for i, err := range []error{
		(&Reducer{Division: 9}).Check(), (&Reducer{Threshold: math.NaN()}).Check(), (&Reducer{Workers: -1}).Check(), (&Reducer{Mu: []float64{0}}).Check(),
		json.Unmarshal([]byte(`{"division":"thirds"}`), new(Reducer)),
	} {
		require.ErrorIs(t, err, ErrInput, "case %d", i)
	}
	for message, misuse := range map[string]func(){
		noShards:      func() { new(Reducer).Mean(0, nil, nil) },
		unequalShards: func() { new(Reducer).Mean(0, make([]float32, 1), [][]float32{{1, 2}}) },
		badTensor:     func() { (&Reducer{Division: DivideAuto}).Mean(-1, nil, [][]float32{nil}) },
		badReducer:    func() { (&Reducer{Workers: -1}).Mean(0, nil, [][]float32{nil}) },
	} {
		require.PanicsWithValue(t, message, misuse)
	}
}

// wideGradients range over 2**±20 in each block, zeros among them.
func wideGradients(stream uint64, n int) []float32 {
	g := make([]float32, n)
	for i := range g {
		g[i] = random.Normal(99, stream, uint64(i))
		switch h := random.Hash(5, stream, uint64(i)); {
		case h%7 == 0:
			g[i] = 0
		default:
			g[i] = float32(math.Ldexp(float64(g[i]), int(h>>32%41)-20))
		}
	}
	return g
}
