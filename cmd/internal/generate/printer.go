package generate

import (
	"io"
	"strings"
)

// Printer writes the texts of requests one after another, though they come at the same time:
// of the first that has not ended as they come, of the others when it is their turn.
type Printer struct {
	w       io.Writer
	labels  []string
	waiting []strings.Builder
	done    []bool
	current int // text that is written as it comes
	labeled int // the last text whose label was written, or -1
	open    bool
}

// NewPrinter returns a printer of as many texts as there are labels, which stand above them.
// A text that is the only one has none.
func NewPrinter(w io.Writer, labels []string) *Printer {
	n := len(labels)
	return &Printer{
		w: w, labels: labels, waiting: make([]strings.Builder, n), done: make([]bool, n),
		labeled: -1,
	}
}

// Print adds to text i.
func (p *Printer) Print(i int, text string) error {
	if i != p.current {
		p.waiting[i].WriteString(text)
		return nil
	}
	return p.write(text)
}

// Done ends text i.
func (p *Printer) Done(i int) error {
	p.done[i] = true
	for p.current < len(p.done) && p.done[p.current] {
		if err := p.write(""); err != nil {
			return err
		}
		if err := p.next(); err != nil {
			return err
		}
	}
	return nil
}

// Flush writes what waits of texts that do not end.
func (p *Printer) Flush() error {
	for p.current < len(p.labels) {
		if err := p.next(); err != nil {
			return err
		}
	}
	return nil
}

// Open reports whether a line was begun and not ended.
func (p *Printer) Open() bool { return p.open }

// next goes on to the next text.
func (p *Printer) next() error {
	if p.open && len(p.labels) > 1 {
		if _, err := io.WriteString(p.w, "\n"); err != nil {
			return err
		}
		p.open = false
	}
	if p.current++; p.current == len(p.labels) || p.waiting[p.current].Len() == 0 {
		return nil
	}
	text := p.waiting[p.current].String()
	p.waiting[p.current].Reset()
	return p.write(text)
}

// write adds to the current text, whose label comes first.
func (p *Printer) write(text string) error {
	if len(p.labels) > 1 && p.labeled != p.current {
		label := "==> " + p.labels[p.current] + " <==\n"
		if p.labeled >= 0 {
			label = "\n" + label
		}
		text, p.labeled = label+text, p.current
	}
	if text == "" {
		return nil
	}
	p.open = !strings.HasSuffix(text, "\n")
	_, err := io.WriteString(p.w, text)
	return err
}
