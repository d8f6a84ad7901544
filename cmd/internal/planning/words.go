package planning

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/plan"
)

// prefixes and numerals are names of the powers of a thousand.
var (
	prefixes = []string{"", "kilo", "mega", "giga", "tera", "peta", "exa", "zetta", "yotta", "ronna", "quetta"}
	numerals = []string{"", " thousand", " million", " billion", " trillion", " quadrillion"}
)

// inThousands returns a number below a thousand, in four digits, and the name of the power of a
// thousand that it counts. What is beyond the names counts the last.
func inThousands(x float64, names []string) (text, name string) {
	power := 0
	for power < len(names)-1 && x >= 999.95 {
		x, power = x/1000, power+1
	}
	return fmt.Sprintf("%.4g", x), names[power]
}

// flops are FLOPs in words.
func flops(x float64) string {
	text, prefix := inThousands(x, prefixes)
	if prefix == "" {
		return text + " FLOPs"
	}
	return text + " " + prefix + "FLOPs"
}

// large is a count in words.
func large(x float64) string {
	text, name := inThousands(x, numerals)
	return text + name
}

// days are days in words: hours where they are fewer than two, and years where they are many.
func days(x float64) string {
	const year = 365.25
	switch {
	case x < 2:
		return fmt.Sprintf("%.4g hours", 24*x)
	case x > 2*year:
		return fmt.Sprintf("%.4g years", x/year)
	}
	return fmt.Sprintf("%.4g days", x)
}

// cards are those that a training is on.
func (r *Report) cards() string {
	if r.ask.Peak == 0 {
		return fmt.Sprintf("%s H100 (%.4g TFLOP/s each, in BF16)", grouped(int64(r.Run.Cards)), plan.H100/1e12)
	}
	return fmt.Sprintf("%s of %.4g TFLOP/s", count(r.Run.Cards, "card"), r.Run.Peak/1e12)
}

// gibUp is so many GiB in two digits, rounded up.
func gibUp(bytes int64) float64 { return math.Ceil(gib(bytes)*100) / 100 }
