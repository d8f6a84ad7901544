package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	floating "github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/oracle/power"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// exactProduct is a product whose sums are exact in float64 too, with a bias and an old C.
func exactProduct(m, n, k int) fault.Product {
	a, b := power.Operands(m, n, k, fp8.E4M3, tensor.Block{Rows: 1, Cols: 32}, 9)
	p := fault.Product{A: a, B: b, Bias: make([]float32, n), Old: make([]float32, m*n)}
	for j := range p.Bias {
		p.Bias[j] = float32(j-3) * 0x1p-10
	}
	for i := range p.Old {
		p.Old[i] = float32(i%11) * 0x1p-9
	}
	return p
}

// byHand is the product in float64, element by element.
func byHand(p fault.Product) []float64 {
	m, k := p.A.Dims()
	n, _ := p.B.Dims()
	c := make([]float64, m*n)
	for i := range c {
		for q := range k {
			c[i] += float64(p.A.At(i/n, q)) * float64(p.B.At(i%n, q))
		}
		if p.Bias != nil {
			c[i] += float64(p.Bias[i%n])
		}
		if p.Old != nil {
			c[i] += float64(p.Old[i])
		}
	}
	return c
}

// TestRun compares what is said of every fault with the same by hand: an exact product in
// float64, the tolerance of each element, and the bound.
func TestRun(t *testing.T) {
	t.Run("float32", testRun[float32])
	t.Run("bfloat16", testRun[fp8.BFloat16])
}

func testRun[T gemm.Output](t *testing.T) {
	const m, n, k, rtol, atol = 24, 20, 96, 0.02, 0.01
	p := exactProduct(m, n, k)
	r, err := Run[T](t.Context(), p, Test{Criteria: []Criterion{{Rtol: rtol, Atol: atol}}}, Options{})
	require.NoError(t, err)
	want := byHand(p)
	round := func(v float64) float64 {
		c := make([]T, 1)
		narrow(c, []float32{float32(v)})
		return floating.Float64(c[0])
	}
	bound, err := bounds[T](t.Context(), p, 1)
	require.NoError(t, err)
	require.Greater(t, len(r.Faults), 100)
	seen := map[Outcome]int{Survives: 0, Caught: 0, Rounding: 0, Unchanged: 0}
	c, right := make([]T, m*n), make([]T, m*n)
	require.NoError(t, fault.Inject(t.Context(), right, fault.Fault{}, p, fault.Options{}))
	for _, o := range r.Faults {
		require.NoError(t, fault.Inject(t.Context(), c, o.Fault, p, fault.Options{}))
		var outside, different, far int
		var errors, wants, worst float64
		for i := range c {
			g, w := floating.Float64(c[i]), round(want[i])
			e := math.Abs(g - w)
			if e > bound[i] {
				outside++
			}
			if c[i] != right[i] {
				different++
			}
			if e > atol+rtol*math.Abs(w) {
				far++
			}
			worst = max(worst, e/bound[i])
			errors += e * e
			wants += w * w
		}
		require.Equal(t, outside, o.Outside, "%v", o.Text)
		require.Equal(t, different, o.Different, "%v", o.Text)
		require.Equal(t, far == 0, o.Pass, "%v", o.Text)
		require.InDelta(t, float64(far)/(m*n), float64(o.Values[0].Value), 1e-12)
		require.InDelta(t, math.Sqrt(errors/wants), float64(o.RelativeL2), 1e-9)
		if worst > 0 {
			require.InDelta(t, worst, float64(o.Worst.Error), 1e-6*worst, "%v", o.Text)
		}
		verdict := Caught
		switch {
		case different == 0:
			verdict = Unchanged
		case outside == 0:
			verdict = Rounding
		case far == 0:
			verdict = Survives
		}
		require.Equal(t, verdict, o.Outcome, "%v", o.Text)
		seen[verdict]++
	}
	require.Equal(t, map[Outcome]int{Survives: r.Survive, Caught: r.Caught, Rounding: r.Rounding, Unchanged: r.Unchanged}, seen)
	require.Zero(t, r.FalseFailures)
	require.NotNil(t, r.Worst())
	require.Equal(t, Survives, r.Worst().Outcome)
	for i := range r.Survive {
		require.LessOrEqual(t, float64(r.Faults[i].Worst.Error), float64(r.Worst().Worst.Error), "the worst is first")
	}
	var largest float64
	for _, w := range want {
		largest = max(largest, math.Abs(round(w)))
	}
	require.Equal(t, largest, float64(r.Largest))
}

