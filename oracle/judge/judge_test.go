package judge

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/tensor"
)

// operandOf returns random codes under scales near 1, with some that are not finite
// where special.
func operandOf(r *rand.Rand, name string, rows, k int, special bool) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, Format: fp8.E5M2, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: 32}}
	for range rows * k {
		c := byte(r.Uint32())
		for fp8.E5M2.IsNaN(c) || fp8.E5M2.IsInf(c, 0) {
			c = byte(r.Uint32())
		}
		if special && r.IntN(4*k) == 0 {
			c = 0x7C | byte(r.Uint32()&0x83)
		}
		t.Codes = append(t.Codes, c)
	}
	gridRows, gridCols := t.Grid()
	for range gridRows * gridCols {
		t.Scales = append(t.Scales, 0.5+r.Float32())
	}
	return t
}

var claims = []Claim{
	{Want: Exact},
	{Want: Canonical},
	{Want: Predicted, Kernel: oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 32, Scales: oracle.BThenA}},
}

func output[T gemm.Output](x float32) (y T) {
	switch p := any(&y).(type) {
	case *float32:
		*p = x
	case *fp8.BFloat16:
		*p = fp8.BFloat16FromFloat32(x)
	case *float16.Float16:
		*p = float16.Fromfloat32(x)
	}
	return y
}

// TestErrorMap demands that the map agrees with the report, for damaged results of
// all types with everything that is not finite.
func TestErrorMap(t *testing.T) {
	t.Run("float32", testErrorMap[float32])
	t.Run("bfloat16", testErrorMap[fp8.BFloat16])
	t.Run("float16", testErrorMap[float16.Float16])
}

func testErrorMap[T gemm.Output](t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		m, n, k := 1+r.IntN(300), 1+r.IntN(20), r.IntN(70)
		a, b := operandOf(r, "a", m, k, i%2 == 1), operandOf(r, "b", n, k, i%3 == 2)
		got := make([]T, m*n)
		require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{}))
		for _, x := range []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1e-30, 3, -40000} {
			for range r.IntN(4) {
				got[r.IntN(m*n)] = output[T](float32(x))
			}
		}
		v, err := Check(t.Context(), got, nil, a, b, claims[i%3], Options{})
		require.NoError(t, err)
		outside, largest := 0, 0.0
		for _, c := range v.errorMap.Cells {
			outside += c.Outside
			largest = max(largest, c.Error)
		}
		require.Equal(t, v.Comparison.Outside, outside)
		place := v.Comparison.MaxBound
		if v.Demand == "bits" {
			place = v.Comparison.MaxULP
		}
		worst := v.errorMap.Worst()
		if place == nil {
			require.Zero(t, largest)
			continue
		}
		require.Equal(t, float64(place.Error), largest)
		require.Equal(t, largest, worst.Error)
		if !math.IsInf(largest, 0) {
			require.Equal(t, [2]int{place.Row, place.Col}, [2]int{worst.Row, worst.Col})
		}
	}
}

func TestULP(t *testing.T) {
	for x, exponent := range map[float32]int{0: -149, 1: -23, 1.99: -23, -2: -22, 0x1p-130: -149, float32(math.Inf(1)): -149} {
		require.Equal(t, math.Ldexp(1, exponent), ulp(x), x)
	}
	for x, exponent := range map[float32]int{0: -24, 1: -10, -2: -9, 0x1p-20: -24} {
		require.Equal(t, math.Ldexp(1, exponent), ulp(float16.Fromfloat32(x)), x)
	}
	for x, exponent := range map[float32]int{0: -133, 1: -7, -2: -6, 0x1p-130: -133} {
		require.Equal(t, math.Ldexp(1, exponent), ulp(fp8.BFloat16FromFloat32(x)), x)
	}
}

// result is a product that a test may damage.
func result(t *testing.T, m, n int) (a, b *tensor.Tensor, c []float32) {
	r := rand.New(rand.NewPCG(3, 4))
	a, b = operandOf(r, `<script>alert("a")</script>`, m, 64, false), operandOf(r, "b", n, 64, false)
	c = make([]float32, m*n)
	require.NoError(t, gemm.Multiply(t.Context(), c, a, b, gemm.Options{}))
	return a, b, c
}

func pageOf(t *testing.T, r *Verdict) string {
	var b bytes.Buffer
	require.NoError(t, r.WritePage(&b, "octavo verify", "a machine"))
	return b.String()
}

