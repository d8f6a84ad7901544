package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// benchPackage has the checksums, and usually the benchmarks.
const benchPackage = "./bench"

// checksumsFile is copied into revisions that lack it.
const checksumsFile = "bench/checksums_test.go"

// side is one of the two revisions.
type side struct {
	name      string // old or new
	title     string // for people
	tree      string // the folder of its sources
	packages  []string
	binaries  map[string]string // test binaries, by package
	rehearsed []string          // its benchmarks
	output    []byte            // of its benchmarks
}

// prepare builds both sides in a temporary folder.
func prepare(ctx context.Context, o options, temporary string) (old, recent *side, err error) {
	clone, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, nil, err
	}
	changes, err := git(ctx, clone, "status", "--porcelain")
	if err != nil {
		return nil, nil, err
	}
	old = &side{name: "old"}
	recent = &side{name: "new"}
	if err := old.unpack(ctx, clone, o.old, temporary); err != nil {
		return nil, nil, err
	}
	if o.new != "" {
		if err := recent.unpack(ctx, clone, o.new, temporary); err != nil {
			return nil, nil, err
		}
		if changes != "" {
			recent.title += " (without the changes in the working tree)"
		}
	} else {
		head, err := git(ctx, clone, "log", "-1", "--format=%h %s")
		if err != nil {
			return nil, nil, err
		}
		recent.tree, recent.title = clone, "the working tree, "+head
		if changes != "" {
			recent.title += ", with changes"
		}
	}
	for _, s := range []*side{old, recent} {
		if err := s.addChecksums(clone); err != nil {
			return nil, nil, err
		}
		if err := s.build(ctx, o.packages, temporary); err != nil {
			return nil, nil, err
		}
	}
	return old, recent, nil
}

// unpack puts the sources of a revision into the temporary folder.
func (s *side) unpack(ctx context.Context, clone, revision, temporary string) error {
	commit, err := git(ctx, clone, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return fmt.Errorf("%s: git knows no revision %q", s.name, revision)
	}
	if s.title, err = git(ctx, clone, "log", "-1", "--format=%h %s", commit); err != nil {
		return err
	}
	if !strings.HasPrefix(commit, revision) {
		s.title = revision + ", " + s.title
	}
	s.tree = filepath.Join(temporary, s.name)
	cmd := exec.CommandContext(ctx, "git", "-C", clone, "archive", "--format=tar", commit)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	archive, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("git archive %s: %w\n%s", commit, err, &stderr)
	}
	return untar(archive, s.tree)
}

// untar unpacks files and folders, which are all that sources need.
func untar(archive []byte, to string) error {
	root, err := makeRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(strings.TrimSuffix(h.Name, "/"), 0o755)
		case tar.TypeReg:
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = root.WriteFile(h.Name, data, 0o644)
			}
		}
		if err != nil {
			return err
		}
	}
}

func makeRoot(folder string) (*os.Root, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	return os.OpenRoot(folder)
}

// addChecksums gives a revision from before TestChecksums that of the working tree.
func (s *side) addChecksums(clone string) error {
	own := filepath.Join(s.tree, filepath.FromSlash(checksumsFile))
	if _, err := os.Stat(own); err == nil || s.tree == clone {
		return err
	}
	text, err := os.ReadFile(filepath.Join(clone, filepath.FromSlash(checksumsFile)))
	if err != nil {
		return fmt.Errorf("%s has no TestChecksums, and the working tree has none to give it: %w", s.name, err)
	}
	s.title += " (with TestChecksums of the working tree)"
	return os.WriteFile(own, text, 0o644)
}

// build makes a test binary of each package. -trimpath makes those of equal sources
// equal.
func (s *side) build(ctx context.Context, packages []string, temporary string) error {
	s.packages, s.binaries = packages, map[string]string{}
	for i, p := range append(slices.Clone(packages), benchPackage) {
		if s.binaries[p] != "" {
			continue
		}
		binary := filepath.Join(temporary, fmt.Sprintf("%s%d.test", s.name, i))
		if runtime.GOOS == "windows" {
			binary += ".exe"
		}
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-buildvcs=false", "-o", binary, p)
		cmd.Dir = s.tree
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s, %s: %s does not build: %w\n%s", s.name, s.title, p, err, text)
		}
		if _, err := os.Stat(binary); err != nil {
			return fmt.Errorf("%s, %s: %s has no tests", s.name, s.title, p)
		}
		s.binaries[p] = binary
	}
	return nil
}

// command is a run of the test binary of a package, where its sources are.
func (s *side) command(ctx context.Context, pin []string, p string, args ...string) *exec.Cmd {
	args = slices.Concat(pin, []string{s.binaries[p]}, args)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = filepath.Join(s.tree, filepath.FromSlash(p))
	return cmd
}

// measure runs the benchmarks once more.
func (s *side) measure(ctx context.Context, bench, benchtime string, pin []string) error {
	for _, p := range s.packages {
		cmd := s.command(ctx, pin, p, "-test.run=^$", "-test.bench="+bench, "-test.benchtime="+benchtime)
		output, err := cmd.Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				output = append(output, exit.Stderr...)
			}
			return fmt.Errorf("%s, %s: the benchmarks of %s: %w\n%s", s.name, s.title, p, err, output)
		}
		s.output = append(s.output, output...)
	}
	return nil
}

// sameBinaries reports whether both sides have the same code.
func sameBinaries(old, recent *side) (bool, error) {
	for p := range old.binaries {
		a, err := os.ReadFile(old.binaries[p])
		if err != nil {
			return false, err
		}
		b, err := os.ReadFile(recent.binaries[p])
		if err != nil || !bytes.Equal(a, b) {
			return false, err
		}
	}
	return true, nil
}

// git returns what a command of git prints.
func git(ctx context.Context, folder string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", args[0], err, &stderr)
	}
	return strings.TrimRight(string(output), "\n"), nil
}
