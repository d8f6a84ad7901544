package sensitivity

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/nn"
)

func TestSensitivity(t *testing.T) {
	r := labtest.Run(t, Experiment, labtest.Short())
	labtest.Judged(t, r, 0, len(declared().Names()))
	losses := labtest.Table(t, r, "losses")
	require.Len(t, losses.Rows, 2*len(arms()), "seeds, arms")
	for i := 0; i < len(losses.Rows); i += len(arms()) {
		for arm := firstArm; arm < len(arms()); arm++ {
			fp32, other := losses.Rows[i], losses.Rows[i+arm]
			require.NotEqual(t, fp32[3], other[3], "%v is not FP32", other[1])
			require.Equal(t, fp32[0], other[0])
		}
	}
	parameters := labtest.Table(t, r, "parameters")
	for _, row := range parameters.Rows {
		if row[1] == "FP32" {
			require.Equal(t, []any{0.0, 0.0}, []any{row[3], row[5]}, "FP32 is what is compared with")
		}
	}
	for _, row := range labtest.Table(t, r, "classes").Rows {
		require.Positive(t, row[3], "%v %v", row[0], row[1])
	}
}

// TestArms: an arm rounds its class and no other.
func TestArms(t *testing.T) {
	use := func(i int) (c nn.Config) {
		arms()[i].use(&c)
		return c
	}
	require.Equal(t, nn.Config{}, use(fp32Arm))
	softmax, residual := nn.Operators{Softmax: "E4M3"}, nn.Operators{Residual: "E8M7"}
	require.Equal(t, nn.Config{Operators: softmax}, use(armOf(nn.ClassSoftmax, inFP8)))
	require.Equal(t, nn.Config{Operators: residual}, use(armOf(nn.ClassResidual, inBF16)))
	fp8 := nn.DefaultRounding("E4M3")
	require.Equal(t, nn.Config{Rounding: &fp8}, use(armOf(nn.ClassProducts, inFP8)))
	bf16 := nn.Operators{
		Normalization: "E8M7", Softmax: "E8M7", Embedding: "E8M7", Head: "E8M7", Residual: "E8M7",
	}
	require.Equal(t, nn.Config{Rounding: &fp8, Operators: bf16}, use(practiceArm))
	require.Equal(t, "head BF16", arms()[armOf(nn.ClassHead, inBF16)].name)
	require.Equal(t, "practice", arms()[practiceArm].name)
	require.Equal(t, "all FP8", arms()[allFP8Arm].name)
	require.Equal(t, "products FP4", arms()[fp4Arm].name)
	require.Equal(t, "products cut off", arms()[cutArm].name)
}

// TestJudged: there are values for all that is declared, and no others.
func TestJudged(t *testing.T) {
	var names []string
	for name, values := range made(asAssumed(false)).judged() {
		names = append(names, name)
		require.Len(t, values, 8, name)
	}
	require.ElementsMatch(t, declared().Names(), names)
}

// TestPairs: five classes over products, and sums over all six.
func TestPairs(t *testing.T) {
	require.Len(t, pairs(), 5+6)
	require.Contains(t, pairs(), pair{nn.ClassHead, nn.ClassProducts})
	require.Contains(t, pairs(), pair{nn.ClassReductions, nn.ClassHead})
	require.NotContains(t, pairs(), pair{nn.ClassHead, nn.ClassSoftmax})
	require.Equal(t, "head-over-products", pair{nn.ClassHead, nn.ClassProducts}.String())
}

func TestGradientError(t *testing.T) {
	for _, test := range []struct {
		what                     string
		got, want                []float32
		relative, distance, bias float64
	}{
		{"equal", []float32{3, -4}, []float32{3, -4}, 0, 0, 0},
		{"longer by half", []float32{4.5, -6}, []float32{3, -4}, 0.5, 0, 0.5},
		{"across", []float32{3, 4}, []float32{3, 0}, 4.0 / 3, 1 - 3.0/5, 0},
		{"opposite", []float32{-1, 0}, []float32{1, 0}, 2, 2, -2},
		{"nothing left", []float32{0, 0}, []float32{3, 4}, 1, 1, -1},
		{"nothing there", []float32{0, 0}, []float32{0, 0}, 0, 0, 0},
	} {
		var whole, parts gradientError
		whole.add(test.got, test.want)
		parts.add(test.got[:1], test.want[:1])
		parts.add(test.got[1:], test.want[1:])
		require.Equal(t, whole, parts, "batches count by their size: %s", test.what)
		require.InDelta(t, test.relative, whole.relative(), 1e-12, test.what)
		require.InDelta(t, test.distance, whole.distance(), 1e-12, test.what)
		require.InDelta(t, test.bias, whole.bias(), 1e-12, test.what)
	}
}
