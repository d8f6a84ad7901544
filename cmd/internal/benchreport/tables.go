package benchreport

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/cmd/internal/textout"
)

// WriteText writes the tables for people, and where the plots are.
func (r Result) WriteText(w io.Writer, dir string) error {
	fmt.Fprintln(w, r.machine())
	for _, section := range []func(io.Writer) error{r.printProducts, r.printLimits, r.printConversions} {
		if err := section(w); err != nil {
			return err
		}
	}
	if dir == "" || len(r.Products) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nPlots: %s and .png\n", textout.Name(filepath.Join(dir, "roofline.svg")))
	return err
}

// printProducts writes a table for each number of workers, with a group of columns
// for each level and peer.
func (r Result) printProducts(w io.Writer) error {
	if len(r.Products) == 0 {
		return nil
	}
	fmt.Fprint(w, "\nProducts, E4M3, scales 1x128 by 128x128, C in float32. GFLOP/s: best and median.\n")
	if len(r.Limits.FMA) > 0 {
		fmt.Fprint(w, "Roof: best in % of what arithmetic and reading allow.\n")
	}
	var numbers []int
	tables := make(map[int]*crossTable)
	for _, p := range r.Products {
		if tables[p.Workers] == nil {
			numbers = append(numbers, p.Workers)
			tables[p.Workers] = &crossTable{corner: workersText(p.Workers)}
		}
		putProduct(tables[p.Workers], p)
	}
	for _, n := range numbers {
		fmt.Fprintln(w)
		if err := tables[n].print(w); err != nil {
			return err
		}
	}
	return nil
}

func putProduct(t *crossTable, p bench.Product) {
	row, group := p.Shape.String(), p.Level
	if p.Packed {
		row += ", packed"
	}
	if p.By != bench.Octavo {
		group = p.By
	}
	t.put(row, group, "best", rateText(p.Best))
	t.put(row, group, "median", rateText(p.Median))
	if p.Roof > 0 {
		t.put(row, group, "roof", fmt.Sprintf("%.0f%%", p.OfRoof()))
	}
}

func (r Result) printLimits(w io.Writer) error {
	if len(r.Limits.FMA)+len(r.Limits.Read) == 0 {
		return nil
	}
	fmt.Fprint(w, "\nWhat the machine can do, at best of several measurements in this run.\n\n")
	var t crossTable
	for _, m := range r.Limits.FMA {
		t.put("FMA in registers, "+m.Level, workersText(m.Workers), "", rateText(m.Rate)+" GFLOP/s")
	}
	for _, m := range r.Limits.Read {
		t.put(fmt.Sprintf("reading %d MiB", m.Bytes>>20), workersText(m.Workers), "", rateText(m.Rate)+"    GB/s")
	}
	return t.print(w)
}

func (r Result) printConversions(w io.Writer) error {
	if len(r.Conversions) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\nConversions of %d values on one processor. GB/s of float32: best and median.\n\n", r.Conversions[0].Elements)
	var t crossTable
	for _, c := range r.Conversions {
		group := c.Level
		if group == "" {
			group = "no level"
		}
		t.put(c.Name, group, "best", rateText(c.Best))
		t.put(c.Name, group, "median", rateText(c.Median))
	}
	return t.print(w)
}

func workersText(n int) string {
	if n == 1 {
		return "1 worker"
	}
	return fmt.Sprintf("%d workers", n)
}

// rateText has three digits, or those before the point.
func rateText(x float64) string {
	decimals := 2
	switch {
	case x >= 99.95:
		decimals = 0
	case x >= 9.995:
		decimals = 1
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}
