package flash

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/tensor"
)

// names reports whether a fault is what explains a result, alone or with others.
func names(e *Explanation, f Fault) bool {
	return len(e.Findings) == 1 && (e.Findings[0].Fault == f || slices.Contains(e.Findings[0].Same, f))
}

// TestMutantsAreNamed explains two mutants of each fault, or all in full tests.
func TestMutantsAreNamed(t *testing.T) {
	most := 2
	if testutil.Full() {
		most = math.MaxInt
	}
	shows := func(m mutant) bool {
		return math.Abs(m.RelL2-m.Unmutated) > 1e-3 || m.LSE == nil || *m.LSE > 1e-3 && m.c.name != "huge"
	}
	file, variants, all := mutants(t, most, shows)
	for _, m := range all {
		p := m.c.problem(t, file)
		k, f := m.kernel(t, variants)
		got, err := Inject(context.Background(), p, k, f, Options{})
		require.NoError(t, err)
		e, err := Explain(context.Background(), p, Got{Out: got.Out, LSE: got.LSE}, k, Options{})
		require.NoError(t, err)
		require.True(t, names(e, f), "%s %s: %s", m.c.name, m.name, e)
		require.LessOrEqual(t, len(e.Findings[0].Same), 1)
		require.True(t, e.Findings[0].Bits)
	}
}

// TestInjectedFaultsAreNamed injects what may be of random problems, each fault until it was
// named twice, or in full tests in all of them.
func TestInjectedFaultsAreNamed(t *testing.T) {
	n, most := 14, 2
	if testing.Short() {
		n = 1
	}
	if testutil.Full() {
		most = n
	}
	named := map[Fault]int{}
	r, scales := rand.New(rand.NewPCG(3, 4)), rand.New(rand.NewPCG(5, 4))
	for i := range n {
		p := smallProblem(r)
		if testing.Short() {
			p = kernelCases[3].shape.problem(16, 32, 16, 1)
		}
		if i%3 == 1 {
			p.K, p.V = byToken(scales, p.K), byToken(scales, p.V)
		}
		k := Kernel{Tile: 16, Offset: 8, P: E4M3, Splits: 1 + r.IntN(3)}
		if i%6 == 4 {
			k.Offset, k.PScale = 0, 448
		}
		for _, f := range Faults(p, k) {
			if named[f] == most {
				continue
			}
			got, err := Inject(context.Background(), p, k, f, Options{})
			require.NoError(t, err, "%v", f)
			e, err := Explain(context.Background(), p, Got{Out: got.Out, LSE: got.LSE}, k, Options{})
			require.NoError(t, err)
			seen := e.Outside > 0 || f.Kind != "scale-bfloat16" // which a bound has room for
			if e.Wrong > 4 && seen {
				require.True(t, names(e, f), "%v: %d wrong, %s", f, e.Wrong, e)
				named[f]++
			}
		}
	}
	for _, kind := range Kinds() {
		found := slices.ContainsFunc(slices.Collect(maps.Keys(named)),
			func(f Fault) bool { return f.Kind == kind })
		require.True(t, found || testing.Short(), "%v is wrong in no problem", kind)
	}
}

// byToken gives each token a scale.
func byToken(r *rand.Rand, o attention.Operand) attention.Operand {
	t := *o.Codes
	t.Block, t.Scales = tensor.Block{Rows: 1}, nil
	rows, _ := t.Dims()
	for range rows {
		t.Scales = append(t.Scales, float32(0.25+r.Float64()))
	}
	return attention.Operand{Codes: &t}
}

// TestHonestVectorsAreNotAccused explains each variant's result by the kernels of the others
// that claim the same of P.
func TestHonestVectorsAreNotAccused(t *testing.T) {
	file, cases, variants := golden(t)
	slices.SortFunc(cases, func(a, b goldenCase) int { return a.work() - b.work() })
	if testing.Short() {
		cases = cases[:4]
	}
	for _, c := range cases {
		p := c.problem(t, file)
		for _, v := range c.Variants {
			name := c.flash() + "." + string(v)
			got := Got{Out: elements[float32](t, file, name+".out"),
				LSE: elements[float32](t, file, name+".lse")}
			for _, w := range c.Variants {
				a, b := variants[string(v)], variants[string(w)]
				if a.Offset != b.Offset || a.PScale != b.PScale || a.Tau > b.Tau {
					continue
				}
				e, err := Explain(context.Background(), p, got, b.kernel(c.P), Options{})
				require.NoError(t, err)
				require.Empty(t, e.Findings, "%s as %c: %s", name, w, e)
				require.Zero(t, e.Outside)
				if v == w {
					require.Zero(t, e.Wrong)
				}
			}
		}
	}
}

// TestExplainOfNonsense disturbs results at random.
func TestExplainOfNonsense(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	p := kernelCases[3].shape.problem(16, 32, 16, 1)
	k := Kernel{Tile: 16, Offset: 8, P: E4M3, Splits: 2}
	for range 4 {
		got, err := Predict(context.Background(), p, k, Options{})
		require.NoError(t, err)
		for i := range got.Out {
			got.Out[i] *= float32(1 + 0.5*r.NormFloat64())
		}
		e, err := Explain(context.Background(), p, Got{Out: got.Out, LSE: got.LSE}, k, Options{})
		require.NoError(t, err)
		require.Positive(t, e.Outside)
		require.Empty(t, e.Findings)
		require.Contains(t, e.String(), "no known fault explains")
	}
	_, err := Explain(context.Background(), p, Got{}, k, Options{})
	require.ErrorIs(t, err, attention.ErrShape)
	require.ErrorContains(t, err, "flash: the result has 0 elements: it must have ")
}

// TestExplainTellsProgress hears of every fault that is tried, and stops when it is told to.
func TestExplainTellsProgress(t *testing.T) {
	p := kernelCases[3].shape.problem(16, 32, 16, 1)
	k := Kernel{Tile: 16, Offset: 8, P: E4M3, Splits: 2}
	got, err := Inject(t.Context(), p, k, Fault{Kind: "split-mean"}, Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last, stop int64
	hear := progress.Func(func(op string, done, total int64) {
		if op == "explain" {
			require.Equal(t, int64(len(Faults(p, k))), total)
			require.Equal(t, last+1, done)
			if last = done; last == stop {
				cancel()
			}
		}
	})
	_, err = Explain(ctx, p, Got{Out: got.Out, LSE: got.LSE}, k, Options{Progress: hear})
	require.NoError(t, err)
	require.Len(t, Faults(p, k), int(last))

	last, stop = 0, 3
	_, err = Explain(ctx, p, Got{Out: got.Out, LSE: got.LSE}, k, Options{Progress: hear})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, stop, last)
}
