package judge

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// normal returns operands of normal data, one scale for each row.
func normal(m, n, k int, seed uint64) (a, b *tensor.Tensor) {
	r := rand.New(rand.NewPCG(seed, 0))
	draw := func(name string, rows int) *tensor.Tensor {
		t := &tensor.Tensor{Name: name, Format: fp8.E4M3, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1}}
		for range rows * k {
			t.Codes = append(t.Codes, fp8.EncodeOne(r.NormFloat64()*100, fp8.E4M3, fp8.Policy{}))
		}
		for range rows {
			t.Scales = append(t.Scales, 0.5+r.Float32())
		}
		return t
	}
	return draw("a", m), draw("b", n)
}

// shrunk makes every element smaller by a part of it that the bound allows.
func shrunk(c []float32) []float32 {
	d := make([]float32, len(c))
	for i, x := range c {
		d[i] = x * (1 - 0x1p-20)
	}
	return d
}

func texts(t *testing.T, v *Verdict) string {
	var b bytes.Buffer
	require.NoError(t, v.WriteText(&b))
	require.NoError(t, v.WritePage(&b, "octavo verify", "a machine"))
	_, err := json.Marshal(v)
	require.NoError(t, err)
	return b.String()
}

// TestAlarm has errors that the bound allows and that no correct kernel has together.
func TestAlarm(t *testing.T) {
	a, b := normal(40, 300, 512, 1)
	c := make([]float32, 40*300)
	require.NoError(t, gemm.Multiply(t.Context(), c, a, b, gemm.Options{}))
	check := func(got []float32, claim Claim) *Verdict {
		v, err := Check(t.Context(), got, nil, a, b, claim, Options{})
		require.NoError(t, err)
		require.Zero(t, v.Comparison.Outside)
		return v
	}
	v := check(c, Claim{Alarms: Fail})
	require.True(t, v.Pass)
	require.False(t, v.Power.Alarm())
	require.Equal(t, 40, v.Power.Rows)
	require.Equal(t, 300, v.Power.Cols)
	require.Contains(t, texts(t, v), "errors of all 12000 elements raise no alarm")
	require.Contains(t, texts(t, v), "What would have been seen")
	require.Empty(t, v.tests())
	require.Len(t, v.seen(), 5)

	v = check(shrunk(c), Claim{Alarms: Warn})
	require.True(t, v.Pass)
	require.True(t, v.Power.Alarm())
	require.Contains(t, v.Title(), "PASS, with an alarm: all 12000 elements are within the bound of the exact result, but taken together")
	require.Contains(t, v.Together(), "ALARM: taken together, the errors of all 12000 elements are not those of sums in float32: of the results of correct kernels at most one in ")
	require.Contains(t, texts(t, v), "a bias toward zero")
	require.Equal(t, "all of C", v.tests()[0].Name)

	v = check(shrunk(c), Claim{})
	require.False(t, v.Pass)
	require.Nil(t, v.Explanation)
	require.Equal(t, "FAIL: all 12000 elements are within the bound of the exact result, but taken together their errors are not those of sums in float32: "+
		"sums or results are not rounded to nearest, or have a factor: a bias toward zero", v.Title())
	require.Contains(t, texts(t, v), `class="alarm"`)

	v = check(shrunk(c), Claim{Alarms: Ignore})
	require.True(t, v.Pass)
	require.Nil(t, v.Power)
	require.NotContains(t, texts(t, v), "together")
	require.NotContains(t, texts(t, v), "would have been seen")

	// Sums toward zero are not those of float32, and nothing is said of them.
	v = check(shrunk(c), Claim{Alarms: Fail, Accumulation: oracle.Accumulation{Truncated: true}})
	require.True(t, v.Pass)
	require.Nil(t, v.Power.Result)
	require.Equal(t, "Errors were not tested together: sums that are rounded toward zero have errors of one sign", v.Together())

	v, err := Check(t.Context(), make([]float32, len(c)), nil, a, b, Claim{}, Options{})
	require.NoError(t, err)
	require.False(t, v.Pass)
	require.Equal(t, "the result fails", v.Power.Reason)
	require.Len(t, v.seen(), 5)

	_, err = Check(t.Context(), c, nil, a, b, Claim{Alarms: 9}, Options{})
	require.EqualError(t, err, "judge: unknown treatment of alarms 9: want one of fail, warn, ignore")
}

