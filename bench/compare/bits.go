package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// compareBits runs TestChecksums of both sides and compares what it prints.
func compareBits(ctx context.Context, old, recent *side, out io.Writer) error {
	var sums [2]map[string]string
	for i, s := range []*side{old, recent} {
		output, err := s.command(ctx, nil, benchPackage, "-test.run=^TestChecksums$", "-test.v").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s, %s: TestChecksums: %w\n%s", s.name, s.title, err, failures(output))
		}
		if sums[i] = checksums(output); len(sums[i]) == 0 {
			return fmt.Errorf("%s, %s: TestChecksums prints none", s.name, s.title)
		}
	}
	agree, different, single := matching(sums[0], sums[1])
	if len(different) > 0 {
		return fmt.Errorf("other bits in new than in old:\n\t%s", strings.Join(different, "\n\t"))
	}
	if agree == 0 {
		return errors.New("TestChecksums has no operation that is in both")
	}
	fmt.Fprintf(out, "bits: %d checksums agree", agree)
	if single > 0 {
		fmt.Fprintf(out, ", %d are in one of the two only", single)
	}
	fmt.Fprintln(out)
	return nil
}

var checksumLine = regexp.MustCompile(`(?m)checksum (\S+ level=\S+) ([0-9a-f]+)$`)

// checksums returns them by operation and level.
func checksums(output []byte) map[string]string {
	sums := map[string]string{}
	for _, m := range checksumLine.FindAllSubmatch(output, -1) {
		sums[string(m[1])] = string(m[2])
	}
	return sums
}

// failures leaves out the lines with checksums.
func failures(output []byte) (text []byte) {
	for line := range bytes.Lines(output) {
		if !checksumLine.Match(line) {
			text = append(text, line...)
		}
	}
	return text
}

// matching counts the checksums that agree and those that are in one map only, and
// returns the names of those that differ.
func matching(old, recent map[string]string) (agree int, different []string, single int) {
	single = len(recent)
	for name, sum := range old {
		other, ok := recent[name]
		switch {
		case !ok:
			single++
			continue
		case other == sum:
			agree++
		default:
			different = append(different, name)
		}
		single--
	}
	slices.Sort(different)
	return agree, different, single
}
