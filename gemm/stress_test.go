package gemm_test

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/tensor"
)

// stressTime is how long TestStress runs: OCTAVO_STRESS, a duration such as 60s,
// or 2s, or 0.5s where tests are to be short.
func stressTime(t *testing.T) time.Duration {
	if text := os.Getenv("OCTAVO_STRESS"); text != "" {
		d, err := time.ParseDuration(text)
		require.NoError(t, err, "OCTAVO_STRESS")
		return d
	}
	if testing.Short() {
		return time.Second / 2
	}
	return 2 * time.Second
}

// TestStress multiplies on many goroutines at all levels and compares every bit,
// while garbage is collected, other goroutines take the processors away, and
// signals of a CPU profile come. Nothing of that may reach the registers of a
// kernel, or the memory that products reuse.
func TestStress(t *testing.T) {
	products := stressed(t)
	ctx, cancel := context.WithTimeout(t.Context(), stressTime(t))
	defer cancel()
	defer force(t, cpu.Current())() // what it was, in the end
	var wait sync.WaitGroup
	wait.Go(func() { collectGarbage(ctx) })
	for range 2 {
		wait.Go(func() { spin(ctx) })
	}
	if pprof.StartCPUProfile(io.Discard) == nil { // unless the test itself is profiled
		defer pprof.StopCPUProfile()
	}
	var checked levelCounts
	for worker := range 8 {
		wait.Go(func() { multiplyAll(ctx, t, products, worker, &checked) })
	}
	wait.Wait()
	checked.report(t)
}

func collectGarbage(ctx context.Context) {
	for ctx.Err() == nil {
		runtime.GC()
	}
}

// spin does not call anything for a while: only a signal gets it off a processor.
func spin(ctx context.Context) {
	for ctx.Err() == nil {
		x := uint64(1)
		for range 1 << 25 {
			x = x*6364136223846793005 + 1442695040888963407
		}
		spun.Store(x)
	}
}

var spun atomic.Uint64

// stressedProduct is a product and what it must give.
type stressedProduct struct {
	name     string
	multiply func(c []float32, workers int) error
	want     []float32
}

// stressed returns products of all kernels: those of few and of many rows of A, of tensors
// and of packed weights, with ragged edges and long blocks, with NaN and
// infinities, and grouped.
func stressed(t *testing.T) (all []stressedProduct) {
	r := rand.New(rand.NewPCG(12, 1))
	for _, s := range []shape{
		{1, 320, 300, tile128, square128},
		{4, 97, 257, tile128, square128},
		{45, 130, 300, tile128, square128},
		{13, 70, 1300, tensor.Block{}, tensor.Block{Rows: 1}},
	} {
		for _, k := range []kind{{}, {special: true}} {
			a := random(r, "a", fp8.E4M3, s.a, k, s.m, s.k)
			b := random(r, "b", fp8.E5M2, s.b, k, s.n, s.k)
			w, err := gemm.Pack(b)
			require.NoError(t, err)
			want := reference(a, b)
			all = append(all,
				stressedProduct{describe(a, b), func(c []float32, workers int) error {
					return gemm.Multiply(t.Context(), c, a, b, gemm.Options{Workers: workers})
				}, want},
				stressedProduct{"packed: " + describe(a, b), func(c []float32, workers int) error {
					return gemm.Multiply(t.Context(), c, a, w, gemm.Options{Workers: workers})
				}, want})
		}
	}
	return append(all, stressedGroups(t, r))
}

func stressedGroups(t *testing.T, r *rand.Rand) stressedProduct {
	rows := []int{3, 0, 17, 1}
	a := random(r, "a", fp8.E4M3, tile128, kind{}, 21, 200)
	var experts []*gemm.Packed
	var want []float32
	first := 0
	for _, n := range rows {
		b := random(r, "b", fp8.E4M3, square128, kind{}, 66, 200)
		w, err := gemm.Pack(b)
		require.NoError(t, err)
		group, err := a.RowRange(first, first+n)
		require.NoError(t, err)
		experts, want, first = append(experts, w), append(want, reference(dense(group), b)...), first+n
	}
	return stressedProduct{"grouped", func(c []float32, workers int) error {
		return gemm.GroupedRows(t.Context(), c, a, experts, rows, gemm.Options{Workers: workers})
	}, want}
}

// multiplyAll does one product after the other, each at another level, and compares
// the results. The level is that of the process: products of other goroutines may
// begin at it too, and see it change.
func multiplyAll(ctx context.Context, t *testing.T, all []stressedProduct, worker int, checked *levelCounts) {
	r := rand.New(rand.NewPCG(12, uint64(worker)))
	levels := cpu.Levels()
	for i := 0; i < len(levels) || ctx.Err() == nil; i++ {
		level := levels[(worker+i)%len(levels)]
		if _, err := cpu.Force(level); err != nil {
			t.Error(err)
			return
		}
		p := all[r.IntN(len(all))]
		c, check := guarded(len(p.want))
		if err := p.multiply(c, 1+r.IntN(3)); err != nil {
			t.Errorf("%s: %v", p.name, err)
			return
		}
		if err := differ(c, p.want); err != nil {
			t.Errorf("about level %v, %s: %v", level, p.name, err)
			return
		}
		check(t)
		checked[level].Add(1)
	}
}

// levelCounts counts products by the level that they were to begin at.
type levelCounts [cpu.AMX + 1]atomic.Int64

func (n *levelCounts) report(t *testing.T) {
	total := int64(0)
	for _, l := range cpu.Levels() {
		t.Logf("level %v: %d products", l, n[l].Load())
		total += n[l].Load()
	}
	t.Logf("%d products checked", total)
}
