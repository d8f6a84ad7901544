package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
)

// unknownFlag adds to an error about a flag that cmd does not have which it may be.
func unknownFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usageError{err}
	}
	name := unknown.GetSpecifiedName()
	if elsewhere, kin := flagElsewhere(cmd, name); elsewhere && unknown.GetSpecifiedShortnames() == "" {
		return usageError{fmt.Errorf("%w%s", err, kin)}
	}
	var all []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			all = append(all, "--"+f.Name)
		}
	})
	return usageError{fmt.Errorf("%w%s", err, vocabulary.Hint("--"+name, all))}
}

// missingFlags returns an error unless all required flags are given, which lists the names that they
// take.
func missingFlags(cmd *cobra.Command) error {
	err := cmd.ValidateRequiredFlags()
	if err == nil {
		return nil
	}
	text := err.Error()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if o, ok := f.Value.(oneOf); ok && !f.Changed && f.Annotations[cobra.BashCompOneRequiredFlag] != nil {
			text += fmt.Sprintf(": --%s takes %s", f.Name, vocabulary.List(o.names))
		}
	})
	return usageError{errors.New(text)}
}

// flagElsewhere reports whether other commands have a flag of a name, which is then not misspelt, and
// returns which do, as the end of a sentence, or which flag of cmd is for the same.
func flagElsewhere(cmd *cobra.Command, name string) (elsewhere bool, kin string) {
	var have []string
	var look func(*cobra.Command)
	look = func(c *cobra.Command) {
		for _, child := range c.Commands() {
			look(child)
		}
		if f := c.LocalFlags().Lookup(name); f == nil || f.Hidden || c.Hidden {
			return
		}
		elsewhere = true
		have = append(have, strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "))
	}
	look(cmd.Root())
	out := cmd.Flags().Lookup("out")
	switch {
	case name == "html" && out != nil && strings.Contains(out.Usage, "page"):
		kin = ": the page is what -o writes"
	case len(have) > 0 && cmd.HasParent():
		kin = fmt.Sprintf(": --%s is a flag of %s", name, strings.Join(have, ", "))
	}
	return elsewhere, kin
}

// noCommand refuses arguments that name no command.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var all []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			all = append(all, c.Name())
		}
	}
	hint := vocabulary.Hint
	if !cmd.HasParent() {
		hint = vocabulary.Command
	}
	return usagef("there is no command %q%s", args[0], hint(args[0], all))
}

// oneOf is a flag that takes one of some names, or several with commas between them.
type oneOf struct {
	pflag.Value
	names []string
}

// Set says in an error which name may have been meant, in place of all that there are, which
// --help lists.
func (o oneOf) Set(text string) error {
	err := o.Value.Set(text)
	if err == nil || errors.As(err, new(*vocabulary.Error)) {
		return err
	}
	for name := range strings.SplitSeq(text, ",") {
		if slices.Contains(o.names, name) {
			continue
		}
		hint := vocabulary.Hint(name, o.names)
		if what, _, _ := strings.Cut(err.Error(), ": want one of "); strings.HasSuffix(hint, "?") {
			return errors.New(what + hint)
		}
		return fmt.Errorf("%w%s", err, hint)
	}
	return err
}
