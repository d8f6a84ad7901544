package main

import (
	"cmp"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/internal/textout"
)

const (
	screenLines  = 40 // of -h at most
	exampleLines = 8  // of them
	helpWidth    = 80
	flagColumn   = 28 // where descriptions of flags begin
	helpFlagName = "help"
)

// helpTexts has a file for each command, with what --help says about it and examples, and those
// of texts that several have in common.
//
//go:embed help
var helpTexts embed.FS

// helpText returns a file of helpTexts, without its examples, and these.
func helpText(name string) (text, examples string) {
	data, err := helpTexts.ReadFile("help/" + name + ".txt")
	if err != nil {
		panic(err) // the name is ours
	}
	text, examples, _ = strings.Cut(strings.TrimSuffix(string(data), "\n"), "\n\nExamples:\n")
	return text, examples
}

// helpOf returns what --help says about a command. Texts take the places of names in it, such
// as {models}, in pairs of both.
func helpOf(command string, insert ...string) string {
	text, _ := helpText(command)
	for _, common := range []string{"operands", "kinds"} {
		of, _ := helpText(common)
		insert = append(insert, "{"+common+"}", of)
	}
	return strings.NewReplacer(insert...).Replace(text)
}

// examplesOf returns the examples of a command.
func examplesOf(command string) string {
	_, examples := helpText(command)
	return examples
}

// addHelp has -h print one screen about a command, and --help all about it.
func addHelp(root *cobra.Command) {
	root.PersistentFlags().BoolP(helpFlagName, "h", false, "-h prints one screen, --help everything")
	root.SetHelpCommand(newHelpCommand())
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		isLong := func(arg string) bool { return strings.HasPrefix(arg, "--"+helpFlagName) }
		if len(args) == 0 || slices.ContainsFunc(args, isLong) { // cmd.Help() has no arguments
			fmt.Fprint(cmd.OutOrStdout(), fullHelp(cmd))
			return
		}
		fmt.Fprint(cmd.OutOrStdout(), briefHelp(cmd))
	})
}

func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|recipes]",
		Short: "Print all about a command, or the names of recipes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Equal(args, []string{"recipes"}) {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), helpOf(args[0], "{recipes}", vocabulary.Table()))
				return err
			}
			topic, rest, err := cmd.Root().Find(args)
			if err != nil {
				return usageError{err}
			}
			if err := noCommand(topic, rest); err != nil {
				return err
			}
			return topic.Help()
		},
	}
}

// fullHelp returns all about a command.
func fullHelp(c *cobra.Command) string {
	text := cmp.Or(c.Long, c.Short) + "\n" + usageOf(c)
	if c.Example != "" {
		text += "\nExamples:\n" + c.Example + "\n"
	}
	text += commandLists(c)
	if c.HasAvailableLocalFlags() && c.HasParent() {
		text += "\nFlags:\n" + describe(flagsOf(c.LocalFlags()))
	}
	return text + "\nFlags of every command:\n" + describe(flagsOf(c.Root().PersistentFlags()))
}

// briefHelp returns one screen about a command. Where its flags do not fit, those that are
// required or in its examples are described, the first ones if not all, and the others named.
func briefHelp(c *cobra.Command) string {
	if !c.HasParent() {
		return rootBrief + commandLists(c) + "\n" + rootMore
	}
	examples := firstExamples(c.Example)
	head := c.Short + ".\n" + usageOf(c)
	if examples != "" {
		head += "\nExamples:\n" + examples + "\n"
	}
	head += commandLists(c)
	all := flagsOf(c.LocalFlags())
	if text := head + flagScreen(c, all, all); strings.Count(text, "\n") <= screenLines {
		return text
	}
	described := slices.DeleteFunc(slices.Clone(all), func(f *pflag.Flag) bool { return rank(f, examples) < 0 })
	slices.SortStableFunc(described, func(a, b *pflag.Flag) int { return rank(a, examples) - rank(b, examples) })
	for {
		text := head + flagScreen(c, all, described)
		if strings.Count(text, "\n") <= screenLines || len(described) == 0 {
			return text
		}
		described = described[:len(described)-1]
	}
}

