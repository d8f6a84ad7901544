package pack

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/progress"
)

// small is quick.
var small = size{Name: "small", M: 24, N: 512, K: 256, Keys: 64}

// smallFiles has a test make small files.
func smallFiles(t *testing.T) {
	before := fileSize
	fileSize.M, fileSize.N, fileSize.K, fileSize.Keys = small.M, small.N, small.K/2, small.Keys
	t.Cleanup(func() { fileSize = before })
}

func newRunner(only ...string) *runner {
	r := &runner{Options: Options{Seed: 1}, size: small, levels: cpu.Levels(), rounds: 1}
	for _, o := range operatorsOf(small) {
		for _, name := range only {
			if o.name == name {
				r.operators = append(r.operators, o)
			}
		}
	}
	if len(only) == 0 {
		r.operators = operatorsOf(small)
	}
	return r
}

func TestPass(t *testing.T) {
	done := int64(0)
	r := newRunner()
	r.Progress = progress.Func(func(_ string, at, total int64) {
		require.Equal(t, done+1, at)
		require.EqualValues(t, len(r.operators), total)
		done = at
	})
	before := cpu.Current()
	v, err := r.run(t.Context())
	require.NoError(t, err)
	require.Nil(t, v.Failure, "%v", v.Failure)
	require.Equal(t, Pass, v.Outcome)
	require.Equal(t, before, cpu.Current())
	require.Equal(t, 1, v.Repetitions)
	require.Len(t, v.Machine.Levels, len(cpu.Levels()))
	seen := make(map[string]bool)
	for _, o := range v.Operators {
		require.False(t, seen[o.Checksum], o.Name)
		seen[o.Checksum] = true
		require.Positive(t, o.Elements)
	}
}

// TestFaults changes one element of each result of each operator, at the last level, and
// demands to be told which.
func TestFaults(t *testing.T) {
	last := cpu.Levels()[len(cpu.Levels())-1]
	for _, o := range operatorsOf(small) {
		for index := 0; ; index++ {
			j := o.prepare(keyOf(1, o.name, 1), small)
			if index >= max(len(j.results), 1) {
				break
			}
			r := newRunner(o.name)
			r.rounds = 2
			want := ""
			r.fault = func(l cpu.Level, repetition int, name string, j *job) {
				if l != last || repetition != 1 {
					return
				}
				if j.bytes != nil {
					b := bytes.Clone(j.bytes())
					b[77] ^= 4
					j.bytes = func() []byte { return b }
					want = "byte 77 of"
					return
				}
				x := j.results[index]
				row, col, got := x.rows/2, x.cols/3, x.got
				x.got = func(i, j int) float64 {
					if i == row && j == col {
						return got(i, j) + math.Ldexp(1, x.unit)
					}
					return got(i, j)
				}
				want = "column " + itoa(col) + " of " + x.what
			}
			v, err := r.run(t.Context())
			require.NoError(t, err)
			require.Equal(t, Fail, v.Outcome, "%s, result %d", o.name, index)
			require.Equal(t, o.name, v.Failure.Operator)
			require.Equal(t, last.String(), v.Failure.Level)
			require.Equal(t, 1, v.Failure.Repetition)
			require.Contains(t, v.Failure.Place, want)
			require.NotEqual(t, v.Failure.Expected, v.Failure.Got)
			require.Equal(t, 1, v.Repetitions)
		}
	}
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

// TestWrongNumbers has results that are no whole numbers of units.
func TestWrongNumbers(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(-1), 6.5, 1e300, 0} {
		r := &result{what: "C", rows: 2, cols: 3, unit: 1,
			got: func(i, j int) float64 {
				if i == 1 && j == 2 {
					return x
				}
				return 6
			},
			want: func(int, int) int64 { return 3 }}
		f := r.check()
		require.Equal(t, "row 1, column 2 of C, 2x3", f.Place)
		require.Equal(t, "6", f.Expected)
	}
}

// TestSums compares the sums of products that follow from Bᵀw with those of all elements.
func TestSums(t *testing.T) {
	s := size{M: 12, N: 512, K: 128, Keys: 64, GPU: true}
	for _, all := range [][]operator{operatorsOf(small), operatorsOf(s)} {
		for _, o := range all {
			for _, r := range o.prepare(5, s).results {
				if r.sum != nil {
					fast := r.right()
					r.sum, r.sums = nil, nil
					require.Equal(t, fast, r.right(), o.name)
				}
			}
		}
	}
}

