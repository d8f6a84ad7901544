package report

import (
	"math"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
)

// WithLimit returns the chart with a line at a limit of Y, unless all points are so far
// within it that they could not be told apart beside it.
func WithLimit(c chart.Chart, name string, limit float64) chart.Chart {
	const near = 5
	for _, s := range c.Series {
		for _, at := range s.Points {
			if near*math.Abs(at.Y) >= math.Abs(limit) {
				c.Lines = append(c.Lines[:len(c.Lines):len(c.Lines)], chart.Reference{Name: name, Value: limit})
				return c
			}
		}
	}
	return c
}
