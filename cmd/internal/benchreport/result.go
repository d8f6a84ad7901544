// Package benchreport writes what octavo bench measured: tables, JSON and plots.
package benchreport

import (
	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/cmd/internal/machine"
)

// Result is what octavo bench prints as JSON.
type Result struct {
	Machine machine.Info `json:"machine"`
	*bench.Report
	Command string `json:"command"` // what repeats the run
}
