package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/internal/textout"
)

const (
	progressName = "progress"
	quietName    = "quiet"
)

// addProgressFlags adds the flags that every command has.
func addProgressFlags(root *cobra.Command) {
	mode := &parsed[display.Mode]{new(display.Mode), display.Auto.String(), strings.Join(display.Modes(), "|"), display.ParseMode}
	root.PersistentFlags().Var(oneOf{mode, display.Modes()}, progressName,
		"on standard error: a bar on a terminal and lines elsewhere, a bar, a line every ten seconds, or nothing")
	root.PersistentFlags().Bool(quietName, false, "no progress and no notes: nothing but results, warnings and errors")
}

// newDisplay returns what shows on standard error how far cmd is, as --progress and
// --quiet have it. Its owner calls Finish.
func newDisplay(cmd *cobra.Command) *display.Display {
	return display.New(cmd.ErrOrStderr(), progressMode(cmd), cmd.Name())
}

func progressMode(cmd *cobra.Command) display.Mode {
	if quiet(cmd) {
		return display.None
	}
	if flag := cmd.Flag(progressName); flag != nil {
		if mode, err := display.ParseMode(flag.Value.String()); err == nil {
			return mode
		}
	}
	return display.Auto
}

// quiet reports whether cmd shall say nothing but what it was asked for.
func quiet(cmd *cobra.Command) bool {
	flag := cmd.Flag(quietName)
	return flag != nil && flag.Value.String() == "true"
}

// note writes a line about what was done to standard error, unless --quiet is given.
func note(cmd *cobra.Command, format string, args ...any) {
	if !quiet(cmd) {
		fmt.Fprintf(cmd.ErrOrStderr(), "octavo: %s\n", textout.Line(fmt.Sprintf(format, args...)))
	}
}
