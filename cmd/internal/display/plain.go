package display

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// plain writes lines, for logs.
type plain struct{ w io.Writer }

func (plain) interval() time.Duration { return 10 * time.Second }

func (plain) clear() {}

// show writes a line. An error is no reason to stop.
func (p plain) show(s status) {
	f := s.fields()
	var parts []string
	for _, part := range []string{f.share, f.rate, f.left, f.note} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	fmt.Fprintf(p.w, "%s: %s\n", f.op, strings.Join(parts, ", "))
}
