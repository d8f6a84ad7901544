package flash

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// mutant is an entry of mutants.json: a case of the golden file, and what a fault makes of it.
type mutant struct {
	name string
	c    goldenCase

	Variant   string   `json:"variant"`
	RelL2     float64  `json:"rel_l2"`
	Unmutated float64  `json:"unmutated"`
	LSE       *float64 `json:"lse_abs"` // nil where it is not finite, or not told
}

// mutantFaults are the faults of mutants.json.
var mutantFaults = map[string]Fault{
	"rescale_dropped":      {Kind: "rescale-dropped"},
	"stale_max":            {Kind: "stale-max"},
	"tail_unmasked":        {Kind: "tail-unmasked"},
	"k_descale_dropped":    {Kind: "scale-dropped", Of: OfK},
	"v_descale_dropped":    {Kind: "scale-dropped", Of: OfV},
	"descale_head0":        {Kind: "scale-of-head-0", Of: OfKV},
	"split_weight_missing": {Kind: "split-mean"},
	"causal_off_by_one":    {Kind: "right-off", By: 1},
	"causal_top_left":      {Kind: "top-left"},
	"p_scale_kept":         {Kind: "p-scale-kept"},
	"p_saturated":          {Kind: "p-saturated"},
	"lse_base2":            {Kind: "lse-base-2"},
	"gqa_modulo":           {Kind: "head-modulo"},
	"sink_omitted":         {Kind: "sink-omitted"},
	"masked_block_max0":    {Kind: "masked-max"},
}

// mutants returns the entries of mutants.json that accept does: of each fault at most so many,
// those that are computed the fastest; one where tests are short.
func mutants(t *testing.T, most int, accept func(mutant) bool) (
	file *safetensors.File, variants map[string]goldenVariant, all []mutant,
) {
	if testing.Short() {
		most = 1
	}
	file, cases, variants := golden(t)
	text, err := os.ReadFile(testutil.Shared(t, "golden", "attention", "mutants.json"))
	require.NoError(t, err)
	var entries map[string]struct{ Mutants map[string]mutant }
	require.NoError(t, json.Unmarshal(text, &entries))
	slices.SortFunc(cases, func(a, b goldenCase) int {
		return cmp.Or(a.work()-b.work(), strings.Compare(a.name, b.name))
	})
	counts := map[string]int{}
	for _, c := range cases {
		for name, m := range entries[c.name].Mutants {
			m.name, m.c = name, c
			if accept(m) && counts[name] < most {
				counts[name]++
				all = append(all, m)
			}
		}
	}
	require.Len(t, counts, len(mutantFaults), "each fault is in some case")
	return file, variants, all
}

func (c goldenCase) work() int { return c.HeadsQ * c.SeqQ * c.SeqK * (c.HeadDim + c.HeadDimV) }

// kernel returns what has the fault.
func (m mutant) kernel(t *testing.T, variants map[string]goldenVariant) (Kernel, Fault) {
	f, ok := mutantFaults[m.name]
	require.True(t, ok, m.name)
	k := variants[m.Variant].kernel(m.c.P)
	switch {
	case f.Kind == "p-saturated": // the kernel that is meant does not lag
		k.Threshold = 0
	case f.Kind == "scale-of-head-0" && m.c.VScale == "channel": // V has none of heads
		f.Of = OfK
	}
	return k, f
}

// distances returns the relative L2 norm of the error, and the largest error of a
// log-sum-exp, of rows that have keys. As in mutants.json a NaN counts as 0.
func distances(got *Prediction, out, lse []float64) (relL2, maxLSE float64) {
	var off, all float64
	for i, x := range got.Out {
		if math.IsNaN(float64(x)) {
			x = 0
		}
		off += (float64(x) - out[i]) * (float64(x) - out[i])
		all += out[i] * out[i]
	}
	for i, x := range got.LSE {
		if !math.IsInf(lse[i], 0) {
			maxLSE = max(maxLSE, math.Abs(float64(x)-lse[i]))
		}
	}
	return math.Sqrt(off / all), maxLSE
}

func TestMutantsAreReproduced(t *testing.T) {
	file, variants, all := mutants(t, math.MaxInt, func(mutant) bool { return true })
	for _, m := range all {
		what := m.c.name + " " + m.name
		p := m.c.problem(t, file)
		out := elements[float64](t, file, m.c.name+".exact.out")
		lse := elements[float64](t, file, m.c.name+".exact.lse")
		k, f := m.kernel(t, variants)
		for _, test := range []struct {
			f     Fault
			relL2 float64
			lse   *float64
		}{{f, m.RelL2, m.LSE}, {Fault{}, m.Unmutated, nil}} {
			got, err := Inject(context.Background(), p, k, test.f, Options{})
			require.NoError(t, err, what)
			relL2, maxLSE := distances(got, out, lse)
			require.InEpsilon(t, test.relL2, relL2, 1e-8, what)
			if test.lse != nil {
				require.InDelta(t, *test.lse, maxLSE, 1e-9*(1+*test.lse), what)
			}
		}
	}
}

func TestFaultTable(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds() {
		require.NotEmpty(t, k.String())
		require.False(t, seen[k.String()], "%s is there twice", k)
		seen[k.String()] = true
		text, err := k.MarshalText()
		require.NoError(t, err)
		var back Kind
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, k, back)
		require.NotEmpty(t, Fault{Kind: k}.String())
		require.NotEqual(t, k.String(), Fault{Kind: k}.String(), "what it does in words")
	}
	require.GreaterOrEqual(t, len(seen), 38)
	require.ErrorIs(t, new(Kind).UnmarshalText([]byte("unlucky")), ErrNotHere)
	text, err := json.Marshal(Fault{})
	require.NoError(t, err)
	require.Equal(t, `{"kind":"none"}`, string(text))
	require.Equal(t, "scales are not applied (of K)", Fault{Kind: "scale-dropped", Of: OfK}.String())
	require.Contains(t, Kind("head-modulo").Seen(), "PSAL-POSTECH/ONNXim#34")
}

// TestFaultsThatCannotBe asks for faults of problems and kernels that cannot have them.
func TestFaultsThatCannotBe(t *testing.T) {
	p := caseShape{heads: 2, kv: 2, queries: 2, tiles: 1, spread: 1}.problem(16, 32, 32, 1)
	k := Kernel{Tile: 16, P: E4M3}
	for _, f := range Faults(p, k) {
		_, err := Inject(context.Background(), p, k, f, Options{})
		require.NoError(t, err, "%v", f)
		require.NotContains(t, []Kind{"rescale-dropped", "tail-unmasked", "right-off", "split-mean",
			"p-scale-kept", "p-not-lifted", "head-modulo", "sink-omitted"}, f.Kind)
	}
	_, err := Inject(context.Background(), p, k, Fault{Kind: "sink-omitted"}, Options{})
	require.ErrorIs(t, err, ErrNotHere)
	require.EqualError(t, err, `flash: fault "sink-omitted": there are no sinks`)
	require.Nil(t, Faults(&attention.Problem{}, k))
}
