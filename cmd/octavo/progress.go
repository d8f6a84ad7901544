package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/textout"
)

const (
	progressName = "progress"
	quietName    = "quiet"
)

// addProgressFlags adds the flags that every command has.
func addProgressFlags(root *cobra.Command) {
	mode := new(display.Mode)
	root.PersistentFlags().Var(
		&parsed[display.Mode]{mode, display.Auto.String(), strings.Join(display.Modes(), "|"), display.ParseMode},
		progressName, "how far a command is, on standard error: a bar, a line every ten seconds, nothing, or by itself a bar on a terminal and lines elsewhere")
	root.PersistentFlags().Bool(quietName, false, "no progress and no notes: nothing but results, warnings and errors")
}

// newDisplay returns what shows on standard error how far cmd is, as --progress and
// --quiet have it. Its owner calls Finish.
func newDisplay(cmd *cobra.Command) *display.Display {
	return display.New(cmd.ErrOrStderr(), progressMode(cmd))
}

func progressMode(cmd *cobra.Command) display.Mode {
	if quiet(cmd) {
		return display.None
	}
	if flag := cmd.Flag(progressName); flag != nil {
		return *flag.Value.(*parsed[display.Mode]).value
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
