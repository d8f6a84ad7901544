package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/oracle/explain"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/oracle/flash"
	"github.com/octavo-fp8/octavo/oracle/judge/cache"
	judged "github.com/octavo-fp8/octavo/oracle/judge/quantizer"
)

// known are the faults that commands look for, by what they judge.
type known []struct {
	Of     string          `json:"of"`
	By     string          `json:"by"`
	Faults []explain.Known `json:"faults"`
}

func knownFaults() known {
	return known{
		{"products", "octavo verify", fault.Known()},
		{"attention", "octavo verify attention", flash.Known()},
		{"quantizers", "octavo verify quantizer", judged.Known()},
		{"caches", "octavo verify cache", cache.Known()},
	}
}

// writeText writes a fault in words and where it was seen, a kind each.
func (k known) writeText(stdout io.Writer) error {
	w := textout.NewWriter(stdout)
	for n, t := range k {
		if n > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %d kinds of fault that %s names\n", t.Of, len(t.Faults), t.By)
		for _, f := range t.Faults {
			text := f.Text
			if len(f.Reports) > 0 {
				text += " (seen in " + strings.Join(f.Reports, ", ") + ")"
			}
			fmt.Fprintf(w, "  %s\n", f.Kind)
			textout.Paragraph(w, text, "      ")
		}
	}
	return w.Flush()
}