// TestFaults has the faults that Run adds to those of the table.
func TestFaults(t *testing.T) {
	p := exactProduct(32, 40, 64)
	all := Faults(fault.Float32, p)
	unique := map[fault.Fault]bool{}
	for _, f := range all {
		require.False(t, unique[f], "%v twice", f)
		unique[f] = true
	}
	for _, f := range append(fault.All(fault.Float32, p), fault.Fault{Kind: "k-lost", To: 64}, fault.Fault{Kind: "scaled", Factor: 1.01},
		fault.Fault{Kind: "unwritten", Where: fault.Region{FromRow: 16, ToRow: 17, FromCol: 20, ToCol: 21}}) {
		require.True(t, unique[f], "%v", f)
	}
	require.Nil(t, Faults(fault.Float32, fault.Product{A: p.A, B: &tensor.Tensor{Shape: []int{2, 3}}}))
}

// plainly is a product in one order, with roundings written out.
func plainly(p fault.Product, backwards, scaled bool) []float32 {
	m, k := p.A.Dims()
	n, _ := p.B.Dims()
	c := make([]float32, m*n)
	value := func(x *tensor.Tensor, i, q int) float32 { return x.Format.Float32(x.Row(i)[q]) }
	for at := range c {
		i, j := at/n, at%n
		var total float32
		if scaled {
			for q := range k {
				x := float32(value(p.A, i, q) * p.A.Scale(i, q))
				y := float32(value(p.B, j, q) * p.B.Scale(j, q))
				total += float32(x * y)
			}
			c[at] = total
			continue
		}
		var sums []float32 // of blocks of 32
		var starts []int
		for from := 0; from < k; from += 32 {
			var order []int
			for q := from; q < min(from+32, k); q++ {
				order = append(order, q)
			}
			var sum float32
			for s := range order {
				q := order[s]
				if backwards {
					q = order[len(order)-1-s]
				}
				sum += float32(value(p.A, i, q) * value(p.B, j, q))
			}
			sums, starts = append(sums, sum), append(starts, from)
		}
		for s := range sums {
			if backwards {
				s = len(sums) - 1 - s
			}
			total += float32(float32(sums[s]*p.A.Scale(i, starts[s])) * p.B.Scale(j, starts[s]))
		}
		c[at] = total
	}
	return c
}

// random is a product of normal data with scales that are no powers of two, of ragged
// blocks.
func random(t *testing.T, m, n, k int) fault.Product {
	t.Helper()
	make := func(name string, rows int, seed uint64) *tensor.Tensor {
		x, err := quantize(t.Context(), name, rows, normal(rows, k, 1, seed), scaling.DeepSeek, tensor.Block{Rows: 1, Cols: 32})
		require.NoError(t, err)
		return x
	}
	return fault.Product{A: make("a", m, 1), B: make("b", n, 2)}
}

// TestHonest compares correct kernels with plain loops, bit for bit.
func TestHonest(t *testing.T) {
	p := random(t, 5, 11, 80)
	got := make([]float32, 5*11)
	for _, backwards := range []bool{false, true} {
		require.NoError(t, summed[float32](backwards)(t.Context(), got, p, 1))
		require.Equal(t, plainly(p, backwards, false), got)
	}
	require.NotEqual(t, plainly(p, true, false), plainly(p, false, false))
	require.NoError(t, scaled(t.Context(), got, p, 1))
	require.Equal(t, plainly(p, false, true), got)
	p.Bias, p.Old = make([]float32, 11), make([]float32, 55)
	p.Bias[3], p.Old[14] = 5, 7
	require.NoError(t, scaled(t.Context(), got, p, 1))
	require.Equal(t, plainly(p, false, true)[14]+5+7, got[14])

	names := func(p fault.Product) (claimed, all []string) {
		for _, k := range corrects[float32](p) {
			if all = append(all, k.name); k.claimed {
				claimed = append(claimed, k.name)
			}
		}
		return claimed, all
	}
	claimed, all := names(p)
	require.Len(t, claimed, 3)
	require.Contains(t, all, "hopper-wgmma, promoted every 128")
	require.NotContains(t, all, "cdna3-mfma", "it takes no OCP formats")
	p.Accumulation.Dequantized = true
	claimed, _ = names(p)
	require.Contains(t, claimed, "float32, scaled before they are multiplied")
	p.Accumulation = oracle.Accumulation{}
	p.Kernel = oracle.Kernel{Model: oracle.AdaMMA(), Promote: 128}
	claimed, all = names(p)
	require.Equal(t, []string{"ada-mma, promoted every 128"}, claimed)
	require.Contains(t, all, "ada-mma")
}

