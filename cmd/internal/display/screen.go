package display

import (
	"io"
	"os"
	"strconv"
)

// Screen returns how many columns results may have that are written to a stream, and whether they
// may have colors: of a terminal those that COLUMNS says or it has itself, and colors unless
// NO_COLOR is set; elsewhere 0, which is any number, and none.
func Screen(w io.Writer) (columns int, colors bool) {
	if !IsTerminal(w) {
		return 0, false
	}
	columns, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil || columns <= 0 {
		columns = terminalWidth(w)
	}
	return columns, os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
