package runs

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Curves are the figures of each step. All slices are of one length.
type Curves struct {
	Step           []float64
	FP32, FP8, Gap []float64 // losses, and the gap in percent
}

// Len returns the number of steps.
func (c Curves) Len() int { return len(c.Step) }

// parseCurves reads the text of curves.csv. Columns are found by their names.
func parseCurves(text io.Reader) (c Curves, err error) {
	r := csv.NewReader(text)
	r.ReuseRecord = true
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return c, errors.New("it is empty")
	}
	if err != nil {
		return c, err
	}
	columns := []*[]float64{&c.Step, &c.FP32, &c.FP8, &c.Gap}
	var at []int
	for _, name := range []string{"step", "fp32_loss", "fp8_loss", "gap_percent"} {
		i := slices.Index(header, name)
		if i < 0 {
			return c, fmt.Errorf("it has no column %s", name)
		}
		at = append(at, i)
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return c, err
		}
		for i, column := range columns {
			x, err := strconv.ParseFloat(row[at[i]], 64)
			if err != nil {
				line, _ := r.FieldPos(at[i])
				return c, fmt.Errorf("line %d: %w", line, err)
			}
			*column = append(*column, x)
		}
		if n := c.Len(); c.Step[n-1] != float64(n-1) {
			line, _ := r.FieldPos(at[0])
			return c, fmt.Errorf("line %d is of step %v: want %d", line, c.Step[n-1], n-1)
		}
	}
}
