package plan

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/internal/number"
)

// FitRange is where a law was fitted on data or checked against it, ends included.
// The zero FitRange is unknown and warns of nothing.
type FitRange struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// outside is a warning if v is not in r, and empty otherwise.
func (r FitRange) outside(name string, v float64) string {
	if r == (FitRange{}) || r.Min <= v && v <= r.Max {
		return ""
	}
	return fmt.Sprintf("%s is %.4g, and the law is known from %.4g to %.4g", name, v, r.Min, r.Max)
}

func warnings(all ...string) []string {
	var some []string
	for _, w := range all {
		if w != "" {
			some = append(some, w)
		}
	}
	return some
}

func positive(name string, v float64) error {
	if v > 0 && !math.IsInf(v, 1) {
		return nil
	}
	return fmt.Errorf("plan: %s is %v, must be positive and finite", name, v)
}

func notNegative(name string, v float64) error {
	if v >= 0 && !math.IsInf(v, 1) {
		return nil
	}
	return fmt.Errorf("plan: %s is %v, must be 0 or more and finite", name, v)
}

func finite(name string, v float64) error {
	if number.IsFinite(v) {
		return nil
	}
	return fmt.Errorf("plan: %s is %v, must be finite", name, v)
}

func tooSmall(name string, v, least float64) error {
	return fmt.Errorf("plan: %s is %.4g, must be at least %.4g", name, v, least)
}
