package display

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// bar draws a bar in one line of a terminal, whose width may change meanwhile.
type bar struct {
	w     io.Writer
	shown int // characters of the line
	turns int // of what turns where the total is not known
	width int // of the terminal, when the line was drawn
}

func newBar(w io.Writer) *bar { return &bar{w: w} }

func (*bar) interval() time.Duration { return 100 * time.Millisecond }

// show draws the bar over the one before.
func (b *bar) show(s status) {
	width := terminalWidth(b.w)
	if width != b.width {
		b.clear()
		b.width = width
	}
	line := b.begin(s) + "  " + s.fields().fit(width-overhead(width))
	n := utf8.RuneCountInString(line)
	b.write("\r" + line + strings.Repeat(" ", max(0, b.shown-n)))
	b.shown = n
}

// begin returns what stands before the text: the share and the bar, or what turns.
func (b *bar) begin(s status) string {
	if s.total <= 0 {
		b.turns++
		return `|/-\`[b.turns%4:][:1]
	}
	share := min(float64(s.done)/float64(s.total), 0.9999) // what is full has ended
	length := barLength(b.width)
	filled := int(share*100) * length / 100
	return fmt.Sprintf("%3d%% |%s%s|", int(share*100), strings.Repeat("█", filled), strings.Repeat(" ", length-filled))
}

// write writes to the terminal. An error is no reason to stop.
func (b *bar) write(text string) { _, _ = io.WriteString(b.w, text) }

// barLength is the number of characters between the ends of a bar on a terminal.
func barLength(columns int) int { return max(4, min(columns/6, 24)) }

// overhead is what a line has beside the text: the share, the bar, spaces, and the last
// column, which some terminals go on from.
func overhead(columns int) int {
	return len(" 100% ") + barLength(columns) + len("||") + len("   ") + 1
}

// clear removes the bar.
func (b *bar) clear() {
	if b.shown > 0 {
		b.write("\r" + strings.Repeat(" ", b.shown) + "\r")
	}
	b.shown = 0
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
