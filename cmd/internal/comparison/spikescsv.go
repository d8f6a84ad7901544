package comparison

import (
	"encoding/csv"
	"io"
)

// WriteSpikes writes a line for each spike as CSV.
func (r *Result) WriteSpikes(w io.Writer) error {
	rows := [][]string{{"step", "model", "series", "value", "median_before", "score", "shared",
		"suspect_tensor", "suspect_op", "suspect_lost", "suspect_elements"}}
	for _, s := range r.Spikes {
		row := []string{integer(s.Step), s.Model, s.Series, number(s.Value), number(s.Median), number(s.Score), yesNo(s.Shared)}
		if e := s.Suspect; e != nil {
			row = append(row, e.Tensor, e.Op, integer(e.Stats.Lost()), integer(e.Stats.Elements))
		} else {
			row = append(row, "", "", "", "")
		}
		rows = append(rows, row)
	}
	return csv.NewWriter(w).WriteAll(rows)
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
