package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// mostRuns is the number of runs that are compared at most.
const mostRuns = 200

// place is where a run was found.
type place struct {
	dir, name string
	manifest  outdir.Manifest
	live      bool // it goes on, or was killed
	unended   bool // beside the run that ended is a later one, which was killed
}

// runIn returns the run in a directory: the one that goes on there, if it shows anything, or the
// one that ended. One that was killed counts where no other ended.
func runIn(dir string) (place, error) {
	live, err := outdir.ReadLive(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return place{}, err
	}
	goesOn := err == nil
	held := goesOn && outdir.Held(dir) // asked before: what a run shows goes before it lets go
	ended, err := outdir.Read(dir)
	shown := goesOn && shows(dir)
	if goesOn && errors.Is(err, outdir.ErrNoRun) || shown && held {
		return place{dir: dir, manifest: live, live: true}, nil
	}
	return place{dir: dir, manifest: ended, unended: shown}, err
}

// shows reports whether a directory has what a run shows while it goes on. The list of those files
// is there before them and after them.
func shows(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, liveName))
	return err == nil
}

// find returns the runs in directories, each once. A directory that holds no run but
// has directories that do stands for those.
func find(dirs []string) (found []place, err error) {
	for _, dir := range dirs {
		within, err := findIn(dir)
		if err != nil {
			return nil, err
		}
		for _, at := range within {
			if !slices.ContainsFunc(found, func(other place) bool { return sameDirectory(at.dir, other.dir) }) {
				found = append(found, at)
			}
		}
		if len(found) > mostRuns {
			return nil, fmt.Errorf("there are more than %d runs: name fewer directories", mostRuns)
		}
	}
	paths := make([]string, len(found))
	for i, at := range found {
		paths[i] = at.dir
	}
	for i, name := range names(paths) {
		found[i].name = name
	}
	return found, nil
}

func sameDirectory(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// findIn returns the run that a directory holds, or those of the directories in it.
func findIn(dir string) (found []place, err error) {
	if stat, err := os.Stat(dir); err == nil && !stat.IsDir() {
		return nil, fmt.Errorf("%s is a file: name the directory of a run", textout.Name(dir))
	}
	at, err := runIn(dir)
	if err == nil {
		return []place{at}, nil
	}
	if !errors.Is(err, outdir.ErrNoRun) {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return natural(a.Name(), b.Name()) })
	for _, e := range entries {
		below := filepath.Join(dir, e.Name())
		if stat, err := os.Stat(below); err != nil || !stat.IsDir() {
			continue
		}
		at, err := runIn(below)
		switch {
		case errors.Is(err, outdir.ErrNoRun):
		case err != nil:
			return nil, err
		default:
			found = append(found, at)
		}
	}
	if len(found) == 0 {
		return nil, noRun(dir)
	}
	return found, nil
}

// noRun says that a directory holds no run, and why it may be that it looks as if.
func noRun(dir string) error {
	for _, old := range []string{"curves.csv", "index.html"} {
		if _, err := os.Stat(filepath.Join(dir, old)); err == nil {
			return fmt.Errorf("%s has a %s, but no %s: the run was not finished, or is one of octavo before 0.1.0: run it again",
				textout.Name(dir), old, outdir.ManifestName)
		}
	}
	return fmt.Errorf("%s holds no run, nor does a directory in it: there is no %s: name a directory that octavo train or octavo lab wrote",
		textout.Name(dir), outdir.ManifestName)
}

// natural orders texts by name, and runs of digits in them by number.
func natural(a, b string) int {
	restA, restB := a, b
	for restA != "" && restB != "" {
		na, nb := digits(restA), digits(restB)
		if na == 0 || nb == 0 {
			if restA[0] != restB[0] {
				return cmp.Compare(restA[0], restB[0])
			}
			restA, restB = restA[1:], restB[1:]
			continue
		}
		x, errX := strconv.ParseUint(restA[:na], 10, 64)
		y, errY := strconv.ParseUint(restB[:nb], 10, 64)
		if errX == nil && errY == nil && x != y {
			return cmp.Compare(x, y)
		}
		if restA[:na] != restB[:nb] {
			return cmp.Compare(restA[:na], restB[:nb])
		}
		restA, restB = restA[na:], restB[nb:]
	}
	return cmp.Compare(len(restA), len(restB))
}

// digits returns how many digits a text begins with.
func digits(text string) (n int) {
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}
