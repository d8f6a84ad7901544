// Command mca asks LLVM's models of processors how fast the inner loops of kernels
// can be on processors that are not at hand. It links the kernels, takes from the
// machine code the instructions that once round a loop executes, and has llvm-mca run
// them. README.md says what the models leave out.
//
//	go run ./bench/mca                                     arm64's loops
//	go run ./bench/mca -arch amd64 -processors znver4      x86's
//	go run ./bench/mca -loops multiply -instructions       what is in a loop
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"text/tabwriter"
)

// byDefault are processors of which LLVM 22 has models of their own.
var byDefault = map[string]string{
	"arm64": "neoverse-n1,neoverse-v1,neoverse-v2,cortex-a57,cortex-a55",
	"amd64": "skylake-avx512,sapphirerapids,znver4,znver5,haswell",
}

func main() {
	arch := flag.String("arch", "arm64", "`architecture` of the kernels: arm64 or amd64")
	processors := flag.String("processors", "", "models of llvm-mca, separated by commas")
	pattern := flag.String("loops", ".", "functions whose names match this regular expression")
	show := flag.Bool("instructions", false, "print the instructions instead")
	version := flag.String("llvm", newest(), "the version of llvm-mca and llvm-mc, as at the end of their names: -22")
	flag.Parse()
	if err := report(*arch, *processors, *pattern, *show, tools{*version}); err != nil {
		fmt.Fprintln(os.Stderr, "mca:", err)
		os.Exit(1)
	}
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

func report(arch, processors, pattern string, show bool, t tools) error {
	name, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	if triples[arch] == "" {
		return fmt.Errorf("no architecture %q", arch)
	}
	if processors == "" {
		processors = byDefault[arch]
	}
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
	for i := range loops {
		l := &loops[i]
		if l.arch != arch || !name.MatchString(l.function) {
			continue
		}
		binary, err := build(arch, "github.com/octavo-fp8/octavo/"+l.pkg, dir)
		if err != nil {
			return err
		}
		f, err := load(t, arch, binary, l.function)
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
		for processor := range strings.SplitSeq(processors, ",") {
			e, err := t.estimate(arch, processor, instructions)
			if err != nil {
				return err
			}
			rate := fmt.Sprintf("%.2f %ss", float64(l.work)/e.cycles, l.unit)
			if l.bytes > 0 {
				rate += fmt.Sprintf(", %.1f bytes", float64(l.work*l.bytes)/e.cycles)
			}
			share := ""
			if l.unit == "MAC" {
				peak, err := t.peakFMA(arch, processor, strings.Contains(l.function, "512"))
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
