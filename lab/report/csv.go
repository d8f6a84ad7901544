package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

// File returns the name of a table's CSV file.
func (r *Report) File(t Table) string { return r.Name + "-" + t.Name + ".csv" }

// WriteCSV writes the table with all digits that matter.
func (t Table) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	if err := c.Write(t.Columns); err != nil {
		return err
	}
	for _, row := range t.Rows {
		line := make([]string, len(row))
		for i, cell := range row {
			line[i] = text9(cell)
		}
		if err := c.Write(line); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// text9 returns a cell with nine digits, which tell all float32 apart.
func text9(cell any) string {
	switch v := cell.(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', 9, 64)
	case float32:
		return strconv.FormatFloat(float64(v), 'g', 9, 32)
	}
	return fmt.Sprint(cell)
}

// text4 returns a cell as people like to read it.
func text4(cell any) string {
	switch v := cell.(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case float32:
		return strconv.FormatFloat(float64(v), 'g', 4, 32)
	}
	return fmt.Sprint(cell)
}