// TestReferences has what each reference lets pass.
func TestReferences(t *testing.T) {
	p := random(t, 16, 16, 64)
	ignored := fault.Fault{Kind: "scales-ignored", Of: fault.B}
	o := Options{Faults: []fault.Fault{ignored, {Kind: "unwritten"}}, NoProposal: true}
	run := func(r Reference) *Report {
		report, err := Run[float32](t.Context(), p, Test{Criteria: []Criterion{{Rtol: 1e-5, Atol: 1e-5}}, Reference: r}, o)
		require.NoError(t, err)
		return report
	}
	for _, of := range []Source{Exact, Canonical} {
		r := run(Reference{Of: of})
		require.Zero(t, r.Survive, "%v", of)
		require.Zero(t, r.FalseFailures)
		require.Zero(t, r.Reference.Outside)
	}
	itself := run(Reference{Of: Itself})
	require.Equal(t, 2, itself.Survive, "whatever is wrong is wrong in the reference")
	require.Nil(t, itself.Reference)

	same := run(Reference{Of: Canonical, Fault: ignored})
	require.Equal(t, Survives, same.Find(ignored).Outcome)
	require.Equal(t, 6, same.FalseFailures, "three that are claimed, and three models within the bound")
	require.Positive(t, same.Reference.Outside)
	require.Positive(t, float64(same.Reference.Worst.Error))

	// By hand: each value rounded to bfloat16, and one sum in float32.
	wide, err := (&Reference{Of: Dequantized}).values(t.Context(), fault.Float32, p, 1)
	require.NoError(t, err)
	var sum float32
	for k := range 64 {
		x, y := fp8.BFloat16FromFloat32(p.A.At(2, k)), fp8.BFloat16FromFloat32(p.B.At(3, k))
		sum += float32(x.Float32() * y.Float32())
	}
	require.Equal(t, float64(sum), wide[2*16+3])
	require.Positive(t, run(Reference{Of: Dequantized}).FalseFailures, "bfloat16 has fewer bits than the scales")

	require.Equal(t, "the exact product, in float32", (&Reference{Wide: true}).String())
	narrow, err := (&Reference{}).values(t.Context(), fault.BFloat16, p, 1)
	require.NoError(t, err)
	wide, err = (&Reference{Wide: true}).values(t.Context(), fault.BFloat16, p, 1)
	require.NoError(t, err)
	require.NotEqual(t, narrow, wide)
	require.Equal(t, narrow[7], float64(fp8.BFloat16FromFloat32(float32(wide[7])).Float32()))

	hopper := oracle.Kernel{Model: oracle.HopperWGMMA()}
	predicted, err := (&Reference{Of: Predicted, Kernel: hopper}).values(t.Context(), fault.Float32, p, 1)
	require.NoError(t, err)
	c := make([]float32, 256)
	require.NoError(t, oracle.Predict(t.Context(), c, nil, p.A, p.B, hopper, oracle.Options{}))
	require.Equal(t, widened(c), predicted)

	other := random(t, 16, 16, 64)
	other.A.Codes[5] ^= 8
	r := run(Reference{Of: Canonical, A: other.A, Note: "another A"})
	require.Equal(t, 6, r.FalseFailures)
	require.Equal(t, 16, r.Reference.Outside, "one row")
	require.Contains(t, r.Test.Reference.String(), "another A")
	_, err = Run[float32](t.Context(), p, Test{Criteria: []Criterion{{}}, Reference: Reference{A: random(t, 8, 16, 64).A}}, o)
	require.ErrorContains(t, err, "the reference has 128 elements, C has 256")
}

