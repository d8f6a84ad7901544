package fp4

import (
	"fmt"

	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

// effect is the difference of two ways in held-out loss, paired by seed, in percent.
type effect struct {
	bySeed []float64
	statistics.Interval
}

func (s *study) newEffect(bySeed []float64) effect {
	return effect{bySeed, statistics.OfMean(bySeed, len(s.ways)-1)}
}

// seen reports whether the mean is not chance: not if all ways were alike, in 95 of 100 labs.
func (e effect) seen() bool { return e.Low > 0 || e.High < 0 }

// half is how far the interval reaches to each side.
func (e effect) half() float64 { return (e.High - e.Low) / 2 }

func (e effect) String() string { return fmt.Sprintf("%+.2f %% (± %.2f)", e.At, e.half()) }

// verdict says how a loss is beside another, after words that say which they are.
func (e effect) verdict(which string) report.Conclusion {
	otherwise := fmt.Sprintf("%s the loss is not seen to be different: %v.", which, e)
	if e.High < 0 {
		otherwise = fmt.Sprintf("%s the loss is lower: %v.", which, e)
	}
	return report.If(e.Low > 0, fmt.Sprintf("%s the loss is higher: %v.", which, e), otherwise)
}

// over returns how far a way's loss is above that of another.
func (s *study) over(way, other int) effect {
	return s.newEffect(statistics.PercentAbove(s.heldOut(way), s.heldOut(other)))
}

// heldOut returns the held-out losses of a way, by seed.
func (s *study) heldOut(way int) (losses []float64) {
	for seed := range s.seeds {
		losses = append(losses, s.curve(seed, way).HeldOut)
	}
	return losses
}
