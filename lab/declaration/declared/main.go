// Declared checks that no declaration of octavo lab was changed without saying so: what of a
// hypothesis or control is not as it was in the version of declaration.toml before, in any
// commit or in the working tree, must have a [[change]] that names it, one for each time. A
// shallow clone's history is fetched. Where that is impossible nothing is judged: it says so
// on standard error, and that is no failure. scripts/declared runs it.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() { os.Exit(run(".", os.Stdout, os.Stderr)) }

// run judges the repository of a folder and returns the exit status.
func run(dir string, stdout, stderr io.Writer) int {
	faults, files, err := check(dir)
	switch {
	case errors.Is(err, errShallow):
		line := strings.Repeat("*", 88)
		fmt.Fprintf(stderr, "%s\nWARNING: THE HISTORY OF THE DECLARATIONS WAS NOT JUDGED: %v.\n"+
			"Run scripts/declared in a whole clone (git fetch --unshallow).\n%s\n", line, err, line)
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "declared:", err)
		return 1
	}
	for _, f := range faults {
		fmt.Fprintln(stdout, f)
	}
	if len(faults) > 0 {
		return 1
	}
	fmt.Fprintf(stdout, "%d declarations: every change is declared\n", files)
	return 0
}