// TestClaims has bits of a model demanded: float32 sums are a fault then.
func TestClaims(t *testing.T) {
	p := random(t, 16, 16, 256)
	p.Kernel = oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128}
	p.Bits = true
	r, err := Run[float32](t.Context(), p, Test{Criteria: []Criterion{{Measure: CalcDiff, Limit: 1e-3}}}, Options{})
	require.NoError(t, err)
	require.Equal(t, Survives, r.Find(fault.Fault{Kind: "float32-sums"}).Outcome, "calc_diff does not see it")
	require.Zero(t, r.Proposal.FalseFailures)
	for _, s := range r.Proposal.Sets {
		require.True(t, s.Bits)
	}
	for _, f := range r.Proposal.Faults {
		require.NotEqual(t, Rounding, f.Outcome, "%v", f.Text)
		if f.Fault.Kind == "float32-sums" {
			require.Equal(t, Caught, f.Outcome)
		}
	}
	p.Bits = false // a bound that follows from the model
	r, err = Run[float32](t.Context(), p, Test{Criteria: []Criterion{{Measure: CalcDiff, Limit: 1e-3}}}, Options{})
	require.NoError(t, err)
	require.Equal(t, Rounding, r.Find(fault.Fault{Kind: "float32-sums"}).Outcome)
	require.Zero(t, r.Proposal.FalseFailures)
	require.False(t, r.Proposal.Sets[0].Bits)
}

// TestNaNInReference has a NaN as the worst element of a reference, wherever it is.
func TestNaNInReference(t *testing.T) {
	for at := range 3 {
		s := subject[float32]{rows: 1, cols: 3, right: []float64{1, 1, 1}, bound: []float64{0.1, 0.1, 0.1}, honest: []float32{1, 1, 1}, reference: []float64{2, 3, 4}}
		s.reference[at] = math.NaN()
		d := s.referenceDistance()
		require.Equal(t, 3, d.Outside)
		require.Equal(t, at, d.Worst.Col)
	}
}

// terminal is one of 60 columns.
type terminal struct{ io.Writer }

func (*terminal) Screen() (columns int, colors bool) { return 60, false }

// TestReport checks the text, and that JSON comes back as it went.
func TestReport(t *testing.T) {
	c, err := CaseNamed("onnxruntime-31155")
	require.NoError(t, err)
	r, err := c.Run(t.Context(), Options{})
	require.NoError(t, err)
	var short, long, text bytes.Buffer
	require.NoError(t, r.WriteText(&short, false))
	require.NoError(t, r.WriteText(&long, true))
	require.Contains(t, long.String(), "C is not written: it holds 0")
	require.Contains(t, short.String(), c.Issue)
	require.Regexp(t, `\n  found +an all-zeros kernel passes\n`, short.String())
	for line := range strings.SplitSeq(short.String()+long.String(), "\n") {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
	}
	var narrow bytes.Buffer
	require.NoError(t, r.WriteText(&terminal{&narrow}, true))
	_, tables, _ := strings.Cut(narrow.String(), "\n\ntest ") // commands fold what is above
	for line := range strings.SplitSeq(tables, "\n") {
		if strings.Contains(line, "  ") && !strings.HasPrefix(line, "  ") {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 60, line)
		}
	}
	require.Less(t, short.Len(), long.Len())
	require.Contains(t, long.String(), "these are caught:")
	require.NotContains(t, short.String(), " \n")
	require.Greater(t, r.Survive, mostSurvivors)
	listed, _, _ := strings.Cut(short.String(), "\n\na better test")
	require.True(t, strings.HasSuffix(listed, fmt.Sprintf("\nand %d more", r.Survive-mostSurvivors)), "what is left out is said below its own list: %s", short.String())
	require.NoError(t, r.WriteJSON(&text))
	var back Report
	require.NoError(t, json.Unmarshal(text.Bytes(), &back))
	require.Equal(t, r.Survive, back.Survive)
	require.Equal(t, r.Faults[0].Fault, back.Faults[0].Fault)
	require.Equal(t, r.Faults[0].Outcome, back.Faults[0].Outcome)
	var again bytes.Buffer
	require.NoError(t, back.WriteJSON(&again))
	require.Equal(t, text.String(), again.String())
	require.True(t, strings.HasPrefix(short.String(), "FAIL: "+r.Summary()))
}

