package oracletest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/octavo-fp8/octavo/internal/atomicfile"
)

// written counts the pages of each test, of which one may check several results.
var written = struct {
	sync.Mutex
	pages map[string]int
}{pages: map[string]int{}}

// writePage has the page of a verdict written, if there is a directory for pages, and
// returns its path.
func writePage(test, dir string, write func(w io.Writer) error) (path string, err error) {
	if dir == "" {
		dir = os.Getenv("OCTAVO_PAGES")
	}
	if dir == "" {
		return "", nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	name := fileName(test)
	written.Lock()
	defer written.Unlock()
	written.pages[name]++
	if n := written.pages[name]; n > 1 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	path = filepath.Join(dir, name+".html")
	return path, atomicfile.Write(path, write)
}

// fileName returns a test's name as that of a file on any system.
func fileName(test string) string {
	const most = 100
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '.'
	}, test)
	return name[:min(len(name), most)]
}
