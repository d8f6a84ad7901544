package fault

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/oracle"
)

var update = flag.Bool("update", false, "write FAULTS.md anew")

// tabled are the kinds of operands of FAULTS.md.
var tabled = []operandKind{operandKinds[0], operandKinds[4], operandKinds[2]}

// tableRow is a fault of the table, and the product that has it.
type tableRow struct {
	Fault
	with string // what the product has beside operands
}

// The products of the table.
const (
	plain     = ""
	addends   = "bias and old C"
	withNaN   = "a NaN in A"
	tensorOps = "bits of hopper-wgmma"
)

func tableProduct(kind operandKind, with string) Product {
	p := testProduct(kind)
	switch with {
	case addends:
		r := rand.New(rand.NewPCG(1, 1))
		size := float64(meanMagnitude(honest(p)))
		for range testCols {
			p.Bias = append(p.Bias, float32(r.NormFloat64()*size))
		}
		for range testRows * testCols {
			p.Old = append(p.Old, float32(r.NormFloat64()*size))
		}
	case withNaN:
		p.A.Codes[5*testK+7] = p.A.Format.NaNCode()
	case tensorOps:
		p.Kernel, p.Bits = oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 32, Scales: oracle.ProductThenFMA}, true
	}
	return p
}

// honest is what a kernel without a fault makes of p.
func honest(p Product) []float32 {
	c := make([]float32, testRows*testCols)
	if err := Inject(context.Background(), c, Fault{}, p, Options{}); err != nil {
		panic(err)
	}
	return c
}

// tableRows lists a fault of each kind, and more of some, in the order of the kinds.
func tableRows() (rows []tableRow) {
	p := testProduct(operandKinds[4])
	seen := map[Kind]bool{}
	add := func(f Fault, with string) {
		seen[f.Kind] = true
		rows = append(rows, tableRow{f, with})
	}
	for _, f := range oneOfEach[float32](p) {
		if f.Kind != "nan-is-zero" { // there is none
			add(f, plain)
		}
	}
	for _, f := range []Fault{{Kind: "k-factor", Of: A, From: 64, To: 128, Factor: 3}, {Kind: "scaled", Factor: 0.75}} {
		add(f, plain)
	}
	for _, with := range []string{addends, withNaN, tensorOps} {
		for _, f := range oneOfEach[float32](tableProduct(operandKinds[4], with)) {
			if !seen[f.Kind] && (f.Kind != "nan-is-zero" || with == withNaN) {
				add(f, with)
			}
		}
	}
	return rows
}

// cells are what the table says of a fault in a product: of how many elements bits
// differ, how many are beyond the bound, and whether it is named.
func cells(t *testing.T, r tableRow, kind operandKind) [3]string {
	t.Helper()
	p := tableProduct(kind, r.with)
	got := make([]float32, testRows*testCols)
	if err := Inject(t.Context(), got, r.Fault, p, Options{}); err != nil {
		require.ErrorIs(t, err, ErrNotHere, r.Fault)
		return [3]string{"cannot be", "", ""}
	}
	want := honest(p)
	var different []int
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			different = append(different, i)
		}
	}
	wrong := wrongOf(t, got, p)
	named := ""
	told := wrong
	if p.Bits {
		told = different
	}
	if len(told) > 0 {
		e, err := Explain(t.Context(), got, p, Options{Wrong: told})
		require.NoError(t, err)
		named = "no"
		if e.has(r.Fault) || len(e.Findings) > 0 && (r.Kind == "k-factor" || r.Kind == "scaled") && e.Findings[0].Fault.Kind == r.Kind {
			named = "yes"
			if n := len(e.Findings[0].Same); n > 0 {
				named = fmt.Sprintf("1 of %d", n+1)
			}
			require.Equal(t, e.Findings[0].Explained, e.Findings[0].Of, "%v", r.Fault)
			require.Equal(t, Region{}, e.Findings[0].Fault.Where, "%v: %v", r.Fault, e)
		}
	}
	return [3]string{fmt.Sprint(len(different)), fmt.Sprint(len(wrong)), named}
}

const tableHead = `# Faults

What a bound sees of each fault, and whether Explain names it. Written by
"go test ./oracle/fault -run TestFaultTable -update", and checked by that test.

Each fault is put into an honest float32 product of %dx%d elements with K = %d,
E4M3 in blocks of 1x64 on both sides, over three kinds of operands: normal values
under float32 scales, outliers under powers of two, and scales over a range of 2^40.
Of the %d elements,

- bits: how many have other bits than the honest kernel's;
- bound: how many are outside the bound of float32 sums, which is what a test sees
  that demands no bits;
- named: whether Explain names the fault from the elements that fail; "1 of 3", that it
  does with two others that give the same result on all elements looked at. Nothing is
  said where nothing fails.

A fault that such operands hide is there all the same: the sums of a model that keeps
25 bits are as good as float32's, a shift of scales is none where all are equal.

`

// TestFaultTable compares FAULTS.md with what is found; in short tests one kind of operands.
func TestFaultTable(t *testing.T) {
	const path = "FAULTS.md"
	file, err := os.ReadFile(path)
	if !*update {
		require.NoError(t, err)
	}
	rows := tableRows()
	byText := map[string][]string{}
	for line := range strings.Lines(string(file)) {
		if c := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"); len(c) == 1+3*len(tabled) {
			byText[strings.TrimSpace(c[0])] = c[1:]
		}
	}
	written := make([][]string, len(rows))
	for n, kind := range tabled {
		if testing.Short() && n != 1 {
			continue
		}
		named := map[Kind]bool{}
		for i, r := range rows {
			c := cells(t, r, kind)
			written[i] = append(written[i], c[:]...)
			if c[2] != "" && c[2] != "no" {
				named[r.Kind] = true
			}
			if *update {
				continue
			}
			there := byText[r.text()]
			require.NotNil(t, there, "%s has no row of %q: run it with -update", path, r.text())
			for j, cell := range c {
				require.Equal(t, strings.TrimSpace(there[3*n+j]), cell, "%s: %s, %s", path, r.text(), kind.name)
			}
		}
		require.GreaterOrEqual(t, len(named), 25)
		t.Logf("%s: %d kinds named", kind.name, len(named))
	}
	if !*update {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, tableHead, testRows, testCols, testK, testRows*testCols)
	b.WriteString("| the kernel's fault |")
	for _, kind := range tabled {
		fmt.Fprintf(&b, " %s: bits | bound | named |", kind.name)
	}
	b.WriteString("\n|---" + strings.Repeat("|---", 3*len(tabled)) + "|\n")
	for i, r := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", r.text(), strings.Join(written[i], " | "))
	}
	fmt.Fprintf(&b, narrowHead, narrowRows, narrowCols)
	b.WriteString(narrowTable(t, narrowKinds))
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o666))
}

func (r tableRow) text() string {
	if r.with == plain {
		return r.Fault.String()
	}
	return r.Fault.String() + " (" + r.with + ")"
}
