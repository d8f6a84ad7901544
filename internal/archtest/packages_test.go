package archtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// packages returns every folder of the tree that has Go files, in all modules, relative to
// the root, which is "octavo".
func packages(t *testing.T) (list []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if file != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		relative, err := filepath.Rel(root, filepath.Dir(file))
		if relative == "." {
			relative = "octavo"
		}
		list = append(list, filepath.ToSlash(relative))
		return err
	}))
	slices.Sort(list)
	return slices.Compact(list)
}

var row = regexp.MustCompile("(?m)^\\| (`[^|]*) \\|")

// named returns the packages in the first column of the tables of a page.
func named(page string) (list []string) {
	for _, cell := range row.FindAllStringSubmatch(page, -1) {
		for name := range strings.SplitSeq(cell[1], ", ") {
			list = append(list, strings.Trim(name, "`"))
		}
	}
	return list
}

// unnamed returns the packages that a list does not name. FOLDER/* names all packages below
// a folder that are internal or of the lab; public ones need a line of their own.
func unnamed(packages, names []string) (list []string) {
	for _, pkg := range packages {
		covered := slices.ContainsFunc(names, func(name string) bool {
			folder, all := strings.CutSuffix(name, "/*")
			return name == pkg || all && (strings.Contains(pkg, "internal/") || strings.HasPrefix(pkg, "lab/")) && strings.HasPrefix(pkg, folder+"/")
		})
		if !covered {
			list = append(list, pkg)
		}
	}
	return list
}

// TestPackages wants a line in docs/packages.md for each package, and none for what is gone.
func TestPackages(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "packages.md"))
	require.NoError(t, err)
	all, names := packages(t), named(string(page))
	require.Contains(t, all, "octavo")
	require.Contains(t, all, "cmd/octavo")
	require.Contains(t, all, "lab/experiments/law")
	require.Contains(t, all, "beam/cmd/octavo-beam")
	require.Empty(t, unnamed(all, names), "packages without a line in docs/packages.md")
	for _, name := range names {
		folder := strings.TrimSuffix(name, "/*")
		if folder == "octavo" {
			folder = "."
		}
		require.DirExists(t, filepath.Join(root, filepath.FromSlash(path.Clean(folder))), "docs/packages.md has a line for it")
	}
	seen := slices.Sorted(slices.Values(names))
	require.Equal(t, slices.Compact(slices.Clone(seen)), seen, "docs/packages.md has two lines for one package")
}

func TestUnnamed(t *testing.T) {
	names := named("| package | what |\n|---|---|\n| `fp8` | formats |\n| `a`, `cmd/internal/b` | two |\n| `cmd/internal/c/*`, `lab/*` | many |\n| `nn/*` | not allowed |\n")
	require.Equal(t, []string{"fp8", "a", "cmd/internal/b", "cmd/internal/c/*", "lab/*", "nn/*"}, names)
	require.Equal(t, []string{"fp", "cmd/internal/c", "lab", "nn/hf"},
		unnamed([]string{"fp8", "fp", "a", "cmd/internal/b", "cmd/internal/c", "cmd/internal/c/x", "cmd/internal/c/x/y", "lab", "lab/x/y", "nn/hf"}, names))
}