// TestStop has errors, and a context that ends.
func TestStop(t *testing.T) {
	p := random(t, 8, 8, 64)
	test := Test{Criteria: []Criterion{{}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run[float32](ctx, p, test, Options{})
	require.ErrorIs(t, err, context.Canceled)
	ctx, cancel = context.WithCancel(t.Context())
	ops := map[string]bool{}
	_, err = Run[float32](ctx, p, test, Options{Progress: progress.Func(func(op string, _, _ int64) {
		if ops[op] = true; strings.HasPrefix(op, "a better test on ") {
			cancel()
		}
	})})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, map[string]bool{"the reference": true, "correct kernels": true, "faults": true, "a better test on exact-sums": true}, ops)

	_, err = Run[float32](t.Context(), p, Test{}, Options{})
	require.ErrorIs(t, err, ErrTest)
	_, err = Run[float32](t.Context(), p, test, Options{Workers: -1})
	require.ErrorContains(t, err, "-1 workers")
	p.B = random(t, 8, 8, 32).B
	_, err = Run[float32](t.Context(), p, test, Options{})
	require.ErrorIs(t, err, gemm.ErrOperands)
	_, err = RunType(t.Context(), 99, p, test, Options{})
	require.Error(t, err)
}

// TestWorkers demands the same report for any number of workers.
func TestWorkers(t *testing.T) {
	p := random(t, 33, 17, 96)
	var first string
	for _, workers := range []int{1, 2, 7} {
		r, err := RunType(t.Context(), fault.BFloat16, p, Test{Criteria: []Criterion{{Rtol: 0.01}}}, Options{Workers: workers})
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, r.WriteJSON(&text))
		if first == "" {
			first = text.String()
		}
		require.Equal(t, first, text.String())
	}
}

// TestEmpty has products without elements.
func TestEmpty(t *testing.T) {
	for _, size := range [][3]int{{0, 4, 32}, {4, 0, 32}, {4, 4, 0}} {
		a := codes("a", fp8.E4M3, size[0], size[2], tensor.Block{}, func(int, int) byte { return 0 }, func(int, int) float32 { return 1 })
		b := codes("b", fp8.E4M3, size[1], size[2], tensor.Block{}, func(int, int) byte { return 0 }, func(int, int) float32 { return 1 })
		r, err := Run[float32](t.Context(), fault.Product{A: a, B: b}, Test{Criteria: []Criterion{{}}}, Options{})
		require.NoError(t, err, "%v", size)
		require.Zero(t, r.Survive)
		require.Zero(t, r.FalseFailures)
		require.NoError(t, r.WriteText(&bytes.Buffer{}, true))
	}
}

