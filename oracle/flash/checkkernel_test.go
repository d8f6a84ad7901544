package flash

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
)

// runs returns a kernel under test that is k but for a fault.
func runs(k Kernel, f Fault) Run {
	return func(ctx context.Context, p *attention.Problem) (Got, error) {
		r, err := Inject(ctx, p, k, f, Options{})
		if errors.Is(err, ErrNotHere) { // what the fault cannot change it leaves
			r, err = Predict(ctx, p, k, Options{})
		}
		if err != nil {
			return Got{}, err
		}
		return Got{Out: r.Out, LSE: r.LSE}, nil
	}
}

// small are sizes at which CheckKernel is fast.
var small = CheckOptions{Dim: 32, ValueDim: 16}

func TestCheckKernelNamesFaults(t *testing.T) {
	plain := Kernel{Tile: 16, Offset: 8, P: E4M3}
	split, scaled := plain, plain
	split.Splits, scaled.PScale, scaled.Offset = 3, 448, 0
	for i, test := range []struct {
		k Kernel
		f Fault
	}{
		{plain, Fault{Kind: "rescale-dropped"}}, // the ten of attention.md, section 8
		{plain, Fault{Kind: "stale-max"}},
		{plain, Fault{Kind: "tail-unmasked"}},
		{plain, Fault{Kind: "scale-dropped", Of: OfK}},
		{split, Fault{Kind: "split-mean"}},
		{plain, Fault{Kind: "top-left"}},
		{scaled, Fault{Kind: "p-scale-kept"}},
		{split, Fault{Kind: "lse-base-2"}},
		{plain, Fault{Kind: "head-modulo"}},
		{split, Fault{Kind: "sink-per-split"}},

		{plain, Fault{Kind: "masked-max"}}, // and more
		{plain, Fault{Kind: "scale-dropped", Of: OfV}},
		{plain, Fault{Kind: "scale-twice", Of: ofQ}},
		{plain, Fault{Kind: "scale-of-head-0", Of: OfKV}},
		{split, Fault{Kind: "empty-split"}},
		{plain, Fault{Kind: "right-off", By: 1}},
		{plain, Fault{Kind: "p-saturated"}},
		{plain, Fault{Kind: "p-not-lifted"}},
		{plain, Fault{Kind: "lse-base-2"}},
		{plain, Fault{Kind: "sink-omitted"}},
		{plain, Fault{Kind: "finite-max", Factor: -5e4}},
		{plain, Fault{Kind: "keys-swapped", By: 2}},
	} {
		if testing.Short() && i >= 10 {
			break
		}
		a, err := CheckKernel(context.Background(), runs(test.k, test.f), test.k, small)
		require.NoError(t, err)
		require.False(t, a.OK(), "%v", test.f)
		require.NotEmpty(t, a.Faults, "%v", test.f)
		require.Equal(t, test.f, a.Faults[0], "%v of %v\n%s", test.f, a.Faults, a)
		require.Contains(t, a.String(), "wrong: "+test.f.String())
	}
}

func TestCheckKernelAccusesNoHonestKernel(t *testing.T) {
	names := []string{"exact", "scaled P", "canonical", "promoted", "polynomial"}
	for name, k := range honest {
		if testing.Short() && !slices.Contains(names, name) {
			continue
		}
		a, err := CheckKernel(context.Background(), runs(k, Fault{}), k, small)
		require.NoError(t, err)
		require.True(t, a.OK(), "%s: %s", name, a)
		require.Equal(t, "nothing is wrong in 10 problems\n", a.String())
	}
}

func TestCheckKernelAccusesNoNamedKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	for _, k := range Kernels() {
		a, err := CheckKernel(context.Background(), runs(k, Fault{}), k, CheckOptions{ValueDim: 16})
		require.NoError(t, err, k.Name)
		require.True(t, a.OK(), "%s: %s", k.Name, a)
	}
}

func TestCheckKernelOfPackageAttention(t *testing.T) {
	run := func(ctx context.Context, p *attention.Problem) (Got, error) {
		s := p.Sizes()
		rows := s.Heads * s.Queries
		g := Got{Out: make([]float32, rows*s.ValueDim), LSE: make([]float32, rows)}
		o := attention.Options{P: attention.PE4M3, Splits: 2, LSE: g.LSE}
		return g, attention.Forward(ctx, g.Out, p, o)
	}
	a, err := CheckKernel(context.Background(), run, Octavo(attention.PE4M3, 2), small)
	require.NoError(t, err)
	require.True(t, a.OK(), "%s", a)
}

// TestCheckKernelOfAnotherKernel claims what is true of a kernel but for how it is made: its
// tiles, the order of its additions and what its exponentials are.
func TestCheckKernelOfAnotherKernel(t *testing.T) {
	claim := Kernel{Tile: 16, Offset: 8, P: E4M3, Exp2: Exponential{Degree: 3},
		Scores: Scores{Product: wgmma}, Values: Product{Order: Instruction, Model: wgmma.Model,
			Carry: true}}
	for _, name := range []string{"exact", "canonical", "promoted", "polynomial", "hopper"} {
		a, err := CheckKernel(context.Background(), runs(honest[name], Fault{}), claim, small)
		require.NoError(t, err)
		require.True(t, a.OK(), "%s: %s", name, a)
	}
}

func TestCheckKernelOfWhatIsNotSupported(t *testing.T) {
	k := Kernel{Tile: 16, Offset: 8, P: E4M3}
	a, err := CheckKernel(context.Background(), func(ctx context.Context, p *attention.Problem) (Got,
		error) {
		if p.Sinks != nil {
			return Got{}, errors.ErrUnsupported
		}
		r, err := runs(k, Fault{})(ctx, p)
		return Got{Out: r.Out}, err
	}, k, small)
	require.NoError(t, err)
	require.True(t, a.OK())
	require.Contains(t, a.String(), "causal chunk with sinks: not supported\n")

	_, err = CheckKernel(context.Background(), func(context.Context, *attention.Problem) (Got, error) {
		return Got{}, nil
	}, k, small)
	require.EqualError(t, err,
		"flash: kernel check, rising: 0 outputs and 0 log-sum-exps for 2 heads, 3 queries and 16 columns")
	lost := errors.New("lost")
	_, err = CheckKernel(context.Background(), func(context.Context, *attention.Problem) (Got,
		error) {
		return Got{}, lost
	}, k, small)
	require.ErrorIs(t, err, lost)
	for _, bad := range []Kernel{{Tile: -1}, {Exp2: Exponential{Degree: 7}},
		{Values: Product{Order: 9}}} {
		_, err = CheckKernel(context.Background(), runs(k, Fault{}), bad, small)
		require.ErrorIs(t, err, ErrKernel)
	}
}

// TestCheckKernelRelations has a kernel that is right about every problem but those that are
// asked again in another way.
func TestCheckKernelRelations(t *testing.T) {
	k := Kernel{Tile: 16, Offset: 8, P: E4M3}
	problems := map[int]bool{}
	for _, c := range kernelCases {
		problems[c.shape.problem(16, 32, 16, 0).Sizes().Keys] = true
	}
	a, err := CheckKernel(context.Background(), func(ctx context.Context, p *attention.Problem) (Got,
		error) {
		r, err := runs(k, Fault{})(ctx, p)
		if !problems[p.Sizes().Keys] {
			r.LSE[0]++
		}
		return r, err
	}, k, small)
	require.NoError(t, err)
	require.False(t, a.OK())
	require.Contains(t, a.String(), "all keys twice change the output")
}
