package fault_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/internal/workpool"
	"github.com/octavo-fp8/octavo/oracle/audit"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/tensor"
)

// side is that of the square C of which faults are looked for: 4,096 elements.
const side = 64

// cell counts the results of a fault: those that it changes, that fail, and whose fault is
// named.
type cell struct{ changed, found, named int }

func (c cell) String() string {
	switch {
	case c.changed == 0:
		return "·"
	case c.named == c.changed:
		return fmt.Sprint(c.changed)
	}
	return fmt.Sprintf("%d/%d/%d", c.named, c.found, c.changed)
}

// celled draws operands of normal numbers for the table, in each of the ways that faults need.
func celled(k int, f fp8.Format, scales tensor.ScaleFormat, width int, outer bool) (p fault.Product) {
	r := rand.New(rand.NewPCG(uint64(k), uint64(width)))
	draw := func(name string) *tensor.Tensor {
		t := &tensor.Tensor{Name: name, Format: f, Shape: []int{side, k}, Block: tensor.Block{Rows: 1, Cols: width}, ScaleFormat: scales}
		for range side * k {
			t.Codes = append(t.Codes, fp8.EncodeOne(r.NormFloat64()*float64(f.Max())/6, f, fp8.Policy{}))
		}
		for range side * ((k + width - 1) / width) {
			switch s := math.Exp2(4*r.Float64() - 9); scales {
			case tensor.E8M0Scales:
				t.Scales = append(t.Scales, float32(math.Exp2(math.Round(math.Log2(s)))))
			case tensor.UE4M3Scales:
				t.Scales = append(t.Scales, fp8.E4M3.Float32(byte(0x18+r.IntN(0x40))))
			default:
				t.Scales = append(t.Scales, float32(s))
			}
		}
		if outer {
			t.Outer = tensor.Outer{Scales: []float32{float32(0.01 + 0.01*r.Float64())}}
		}
		return t
	}
	p.A, p.B = draw("a"), draw("b")
	return p
}

// trial is a result with a fault, and whether a diagnosis names that.
type trial[T gemm.Output] struct {
	row   string // of the table
	text  string
	a, b  *tensor.Tensor
	make  func(t *testing.T) (got []T, same bool) // same: as a correct kernel's
	named func(t *testing.T, v *judge.Verdict, got []T) bool
}

// inAlarms are words that name a fault of which all errors together are.
var inAlarms = map[fault.Kind]string{"codes-flushed": "flushed to zero", "codes-normal": "a leading 1", "codes-normal-but-0": "a leading 1",
	"truncated": "truncated, toward zero", "rounded": "rounded twice", "unpromoted": "accumulators"}

// injected are the first fault of each kind of those that an audit injects, but for kinds
// that were there before.
func injected[T gemm.Output](typ fault.Type, p fault.Product, before map[fault.Kind]bool) (all []*trial[T]) {
	var honest []T
	var once sync.Once
	product := func(t *testing.T, f fault.Fault) []T {
		c := make([]T, side*side)
		require.NoError(t, fault.Inject(t.Context(), c, f, p, fault.Options{Workers: 1}))
		return c
	}
	for _, f := range audit.Faults(typ, p) {
		if before[f.Kind] {
			continue
		}
		before[f.Kind] = true
		all = append(all, &trial[T]{row: string(f.Kind), text: f.String(), a: p.A, b: p.B,
			make: func(t *testing.T) ([]T, bool) {
				once.Do(func() { honest = product(t, fault.Fault{}) })
				got := product(t, f)
				return got, equal(got, honest)
			},
			// Another fault that gives the same bits is as good a name.
			named: func(t *testing.T, v *judge.Verdict, got []T) bool {
				if word := inAlarms[f.Kind]; word != "" && v.Power.Alarm() && strings.Contains(strings.Join(v.Explained(), " "), word) {
					return true
				}
				if v.Explanation == nil || len(v.Explanation.Findings) == 0 {
					return false
				}
				first := &v.Explanation.Findings[0]
				return slices.ContainsFunc(append([]fault.Fault{first.Fault}, first.Same...), func(g fault.Fault) bool {
					g.Where = f.Where
					if g == f || g.Kind == "scaled" && f.Kind == "scaled" && math.Abs(g.Factor/f.Factor-1) < 0.01 {
						return true
					}
					c := make([]T, side*side)
					return fault.Inject(t.Context(), c, g, p, fault.Options{Workers: 1}) == nil && equal(c, got)
				})
			}})
	}
	return all
}

// equal compares bits, but for those of NaN.
func equal[T gemm.Output](x, y []T) bool {
	for i := range x {
		if v, w := number.Float64(x[i]), number.Float64(y[i]); v != w && (v == v || w == w) {
			return false
		}
	}
	return true
}