// TestSentences has each verdict for a test of which it is true, and not for one of which it is
// not.
func TestSentences(t *testing.T) {
	p := random(t, 24, 20, 96)
	empty := fault.Product{B: random(t, 24, 20, 96).B}
	empty.A = codes("a", fp8.E4M3, 0, 96, tensor.Block{}, func(int, int) byte { return 0 }, func(int, int) float32 { return 1 })
	tight, loose := Test{Criteria: []Criterion{{Rtol: 1e-5, Atol: 1e-6}}}, Test{Criteria: []Criterion{{Rtol: 1e9}}}
	zero := []fault.Fault{{Kind: "k-tail-lost", By: 32}}
	harmless := []fault.Fault{{}}
	wrong := Test{Criteria: tight.Criteria, Reference: Reference{Fault: fault.Fault{Kind: "k-tail-lost", By: 32}}}
	// Correct kernels pass and the fault is caught, but the reference is beyond the bound.
	littleWrong := Test{Criteria: []Criterion{{Rtol: 0.05, Atol: 0.5}}, Reference: Reference{Of: Dequantized}}
	bits := p
	bits.Bits, bits.Kernel = true, oracle.Kernel{Model: oracle.HopperWGMMA()}
	order := p // octavo's: sums in another do not have its bits
	order.Bits = true
	texts := map[string]string{}
	for name, x := range map[string]struct {
		p      fault.Product
		test   Test
		faults []fault.Fault
	}{
		"tight": {p, tight, zero}, "loose": {p, loose, zero}, "zero tolerance": {p, Test{Criteria: []Criterion{{Rtol: 0, Atol: 0}}}, zero},
		"no float32": {bits, tight, zero}, "octavo's bits": {order, Test{Criteria: []Criterion{{}}, Reference: Reference{Of: Canonical}}, zero}, "harmless": {p, tight, harmless}, "zero tolerance of nothing": {p, Test{Criteria: []Criterion{{}}}, harmless}, "empty": {empty, tight, nil}, "wrong reference": {p, wrong, zero}, "a little wrong reference": {p, littleWrong, zero},
	} {
		r, err := Run[float32](t.Context(), x.p, x.test, Options{Faults: x.faults, NoProposal: true})
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, r.WriteText(&text, true))
		require.NoError(t, r.WritePage(&text, "octavo audit", ""))
		texts[name] = strings.Join(strings.Fields(text.String()), " ")
		require.True(t, strings.HasPrefix(texts[name], strings.ToUpper(r.outcome())+": "+r.Summary()))
	}
	for _, x := range []struct{ sentence, of, not string }{
		{"the test lets 1 of 1 fault pass", "loose", "tight"},
		{"the test lets no fault pass: it catches all 1, of 1, that make C wrong", "tight", "loose"},
		{"the test lets no fault pass", "tight", "harmless"},
		{"the test lets no fault pass", "tight", "empty"},
		{"the test had nothing to catch: none of 1 fault makes this C wrong", "harmless", "tight"},
		{"the test had nothing to catch: none of 0 faults makes this C wrong", "empty", "tight"},
		{"the test fails 6 of 6 correct kernels, and lets no fault pass: it catches all 1", "zero tolerance", "tight"},
		{"the test fails 6 of 6 correct kernels, and had nothing to catch: none of 1", "zero tolerance of nothing", "zero tolerance"},
		{", and fails 4 correct kernels beyond the bound of what is claimed", "tight", "loose"},
		{"of what is claimed", "zero tolerance", "empty"},
		{"float32, backwards, other bits", "octavo's bits", "no float32"},
		{"the test lets no fault pass: it catches all 1, of 1, that make C wrong, and fails 7 correct kernels without the bits of what is claimed", "octavo's bits", "no float32"},
		{"bound none: correct kernels have the bits that are claimed", "no float32", "tight"},
		{"how far correct kernels may be from the exact product", "tight", "no float32"},
		{"the reference does not have the bits that are demanded", "no float32", "wrong reference"},
		{"THE REFERENCE IS WRONG: ", "wrong reference", "tight"},
		{"THE REFERENCE IS WRONG: ", "", "no float32"},
		{"these are within honest rounding, so that this C proves nothing", "", "tight"},
		{"these change nothing", "harmless", "tight"},
		{"these pass unseen", "loose", "tight"},
		{"Faults that pass unseen", "loose", "tight"},
		{"Faults that are caught", "tight", "loose"},
		{": changes nothing", "harmless", "tight"},
		{`<h1 class="pass">PASS: the test lets no`, "tight", "harmless"},
		{`<h1 class="fail">FAIL: the test lets 1`, "loose", "tight"},
		{`<h1 class="undecided">UNDECIDED: the test had nothing`, "empty", "loose"},
		{"PASS: the test lets no", "tight", "a little wrong reference"},
		{"FAIL: the test lets no", "a little wrong reference", "tight"},
		{`<h1 class="pass">PASS: the test lets no`, "tight", "a little wrong reference"},
		{"these are caught", "tight", "loose"},
	} {
		if x.of != "" {
			require.Contains(t, texts[x.of], x.sentence, x.of)
		}
		require.NotContains(t, texts[x.not], x.sentence, x.not)
	}
}
