// Package cpu names the extensions of the processor that matter to FP8: those
// that convert, multiply and accumulate narrow numbers.
package cpu

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

// Features returns the names, in lower case, of the extensions that are
// present: of avx2, fma, avx512f, avx512bw, avx512dq, avx512vl, avx512vbmi,
// avx512vnni, avx512bf16, avxvnni, amx-bf16 and amx-int8 on amd64; of asimd,
// asimdhp, asimddp, asimdfhm and sve on arm64; none elsewhere. They are what the
// processor has. Linux lets a process use AMX only after it has asked for it, and
// may refuse. Of those that kernels use within a level see [Has].
func Features() []string { return present(extensions(runtime.GOARCH)) }

type extension struct {
	name string
	has  bool
}

func extensions(arch string) []extension {
	switch arch {
	case "amd64":
		x86 := &cpu.X86
		return []extension{
			{"avx2", x86.HasAVX2},
			{"fma", x86.HasFMA},
			{"avx512f", x86.HasAVX512F},
			{"avx512bw", x86.HasAVX512BW},
			{"avx512dq", x86.HasAVX512DQ},
			{"avx512vl", x86.HasAVX512VL},
			{"avx512vbmi", x86.HasAVX512VBMI},
			{"avx512vnni", x86.HasAVX512VNNI},
			{"avx512bf16", x86.HasAVX512BF16},
			{"avxvnni", x86.HasAVXVNNI},
			{"amx-bf16", x86.HasAMXBF16},
			{"amx-int8", x86.HasAMXInt8},
		}
	case "arm64":
		arm := &cpu.ARM64
		return []extension{
			{"asimd", arm.HasASIMD},
			{"asimdhp", arm.HasASIMDHP},
			{"asimddp", arm.HasASIMDDP},
			{"asimdfhm", arm.HasASIMDFHM},
			{"sve", arm.HasSVE},
		}
	}
	return nil
}

func present(all []extension) []string {
	var names []string
	for _, e := range all {
		if e.has {
			names = append(names, e.name)
		}
	}
	return names
}
