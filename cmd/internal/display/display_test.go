package display

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// lockedBuffer is written by the goroutine that draws.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// TestPlain has the clock of the test show a line every ten seconds, the first after
// ten, whatever is reported meanwhile.
func TestPlain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		d := New(&out, Plain, "octavo")
		d.Unit(Bytes)
		time.Sleep(time.Second / 2)
		for i := range int64(26) {
			d.Progress("reading", 20_000_000*i, 1_000_000_000)
			if i == 15 {
				d.Note("one tensor is wrong")
			}
			time.Sleep(time.Second)
		}
		d.Finish()
		require.Equal(t, "reading: 18%, 18.9 MB/s, 43s left\n"+
			"reading: 38%, 19.5 MB/s, 32s left, one tensor is wrong\n", out.String())
	})
}

// TestRates checks that a rate is that of the last seconds, not one of the whole, and that
// it falls while nothing is reported.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		d := New(&out, Plain, "octavo")
		defer d.Finish()
		d.Unit("steps")
		time.Sleep(time.Second / 2)
		done := int64(5000) // of an earlier run
		step := func(steps int64) {
			done += steps
			d.Progress("training", done, 10000)
			time.Sleep(time.Second)
		}
		for range 35 {
			step(1)
		}
		for range 35 {
			step(100)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, 7)
		require.Contains(t, lines[6], "97.4 steps/s, 15s left")
		time.Sleep(200 * time.Second)
		lines = strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Contains(t, lines[len(lines)-1], "8.66 steps/s, 2m49s left")
	})
}

// TestFirstRow: no rate and no time left are shown before there is anything to measure them by,
// none of an operation that is done, and none of one in the units of another.
func TestFirstRow(t *testing.T) {
	for name, c := range map[string]struct {
		work func(d *Display)
		want string
	}{
		"one report": {func(d *Display) {
			time.Sleep(9999 * time.Millisecond)
			d.Progress("evaluate", 3, 100)
			time.Sleep(2 * time.Millisecond)
		}, "evaluate: 3%\n"},
		"reports at once": {func(d *Display) {
			time.Sleep(9999 * time.Millisecond)
			d.Progress("evaluate", 3, 100)
			time.Sleep(time.Microsecond)
			d.Progress("evaluate", 50, 100)
			time.Sleep(2 * time.Millisecond)
		}, "evaluate: 50%\n"},
		"another was loaded": {func(d *Display) {
			d.Progress("load", 0, 67_000_000)
			time.Sleep(5 * time.Second)
			d.Progress("load", 67_000_000, 67_000_000)
			d.Unit("layers", "evaluate")
			time.Sleep(6 * time.Second)
		}, "load: 100%\n"},
		"another is being loaded": {func(d *Display) {
			d.Unit("layers", "evaluate")
			d.Progress("load", 0, 1000)
			time.Sleep(9 * time.Second)
			d.Progress("load", 900, 1000)
			time.Sleep(1001 * time.Millisecond)
		}, "load: 90%, 9.00%/s, 1s left\n"},
		"as much of another": {func(d *Display) {
			d.Unit("layers", "evaluate")
			d.Progress("load", 0, 100)
			time.Sleep(9900 * time.Millisecond)
			d.Progress("load", 40, 100)
			d.Progress("evaluate", 40, 100)
			time.Sleep(101 * time.Millisecond)
		}, "evaluate: 40%\n"},
		"enough to measure": {func(d *Display) {
			d.Unit("layers", "evaluate")
			d.Progress("evaluate", 0, 100)
			time.Sleep(5 * time.Second)
			d.Progress("evaluate", 40, 100)
			time.Sleep(5001 * time.Millisecond)
		}, "evaluate: 40%, 4.00 layers/s, 15s left\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out lockedBuffer
				d := New(&out, Plain, "evaluate")
				c.work(d)
				d.Finish()
				require.Equal(t, c.want, out.String())
			})
		})
	}
}

// TestNone shows nothing, and passes on what is written.
func TestNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		d := New(&out, None, "octavo")
		for i := range int64(100) {
			d.Progress("reading", i, 100)
			time.Sleep(time.Second)
		}
		d.Finish()
		require.Empty(t, out.String())
		_, err := d.Write([]byte("a warning\n"))
		require.NoError(t, err)
		require.Equal(t, "a warning\n", out.String())
	})
}

// TestAutoWithoutATerminal writes lines, before the first report too.
func TestAutoWithoutATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		d := New(&out, Auto, "octavo")
		time.Sleep(25 * time.Second)
		d.Progress("training", 1, 3)
		time.Sleep(6 * time.Second)
		require.Equal(t, "octavo: 10s so far\noctavo: 20s so far\ntraining: 33%\n", out.String())
		d.Finish()
	})
}

func TestWords(t *testing.T) {
	for seconds, want := range map[float64]string{
		0.2: "0s", 61: "1m1s", 599: "9m59s", 600: "10m", 3599: "1h0m", 3661: "1h1m", 90000: "25h0m", 1e18: "more than 1000h",
	} {
		require.Equal(t, want, timeLeft(seconds))
	}
	for n, want := range map[float64]string{0: "0 B", 999: "999 B", 1000: "1.00 kB", 999_600: "1.00 MB", 12_345_678: "12.3 MB", 5e15: "5.00 PB"} {
		require.Equal(t, want, quantity(n, Bytes))
	}
	for rate, want := range map[float64]string{5: "5.00 steps/s", 250: "250 steps/s", 0.5: "30.0 steps/min", 0.01: "36.0 steps/h"} {
		require.Equal(t, want, status{unit: "steps", rate: rate, total: 1}.speed())
	}
	require.Equal(t, "2.50%/s", status{rate: 5, total: 200}.speed())
	require.Empty(t, status{rate: 5}.speed())
}

func TestModes(t *testing.T) {
	for i, name := range Modes() {
		m, err := ParseMode(name)
		require.NoError(t, err)
		require.Equal(t, Mode(i), m)
		require.Equal(t, name, m.String())
	}
	_, err := ParseMode("fancy")
	require.EqualError(t, err, "want auto or bar or plain or none")
}