// TestPowerOfBits demands the same for models and for octavo's own product, of which some
// rows and columns are looked at.
func TestPowerOfBits(t *testing.T) {
	a, b := normal(70, 50, 300, 2)
	bias := make([]float32, 50)
	for _, claim := range []Claim{{Want: Canonical}, {Want: Predicted, Kernel: oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128}}} {
		for _, large := range []float32{0, 1e30} { // which swallows everything
			got, old := make([]float32, 70*50), make([]float32, 70*50)
			for i := range got {
				got[i], old[i] = large, large
			}
			options := oracle.Options{Accumulate: true, Bias: bias}
			if claim.Want == Canonical {
				require.NoError(t, gemm.Multiply(t.Context(), got, a, b, options))
			} else {
				require.NoError(t, oracle.Predict(t.Context(), got, nil, a, b, claim.Kernel, options))
			}
			v, err := Check(t.Context(), got, old, a, b, claim, Options{Bias: bias})
			require.NoError(t, err)
			require.True(t, v.Pass)
			require.Nil(t, v.Power.Result)
			require.Equal(t, [2]int{32, 32}, [2]int{v.Power.Rows, v.Power.Cols})
			require.Contains(t, texts(t, v), "every change of a bit fails")
			require.Len(t, v.Power.Sights, 3)
			for _, s := range v.Power.Sights {
				require.Positive(t, s.Tried)
				if large > 0 {
					require.Zero(t, s.Seen, s.Fault)
					continue
				}
				require.Equal(t, s.Tried, s.Seen, s.Fault)
			}
		}
	}
}

// TestPartOfC demands that of a C with too many elements some rows and columns are looked
// at, with their old C and bias.
func TestPartOfC(t *testing.T) {
	a, b := normal(300, 400, 16, 3)
	r := rand.New(rand.NewPCG(4, 0))
	bias, old := make([]float32, 400), make([]float32, 300*400)
	for i := range bias {
		bias[i] = 1e6 * r.Float32()
	}
	for i := range old {
		old[i] = 1e6 * r.Float32()
	}
	c := append([]float32(nil), old...)
	require.NoError(t, gemm.Multiply(t.Context(), c, a, b, gemm.Options{Accumulate: true, Bias: bias}))
	v, err := Check(t.Context(), c, old, a, b, Claim{Alarms: Fail}, Options{Bias: bias, Sample: &Sample{Elements: 1 << 17}})
	require.NoError(t, err)
	require.True(t, v.Pass, v.Together())
	require.Equal(t, [2]int{256, 256}, [2]int{v.Power.Rows, v.Power.Cols})
	require.Contains(t, v.Together(), "errors of 256 rows and 256 columns raise no alarm")
	require.Zero(t, v.Power.Result.Left)
	few, err := Check(t.Context(), c, old, a, b, Claim{}, Options{Bias: bias, Sample: &Sample{Elements: 100}})
	require.NoError(t, err)
	require.Contains(t, few.Together(), "errors of 10 rows and 10 columns raise no alarm")

	for i := range c {
		c[i] = math.Float32frombits(math.Float32bits(c[i]) + 1)
	}
	v, err = Check(t.Context(), c, old, a, b, Claim{Alarms: Fail}, Options{Bias: bias, Sample: &Sample{Elements: 1 << 17}})
	require.NoError(t, err)
	require.Zero(t, v.Comparison.Outside)
	require.False(t, v.Pass)
}

// TestAlarmExplained has sums of a tensor core over a long K, which no bound of an element
// sees: the alarm is explained by the core that gives these results, and no other alarm is.
func TestAlarmExplained(t *testing.T) {
	for _, k := range []int{4096, 9000} {
		a, b := normal(56, 64, k, 3)
		c := make([]float32, 56*64)
		require.NoError(t, oracle.Predict(t.Context(), c, nil, a, b, oracle.Kernel{Model: oracle.HopperWGMMA()}, oracle.Options{}))
		v, err := Check(t.Context(), c, nil, a, b, Claim{}, Options{})
		require.NoError(t, err)
		require.Less(t, v.Comparison.Outside, 8)
		require.True(t, v.Comparison.Outside > 0 || v.Power.Alarm())
		require.NotNil(t, v.Explanation)
		require.Contains(t, v.Explanation.String(), "products are summed as hopper-wgmma sums them, without promotion to float32")
		require.Contains(t, texts(t, v), "What explains them")

		// Promoted sums are better, and likewise.
		require.NoError(t, oracle.Predict(t.Context(), c, nil, a, b, oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 1024}, oracle.Options{}))
		v, err = Check(t.Context(), c, nil, a, b, Claim{}, Options{})
		require.NoError(t, err)
		if v.Explanation != nil {
			require.Contains(t, v.Explanation.String(), "promoted to float32 after every 1024")
		}
		require.NoError(t, gemm.Multiply(t.Context(), c, a, b, gemm.Options{}))
		v, err = Check(t.Context(), shrunk(c), nil, a, b, Claim{}, Options{})
		require.NoError(t, err)
		require.Nil(t, v.Explanation)
	}
}
