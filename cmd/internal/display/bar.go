package display

import (
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// bar draws a bar in one line of a terminal, whose width may change meanwhile.
type bar struct {
	w     io.Writer
	shown *progressbar.ProgressBar // nil if there is none on the screen
	width int                      // of the terminal, when it was drawn
	total int64                    // of shown
}

func newBar(w io.Writer) *bar { return &bar{w: w} }

func (*bar) interval() time.Duration { return 100 * time.Millisecond }

// show draws the bar. An error is no reason to stop.
func (b *bar) show(s status) {
	if width := terminalWidth(b.w); b.shown == nil || width != b.width || s.total != b.total {
		b.clear()
		b.width, b.total = width, s.total
		b.shown = b.begin(s)
	}
	if s.total > 0 && s.done >= s.total { // the library ends a bar that is full
		s.done = s.total - 1
	}
	_ = b.shown.Set64(s.done)
	b.shown.Describe(s.fields().fit(b.width - b.overhead()))
}

// begin returns a bar for a line, and what it says behind it.
func (b *bar) begin(s status) *progressbar.ProgressBar {
	total := s.total
	if total <= 0 {
		total = -1 // it spins
	}
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(b.w),
		progressbar.OptionSetWidth(b.length()),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetSpinnerChangeInterval(0),
	)
}

// length is the number of characters between the ends of the bar.
func (b *bar) length() int { return max(4, min(b.width/6, 24)) }

// overhead is what a line has beside the description: the share, the bar, spaces, and
// the last column, which some terminals go on from.
func (b *bar) overhead() int { return len(" 100% ") + b.length() + len("||") + len("   ") + 1 }

// clear removes the bar.
func (b *bar) clear() {
	if b.shown != nil {
		_ = b.shown.Clear()
		_ = b.shown.Exit()
	}
	b.shown = nil
}

// fit returns as much as has room behind a bar: rate and time left come before the
// operation, and that before the note.
func (f fields) fit(room int) string {
	text := join(f.rate, f.left)
	if utf8.RuneCountInString(text) > room {
		text = f.left
	}
	if op := cut(f.op, room-utf8.RuneCountInString(text)-1); op != "" {
		text = join(op, text)
	}
	if note := cut(f.note, room-utf8.RuneCountInString(text)-1); note != "" {
		text = join(text, note)
	}
	return text
}

// join puts a space between texts that are not empty.
func join(a, b string) string { return strings.TrimSpace(a + " " + b) }

// cut shortens text to a number of characters, to none where too few would be left to
// recognize it.
func cut(text string, room int) string {
	const fewest = 8
	runes := []rune(text)
	switch {
	case len(runes) <= room:
		return text
	case room < fewest:
		return ""
	}
	return string(runes[:room-2]) + ".."
}

// descriptor is what a file has.
type descriptor interface{ Fd() uintptr }

// isTerminal reports whether w is a terminal that can be drawn on.
func isTerminal(w io.Writer) bool {
	file, ok := w.(descriptor)
	return ok && term.IsTerminal(int(file.Fd()))
}

// terminalWidth returns the number of columns, 80 where there is no telling.
func terminalWidth(w io.Writer) int {
	if file, ok := w.(descriptor); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}
