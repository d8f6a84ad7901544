package main

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// packages are those whose errors begin with their name, which says nothing to a user.
var packages = []string{
	"agree", "attention", "audit", "checkpoint", "collective", "evaluate", "fault", "flash", "fp8", "gemm", "generate", "hf", "judge", "lint", "nn", "operands", "optim", "oracle", "identify", "layers", "plan", "power", "progress", "safetensors", "scaling", "swiglu", "telemetry", "tensor", "train", "twin",
	"arrays", "demo", "inspect", "multiply", "npy", "quantize", "serve", "vectors",
}

// message returns what an error says without the names of packages that it and the errors
// in it begin with. A name that is on the command line too stays: it may be that of a file
// or a directory.
func message(cmd *cobra.Command, err error) string {
	text := err.Error()
	named := namedBy(cmd)
	for _, inner := range chain(err) {
		whole := inner.Error()
		if system, ok := inner.(*fs.PathError); ok && system.Op == "stat" && errors.Is(system, fs.ErrNotExist) {
			text = strings.Replace(text, whole, system.Path+": there is no such file or directory", 1)
			continue
		}
		name, rest, ok := strings.Cut(whole, ": ")
		if !ok || !slices.Contains(packages, name) || slices.ContainsFunc(named, isBeginning(whole, name)) {
			continue
		}
		if at := strings.LastIndex(text, whole); at >= 0 {
			text = text[:at] + rest + text[at+len(whole):]
		}
	}
	return text
}

// isBeginning reports of a word whether a message, which begins with a name and a colon,
// begins with that word.
func isBeginning(message, name string) func(word string) bool {
	return func(word string) bool {
		return strings.HasPrefix(message, word) && strings.HasPrefix(word+": ", name+": ")
	}
}

// chain returns an error and those that it wraps, the outermost first.
func chain(err error) []error {
	all := []error{err}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			all = append(all, chain(inner)...)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			all = append(all, chain(inner)...)
		}
	case usageError:
		all = append(all, chain(e.error)...)
	}
	return all
}

// namedBy returns the arguments and values of flags of a command line.
func namedBy(cmd *cobra.Command) []string {
	if cmd == nil {
		return nil
	}
	words := cmd.Flags().Args()
	cmd.Flags().Visit(func(f *pflag.Flag) { words = append(words, f.Value.String()) })
	return words
}
