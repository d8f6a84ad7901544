package benchreport

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// WriteText writes the tables for people, and where the files are.
func (r Result) WriteText(w io.Writer, dir string) error {
	textout.Paragraph(w, r.machine(), "")
	for _, section := range []func(io.Writer) error{r.printProducts, r.printLimits, r.printConversions} {
		if err := section(w); err != nil {
			return err
		}
	}
	if dir == "" {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nCharts, tables and how to repeat it: %s\n", textout.Name(filepath.Join(dir, pageName)))
	return err
}

// printProducts writes a table for each number of workers, with a group of columns
// for each level and peer.
func (r Result) printProducts(w io.Writer) error {
	if len(r.Products) == 0 {
		return nil
	}
	fmt.Fprint(w, "\nProducts, C in float32; without a name in E4M3 with scales 1x128 by 128x128.\nGFLOP/s: best and median.\n")
	if len(r.Limits.FMA) > 0 {
		fmt.Fprint(w, "Roof: best in % of what arithmetic and reading allow.\n")
	}
	for _, t := range r.productTables() {
		fmt.Fprintln(w)
		if err := t.print(w); err != nil {
			return err
		}
	}
	return nil
}

// productTables returns a table for each number of workers.
func (r Result) productTables() (tables []*crossTable) {
	byWorkers := make(map[int]*crossTable)
	for _, p := range r.Products {
		t := byWorkers[p.Workers]
		if t == nil {
			t = &crossTable{corner: workersText(p.Workers)}
			byWorkers[p.Workers] = t
			tables = append(tables, t)
		}
		putProduct(t, p)
	}
	return tables
}

func putProduct(t *crossTable, p bench.Product) {
	row, group := p.Shape.String(), p.Level
	if p.Packed {
		row += ", packed"
	}
	if p.By != bench.Octavo {
		group = p.By
	}
	t.put(row, group, "best", textout.Rate(p.Best))
	t.put(row, group, "median", textout.Rate(p.Median))
	if p.Roof > 0 {
		t.put(row, group, "roof", fmt.Sprintf("%.0f%%", p.OfRoof()))
	}
}

func (r Result) printLimits(w io.Writer) error {
	if len(r.Limits.FMA)+len(r.Limits.Read) == 0 {
		return nil
	}
	fmt.Fprint(w, "\nWhat the machine can do, at best of several measurements in this run.\n\n")
	return r.limitTable().print(w)
}

func (r Result) limitTable() *crossTable {
	var t crossTable
	for _, m := range r.Limits.FMA {
		t.put("FMA in registers, "+m.Level, workersText(m.Workers), "", textout.Rate(m.Rate)+" GFLOP/s")
	}
	for _, m := range r.Limits.Read {
		t.put(fmt.Sprintf("reading %d MiB", m.Bytes>>20), workersText(m.Workers), "", textout.Rate(m.Rate)+" GB/s")
	}
	return &t
}

func (r Result) printConversions(w io.Writer) error {
	if len(r.Conversions) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\nConversions of %d values on one processor. GB/s of float32: best and median.\n\n", r.Conversions[0].Elements)
	return r.conversionTable().print(w)
}

func (r Result) conversionTable() *crossTable {
	var t crossTable
	for _, c := range r.Conversions {
		group := c.Level
		if group == "" {
			group = "no level"
		}
		t.put(c.Name, group, "best", textout.Rate(c.Best))
		t.put(c.Name, group, "median", textout.Rate(c.Median))
	}
	return &t
}

func workersText(n int) string {
	if n == 1 {
		return "1 worker"
	}
	return fmt.Sprintf("%d workers", n)
}
