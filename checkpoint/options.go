package checkpoint

import (
	"cmp"

	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/tensor"
)

// defaultStrip is how many bytes of values are read at a time, unless one row of blocks is
// more: what stays in a core's cache until it is encoded and written.
const defaultStrip = 1 << 20

// Options are what operations on large weights have in common. The zero value is silent and
// uses all processors.
type Options struct {
	// Workers is the number of goroutines at most; 0 means GOMAXPROCS. Each holds a strip of
	// rows: what is written does not depend on it.
	Workers int

	// Strip is the number of bytes of values in a strip, which is at least one row of
	// blocks; 0 means 1 MiB.
	Strip int

	// Errors asks for the error of every weight that is not copied, which takes about as long
	// again. [Convert] always finds them.
	Errors bool

	// Reporter, unless nil, hears of every block that is quantized. Rows of blocks are
	// counted from the first of their strip.
	Reporter tensor.Reporter

	// Progress, unless nil, hears of bytes that are read.
	Progress progress.Reporter
}

func (o Options) strip() int { return cmp.Or(max(o.Strip, 0), defaultStrip) }