// TestPage demands that the page is well-formed, needs nothing else and shows what
// is in the report and in the image.
func TestPage(t *testing.T) {
	for _, d := range claims[:2] {
		a, b, c := result(t, 500, 260)
		c[321*260+123] = float32(math.Inf(1))
		c[321*260+124] = 5000
		r, err := Check(t.Context(), c, nil, a, b, d, Options{})
		require.NoError(t, err)
		text := pageOf(t, r)
		wellFormed(t, text)
		require.NotRegexp(t, `(src|href)="?(https?:|//)|<script>alert|@import|url\(`, text)
		for _, want := range []string{`<h1 class="fail">FAIL: 2 of 130000`, "&lt;script&gt;alert", "row 321, column 123: got +Inf, want", "500x260 F32, K = 64",
			`class="halo"`, `class="first"`, `class="largest"`, "3x2 elements", "tiles of 16x16", "codes of A, row 321", "lines are 64 apart"} {
			require.Contains(t, text, want)
		}
		img := decodeImage(t, text)
		require.Equal(t, [2]int{130, 167}, [2]int{img.Bounds().Dx(), img.Bounds().Dy()})
		hits := 0
		for y := range 167 {
			for x := range 130 {
				if img.At(x, y) == (color.RGBA{0x8E, 0x1F, 0xA8, 0xFF}) {
					hits++
					require.Equal(t, [2]int{61, 107}, [2]int{x, y})
				}
			}
		}
		require.Equal(t, 1, hits)
		require.Regexp(t, `\+?\\?u?0?0?2?[Bb]?Inf,0?1?,`, text)
	}
}

func decodeImage(t *testing.T, text string) image.Image {
	data := regexp.MustCompile(`data:image/png;base64,([^"]+)"`).FindStringSubmatch(text)
	require.NotNil(t, data)
	b, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(data[1], "&#43;", "+"))
	require.NoError(t, err)
	img, err := png.Decode(bytes.NewReader(b))
	require.NoError(t, err)
	return img
}

// wellFormed demands that elements are closed as they were opened.
func wellFormed(t *testing.T, text string) {
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	depth, elements := 0, 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch token.(type) {
		case xml.StartElement:
			depth++
			elements++
		case xml.EndElement:
			depth--
		}
	}
	require.Zero(t, depth)
	require.Greater(t, elements, 30)
}

func TestPageOfPass(t *testing.T) {
	a, b, c := result(t, 40, 3000)
	r, err := Check(t.Context(), c, nil, a, b, Claim{Want: Canonical}, Options{})
	require.NoError(t, err)
	text := pageOf(t, r)
	wellFormed(t, text)
	require.Contains(t, text, `<h1 class="pass">PASS: all 120000 elements`)
	require.NotContains(t, text, "<circle")
	require.NotContains(t, text, "First")
	require.Contains(t, text, `style="max-width:720px;aspect-ratio:720/28"`)

	a = operandOf(rand.New(rand.NewPCG(1, 1)), "a", 0, 64, false)
	r, err = Check[float32](t.Context(), nil, nil, a, b, Claim{Want: Canonical}, Options{})
	require.NoError(t, err)
	text = pageOf(t, r)
	wellFormed(t, text)
	require.Contains(t, text, "PASS: C is 0x3000 and has no element")
	require.NotContains(t, text, "<img")
}

