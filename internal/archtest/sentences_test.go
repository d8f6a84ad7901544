package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSentences: each sentence of docs/sentences.md has an input for which it must not be
// printed and names tests that there are.
func TestSentences(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "sentences.md"))
	require.NoError(t, err)
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| sentence ") {
			continue
		}
		rows++
		require.Len(t, cells, 4, line)
		require.NotEmpty(t, strings.TrimSpace(cells[2]), line)
		missing, tests := missingTests(t, cells[3])
		require.NotZero(t, tests, line)
		require.Empty(t, missing, line)
	}
	require.Greater(t, rows, 100)
}

func TestMissingTests(t *testing.T) {
	missing, tests := missingTests(t, "TestAssembly, TestNone in internal/archtest; TestJudge in oracle/judge")
	require.Equal(t, 3, tests)
	require.Equal(t, []string{"TestNone in internal/archtest", "TestJudge in oracle/judge"}, missing)
}

var testsIn = regexp.MustCompile(`Test\w+|\bin [a-z0-9/]+`)

// missingTests returns which of the tests that a cell such as "TestA, TestB in oracle/judge"
// names are not there, and how many it names.
func missingTests(t *testing.T, cell string) (missing []string, tests int) {
	var names []string
	for _, word := range testsIn.FindAllString(cell, -1) {
		folder, ok := strings.CutPrefix(word, "in ")
		if !ok {
			names = append(names, word)
			continue
		}
		source := testsOf(t, folder)
		for _, name := range names {
			tests++
			if !strings.Contains(source, "\nfunc "+name+"(") {
				missing = append(missing, name+" in "+folder)
			}
		}
		names = nil
	}
	for _, name := range names {
		missing = append(missing, name+", of no package")
	}
	return missing, tests
}

// testsOf returns the source of a package's tests.
func testsOf(t *testing.T, folder string) string {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	require.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}
