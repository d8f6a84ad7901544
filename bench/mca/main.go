// Command mca asks LLVM's models of processors how fast inner loops of kernels can be on
// processors that are not at hand. It links the kernels, takes from the machine code the
// instructions that once round a loop executes, and has llvm-mca run them. README.md has
// its results and says what the models leave out.
//
//	go run ./bench/mca                                        the loops of loops.go, of arm64
//	go run ./bench/mca -arch amd64 -processors znver4         of x86
//	go run ./bench/mca -loops multiply -instructions          what is in a loop
//	go run ./bench/mca -arch amd64 -package internal/convert -function decodeAVX2 -label decodeLoop
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
)

// byDefault are processors of which LLVM 22 has models of their own, but for the last
// of arm64, which stands for those that execute in order.
var byDefault = map[string]string{
	"arm64": "neoverse-n1,neoverse-v1,neoverse-v2,neoverse-v3,cortex-a57,cortex-a55",
	"amd64": "skylake-avx512,sapphirerapids,znver4",
}

func main() {
	var one loop
	arch := flag.String("arch", "arm64", "`architecture` of the kernels: arm64 or amd64")
	processors := flag.String("processors", "", "models of llvm-mca, separated by commas (default those of README.md)")
	pattern := flag.String("loops", ".", "those of loops.go in functions whose names match this regular expression")
	flag.StringVar(&one.pkg, "package", "", "the package of a function, below the module's root")
	flag.StringVar(&one.function, "function", "", "a function in assembly, in place of those of loops.go")
	flag.StringVar(&one.label, "label", "loop", "where its loop begins")
	times := flag.String("times", "", "how often loops within it go round: label=16,label=2")
	taken := flag.String("taken", "", "labels that conditional jumps ahead go to, separated by commas")
	flag.IntVar(&one.work, "work", 1, "how many units once round does")
	flag.StringVar(&one.unit, "unit", "loop", "what a unit is; MAC also prints the share of the peak")
	show := flag.Bool("instructions", false, "print the instructions instead")
	version := flag.String("llvm", newest(), "the version of llvm-mca and llvm-mc, as at the end of their names: -22")
	flag.Parse()
	list, err := choose(*arch, *pattern, one, *times, *taken)
	if err == nil {
		if *processors == "" {
			*processors = byDefault[*arch]
		}
		err = report(list, strings.Split(*processors, ","), *show, tools{*version})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mca:", err)
		os.Exit(1)
	}
}

// choose returns the loops that the flags ask for.
func choose(arch, pattern string, one loop, times, taken string) ([]loop, error) {
	if triples[arch] == "" {
		return nil, fmt.Errorf("no architecture %q", arch)
	}
	if one.function != "" {
		one.arch, one.times = arch, map[string]int{}
		for part := range strings.FieldsFuncSeq(times, func(r rune) bool { return r == ',' }) {
			label, n, _ := strings.Cut(part, "=")
			var err error
			if one.times[label], err = strconv.Atoi(n); err != nil {
				return nil, err
			}
		}
		one.taken = strings.FieldsFunc(taken, func(r rune) bool { return r == ',' })
		return []loop{one}, nil
	}
	name, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	var list []loop
	for _, l := range loops {
		if l.arch == arch && name.MatchString(l.function) {
			list = append(list, l)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no loop of %s matches %q", arch, pattern)
	}
	return list, nil
}

// newest returns the highest version installed, or none for that without one.
func newest() string {
	for version := 40; version > 13; version-- {
		suffix := fmt.Sprintf("-%d", version)
		if _, err := exec.LookPath("llvm-mca" + suffix); err == nil {
			return suffix
		}
	}
	return ""
}

func report(list []loop, processors []string, show bool, t tools) error {
	dir, err := os.MkdirTemp("", "mca")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	defer out.Flush()
	if !show {
		fmt.Fprintln(out, "| loop\t| processor\t| cycles\t| instructions\t| a cycle\t| of FMA peak\t| bound by\t|")
		fmt.Fprintln(out, "|---\t|---\t|---:\t|---:\t|---:\t|---:\t|---\t|")
	}
	for i := range list {
		l := &list[i]
		binary, err := build(l.arch, "github.com/octavo-fp8/octavo/"+l.pkg, dir)
		if err != nil {
			return err
		}
		f, err := load(t, l.arch, binary, l.function)
		if err != nil {
			return err
		}
		instructions, err := f.trace(l)
		if err != nil {
			return err
		}
		if show {
			fmt.Printf("%s, %s:\n\t%s\n", l.function, l.label, strings.Join(instructions, "\n\t"))
			continue
		}
		for _, processor := range processors {
			e, err := t.estimate(l.arch, processor, instructions)
			if err != nil {
				return err
			}
			rate := fmt.Sprintf("%.2f %ss", float64(l.work)/e.cycles, l.unit)
			if l.bytes > 0 {
				rate += fmt.Sprintf(", %.1f bytes", float64(l.work*l.bytes)/e.cycles)
			}
			share := ""
			if l.unit == "MAC" {
				peak, err := t.peakFMA(l.arch, processor, strings.Contains(l.function, "512"))
				if err != nil {
					return err
				}
				share = fmt.Sprintf("%.1f %%", 100*float64(multiplications(instructions))/e.cycles/peak)
			}
			fmt.Fprintf(out, "| %s\t| %s\t| %.1f\t| %d\t| %s\t| %s\t| %s\t|\n", l.function, processor, e.cycles, len(instructions), rate, share, e.bound())
		}
	}
	return nil
}
