package main

import (
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/safetensors"
)

// exhibit is a fault that has shipped, rebuilt as data: numbers are random, the fault is
// applied to them.
type exhibit struct {
	name, report, fault string
	flags               []string
	// expect are lists of words: an explanation names the fault if it has one of each list.
	expect [][]string
	files  func(r *rand.Rand) exhibitFiles
}

type exhibitFiles struct{ input, honest, wrong []safetensors.Tensor }

// wing is the exhibits of one kind, and the command that judges them.
type wing struct {
	name     string
	exhibits []exhibit
	command  func(e *exhibit, input, got string) []string
}

var museum = []wing{
	{"products", productExhibits, func(e *exhibit, input, got string) []string {
		return append([]string{"verify", input, "--a", "a", "--b", "b", "--got", got}, e.flags...)
	}},
	{"attention", attentionExhibits, func(e *exhibit, input, got string) []string {
		return append([]string{"verify", "attention", input, "--got", got}, e.flags...)
	}},
}

// TestMuseum judges each exhibit: what is honest passes, what is wrong fails and is named.
func TestMuseum(t *testing.T) {
	for _, w := range museum {
		for _, e := range w.exhibits {
			t.Run(w.name+"/"+e.name, func(t *testing.T) {
				for seed := range uint64(2) {
					f := e.files(rand.New(rand.NewPCG(seed, 36)))
					dir := t.TempDir()
					write := func(name string, tensors []safetensors.Tensor) string {
						path := filepath.Join(dir, name+".safetensors")
						require.NoError(t, safetensors.WriteFile(path, tensors, nil))
						return path
					}
					input := write("input", f.input)
					r := octavo(nil, w.command(&e, input, write("honest", f.honest))...)
					require.Zero(t, r.status, "honest: %s", r.stdout)
					r = octavo(nil, w.command(&e, input, write("wrong", f.wrong))...)
					require.Equal(t, 1, r.status, r.stdout)
					text := explained(r.stdout)
					require.True(t, namesFault(text, e.expect), "%s: %s", e.fault, text)
				}
			})
		}
	}
}

// explained is the part of a report that says what explains the result.
func explained(report string) string {
	_, after, found := strings.Cut(report, "What explains them\n")
	if !found {
		return report
	}
	paragraph, _, _ := strings.Cut(after, "\n\n")
	return unbroken(paragraph)
}

// namesFault reports whether a text has a word of each list; numbers count as whole ones.
func namesFault(text string, expect [][]string) bool {
	text = strings.ToLower(text)
	for _, words := range expect {
		found := false
		for _, w := range words {
			pattern := regexp.QuoteMeta(strings.ToLower(w))
			if last := w[len(w)-1]; last >= '0' && last <= '9' {
				pattern += `(\D|$)`
			}
			if w[0] >= '0' && w[0] <= '9' {
				pattern = `(^|[^\d.])` + pattern
			}
			found = found || regexp.MustCompile(pattern).MatchString(text)
		}
		if !found {
			return false
		}
	}
	return true
}
