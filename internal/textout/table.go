package textout

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table lines up what is written to it: cells with tabs behind them, and the last of a line
// without; a vertical tab goes on below in a cell. The first line has titles. Numbers are aligned by their decimal points, all else
// begins at the left. On a [Screen] the table is no wider than that: texts are shortened or
// go on in the next line, and columns for which there is still no room come below, with the
// first one again. It is not safe for concurrent use.
type Table struct {
	Most int // how wide it may be elsewhere than on a [Screen]; 0: of any width

	w     io.Writer
	text  bytes.Buffer
	notes map[int][]string // by the number of the line that they are below
	spare []string         // titles of columns that are left out
}

// Fit leaves out columns until all others are beside each other and no text is shortened, on a
// [Screen] as wide as that and elsewhere in a width; 0 leaves all. It takes the titles of those
// that may be, the first to go first, and returns which are left out of what was written so far.
func (t *Table) Fit(most int, spare ...string) []string {
	if limit, _ := t.screen(); limit > 0 {
		most = limit
	}
	for _, title := range spare {
		total, found := -gap, false
		for _, c := range t.columns() {
			total += c.width + gap
			found = found || c.cells[0][0] == title
		}
		if most > 0 && total > most && found {
			t.spare = append(t.spare, title)
		}
	}
	return t.spare
}

// screen is that of what is written to; 0 columns elsewhere.
func (t *Table) screen() (columns int, colors bool) {
	if s, ok := t.w.(Screen); ok {
		return s.Screen()
	}
	return 0, false
}

// columns are all that were written but those that are left out.
func (t *Table) columns() []*column {
	return slices.DeleteFunc(columns(t.text.String()), func(c *column) bool {
		return len(c.cells[0]) == 1 && slices.Contains(t.spare, c.cells[0][0])
	})
}

// Note writes a line below the one before, which is of no column.
func (t *Table) Note(format string, args ...any) {
	t.below("^ " + fmt.Sprintf(format, args...))
}

// Heading writes a line above those that follow, which is of no column.
func (t *Table) Heading(text string) { t.below(text) }

func (t *Table) below(text string) {
	if t.notes == nil {
		t.notes = map[int][]string{}
	}
	line := bytes.Count(t.text.Bytes(), []byte("\n")) - 1
	t.notes[line] = append(t.notes[line], text)
}

// Screen is a writer to a terminal.
type Screen interface {
	io.Writer
	Screen() (columns int, colors bool) // 0: of any number
}

// Writer is a buffer before a writer. It is a [Screen] if that is one.
type Writer struct {
	*bufio.Writer
	w io.Writer
}

// NewWriter returns a buffer before w.
func NewWriter(w io.Writer) Writer { return Writer{bufio.NewWriter(w), w} }

// Screen is that of what is behind the buffer.
func (w Writer) Screen() (columns int, colors bool) {
	if s, ok := w.w.(Screen); ok {
		return s.Screen()
	}
	return 0, false
}

// NewTable returns a table that Flush writes.
func NewTable(w io.Writer) *Table { return &Table{w: w} }

func (t *Table) Write(p []byte) (int, error) { return t.text.Write(p) }

// Marks of what is wrong, which no other text has.
const wrongBegin, wrongEnd = "\x0e", "\x0f"

// Wrong marks the text of a cell as wrong: a table has it in red where there are colors.
func Wrong(text string) string { return wrongBegin + text + wrongEnd }

// WrongIf is the text of a cell, which is wrong in a case.
func WrongIf(wrong bool, text string) string {
	if wrong {
		return Wrong(text)
	}
	return text
}

const (
	gap      = 2  // columns of a terminal between those of a table
	narrow   = 12 // of a text that has no room
	noPoint  = -1
	red, end = "\x1b[31m", "\x1b[0m"
)

// column is a part of a table. Cells are lines of text, the first a title.
type column struct {
	cells  [][]string
	number bool
	points []int // where the decimal points of numbers are; noPoint: nowhere
	before int   // characters before the points at most
	width  int
}

// Flush writes the table, and begins another.
func (t *Table) Flush() error {
	limit, colors := t.screen()
	if limit == 0 {
		limit, colors = t.Most, false
	}
	all, notes := t.columns(), t.notes
	if !shrink(all, limit, narrow) { // not all columns are beside each other, and texts need not be narrow
		all = t.columns()
		shrink(all, limit, max(narrow, limit/3))
	}
	t.text.Reset()
	t.notes, t.spare = nil, nil
	const widest = 78 // of notes
	most := widest
	if limit > 0 {
		most = min(most, limit)
	}
	var b strings.Builder
	if len(all) > 0 {
		for rest := all[1:]; ; {
			n := fitting(all[0], rest, limit)
			writeColumns(&b, append([]*column{all[0]}, rest[:n]...), func(line int) {
				for _, note := range notes[line] {
					indent := "    "
					if !strings.HasPrefix(note, "^ ") {
						indent = ""
					}
					b.WriteString(Wrap(note, most, indent) + "\n")
				}
			})
			notes = nil
			if rest = rest[n:]; len(rest) == 0 {
				break
			}
			b.WriteByte('\n')
		}
	}
	text := strings.NewReplacer(wrongBegin, "", wrongEnd, "")
	if colors {
		text = strings.NewReplacer(wrongBegin, red, wrongEnd, end)
	}
	_, err := text.WriteString(t.w, b.String())
	return err
}

