package display

import (
	"io"
	"slices"
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
	known bool                     // the total is
}

const full = 10_000 // parts of the whole

func newBar(w io.Writer) *bar { return &bar{w: w} }

func (*bar) interval() time.Duration { return 100 * time.Millisecond }

// show draws the bar. An error is no reason to stop.
func (b *bar) show(s status) {
	width := terminalWidth(b.w)
	text := s.fields().fit(width - overhead(width))
	if known := s.total > 0; b.shown == nil || width != b.width || known != b.known {
		b.clear()
		b.width, b.known = width, known
		b.shown = b.begin(text)
	}
	if b.known { // the library ends a bar that is full
		_ = b.shown.Set(min(int(full*float64(s.done)/float64(s.total)), full-1))
	}
	b.shown.Describe(text)
}

// begin returns a bar for the line, with a text behind it.
func (b *bar) begin(text string) *progressbar.ProgressBar {
	total := full
	if !b.known {
		total = -1 // it spins
	}
	return progressbar.NewOptions(total,
		progressbar.OptionSetWriter(b.w),
		progressbar.OptionSetWidth(barLength(b.width)),
		progressbar.OptionSetDescription(text),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetSpinnerChangeInterval(0),
	)
}

// barLength is the number of characters between the ends of a bar on a terminal.
func barLength(columns int) int { return max(4, min(columns/6, 24)) }

// overhead is what a line has beside the text: the share, the bar, spaces, and the last
// column, which some terminals go on from.
func overhead(columns int) int {
	return len(" 100% ") + barLength(columns) + len("||") + len("   ") + 1
}

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
	text := join(f.amount, f.rate, f.left)
	if utf8.RuneCountInString(text) > room {
		text = cut(f.left, room)
	}
	if op := cut(f.op, room-utf8.RuneCountInString(text)-len(separator)); op != "" {
		text = join(op, text)
	}
	if note := cut(f.note, room-utf8.RuneCountInString(text)-len(separator)); note != "" {
		text = join(text, note)
	}
	return text
}

const separator = ", "

// join separates texts that are not empty.
func join(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), separator)
}

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

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(descriptor)
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
