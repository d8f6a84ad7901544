package display

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/terminaltest"
)

// frames returns what was drawn, one bar after another.
func frames(written string) (drawn []string) {
	for frame := range strings.SplitSeq(written, "\r") {
		if frame = strings.TrimSpace(frame); frame != "" {
			drawn = append(drawn, frame)
		}
	}
	return drawn
}

// TestBarFits draws on terminals of several widths. The bar stays within one line, which
// is empty in the end, and says how fast it goes and how long it will take.
func TestBarFits(t *testing.T) {
	for columns, want := range map[uint16]string{
		10:  "19%",
		24:  "19% |    |  48s left",
		40:  "19% |█     |  2.59 GB/s, 48s left",
		80:  "19% |██           |  multiplying layers.0.mlp.down_pr.., 2.59 GB/s, 48s left",
		200: "19% |████                    |  multiplying layers.0.mlp.down_proj.weight, 2.59 GB/s, 48s left, loss FP32 2.345 FP8 2.345",
	} {
		term := terminaltest.Open(t, columns)
		synctest.Test(t, func(t *testing.T) {
			d := New(term.File, Auto, "octavo")
			d.Unit(Bytes)
			for i := range int64(150) {
				d.Progress("multiplying layers.0.mlp.down_proj.weight", 200_000_000*i, 154_000_000_000)
				d.Note("loss FP32 2.345 FP8 2.345")
				time.Sleep(77 * time.Millisecond)
			}
			d.Finish()
			d.Finish()
		})
		written := term.Close()
		require.NotContains(t, written, "\n", "%d columns", columns)
		drawn := frames(written)
		require.Contains(t, drawn[len(drawn)-1], want)
		screen := terminaltest.Show(written)
		require.Empty(t, screen.Lines)
		if columns >= 24 {
			require.Less(t, screen.Widest, int(columns))
			require.Equal(t, want, drawn[len(drawn)-1])
		}
	}
}

// TestBarOfUnknownTotal counts only.
func TestBarOfUnknownTotal(t *testing.T) {
	term := terminaltest.Open(t, 40)
	synctest.Test(t, func(t *testing.T) {
		d := New(term.File, Bar, "octavo")
		d.Unit(Bytes)
		for i := range int64(50) {
			d.Progress("encoding", 1_000_000*i, 0)
			time.Sleep(77 * time.Millisecond)
		}
		d.Finish()
	})
	written := term.Close()
	drawn := frames(written)
	require.Regexp(t, `^[-/|\\]   *49.0 MB, 12.9 MB/s$`, drawn[len(drawn)-1])
	require.Less(t, terminaltest.Show(written).Widest, 40)
}

// TestBarMakesRoom has a warning written while there is a bar, the window made smaller
// and one operation follow another.
func TestBarMakesRoom(t *testing.T) {
	term := terminaltest.Open(t, 80)
	synctest.Test(t, func(t *testing.T) {
		d := New(term.File, Auto, "octavo")
		d.Progress("reading", 1, 4)
		time.Sleep(time.Second)
		_, err := d.Write([]byte("octavo: warning: one\n"))
		require.NoError(t, err)
		d.Progress("reading", 2, 4)
		time.Sleep(time.Second)
		term.Resize(t, 40)
		d.Progress("reading", 4, 4)
		time.Sleep(time.Second)
		d.Progress("multiplying", 1, 8)
		time.Sleep(time.Second)
		d.Finish()
	})
	written := term.Close()
	require.Equal(t, []string{"octavo: warning: one"}, terminaltest.Show(written).Lines)
	drawn := frames(written)
	require.Equal(t, "25% |███          |  reading", drawn[0])
	require.Equal(t, "12% |      |  multiplying", drawn[len(drawn)-1])
	require.Contains(t, drawn, "99% |█████ |  reading")
	before, after, _ := strings.Cut(written, "12%")
	require.NotEmpty(t, before)
	require.Less(t, terminaltest.Show(after).Widest, 40)
}

// TestBarBeforeTheFirstReport shows after a second that there is something at work.
func TestBarBeforeTheFirstReport(t *testing.T) {
	term := terminaltest.Open(t, 40)
	synctest.Test(t, func(t *testing.T) {
		d := New(term.File, Auto, "verify")
		time.Sleep(950 * time.Millisecond)
		require.Empty(t, term.Written())
		time.Sleep(2 * time.Second)
		d.Finish()
	})
	drawn := frames(term.Close())
	require.Regexp(t, `^[-/|\\] +verify, 3s so far$`, drawn[len(drawn)-1])
}
