package fp4

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
)

// The margins, which DECLARATION.md gives reasons for.
const (
	errorsToSee     = 3.0  // standard errors of a mean that is seen
	percentToMatter = 0.1  // of the loss
	eightBitGap     = 0.25 // percent
	fourBitGap      = 1.0
)

// effect is the difference of two ways in held-out loss, paired by seed, in percent.
type effect struct {
	bySeed       []float64
	mean, ofMean float64 // and the standard error of the mean
}

func newEffect(bySeed []float64) effect {
	_, ofMean := statistics.Spread(bySeed)
	return effect{bySeed, statistics.Mean(bySeed), ofMean}
}

// seen reports whether the mean is not chance.
func (e effect) seen() bool { return math.Abs(e.mean) > errorsToSee*e.ofMean }

// worse reports whether the first way is worse than the second by what matters.
func (e effect) worse() bool { return e.seen() && e.mean > percentToMatter }

// better reports the opposite.
func (e effect) better() bool { return e.seen() && e.mean < -percentToMatter }

func (e effect) String() string {
	return fmt.Sprintf("%+.2f %% (standard error %.2f)", e.mean, e.ofMean)
}

// verdict says how a loss is beside another, after words that say which they are.
func (e effect) verdict(which string) report.Conclusion {
	otherwise := fmt.Sprintf("%s the loss is not seen to be different: %v.", which, e)
	switch {
	case e.better():
		otherwise = fmt.Sprintf("%s the loss is lower: %v.", which, e)
	case e.seen():
		otherwise = fmt.Sprintf("%s the loss differs by no more than %v %%: %v.", which, percentToMatter, e)
	}
	return report.If(e.worse(), fmt.Sprintf("%s the loss is higher: %v.", which, e), otherwise)
}

// over returns how far a way's loss is above that of another.
func (s *study) over(way, other int) effect {
	var percents []float64
	for seed := range s.seeds {
		percents = append(percents, 100*(s.curve(seed, way).HeldOut/s.curve(seed, other).HeldOut-1))
	}
	return newEffect(percents)
}
