package optim

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/elementary"
)

// Schedule is a learning rate that rises linearly to Peak over Warmup steps and
// then falls along half a cosine, until step Steps, to Peak·Final, where it stays
// (Loshchilov & Hutter, arXiv 1608.03983, without restarts). Without Steps beyond
// Warmup it stays at Peak.
type Schedule struct {
	Peak   float64 `json:"peak"`
	Final  float64 `json:"final"` // fraction of Peak
	Warmup int     `json:"warmup"`
	Steps  int     `json:"steps"`
}

// At returns the learning rate of a step, counted from 0; a negative one is taken for
// the first. That is already Peak/Warmup.
func (s Schedule) At(step int) float64 {
	step = max(step, 0)
	switch {
	case step < s.Warmup:
		return s.Peak * float64(step+1) / float64(s.Warmup)
	case s.Steps <= s.Warmup:
		return s.Peak
	case step >= s.Steps:
		return s.Peak * s.Final
	}
	progress := float64(step-s.Warmup) / float64(s.Steps-s.Warmup)
	_, cos := elementary.SinCos(math.Pi * progress)
	return s.Peak * (s.Final + float64((1-s.Final)*(1+cos)/2))
}
