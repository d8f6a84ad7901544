package textout

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// screen is a terminal of a width.
type screen struct {
	bytes.Buffer
	columns int
	colors  bool
}

func (s *screen) Screen() (int, bool) { return s.columns, s.colors }

const cells = "layer\tKL\tSQNR, dB\tbytes\tnote\n" +
	"model.layers.0.mlp.down_proj\t0.5\t31.25\t1024\t-\n" +
	"model.layers.10.mlp.down_proj\t12.25 %\t-\t7\tan outlier of 40 among others\n" +
	"head\t100\t-3.5\t65536\t\n"

// TestTable: numbers are aligned by their decimal points, and texts at the left.
func TestTable(t *testing.T) {
	var b bytes.Buffer
	table := NewTable(&b)
	fmt.Fprint(table, cells)
	require.NoError(t, table.Flush())
	require.Equal(t, ""+
		"layer                                KL  SQNR, dB  bytes  note\n"+
		"model.layers.0.mlp.down_proj     0.5        31.25   1024  -\n"+
		"model.layers.10.mlp.down_proj   12.25 %         -      7  an outlier of 40 among others\n"+
		"head                           100          -3.5   65536\n", b.String())
	fmt.Fprint(table, "a\n")
	b.Reset()
	require.NoError(t, table.Flush())
	require.Equal(t, "a\n", b.String(), "another table")
}

// TestTableFits: whatever the width, no line is wider, and nothing that is a number is lost.
func TestTableFits(t *testing.T) {
	for columns := 26; columns <= 140; columns++ {
		s := &screen{columns: columns}
		table := NewTable(s)
		fmt.Fprint(table, cells)
		require.NoError(t, table.Flush())
		for line := range strings.Lines(s.String()) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), columns, s.String())
		}
		for _, number := range []string{"0.5", "31.25", "1024", "12.25 %", "7", "100", "-3.5", "65536"} {
			require.Contains(t, s.String(), number, "%d columns", columns)
		}
	}
}

// TestTableMost: where there is no terminal a table is no wider than it may be, and as wide as it is
// where it may be of any width. On a terminal that one's width holds.
func TestTableMost(t *testing.T) {
	for _, c := range []struct{ most, columns, widest int }{{0, 0, 87}, {60, 0, 60}, {60, 120, 87}, {120, 60, 60}} {
		s := &screen{columns: c.columns}
		table := NewTable(s)
		table.Most = c.most
		fmt.Fprint(table, cells)
		require.NoError(t, table.Flush())
		widest := 0
		for line := range strings.Lines(s.String()) {
			widest = max(widest, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
		}
		require.Equal(t, c.widest, widest, s.String())
	}
}

// TestTableSplit: texts are narrow only where all columns are beside each other then.
func TestTableSplit(t *testing.T) {
	const text = "a_name_of_20_letters\tone\ttwo\tthree\na_name_of_20_letters\t1000000000\t2000000000\t3000000000\n"
	for columns, name := range map[int]string{60: "a_name_of_20_letters", 50: "a_na.._letters", 48: "a_na..etters", 45: "a_nam.._letters"} {
		s := &screen{columns: columns}
		table := NewTable(s)
		fmt.Fprint(table, text)
		require.NoError(t, table.Flush())
		require.Contains(t, s.String(), "\n"+name+"  1000000000", "%d columns:\n%s", columns, s)
	}
}

// TestTableColors: what is wrong is red on a terminal that has colors, and takes no room.
func TestTableColors(t *testing.T) {
	for _, colors := range []bool{false, true} {
		s := &screen{columns: 80, colors: colors}
		table := NewTable(s)
		fmt.Fprintf(table, "a\tb\n%s\tright\nright\tright\n", Wrong("bad"))
		require.NoError(t, table.Flush())
		want := "a      b\nbad    right\nright  right\n"
		if colors {
			want = strings.Replace(want, "bad", "\x1b[31mbad\x1b[0m", 1)
		}
		require.Equal(t, want, s.String())
	}
}

// TestTableNotes: a note is below its line, once, and no wider than the screen.
func TestTableNotes(t *testing.T) {
	s := &screen{columns: 40}
	table := NewTable(s)
	fmt.Fprint(table, "a\tb\n1\t2\n")
	table.Note("what is to be said of %d and of what is beside it", 1)
	fmt.Fprint(table, "3\t4\n")
	require.NoError(t, table.Flush())
	require.Equal(t, "a  b\n1  2\n    ^ what is to be said of 1 and of\n    what is beside it\n3  4\n", s.String())
}

// TestFold: what is wider is broken at spaces, and goes on further in.
func TestFold(t *testing.T) {
	require.Equal(t, "  a bc de", Fold("  a bc de", 9))
	require.Equal(t, "  one two\n    three four", Fold("  one two three four", 14))
	require.Equal(t, "12345678901234567890", Fold("12345678901234567890", 10), "one word")
	require.Equal(t, "of  a table with more", Fold("of  a table with more", 10))
}

// TestTableNumbers: numbers with standard errors, groups of digits, bounds and units are aligned, and
// what only begins with one is text.
func TestTableNumbers(t *testing.T) {
	var b bytes.Buffer
	table := NewTable(&b)
	fmt.Fprint(table, "loss\ttokens\tlost\tSQNR\tat\n"+
		"+0.25 ± 0.004\t1,024\t<0.01%\t31.25\t1-2\n"+
		"-12.5 ± 1%\t1,000,000\t12%\texact\t3\n")
	require.NoError(t, table.Flush())
	require.Equal(t, ""+
		"          loss     tokens    lost   SQNR  at\n"+
		" +0.25 ± 0.004      1,024  <0.01%  31.25  1-2\n"+
		"-12.5 ± 1%      1,000,000  12%     exact  3\n", b.String())
}

// TestTableHeading: a heading is above its lines, and begins at the left.
func TestTableHeading(t *testing.T) {
	var b bytes.Buffer
	table := NewTable(&b)
	fmt.Fprint(table, "a\tb\n")
	table.Heading("- some:")
	fmt.Fprint(table, "1\t2\n")
	require.NoError(t, table.Flush())
	require.Equal(t, "a  b\n- some:\n1  2\n", b.String())
}

// TestTableFit: columns go in the order that is given, until the others fit, and no text is shortened.
func TestTableFit(t *testing.T) {
	for _, c := range []struct {
		columns, most int
		left          []string
	}{
		{0, 0, nil}, {0, 200, nil}, {200, 10, nil}, {84, 0, []string{"note"}}, {60, 0, []string{"note"}}, {54, 0, []string{"note", "bytes"}},
		{0, 54, []string{"note", "bytes"}}, {48, 200, []string{"note", "bytes", "KL"}}, {42, 0, []string{"note", "bytes", "KL"}},
	} {
		s := &screen{columns: c.columns}
		table := NewTable(s)
		fmt.Fprint(table, cells)
		require.Equal(t, c.left, table.Fit(c.most, "no such title", "note", "bytes", "KL"), c)
		require.NoError(t, table.Flush())
		for _, title := range c.left {
			require.NotContains(t, s.String(), title)
		}
		require.Contains(t, s.String(), "model.layers.10.mlp.down_proj ", c)
		require.Contains(t, s.String(), "SQNR, dB")
		for line := range strings.SplitSeq(s.String(), "\n") {
			if most := max(c.columns, c.most*(1-min(c.columns, 1))); most > 0 {
				require.LessOrEqual(t, utf8.RuneCountInString(line), most)
			}
		}
	}
}