// TestExactInAnyOrder demands of products that the magnitudes of all terms of a sum come to
// 2^24 units at most, and 2^13 before scales where tensor cores are to be exact; and that the
// integers are those that operands stand for.
func TestExactInAnyOrder(t *testing.T) {
	for _, c := range []struct {
		products []product
		k, most  int
	}{{products, burstSize.K, 1 << 24}, {gpuProducts, fileSize.K, 1 << 24}} {
		for _, p := range c.products {
			const m, n = 4, 4
			a, b := p.operands(3, m, n, c.k)
			require.NoError(t, a.t.Check(), p.name)
			require.NoError(t, a.t.CheckScales(), p.name)
			require.NoError(t, b.t.CheckScales(), p.name)
			digits := func(c codes) int { return c.digits[len(c.digits)-1] }
			da, db := digits(newCodes(p.a, p.most[0])), digits(newCodes(p.b, p.most[1]))
			factor := 4 // 2^r of both
			if len(p.odd) > 0 {
				factor *= p.odd[len(p.odd)-1]
			}
			require.LessOrEqual(t, da*db*c.k*factor, c.most, p.name)
			for i := range m {
				for j := range n {
					var sum float64
					var codesOnly int
					for k := range c.k {
						x, y := float64(a.t.At(i, k)), float64(b.t.At(j, k))
						sum += x * y
						code := float64(p.a.Float32(a.t.Codes[i*c.k+k])) * float64(p.b.Float32(b.t.Codes[j*c.k+k]))
						codesOnly += int(math.Abs(code))
					}
					require.Equal(t, math.Ldexp(float64(dot(a, b, i, j)), a.e+b.e), sum, p.name)
					if c.products[0].most[0] == 3 {
						require.LessOrEqual(t, codesOnly, 1<<13, p.name)
					}
				}
			}
		}
	}
}

// TestExactOnTensorCores asks the models of GPUs for products of the files.
func TestExactOnTensorCores(t *testing.T) {
	const m, n = 8, 16
	for _, p := range gpuProducts[:3] {
		a, b := p.operands(9, m, n, fileSize.K)
		for _, model := range []oracle.Model{
			oracle.AdaMMA(), oracle.HopperMMA(), oracle.HopperWGMMA(), oracle.BlackwellMMA(), oracle.BlackwellTCGen05(),
		} {
			c := make([]float32, m*n)
			require.NoError(t, oracle.Predict(t.Context(), c, nil, a.t, b.t,
				oracle.Kernel{Model: model, Scales: oracle.AThenB}, oracle.Options{}))
			for i := range c {
				require.EqualValues(t, dot(a, b, i/n, i%n), c[i], "%s on %v", p.name, model)
			}
		}
	}
}

// TestStopped has a context that ends in the middle, and one that has ended.
func TestStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r := newRunner("swiglu", "rmsnorm")
	r.fault = func(_ cpu.Level, _ int, name string, _ *job) {
		if name == "rmsnorm" {
			stop()
		}
	}
	v, err := r.run(ctx)
	require.NoError(t, err)
	require.Equal(t, Incomplete, v.Outcome)
	require.Equal(t, 0, v.Repetitions)
	require.Equal(t, 1, v.Operators[0].Repetitions)
	v, err = Run(ctx, Options{For: time.Hour})
	require.NoError(t, err)
	require.Equal(t, Incomplete, v.Outcome)
	require.Zero(t, v.Operators[0].Repetitions)
}

// TestEndurance demands new operands in each repetition, and the time's end.
func TestEndurance(t *testing.T) {
	r := newRunner("cast/e4m3")
	r.For = 20 * time.Millisecond
	checksums := make(map[string]bool)
	repetitions := 0
	r.fault = func(l cpu.Level, _ int, _ string, j *job) {
		if l == cpu.Generic {
			checksums[j.checksum()] = true
			repetitions++
		}
	}
	v, err := r.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, Pass, v.Outcome)
	require.Equal(t, repetitions, v.Repetitions)
	require.Len(t, checksums, repetitions)
	require.GreaterOrEqual(t, v.Seconds, 0.02)
}

// TestRounded compares results of ordinary numbers with those that were recorded.
func TestRounded(t *testing.T) {
	for _, s := range []size{enduranceSize, burstSize} {
		if s.Name == "burst" && testing.Short() {
			continue
		}
		for _, o := range rounded {
			j := o.prepare(keyOf(1, o.name, 0), s)
			require.NoError(t, j.run(t.Context()))
			_, sum := j.check()
			want, ok := recorded(1, 0, s, o.name)
			if !ok || sum != want {
				t.Errorf("%s of %s is %s, not %q", o.name, s.Name, sum, want)
			}
			_, ok = recorded(2, 0, s, o.name)
			require.False(t, ok)
		}
	}
}

