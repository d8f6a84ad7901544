package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
)

// TestHelpFits checks that help has no line of more than 80 columns, whatever it is about.
func TestHelpFits(t *testing.T) {
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		for line := range strings.Lines(succeed(t, args...)) {
			assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), 80, "%v: %s", args, line)
		}
		for _, child := range c.Commands() {
			check(child)
		}
	}
	check(newRoot())
}