// TestAccumulate demands that old C and bias count on all sides.
func TestAccumulate(t *testing.T) {
	for _, d := range claims {
		a, b, c := result(t, 9, 11)
		old := make([]float32, len(c))
		for i := range old {
			old[i] = float32(i)
		}
		copy(c, old)
		o := oracle.Options{Bias: make([]float32, 11), Accumulate: true}
		o.Bias[3] = 1e6
		if d.Want == Predicted {
			require.NoError(t, oracle.Predict(t.Context(), c, nil, a, b, d.Kernel, o))
		} else {
			require.NoError(t, gemm.Multiply(t.Context(), c, a, b, o))
		}
		r, err := Check(t.Context(), c, old, a, b, d, Options{Bias: o.Bias})
		require.NoError(t, err)
		require.True(t, r.Pass)
		require.True(t, r.Bias && r.Accumulate)
		require.Positive(t, r.LargestBound)
		if r.Exact != nil {
			require.Zero(t, r.Exact.Outside)
			require.Positive(t, r.Exact.Different)
		}
		c[5]++
		c[5] *= 2
		r, err = Check(t.Context(), c, old, a, b, d, Options{Bias: o.Bias})
		require.NoError(t, err)
		require.False(t, r.Pass)
		require.Equal(t, 1, r.Comparison.Outside)
		if r.Exact != nil {
			require.Equal(t, 1, r.Exact.Outside)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, d := range claims {
		a, b, c := result(t, 3, 4)
		b.Scales[1] = -1
		_, err := Check(t.Context(), c, nil, a, b, d, Options{})
		require.ErrorContains(t, err, `tensor "b": scale of block (0, 1) is -1`)
	}
	a, b, c := result(t, 3, 4)
	_, err := Check(t.Context(), c, nil, a, b, Claim{Want: Predicted, Kernel: oracle.Kernel{Model: oracle.CDNA3MFMA()}}, Options{})
	require.ErrorContains(t, err, "has no operands of format E5M2")
}

// TestWindow shows the blocks about the suspect.
func TestWindow(t *testing.T) {
	for _, test := range []struct{ n, suspect, lo, hi int }{
		{3, -1, 0, 3}, {12, 11, 0, 12}, {64, -1, 0, 12}, {64, 0, 0, 12}, {64, 30, 24, 36}, {64, 63, 52, 64},
	} {
		lo, hi := window(test.n, test.suspect)
		require.Equal(t, [2]int{test.lo, test.hi}, [2]int{lo, hi}, "%+v", test)
	}
	d := &oracle.Divergence{Suspect: 30, Blocks: make([]oracle.BlockSum, 64)}
	r := Verdict{Comparison: oracle.Comparison{First: d}}
	blocks, from := r.blocks()
	require.Len(t, blocks, 12)
	require.Equal(t, 24, from)
	var first strings.Builder
	r.writeFirst(&first)
	require.Regexp(t, `(?m)^ +\.\.\.24 more\n24 (.*\n)+\*30 (.*\n)+ +\.\.\.28 more$`, first.String())
	require.Equal(t, []string{"     0: 00"}, codeLines("00", 0))
	long := codeLines(strings.Repeat("ab", 300), 128)
	require.Len(t, long, 9)
	require.Equal(t, "and 172 more", long[8])
	require.True(t, strings.HasPrefix(long[1], "   144: ab ab"))
}

// TestExplained names the fault that a kernel was given, whatever is claimed and of a
// sample too, and the block of K that is to blame; of noise it says that nothing fits.
func TestExplained(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	a, b := operandOf(r, "a", 71, 128, false), operandOf(r, "b", 90, 128, false)
	hopper := oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 32, Scales: oracle.BThenA}
	for _, test := range []struct {
		fault   fault.Fault
		suspect int
	}{
		{fault.Fault{Kind: "k-lost", From: 32, To: 64}, 1},
		{fault.Fault{Kind: "scales-rows-off", Of: fault.A, By: 1}, -1},
	} {
		for i, claim := range claims {
			p := fault.Product{A: a, B: b}
			if claim.Want == Predicted {
				p.Kernel = hopper
			}
			c := make([]float32, 71*90)
			require.NoError(t, fault.Inject(t.Context(), c, test.fault, p, fault.Options{}))
			for _, o := range []Options{{}, {Sample: &Sample{Elements: 500}}} {
				v, err := Check(t.Context(), c, nil, a, b, claim, o)
				require.NoError(t, err)
				require.False(t, v.Pass)
				require.NotEmpty(t, v.Explanation.Findings, "%v %v", test.fault, i)
				require.Equal(t, test.fault.Kind, v.Explanation.Findings[0].Fault.Kind, "%v", v.Explanation)
				require.Contains(t, strings.Join(v.Explained(), " "), test.fault.String())
				require.Equal(t, test.suspect, v.Comparison.First.Suspect)
				require.Regexp(t, `What explains them .*`+test.fault.String()+`.*: explains `, strings.Join(strings.Fields(text(t, v)), " "))
				if test.suspect >= 0 {
					require.Contains(t, v.FirstLine(), "explained by block 1 of K")
					require.Len(t, v.Comparison.First.CodesA, 64)
					require.Contains(t, pageOf(t, v), fmt.Sprintf(`<span class="bad">%d</span>`, test.suspect))
				}
			}
		}
	}
	c := make([]float32, 71*90)
	require.NoError(t, gemm.Multiply(t.Context(), c, a, b, gemm.Options{}))
	for range 50 {
		c[r.IntN(len(c))] *= 1 + r.Float32()
	}
	v, err := Check(t.Context(), c, nil, a, b, Claim{}, Options{})
	require.NoError(t, err)
	require.Empty(t, v.Explanation.Findings)
	require.Contains(t, text(t, v), "What explains them\n  no known fault explains")
}

// TestMeantSums: where the exact product of sums in float32 is demanded of a kernel that sums
// as tensor cores do, the verdict says with which flags it passes, and so it does. Of one with
// a fault it says which, as under the bound of its sums.
func TestMeantSums(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	a, b := operandOf(r, "a", 40, 512, false), operandOf(r, "b", 48, 512, false)
	for _, x := range []*tensor.Tensor{a, b} {
		x.Block, x.Scales = tensor.Block{}, x.Scales[:1]
	}
	check := func(c []float32, claim Claim) *Verdict {
		v, err := Check(t.Context(), c, nil, a, b, claim, Options{})
		require.NoError(t, err)
		return v
	}
	right := make([]float32, 40*48)
	require.NoError(t, gemm.Multiply(t.Context(), right, a, b, gemm.Options{}))
	c := make([]float32, 40*48)
	for promote, flags := range map[int]string{0: "hopper-wgmma", 128: "hopper-wgmma --promote 128"} {
		kernel := oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: promote}
		bound := Claim{Accumulation: oracle.Accumulation{Kernel: kernel}}
		require.NoError(t, oracle.Predict(t.Context(), c, nil, a, b, kernel, oracle.Options{}))
		v := check(c, Claim{})
		require.Equal(t, verdict.Fail, v.Outcome)
		require.Contains(t, v.Title(), "of the exact result for sums in float32, as those of a correct kernel of hopper-wgmma are")
		require.Contains(t, v.Explained()[0], "256 of 256 elements compared have the bits of sums of hopper-wgmma")
		require.Equal(t, "it passes with --bound "+flags, v.Explained()[1])
		require.Contains(t, v.Explained()[2], "with --model "+flags+" --scale-order ")
		require.Contains(t, v.Explained()[3], "as hopper-wgmma sums them")
		require.True(t, check(c, bound).Pass)
		require.True(t, check(c, Claim{Want: Predicted, Kernel: kernel}).Pass)
		require.NotContains(t, check(c, Claim{Want: Canonical}).Title()+text(t, check(c, Claim{Want: Canonical})), "compared have the bits")

		// The sums of products 256 to 383 are lost in a part of C.
		part := func(lo, hi int) *tensor.Tensor {
			x := *a
			x.Codes = append([]byte(nil), a.Codes...)
			for i := range 40 {
				clear(x.Codes[i*512+lo : i*512+hi])
			}
			return &x
		}
		lost := make([]float32, 40*48)
		require.NoError(t, oracle.Predict(t.Context(), lost, nil, part(256, 384), b, kernel, oracle.Options{}))
		copy(lost[8*48:], c[8*48:])
		v, named := check(lost, Claim{}), check(lost, bound)
		require.NotEmpty(t, named.Explanation.Findings)
		require.NotContains(t, v.Title(), "correct kernel")
		require.Contains(t, v.Explained()[0], "With --bound "+flags+" "+named.Failure())
		require.Contains(t, strings.Join(v.Explained(), "\n"), strings.Join(named.Explained(), "\n"))

		// Of sums in float32 in which few elements are those of tensor cores nothing is said,
		// and under another bound neither.
		few := append([]float32(nil), right...)
		copy(few[36*48:], c[36*48:])
		require.False(t, check(few, Claim{}).Pass)
		require.NotContains(t, text(t, check(few, Claim{})), "compared have the bits")
		require.NotContains(t, text(t, named), "compared have the bits")
	}
}