// flagScreen describes some flags of a command and names the others.
func flagScreen(c *cobra.Command, all, described []*pflag.Flag) (text string) {
	var shown []*pflag.Flag
	var names []string
	for _, f := range all {
		if slices.Contains(described, f) {
			shown = append(shown, f)
		} else {
			names = append(names, "--"+f.Name)
		}
	}
	if len(shown) > 0 {
		text += "\nFlags:\n" + describe(shown)
	}
	if len(names) > 0 {
		text += "\n" + textout.Wrap("Other flags: "+strings.Join(names, ", "), helpWidth, "") + "\n"
	}
	return text + "\n" + c.CommandPath() + " --help says everything.\n"
}

// rank orders the flags that a screen describes: those that are required are 0, those in the
// examples follow by place, and others are negative.
func rank(f *pflag.Flag, examples string) int {
	if isRequired(f) {
		return 0
	}
	if at := regexp.MustCompile(`--` + f.Name + `[ \n]`).FindStringIndex(examples + "\n"); at != nil {
		return 1 + at[0]
	}
	if f.Shorthand == "" {
		return -1
	}
	return strings.Index(examples, " -"+f.Shorthand+" ")
}

func isRequired(f *pflag.Flag) bool { return f.Annotations[cobra.BashCompOneRequiredFlag] != nil }

// firstExamples returns the first of some examples, as many as there is room for. One that
// ends in \ goes on in the next line.
func firstExamples(examples string) string {
	lines := strings.Split(examples, "\n")
	if len(lines) <= exampleLines {
		return examples
	}
	n := exampleLines
	for strings.HasSuffix(lines[n-1], `\`) {
		n--
	}
	return strings.Join(lines[:n], "\n")
}

func usageOf(c *cobra.Command) string { return "\nUsage:\n  " + c.UseLine() + "\n" }

// commandLists lists the commands of c by groups. Of the root those that are in none are
// listed by fullHelp only.
func commandLists(c *cobra.Command) (text string) {
	list := func(title, group string) {
		lines := ""
		for _, child := range c.Commands() {
			if child.IsAvailableCommand() && child.GroupID == group {
				lines += fmt.Sprintf("  %-11s %s\n", child.Name(), child.Short)
			}
		}
		if lines != "" {
			text += "\n" + title + ":\n" + lines
		}
	}
	for _, g := range c.Groups() {
		list(g.Title, g.ID)
	}
	if c.HasParent() {
		list("Commands", "")
	}
	return text
}

// flagsOf returns the flags that are not hidden, by name.
func flagsOf(set *pflag.FlagSet) (flags []*pflag.Flag) {
	set.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags = append(flags, f)
		}
	})
	return flags
}

// describe returns what flags mean, in two columns.
func describe(flags []*pflag.Flag) string {
	var b strings.Builder
	indent := strings.Repeat(" ", flagColumn)
	for _, f := range flags {
		kind, usage := pflag.UnquoteUsage(f)
		name := "      --" + f.Name
		if f.Shorthand != "" {
			name = "  -" + f.Shorthand + ", --" + f.Name
		}
		switch {
		case kind != "" && f.NoOptDefVal != "":
			name += "[=" + kind + "]"
		case kind != "":
			name += " " + kind
		}
		if !slices.Contains([]string{"", "0", "false", "[]"}, f.DefValue) {
			usage += " (default " + f.DefValue + ")"
		}
		lines := textout.Wrap(usage, helpWidth-flagColumn, "")
		if len(name)+2 > flagColumn {
			name += "\n" + indent
		} else {
			name += indent[len(name):]
		}
		b.WriteString(name + strings.ReplaceAll(lines, "\n", "\n"+indent) + "\n")
	}
	return b.String()
}
