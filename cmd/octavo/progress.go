package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// newProgress returns a bar over a number of bytes, which is shown where stderr
// is a terminal.
func newProgress(stderr io.Writer, total int64, what string) *progressbar.ProgressBar {
	bar := progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(stderr),
		progressbar.OptionSetVisibility(isTerminal(stderr)),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
	_ = bar.RenderBlank() // starts its clock
	return bar
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	stat, err := file.Stat()
	return err == nil && stat.Mode()&os.ModeCharDevice != 0
}
