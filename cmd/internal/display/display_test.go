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
		d := New(&out, Plain)
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
		d := New(&out, Plain)
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
