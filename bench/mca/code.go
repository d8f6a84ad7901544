package main

import (
	"debug/elf"
	"debug/gosym"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// function is the machine code of one function, by instruction.
type function struct {
	text   []string
	jumps  []int          // where each instruction jumps to, or -1
	labels map[string]int // the instruction behind each label of the assembly
}

// build builds the tests of a package for an architecture. They have all of its
// assembly, linked.
func build(arch, pkg, dir string) (binary string, err error) {
	binary = filepath.Join(dir, arch+"-"+filepath.Base(pkg))
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	cmd := exec.Command("go", "test", "-c", "-o", binary, pkg)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return binary, cmd.Run()
}

type line struct {
	file   string
	number int
}

// load returns a function written in assembly, whose name is that in its package.
func load(t tools, arch, binary, name string) (*function, error) {
	file, err := elf.Open(binary)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines, err := file.Section(".gopclntab").Data()
	if err != nil {
		return nil, err
	}
	code := file.Section(".text")
	table, err := gosym.NewTable(nil, gosym.NewLineTable(lines, code.Addr))
	if err != nil {
		return nil, err
	}
	for _, fn := range table.Funcs {
		path, _, _ := table.PCToLine(fn.Entry)
		if !strings.HasSuffix(strings.TrimSuffix(fn.Name, ".abi0"), "."+name) || !assembly.MatchString(path) {
			continue
		}
		bytes := make([]byte, fn.End-fn.Entry)
		if _, err := code.ReadAt(bytes, int64(fn.Entry-code.Addr)); err != nil {
			return nil, err
		}
		f, addresses, err := disassemble(t, arch, bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		source := make([]line, len(addresses))
		for i, a := range addresses {
			path, number, _ := table.PCToLine(fn.Entry + uint64(a))
			source[i] = line{path, number}
		}
		f.labels, err = findLabels(source, path, name)
		return f, err
	}
	return nil, fmt.Errorf("no function %s in %s", name, binary)
}

var (
	labelLine = regexp.MustCompile(`^(\w+):`)
	assembly  = regexp.MustCompile(`\.[sh]$`)
	textLine  = regexp.MustCompile(`^TEXT ·(\w+)\(SB\)`)
)

// findLabels returns which instruction follows each label of the files that the
// instructions of a function come from: the one of the nearest line.
func findLabels(source []line, path, name string) (map[string]int, error) {
	labels := map[string]int{}
	seen := map[string]bool{}
	for _, from := range source {
		if seen[from.file] || !assembly.MatchString(from.file) { // padding comes from nowhere
			continue
		}
		seen[from.file] = true
		at := from.file
		if !filepath.IsAbs(at) {
			at = filepath.Join(filepath.Dir(path), at)
		}
		text, err := os.ReadFile(at)
		if err != nil {
			return nil, err
		}
		within := strings.HasSuffix(at, ".h") // included in the function as a whole
		for n, s := range strings.Split(string(text), "\n") {
			if m := textLine.FindStringSubmatch(s); m != nil {
				within = m[1] == name
			}
			m := labelLine.FindStringSubmatch(s)
			if m == nil || !within {
				continue
			}
			best := -1
			for i, l := range source {
				if l.file == from.file && l.number > n && (best < 0 || l.number < source[best].number) {
					best = i
				}
			}
			if best >= 0 {
				labels[m[1]] = best
			}
		}
	}
	return labels, nil
}

var (
	// What may follow the name of a jump: the distance to where it goes.
	jumpText = regexp.MustCompile(`^(j\w+|b|b\.\w+|cbn?z|tbn?z)\s.*?#?(-?\d+)$`)
	traceEnd = regexp.MustCompile(`^ret`)
)

// disassemble returns the instructions of the code, and the offset of each.
func disassemble(t tools, arch string, code []byte) (f *function, offsets []int, err error) {
	var input strings.Builder
	for _, b := range code {
		fmt.Fprintf(&input, "%#02x ", b)
	}
	out, err := t.run(input.String(), "llvm-mc", "--disassemble", "--show-encoding", "-triple="+triples[arch], "-mattr="+everything[arch])
	if err != nil {
		return nil, nil, err
	}
	f = &function{}
	var targets []int
	at := map[int]int{}
	offset := 0
	for s := range strings.Lines(out) {
		text, encoding, ok := strings.Cut(strings.TrimSpace(s), "encoding: [")
		if !ok {
			continue
		}
		text = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(text), "#/;"))
		size := 1 + strings.Count(encoding, ",")
		target := -1
		if m := jumpText.FindStringSubmatch(text); m != nil {
			distance, err := strconv.Atoi(m[2])
			if err != nil {
				return nil, nil, err
			}
			target = offset + distance
			if arch == "amd64" {
				target += size // from the end of the instruction
			}
		}
		at[offset] = len(f.text)
		f.text, targets, offsets = append(f.text, text), append(targets, target), append(offsets, offset)
		offset += size
	}
	if len(f.text) == 0 {
		return nil, nil, errors.New("llvm-mc reads none of it")
	}
	for _, target := range targets {
		jump := -1
		if i, ok := at[target]; ok && target >= 0 {
			jump = i
		}
		f.jumps = append(f.jumps, jump)
	}
	return f, offsets, nil
}

// trace returns the instructions that the processor executes from the label of a
// loop until it is there again. A loop within goes round as often as it says, other
// jumps back are taken, and jumps ahead are taken if they always are or the loop
// says so.
func (f *function) trace(l *loop) (instructions []string, err error) {
	start, ok := f.labels[l.label]
	if !ok {
		return nil, fmt.Errorf("no label %s in %s", l.label, l.function)
	}
	times := map[int]int{} // left, by label's instruction
	for label, n := range l.times {
		if _, ok := f.labels[label]; !ok {
			return nil, fmt.Errorf("no label %s in %s", label, l.function)
		}
		times[f.labels[label]] = n
	}
	left := map[int]int{}
	taken := map[int]bool{}
	for _, label := range l.taken {
		if _, ok := f.labels[label]; !ok {
			return nil, fmt.Errorf("no label %s in %s", label, l.function)
		}
		taken[f.labels[label]] = true
	}
	for i := start; ; {
		if i >= len(f.text) || traceEnd.MatchString(f.text[i]) || len(instructions) > 100_000 {
			return nil, fmt.Errorf("%s does not come back to %s", l.function, l.label)
		}
		instructions = append(instructions, f.text[i])
		to := f.jumps[i]
		name, _, _ := strings.Cut(strings.ReplaceAll(f.text[i], "\t", " "), " ")
		always := name == "jmp" || name == "b"
		switch n, counted := times[to]; {
		case to < 0:
			i++
		case to == start:
			return instructions, nil
		case counted && to <= i:
			if _, begun := left[to]; !begun {
				left[to] = n
			}
			if left[to]--; left[to] > 0 {
				i = to
			} else {
				delete(left, to)
				i++
			}
		case always || to < i || taken[to]:
			i = to
		default:
			i++
		}
	}
}
