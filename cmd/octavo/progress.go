package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// bar is a progress.Reporter: a bar on a terminal, with a line for each operation in
// turn. Where there is no terminal it shows nothing.
type bar struct {
	stderr io.Writer
	op     string
	shown  *progressbar.ProgressBar // of op
}

// newBar returns a bar for stderr. Its owner calls finish.
func newBar(stderr io.Writer) *bar { return &bar{stderr: stderr} }

// Progress implements progress.Reporter. A bar that cannot be drawn is no reason to
// stop, so errors are ignored.
func (b *bar) Progress(op string, done, total int64) {
	if b.shown == nil || op != b.op {
		b.finish()
		b.op = op
		b.shown = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(b.stderr),
			progressbar.OptionSetVisibility(isTerminal(b.stderr)),
			progressbar.OptionSetDescription(op),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	_ = b.shown.Set64(done)
}

// finish removes the bar.
func (b *bar) finish() {
	if b.shown != nil {
		_ = b.shown.Exit()
	}
	b.shown = nil
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	stat, err := file.Stat()
	return err == nil && stat.Mode()&os.ModeCharDevice != 0
}