// TestRead reads verdicts, of which some cannot be.
func TestRead(t *testing.T) {
	smallFiles(t)
	right := make(map[string]string) // checksums of seed 1
	good := func() *Result {
		r := newRunner("swiglu")
		r.size, r.operators = fileSize, operatorsOf(fileSize)
		v := r.newResult()
		v.Outcome = Pass
		for i, o := range r.operators {
			v.Operators[i].Repetitions = 1
			v.Operators[i].Checksum = right[o.name]
		}
		return v
	}
	for _, o := range operatorsOf(fileSize) {
		right[o.name] = o.prepare(keyOf(1, o.name, 0), fileSize).checksum()
	}
	failure := &Failure{Operator: "swiglu", Place: "row 1", Expected: "2", Got: "3"}
	for _, c := range []struct {
		change func(v *Result)
		want   string
	}{
		{func(*Result) {}, ""},
		{func(v *Result) { v.Outcome, v.Failure = Fail, failure }, ""},
		{func(v *Result) { v.Outcome, v.Operators[3].Skipped = Incomplete, "none here" }, ""},
		{func(v *Result) { v.Form = "x" }, `its form is "x", version 1`},
		{func(v *Result) { v.Version = 2 }, "version 2: want"},
		{func(v *Result) { v.Size = "large" }, `its size is "large"`},
		{func(v *Result) { v.Operators = v.Operators[1:] }, "operators, not"},
		{func(v *Result) { v.Operators[0].Name = "product/other" }, `operator 0 is "product/other": want product/tensor`},
		{func(v *Result) { v.Operators[1].Checksum = "0" }, `the checksum of product/tensor-e5m2 is "0": with seed 1 it is `},
		{func(v *Result) { v.Seed = 2 }, "with seed 2 it is"},
		{func(v *Result) { v.Operators[3].Skipped = "none here" }, `it says "pass" and has`},
		{func(v *Result) { v.Operators[3].Repetitions = 0 }, `it says "pass" and has`},
		{func(v *Result) { v.Failure = failure }, `it says "pass" and has`},
		{func(v *Result) { v.Outcome = Fail }, `it says "fail", which does not go`},
		{func(v *Result) { v.Outcome, v.Failure = Incomplete, failure }, `it says "incomplete", which`},
		{func(v *Result) { v.Outcome = "maybe" }, `it says "maybe"`},
	} {
		v := good()
		c.change(v)
		text, err := json.Marshal(v)
		require.NoError(t, err)
		read, err := Read(bytes.NewReader(text))
		if c.want == "" {
			require.NoError(t, err)
			require.Equal(t, v, read)
			continue
		}
		require.ErrorIs(t, err, ErrVerdict, c.want)
		require.ErrorContains(t, err, c.want)
	}
	for _, text := range []string{"", "{", "[]", strings.Repeat(" ", mostVerdict+1)} {
		_, err := Read(strings.NewReader(text))
		require.ErrorContains(t, err, "it is not its JSON")
	}
}

// screen is a terminal of some columns.
type screen struct {
	bytes.Buffer
	columns int
}

func (s *screen) Screen() (columns int, colors bool) { return s.columns, false }

// TestTableFits: on a terminal no line of the table is wider than that, and checksums are whole.
func TestTableFits(t *testing.T) {
	v := &Result{Operators: []Operator{{Name: "rounded/product-1x128-128x128", Elements: 1 << 40, Checksum: "8a4ffc086aa7c983"}}}
	for _, columns := range []int{60, 80, 120} {
		s := screen{columns: columns}
		require.NoError(t, v.WriteText(&s))
		_, table, _ := strings.Cut(s.String(), "operator")
		require.Contains(t, table, "8a4ffc086aa7c983")
		require.Contains(t, table, "1099511627776")
		for line := range strings.Lines("operator" + table) {
			require.LessOrEqual(t, len(line)-1, columns, table)
		}
	}
}

func TestText(t *testing.T) {
	v := newRunner("swiglu", "rmsnorm").newResult()
	v.Operators[0] = Operator{Name: "swiglu", How: "torch", Repetitions: 2, Elements: 8, Checksum: "ab"}
	v.Operators[1].Skipped = "none here"
	v.Machine.Refused = []string{"amx"}
	text := func() string {
		var b bytes.Buffer
		require.NoError(t, v.WriteText(&b))
		return b.String()
	}
	require.Regexp(t, `swiglu +2 +8 +ab by torch\n`, text())
	require.Regexp(t, `rmsnorm +0 +0 +skipped: none here\n`, text())
	require.Contains(t, text(), "the system refuses amx: its products were those of the level below\n")
	require.Contains(t, text(), "INCOMPLETE: what was run is right; not judged: amx\n")
	require.NotContains(t, text(), "PASS")
	v.Outcome = Pass
	require.Contains(t, text(), "PASS: every result is the right one; not judged: amx\n")
	v.Machine.Refused = nil
	require.Contains(t, text(), "PASS: every result is the right one\n")
	require.NotContains(t, text(), "refuses")
	require.NotContains(t, text(), "INCOMPLETE")
	v.Outcome = Fail
	v.Failure = &Failure{Operator: "swiglu", Level: "avx2", Seed: 7, Repetition: 3, Place: "row 1", Expected: "2", Got: "3"}
	require.Contains(t, text(), "FAIL: swiglu at level avx2, seed 7, repetition 3: row 1: got 3, want 2\n")
	require.NotContains(t, text(), "PASS")
	require.NotContains(t, text(), "INCOMPLETE")
}