// columns cuts text into cells.
func columns(text string) (all []*column) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		for j, cell := range strings.Split(strings.TrimRight(line, "\t"), "\t") {
			for len(all) <= j {
				all = append(all, &column{cells: make([][]string, len(lines))})
			}
			all[j].cells[i] = strings.Split(cell, "\v")
		}
	}
	for _, c := range all {
		c.measure()
	}
	return all
}

var number = regexp.MustCompile(`^([-+±<]?[0-9]+(?:,[0-9]{3})*)(\.[0-9]+)?(e[-+]?[0-9]+)?( ?±.*)?( ?[%a-zA-Z/!?]*)((?: of |/)[0-9]+)?( \(.*\))?$`)

// measure finds out whether a column has numbers, and how wide it is.
func (c *column) measure() {
	c.points, c.number = make([]int, len(c.cells)), true
	some := false
	for i, cell := range c.cells {
		c.points[i] = noPoint
		text := plain(strings.Join(cell, ""))
		if at := number.FindStringSubmatch(text); at != nil && i > 0 {
			c.points[i] = utf8.RuneCountInString(at[1])
			some = true
		} else if i > 0 && !slices.Contains([]string{"", "-", "exact", "NaN", "inf", "-inf", "+Inf", "-Inf"}, text) {
			c.number = false
		}
	}
	c.number = c.number && some
	c.before, c.width = 0, 0
	after := 0
	for i, cell := range c.cells {
		for _, line := range cell {
			n := width(line)
			if c.width = max(c.width, n); c.number && c.points[i] != noPoint {
				c.before, after = max(c.before, c.points[i]), max(after, n-c.points[i])
			}
		}
	}
	c.width = max(c.width, c.before+after)
	c.before = c.width - after
}

func plain(text string) string {
	return strings.NewReplacer(wrongBegin, "", wrongEnd, "").Replace(text)
}

func width(text string) int { return utf8.RuneCountInString(plain(text)) }

// shrink takes room from titles above numbers, and then from texts, the widest first, until
// columns fit or no text is wider than the least that it may be. It reports whether they fit.
func shrink(all []*column, limit, least int) bool {
	for titles := true; limit > 0; titles = false {
		total, widest := -gap, -1
		for i, c := range all {
			total += c.width + gap
			if !c.number && c.width > least && (widest < 0 || c.width > all[widest].width) {
				widest = i
			}
		}
		if total > limit && titles {
			for _, c := range all {
				c.breakTitle()
			}
			continue
		}
		if total <= limit || widest < 0 {
			return total <= limit
		}
		all[widest].shorten(max(least, all[widest].width-(total-limit)))
	}
	return true
}

// breakTitle breaks the title of numbers into lines that are no wider than they are, if words are not.
func (c *column) breakTitle() {
	if !c.number {
		return
	}
	most := 0
	for _, cell := range c.cells[1:] {
		most = max(most, width(strings.Join(cell, "")))
	}
	c.cells[0] = strings.Split(Wrap(strings.Join(c.cells[0], " "), most, ""), "\n")
	c.measure()
}

// shorten makes texts so short: those of several words go on below.
func (c *column) shorten(most int) {
	for i, cell := range c.cells {
		text := strings.Join(cell, " ")
		if width(text) > most && !strings.Contains(text, wrongBegin) {
			c.cells[i] = nil
			for line := range strings.SplitSeq(Wrap(text, most, ""), "\n") {
				c.cells[i] = append(c.cells[i], Shorten(line, most))
			}
		}
	}
	c.width = most
}

// fitting returns how many columns fit beside the first one, at least one.
func fitting(first *column, rest []*column, limit int) int {
	total := first.width
	for i, c := range rest {
		if total += gap + c.width; limit > 0 && total > limit && i > 0 {
			return i
		}
	}
	return len(rest)
}

// writeColumns writes columns, and after each line what comes below it.
func writeColumns(b *strings.Builder, all []*column, below func(line int)) {
	for i := range all[0].cells {
		height := 1
		for _, c := range all {
			height = max(height, len(c.cells[i]))
		}
		for line := range height {
			var row strings.Builder
			for j, c := range all {
				if j > 0 {
					row.WriteString(strings.Repeat(" ", gap))
				}
				row.WriteString(c.padded(i, line))
			}
			b.WriteString(strings.TrimRight(row.String(), " ") + "\n")
		}
		below(i)
	}
}

// padded returns a line of a cell, as wide as the column.
func (c *column) padded(i, line int) string {
	text := ""
	if line < len(c.cells[i]) {
		text = c.cells[i][line]
	}
	left := 0
	switch {
	case c.number && c.points[i] != noPoint:
		left = c.before - c.points[i]
	case c.number:
		left = c.width - width(text)
	}
	return strings.Repeat(" ", left) + text + strings.Repeat(" ", max(0, c.width-left-width(text)))
}
