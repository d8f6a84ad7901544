package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

var (
	triples    = map[string]string{"arm64": "aarch64-linux-gnu", "amd64": "x86_64-linux-gnu"}
	everything = map[string]string{"arm64": "+all", "amd64": "+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vbmi,+avx512bf16,+avx512fp16,+fma,+f16c,+amx-tile,+amx-bf16,+amx-int8"}
)

// tools are LLVM's, of one version.
type tools struct{ version string }

func (t tools) run(input, name string, args ...string) (string, error) {
	cmd := exec.Command(name+t.version, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", name, err, errs.String())
	}
	return out.String(), nil
}

// estimate is what the model of a processor says of a loop, for one time round.
type estimate struct {
	cycles   float64
	uops     float64
	width    int                // of dispatch
	pressure map[string]float64 // cycles that each kind of unit is busy, of those of its kind the mean
}

// rounds is how often a loop is run: enough that filling and emptying the pipeline do
// not count.
const rounds = 200

// estimate asks llvm-mca.
func (t tools) estimate(arch, processor string, instructions []string) (*estimate, error) {
	n := max(20, min(rounds, 40_000/len(instructions)))
	out, err := t.run(strings.Join(instructions, "\n")+"\n", "llvm-mca", "-march="+map[string]string{"arm64": "aarch64", "amd64": "x86-64"}[arch],
		"-mtriple="+triples[arch], "-mcpu="+processor, "-mattr="+everything[arch], "-json", fmt.Sprint("-iterations=", n))
	if err != nil {
		return nil, err
	}
	var report struct {
		CodeRegions []struct {
			Instructions         []string
			ResourcePressureView struct {
				ResourcePressureInfo []struct {
					InstructionIndex, ResourceIndex int
					ResourceUsage                   float64
				}
			}
			SummaryView struct {
				DispatchWidth, Iterations, TotalCycles, TotaluOps int
			}
		}
		TargetInfo struct{ Resources []string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return nil, err
	}
	if len(report.CodeRegions) != 1 || len(report.CodeRegions[0].Instructions) != len(instructions) {
		return nil, fmt.Errorf("llvm-mca did not read all instructions")
	}
	region := &report.CodeRegions[0]
	s := region.SummaryView
	e := &estimate{
		cycles: float64(s.TotalCycles) / float64(s.Iterations), uops: float64(s.TotaluOps) / float64(s.Iterations),
		width: s.DispatchWidth, pressure: map[string]float64{},
	}
	count := map[string]int{}
	for _, name := range report.TargetInfo.Resources {
		count[kind(name)]++
	}
	for _, p := range region.ResourcePressureView.ResourcePressureInfo {
		if p.InstructionIndex < len(instructions) {
			k := kind(report.TargetInfo.Resources[p.ResourceIndex])
			e.pressure[k] += p.ResourceUsage / float64(count[k])
		}
	}
	return e, nil
}

var instance = regexp.MustCompile(`^.*Unit|\W.*$`)

// kind returns the name of a unit without the processor's and without its number where
// there are several alike.
func kind(name string) string { return instance.ReplaceAllString(name, "") }

// bound says what keeps the loop from being faster: units that are busy, dispatch, or
// neither, which leaves instructions waiting for results.
func (e *estimate) bound() string {
	const busy = 0.93
	var names []string
	for name, p := range e.pressure {
		if p >= busy*e.cycles {
			names = append(names, name)
		}
	}
	if e.uops/float64(e.width) >= busy*e.cycles {
		names = append(names, "dispatch")
	}
	if len(names) == 0 {
		return "latency"
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

var fmaText = regexp.MustCompile(`^(v?fmla|fmlal2?|vfmadd\d+ps|fmul|vmulps)\b`)

// multiplications returns how many instructions multiply float32s, most of them to
// add the product.
func multiplications(instructions []string) (n int) {
	for _, s := range instructions {
		if fmaText.MatchString(s) {
			n++
		}
	}
	return n
}

// peakFMA returns how many multiply-adds the model starts in a cycle if none waits.
func (t tools) peakFMA(arch, processor string, wide bool) (float64, error) {
	var code []string
	for i := range 24 {
		switch {
		case arch == "arm64":
			code = append(code, fmt.Sprintf("fmla v%d.4s, v30.4s, v31.4s", i))
		case wide:
			code = append(code, fmt.Sprintf("vfmadd231ps %%zmm30, %%zmm31, %%zmm%d", i))
		default:
			code = append(code, fmt.Sprintf("vfmadd231ps %%ymm14, %%ymm15, %%ymm%d", i%14))
		}
	}
	e, err := t.estimate(arch, processor, code)
	if err != nil {
		return 0, err
	}
	return float64(len(code)) / e.cycles, nil
}
