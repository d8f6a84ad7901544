package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

const fileName = "declaration.toml"

// errShallow is why nothing can be judged.
var errShallow = errors.New("the clone is shallow, and the rest of its history cannot be fetched")

// fetchTime is how long the rest of a history may take: a remote that does not answer is as
// good as none.
const fetchTime = 5 * time.Minute

// check returns what was changed in silence in the repository of a folder, and how many
// declarations there are. Of a shallow clone it fetches the rest of the history first; where
// that fails, the error is errShallow. A file that is moved as it is keeps its history; one
// that is altered in the same commit begins anew.
func check(dir string) (faults []string, files int, err error) {
	if err := deepen(dir); err != nil {
		return nil, 0, err
	}
	top, err := git(dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, 0, err
	}
	top = strings.TrimSpace(top)
	paths, err := git(top, "ls-files", "-z", "--", ":(glob)**/"+fileName)
	if err != nil {
		return nil, 0, err
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(paths, "\x00"), "\x00") {
		if path == "" {
			continue
		}
		versions, err := history(top, path)
		if err != nil {
			return nil, 0, err
		}
		files++
		for _, f := range silent(versions) {
			faults = append(faults, path+": "+f)
		}
	}
	return faults, files, nil
}

// deepen fetches the history that a shallow clone lacks.
func deepen(dir string) error {
	shallow, err := isShallow(dir)
	if err != nil || !shallow {
		return err
	}
	if _, err := git(dir, "fetch", "--quiet", "--unshallow"); err != nil {
		return fmt.Errorf("%w: %w", errShallow, err)
	}
	if shallow, err = isShallow(dir); err == nil && shallow { // so is what it was cloned of
		return errShallow
	}
	return err
}

func isShallow(dir string) (bool, error) {
	answer, err := git(dir, "rev-parse", "--is-shallow-repository")
	return strings.TrimSpace(answer) == "true", err
}

// version is a declaration as it once was.
type version struct {
	at      string            // a commit, or what the working tree is called
	records map[string]string // of each hypothesis and control, and of the file's own fields
	changes []change
}

// change is a [[change]]: what it says, and whom it names.
type change struct {
	text string
	of   []string
}

// history returns the versions of a file, the oldest first, the working tree's last.
func history(top, path string) (list []version, err error) {
	commits, err := git(top, "log", "--format=%H", "--name-only", "-z", "--topo-order", "--follow", "-M100%", "--", path)
	if err != nil {
		return nil, err
	}
	// Of each commit come its hash, a line end, and what the file was called there.
	fields := strings.FieldsFunc(commits, func(r rune) bool { return r == '\n' || r == 0 })
	for pair := range slices.Chunk(fields, 2) {
		hash, path := pair[0], pair[1]
		found, err := git(top, "ls-tree", hash, "--", path)
		if err != nil {
			return nil, err
		}
		if found == "" { // it was removed there
			continue
		}
		text, err := git(top, "show", hash+":"+path)
		if err != nil {
			return nil, err
		}
		v, err := parse("commit "+hash[:12], text)
		if err != nil {
			return nil, fmt.Errorf("%s, commit %s: %w", path, hash[:12], err)
		}
		list = append(list, v)
	}
	slices.Reverse(list)
	text, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(path)))
	if errors.Is(err, os.ErrNotExist) {
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := parse("the working tree", string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return append(list, v), nil
}

// parse reads a version, whatever its fields are.
func parse(at, text string) (v version, err error) {
	var all map[string]any
	if err := toml.Unmarshal([]byte(text), &all); err != nil {
		return v, err
	}
	v = version{at: at, records: map[string]string{}}
	for field, value := range all {
		items, isList := value.([]any)
		switch {
		case field == "change":
			for _, item := range items {
				v.changes = append(v.changes, parseChange(item))
			}
		case isList:
			for _, item := range items {
				fields, _ := item.(map[string]any)
				v.records[fmt.Sprint(fields["name"])] = field + " " + fmt.Sprint(item) // fmt sorts keys
			}
		default:
			v.records[field] = fmt.Sprint(value)
		}
	}
	return v, nil
}

func parseChange(item any) (c change) {
	c.text = fmt.Sprint(item)
	fields, _ := item.(map[string]any)
	of, _ := fields["of"].([]any)
	for _, name := range of {
		c.of = append(c.of, fmt.Sprint(name))
	}
	return c
}

// silent returns what changed from version to version more often than the last one has
// changes for, and changes that it no longer has.
func silent(versions []version) (faults []string) {
	if len(versions) == 0 {
		return nil
	}
	last := versions[len(versions)-1]
	declared := map[string]int{}
	for _, c := range last.changes {
		for _, name := range c.of {
			declared[name]++
		}
	}
	for i := 1; i < len(versions); i++ {
		before, after := versions[i-1], versions[i]
		for _, name := range changed(before.records, after.records) {
			if declared[name]--; declared[name] < 0 {
				faults = append(faults, fmt.Sprintf("%s changed in %s, and no [[change]] names it", name, after.at))
			}
		}
		for _, c := range before.changes {
			if !slices.ContainsFunc(after.changes, func(other change) bool { return other.text == c.text }) {
				faults = append(faults, fmt.Sprintf("the change of %s is gone or altered in %s", strings.Join(c.of, ", "), after.at))
			}
		}
	}
	return faults
}

// changed returns the names of what two versions do not have alike, sorted.
func changed(before, after map[string]string) (names []string) {
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		x, was := before[name]
		y, is := after[name]
		if x != y || was != is {
			names = append(names, name)
		}
	}
	return names
}

func git(dir string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir, command.WaitDelay = dir, time.Second
	command.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0") // nobody is there to answer
	out, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("git %s: %s", arguments[0], strings.TrimSpace(string(failed.Stderr)))
	}
	return string(out), err
}