// TestNoTrailingSpaces has more blocks of K than are shown.
func TestNoTrailingSpaces(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	a, b := operandOf(r, "a", 4, 2048, false), operandOf(r, "b", 5, 2048, false)
	v, err := Check(t.Context(), make([]float32, 20), nil, a, b, Claim{}, Options{})
	require.NoError(t, err)
	require.Contains(t, text(t, v), "...52 more\n")
	require.NotContains(t, text(t, v), " \n")
}

// TestLargestBound compares with the bounds that follow from each claim.
func TestLargestBound(t *testing.T) {
	a, b, c := result(t, 30, 40)
	kernel := oracle.Kernel{Model: oracle.HopperWGMMA(), Scales: oracle.AThenB}
	for _, claim := range []Claim{{}, {Accumulation: oracle.Accumulation{Kernel: kernel}}, {Want: Canonical}, {Want: Predicted, Kernel: kernel}} {
		bound := make([]float64, len(c))
		switch claim.Want {
		case Exact:
			require.NoError(t, oracle.Bound[float32](t.Context(), bound, nil, a, b, claim.Accumulation, oracle.Options{}))
		case Canonical:
			require.NoError(t, oracle.Bound[float32](t.Context(), bound, nil, a, b, oracle.Accumulation{Scales: oracle.AThenB}, oracle.Options{}))
		case Predicted:
			require.NoError(t, oracle.Predict(t.Context(), slices.Clone(c), bound, a, b, kernel, oracle.Options{}))
		}
		v, err := Check(t.Context(), c, nil, a, b, claim, Options{})
		require.NoError(t, err)
		require.Equal(t, slices.Max(bound), float64(v.LargestBound), "%+v", claim)
		require.NotEqual(t, bound[0], float64(v.LargestBound))
	}
}

