package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/octavo-fp8/octavo/lab/experiments"
)

const completionLong = `Completion prints a script that has a shell complete octavo's commands, flags,
the names that flags take, and files. The help of each shell says how to load
it.`

// addCompletion adds the completion command, and says to it what flags and arguments of
// all commands may be. Scripts go to what is root's standard output by then.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		completeFlags(c)
		for _, child := range c.Commands() {
			if c.Name() != "completion" {
				completeFlags(child)
				child.ValidArgsFunction = completeArguments(child)
			}
		}
		if c.Name() == "completion" {
			c.Args, c.RunE = noCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			markUsageErrors(c)
			c.Short = "Print a completion script for a shell"
			c.Long = completionLong
			c.Example = "  octavo completion bash > ~/.local/share/bash-completion/completions/octavo\n" +
				"  octavo completion fish > ~/.config/fish/completions/octavo.fish"
			continue
		}
		c.ValidArgsFunction = completeArguments(c)
	}
	completeFlags(root)
}

// completeArguments goes by what the usage line says that a command takes.
func completeArguments(c *cobra.Command) cobra.CompletionFunc {
	switch arguments, _, _ := strings.Cut(c.Use, "--"); {
	case strings.Contains(arguments, ".safetensors"):
		return extension("safetensors")
	case strings.Contains(arguments, " DIR"):
		return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
	case strings.HasPrefix(arguments, "lab "):
		names := []string{allExperiments}
		for _, e := range experiments.All() {
			names = append(names, e.Name)
		}
		return cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)
	case strings.HasPrefix(arguments, "plan "):
		return cobra.FixedCompletions(planNames(), cobra.ShellCompDirectiveDefault)
	}
	return cobra.NoFileCompletions
}

// completeFlags goes by what --help calls the value of a flag.
func completeFlags(c *cobra.Command) {
	complete := func(f *pflag.Flag) {
		var err error
		kind, _ := pflag.UnquoteUsage(f)
		names, named := f.Value.(oneOf)
		switch {
		case named:
			err = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(names.names, cobra.ShellCompDirectiveNoFileComp))
		case kind == "FILE": // any
		case kind == "DIR":
			err = c.MarkFlagDirname(f.Name)
		case kind == "NAME" && f.Value.Type() == "string": // of a tensor or an array
			err = c.RegisterFlagCompletionFunc(f.Name, extension("npy"))
		case f.Value.Type() != "bool":
			err = c.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
		if err != nil {
			panic(err) // it was done before
		}
	}
	c.LocalFlags().VisitAll(complete)
}

// extension completes names of files that end like that.
func extension(name string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return []cobra.Completion{name}, cobra.ShellCompDirectiveFilterFileExt
	}
}
