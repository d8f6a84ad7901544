package display

import (
	"fmt"
	"io"
	"time"
)

// plain writes lines, for logs.
type plain struct{ w io.Writer }

func (plain) interval() time.Duration { return 10 * time.Second }

func (plain) clear() {}

// show writes a line. An error is no reason to stop.
func (p plain) show(s status) {
	f := s.fields()
	fmt.Fprintf(p.w, "%s: %s\n", f.op, join(f.share, f.amount, f.rate, f.left, f.note))
}
