package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var link = regexp.MustCompile(`\]\(([^)#]+)`)

// TestLinks: the pages that people read first name files that there are.
func TestLinks(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "bench/*.md", "bench/*/*.md", "python/*.md", "examples/*/*.md", "oracle/*.md", "oracle/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	links := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			links++
			_, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(match[1])))
			require.NoError(t, err, "a link of %s", page)
		}
	}
	require.Greater(t, links, 20)
}

// TestShortPages: what a newcomer reads fits his time.
func TestShortPages(t *testing.T) {
	for name, most := range map[string]int{"README.md": 6_000, "CONTRIBUTING.md": 10_000} {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.LessOrEqual(t, len(text), most, "bytes of %s", name)
	}
}