// ofMuseum are the faults that have shipped, made by a plain kernel.
func ofMuseum[T gemm.Output](k int) (all []*trial[T]) {
	for n, name := range fault.NamesShipped() {
		x := &trial[T]{row: name}
		var words []string
		x.make = func(*testing.T) (got []T, same bool) {
			c := []float32(nil)
			x.a, x.b, c, words = fault.Shipped(n, rand.New(rand.NewPCG(uint64(k), uint64(n))), side, side, k)
			for _, v := range c {
				got = append(got, number.From[T](v))
			}
			return got, false
		}
		x.named = func(_ *testing.T, v *judge.Verdict, _ []T) bool {
			text := strings.Join(v.Explained(), "\n")
			if v.Explanation != nil {
				text += v.Explanation.String()
			}
			return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
		}
		all = append(all, x)
	}
	return all
}

// cellsOf fills in the column of a K and a type, and tells what is not found and not named.
func cellsOf[T gemm.Output](t *testing.T, typ fault.Type, k int) (rows []string, cells map[string]cell) {
	before := map[fault.Kind]bool{}
	var trials []*trial[T]
	for _, p := range []fault.Product{
		celled(k, fp8.E4M3, tensor.Float32Scales, 128, false),
		celled(k, fp8.E4M3, tensor.E8M0Scales, 32, false),
		celled(k, fp8.E2M1, tensor.UE4M3Scales, 16, true),
	} {
		c := make([]T, side*side)
		require.NoError(t, gemm.Multiply(t.Context(), c, p.A, p.B, gemm.Options{}))
		v, err := judge.Check(t.Context(), c, nil, p.A, p.B, judge.Claim{}, judge.Options{})
		require.NoError(t, err)
		require.True(t, v.Pass, "an honest product: %v", v.Title())
		trials = append(trials, injected[T](typ, p, before)...)
	}
	trials = append(trials, ofMuseum[T](k)...)
	if testing.Short() {
		trials = trials[:len(trials)/4]
	}
	type outcome struct {
		cell
		text string
	}
	outcomes := make([]outcome, len(trials))
	err := workpool.Each(len(trials), 0, func(_ *struct{}, n int) error {
		x, o := trials[n], &outcomes[n]
		got, same := x.make(t)
		if same {
			return nil
		}
		// The tests of all errors together are for what no bound finds.
		var v *judge.Verdict
		for _, alarms := range []judge.Alarms{judge.Ignore, judge.Fail} {
			var err error
			if v, err = judge.Check(t.Context(), got, nil, x.a, x.b, judge.Claim{Alarms: alarms}, judge.Options{Workers: 1}); err != nil {
				return err
			}
			if v.Outcome == "fail" {
				break
			}
		}
		o.changed = 1
		if v.Outcome == "fail" {
			o.found = 1
		}
		if o.found == 1 && x.named(t, v, got) {
			o.named = 1
			return nil
		}
		said := strings.Join(v.Explained(), " ")
		o.text = fmt.Sprintf("K = %d, %v, %s: %s: %s: %.300s", k, typ, x.row, x.text, v.Title(), said)
		return nil
	})
	require.NoError(t, err)
	cells = map[string]cell{}
	for n, x := range trials {
		o := &outcomes[n]
		c, there := cells[x.row]
		if !there {
			rows = append(rows, x.row)
		}
		c.changed, c.found, c.named = c.changed+o.changed, c.found+o.found, c.named+o.named
		cells[x.row] = c
		if o.text != "" {
			t.Log(o.text)
		}
	}
	return rows, cells
}

// hidden are faults of which the operands of the table have so few codes that they may
// leave no trace.
var hidden = []string{"codes-flushed", "codes-normal", "codes-normal-but-0"}

// TestCells fills the second table of evidence.md of package power: with which faults products
// of 64x64 elements fail, and whether the fault is named.
func TestCells(t *testing.T) {
	lengths := []int{512}
	if testutil.Full() {
		lengths = []int{512, 1024, 2048, 4096, 8192, 16384}
	}
	for _, k := range lengths {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			rows, wide := cellsOf[float32](t, fault.Float32, k)
			more, narrow := cellsOf[fp8.BFloat16](t, fault.BFloat16, k)
			for _, row := range more {
				if !slices.Contains(rows, row) {
					rows = append(rows, row)
				}
			}
			for _, row := range rows {
				t.Logf("| %s | %d | %v | %v |", row, k, wide[row], narrow[row])
				for _, c := range []cell{wide[row], narrow[row]} {
					if !slices.Contains(hidden, row) && k == 512 {
						require.Equal(t, c.changed, c.found, row)
					}
				}
			}
		})
	}
}
