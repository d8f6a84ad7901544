package vectors

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// statsCase is an element of stats.json.
type statsCase struct {
	Pattern string `json:"pattern"`
	Format  string `json:"format"`
	Input   string `json:"input"`
	Codes   string `json:"codes"`
	Stats   stats  `json:"stats"`
	// Parts are the Stats of each row, which merge to those of the whole.
	Parts []stats `json:"parts"`
	// Exponents counts values by the exponent field that they have as float32.
	Exponents map[int]int64 `json:"exponents"`
}

const statsRows, statsCols = 4, 96

func makeStats(_ context.Context, seed uint64) (*tensors, any, error) {
	ts := &tensors{of: "stats"}
	var index []statsCase
	for _, pattern := range oracle.Patterns() {
		for _, f := range fp8.Formats() {
			x := oracle.Generator{Pattern: pattern, Rows: statsRows, Cols: statsCols, Block: tensor.Block{Rows: 1, Cols: 32}, Format: f, Seed: seed, Uniform: true}.Values()
			name := fmt.Sprintf("%s.%s", pattern, lower(f))
			c := statsCase{Pattern: pattern.String(), Format: f.String(), Exponents: make(map[int]int64)}
			c.Input = numbers(ts, "x."+name, x, statsRows, statsCols)
			codes := make([]byte, len(x))
			whole := fp8.Stats{Detail: &fp8.Detail{}}
			for i := range statsRows {
				var part fp8.Stats
				fp8.Encode(codes[i*statsCols:], x[i*statsCols:(i+1)*statsCols], f, fp8.Policy{}, &part)
				c.Parts = append(c.Parts, newStats(&part))
			}
			fp8.Encode(codes, x, f, fp8.Policy{}, &whole)
			c.Codes, c.Stats = ts.codes("codes."+name, f, []int{statsRows, statsCols}, codes), newStats(&whole)
			for e, n := range whole.Detail.Exponents {
				if n > 0 {
					c.Exponents[e] = n
				}
			}
			index = append(index, c)
		}
	}
	return ts, index, nil
}
