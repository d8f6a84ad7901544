package terminaltest

import (
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

// Terminal is a pseudo terminal. A program that is tested writes to File.
type Terminal struct {
	File   *os.File
	master *os.File
	all    sync.WaitGroup

	mu      sync.Mutex
	written strings.Builder
}

// Open returns a terminal with a number of columns, which is closed when the test ends. It
// ends the test where there are none.
func Open(t *testing.T, columns uint16) *Terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		testutil.Lacking(t, "no pseudo terminals: %v", err)
	}
	master := os.NewFile(uintptr(fd), "ptmx")
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	file, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	term := &Terminal{File: file, master: master}
	term.Resize(t, columns)
	term.all.Go(term.read)
	t.Cleanup(func() {
		term.Close()
		master.Close()
	})
	return term
}

// Resize changes the number of columns.
func (term *Terminal) Resize(t *testing.T, columns uint16) {
	t.Helper()
	require.NoError(t, unix.IoctlSetWinsize(int(term.File.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
}

func (term *Terminal) read() {
	buffer := make([]byte, 4096)
	for {
		n, err := term.master.Read(buffer)
		term.mu.Lock()
		term.written.Write(buffer[:n])
		term.mu.Unlock()
		if err != nil { // nobody writes any more
			return
		}
	}
}

// Type has somebody type text.
func (term *Terminal) Type(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(term.master, text)
	require.NoError(t, err)
}

// Written returns what was written until now.
func (term *Terminal) Written() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.written.String()
}

// Close closes the terminal and returns all that was written, when no other process
// has it open.
func (term *Terminal) Close() string {
	// What was not read when the last writer closes it may be lost.
	if _, err := io.WriteString(term.File, end); err == nil {
		for !strings.HasSuffix(term.Written(), end) {
			time.Sleep(time.Millisecond)
		}
	}
	term.File.Close()
	term.all.Wait()
	return strings.TrimSuffix(term.Written(), end)
}

// end is written behind all else; programs do not write it.
const end = "\x00"

// Screen is what a terminal shows after it was written to.
type Screen struct {
	Lines  []string
	Widest int // columns that were used at any time
}

// Show returns what a terminal shows that obeys carriage returns and line ends.
func Show(written string) Screen {
	var s Screen
	line, column := []rune{}, 0
	for _, r := range written {
		switch r {
		case '\r':
			column = 0
		case '\n':
			s.Lines = append(s.Lines, strings.TrimRight(string(line), " "))
			line, column = nil, 0
		default:
			for len(line) <= column {
				line = append(line, ' ')
			}
			line[column] = r
			column++
			s.Widest = max(s.Widest, column)
		}
	}
	if text := strings.TrimRight(string(line), " "); text != "" {
		s.Lines = append(s.Lines, text)
	}
	return s
}
