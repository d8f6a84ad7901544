// Declared checks that no declaration of octavo lab was changed without saying so: what of a
// hypothesis or control is not as it was in the version of declaration.toml before, in any
// commit or in the working tree, must have a [[change]] that names it, one for each time.
// scripts/declared runs it.
package main

import (
	"fmt"
	"os"
)

func main() {
	faults, files, err := check(".")
	switch {
	case err == errShallow && os.Getenv("CI") != "true":
		fmt.Println("declared: cannot judge:", err)
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "declared:", err)
		os.Exit(1)
	}
	for _, f := range faults {
		fmt.Println(f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
	fmt.Printf("%d declarations: every change is declared\n", files)
}