// TestSuspectHasTheFault has another error before those of a block that was lost in
// some rows: that block is no suspect of the first element.
func TestSuspectHasTheFault(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	a, b := operandOf(r, "a", 71, 96, false), operandOf(r, "b", 90, 96, false)
	c := make([]float32, 71*90)
	p := fault.Product{A: a, B: b}
	for first, suspect := range map[bool]int{false: 1, true: -1} {
		lost := fault.Fault{Kind: "k-lost", From: 32, To: 64, Where: fault.Region{FromRow: 16}}
		require.NoError(t, fault.Inject(t.Context(), c, lost, p, fault.Options{}))
		if first {
			c[3] += 1e6
		}
		v, err := Check(t.Context(), c, nil, a, b, Claim{}, Options{})
		require.NoError(t, err)
		require.Equal(t, suspect, v.Comparison.First.Suspect, "%v", v.Explanation)
		require.Equal(t, fault.Kind("k-lost"), v.Explanation.Findings[0].Fault.Kind)
	}
}

func TestJSONOfSpecials(t *testing.T) {
	a, b, c := result(t, 3, 4)
	c[0] = float32(math.NaN())
	r, err := Check(t.Context(), c, nil, a, b, Claim{}, Options{})
	require.NoError(t, err)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.Contains(t, string(text), `"got":"NaN"`)
	require.Contains(t, string(text), `"error":"+Inf"`)
	var written bytes.Buffer
	require.NoError(t, r.WriteJSON(&written))
	require.JSONEq(t, string(text), written.String())
	require.Contains(t, written.String(), "\n  \"pass\": false,\n")
	require.Contains(t, written.String(), "<script>")
}

// TestCancelled: a judgement stops when its context ends, whatever is demanded.
func TestCancelled(t *testing.T) {
	a := &tensor.Tensor{Name: "a", Shape: []int{4, 8}, Codes: make([]byte, 32), Scales: []float32{1}}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, want := range []Want{Exact, Canonical, Predicted} {
		_, err := Check(ctx, make([]float32, 16), nil, a, a, Claim{Want: want, Kernel: oracle.Kernel{Model: oracle.AdaMMA()}}, Options{})
		require.ErrorIs(t, err, context.Canceled)
	}
}

// TestBuried: the largest error in ulp is said to be no measure where the error is as large as
// the element and is allowed, and not where it is smaller, or not allowed.
func TestBuried(t *testing.T) {
	for _, x := range []struct {
		got, want oracle.Number
		outside   int
		demand    string
		buried    bool
	}{{3, 1, 0, "bound", true}, {-1, 1, 0, "bound", true}, {1.5, 1, 0, "bound", false}, {3, 1, 1, "bound", false}, {3, 1, 0, "bits", false}} {
		v := Verdict{M: 1, N: 1, Demand: x.demand}
		v.Comparison.Outside = x.outside
		v.Comparison.MaxULP = &oracle.ElementError{Got: x.got, Want: x.want}
		v.Comparison.MaxBound = v.Comparison.MaxULP
		require.Equal(t, x.buried, strings.Contains(strings.Join(strings.Fields(text(t, &v)), " "), "its products cancel to less than its bound"), x)
	}
}
