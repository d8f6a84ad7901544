package main

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
)

// eachCommand does something with every command of octavo, those of completion included,
// and the words that name it.
func eachCommand(do func(c *cobra.Command, words []string)) {
	root := newRoot()
	addCompletion(root)
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		do(c, strings.Fields(c.CommandPath())[1:])
		for _, child := range c.Commands() {
			each(child)
		}
	}
	each(root)
}

// TestHelpFits checks that help has no line of more than 80 columns, whatever it is about, and
// that -h is one screen.
func TestHelpFits(t *testing.T) {
	eachCommand(func(c *cobra.Command, words []string) {
		brief, full := succeed(t, append(words, "-h")...), succeed(t, append(words, "--help")...)
		for line := range strings.Lines(brief + full) {
			if c.Parent() == nil || c.Parent().Name() != "completion" { // whose texts are cobra's
				assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), 80, "%v: %s", words, line)
			}
		}
		assert.LessOrEqual(t, strings.Count(brief, "\n"), 40, "%v", words)
	})
}

// TestBriefHelp checks that -h names every flag and describes those that are required or in
// its first example, and that --help describes all.
func TestBriefHelp(t *testing.T) {
	described := func(help, name string) bool {
		return regexp.MustCompile(`(?m)^  (-\w,|   ) --` + name + `( |\[|$)`).MatchString(help)
	}
	eachCommand(func(c *cobra.Command, words []string) {
		brief, full := succeed(t, append(words, "-h")...), succeed(t, append(words, "--help")...)
		if len(words) == 0 {
			return
		}
		assert.Contains(t, brief, c.Short+".\n\nUsage:\n  octavo ", words)
		_, examples, _ := strings.Cut(brief, "\nExamples:\n")
		first, _, _ := strings.Cut(strings.ReplaceAll(examples, "\\\n", ""), "\n")
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			assert.True(t, described(full, f.Name), "%v --%s", words, f.Name)
			switch {
			case isRequired(f), strings.Contains(first+" ", " --"+f.Name+" "):
				assert.True(t, described(brief, f.Name), "%v --%s", words, f.Name)
			default:
				assert.Regexp(t, `--`+f.Name+`\b`, brief, words)
			}
		})
		if c.Name() != "help" {
			assert.Equal(t, full, succeed(t, append([]string{"help"}, words...)...), words)
		}
		assert.Equal(t, full, succeed(t, append(words, "-h", "--help")...), words)
		for _, name := range []string{"help", "progress", "quiet"} {
			assert.True(t, described(full, name), "%v --%s", words, name)
		}
	})
}
