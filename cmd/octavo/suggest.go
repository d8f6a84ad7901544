package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// similar returns those of some names that cobra would suggest for one that is not among
// them, as a question; "" if there are none. A short name with two other letters is
// another word.
func similar(name string, names []string) string {
	const short, long = 4, 64
	if name == "" || len(name) > long { // the beginning of all of them; like none of them
		return ""
	}
	list := &cobra.Command{SuggestionsMinimumDistance: 2}
	if len(strings.TrimLeft(name, "-")) <= short {
		list.SuggestionsMinimumDistance = 1
	}
	for _, n := range names {
		list.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
	}
	return question(list.SuggestionsFor(name))
}

func question(names []string) string {
	const most = 3
	if len(names) == 0 || len(names) > most {
		return ""
	}
	return ": did you mean " + strings.Join(names, " or ") + "?"
}

// unknownFlag adds to an error about a flag that cmd does not have which it may be.
func unknownFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usageError{err}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return usageError{fmt.Errorf("%w%s", err, similar("--"+unknown.GetSpecifiedName(), names))}
}

// noCommand refuses arguments that name no command.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	return usagef("there is no command %q%s", args[0], similar(args[0], names))
}

// oneOf is a flag that takes one of some names, or several with commas between them.
type oneOf struct {
	pflag.Value
	names []string
}

// Set adds to an error which name may have been meant.
func (o oneOf) Set(text string) error {
	err := o.Value.Set(text)
	if err == nil {
		return nil
	}
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(o.names, name) {
			return fmt.Errorf("%w%s", err, similar(name, o.names))
		}
	}
	return err
}
