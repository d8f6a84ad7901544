package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDidYouMean(t *testing.T) {
	fail(t, 2, `there is no command "quantise": did you mean quantize? (see octavo --help)`, "quantise")
	fail(t, 2, `there is no command "helo": did you mean help? (see octavo --help)`, "helo")
	fail(t, 2, `there is no command "lib": did you mean lab? (see octavo --help)`, "lib")
	fail(t, 2, `unknown shorthand flag: 'q' in -q: did you mean --quiet? (see octavo train --help)`, "train", "-q")
	fail(t, 2, `unknown flag: --ste: did you mean --steps? (see octavo train --help)`, "train", "--ste", "5")
	fail(t, 2, `there is no command "frobnicate" (see octavo --help)`, "frobnicate")
	fail(t, 2, `unknown flag: --fromat: did you mean --format? (see octavo encode --help)`, "encode", "--fromat", "e4m3")
	fail(t, 2, `unknown flag: --frobnicate (see octavo encode --help)`, "encode", "--frobnicate")
	fail(t, 2, `unknown flag: --quite: did you mean --quiet? (see octavo encode --help)`, "encode", "--quite")
	fail(t, 2, `did you mean e5m2fnuz? (see octavo encode --help)`, "encode", "--format", "e5m2fnu")
	fail(t, 2, `want nearest or nearest-toward-zero or zero or stochastic or up or down: did you mean nearest?`, "encode", "--format", "e4m3", "--round", "neerest")
	fail(t, 2, `did you mean te-block-pow2?`, "train", "--profile", "te-block-pow")
	fail(t, 2, `did you mean hopper-wgmma?`, "verify", "--model", "hoper-wgmma")
	fail(t, 2, `did you mean deepseek?`, "quantize", "in", "-o", "out", "--profile", "deepsek")
	fail(t, 2, `did you mean parity?`, "lab", "parrity")
	fail(t, 2, `did you mean generic?`, "bench", "--level", "generc")
	fail(t, 2, `did you mean plain?`, "version", "--progress", "plan")

	fail(t, 2, `unknown flag: --a: --a is a flag of audit, gemm, verify (see octavo identify --help)`, "identify", "--a", "x")
	fail(t, 2, `unknown flag: --list: --list is a flag of audit, verify (see octavo plan --help)`, "plan", "--list")
	fail(t, 2, `unknown flag: --tp: --tp is a flag of plan (see octavo train --help)`, "train", "--tp", "8")
	fail(t, 2, `unknown flag: --z (see octavo identify --help)`, "identify", "--z", "x")
	fail(t, 2, `unknown flag: --html: the page is what -o writes (see octavo report --help)`, "report", "--html", "x")
	fail(t, 2, `unknown flag: --html: --html is a flag of agree, audit, certify, evaluate, `, "diff", "--html", "x")
	fail(t, 2, `there is no command "merge" (see octavo --help)`, "merge")
	fail(t, 2, `required flag(s) "to" not set: --to takes bf16, f16, f32, `, "convert", "model", "-o", "out")
	fail(t, 2, `unknown flag: --seed (see octavo --help)`, "--seed", "1")
}

// TestMeantCommands: words that people type for what commands do lead to commands that there are.
func TestMeantCommands(t *testing.T) {
	is := map[string]bool{}
	for _, c := range newRoot().Commands() {
		is[c.Name()] = !c.Hidden
	}
	is["help"] = true
	for word, want := range map[string]string{
		"compare": "diff agree report", "check": "lint verify selftest", "validate": "lint verify selftest",
		"fit": "plan", "memory": "plan", "health": "train report", "perplexity": "evaluate", "sample": "generate",
		"chat": "generate", "benchmark": "bench", "info": "inspect", "show": "inspect", "ls": "inspect",
		"cat": "inspect", "calibrate": "convert", "test": "verify audit selftest", "Quant": "quantize convert",
		"attention": "verify", "quantizer": "verify identify", "recipes": "help", "smooth": "convert",
		"export": "convert vectors", "dequantize": "convert", "matmul": "gemm", "debug": "verify audit",
		"cache": "verify", "probe": "identify", "finetune": "train", "claims": "lab", "determinism": "certify",
		"doctor": "version", "gui": "explore", "analyze": "inspect", "examples": "demo",
	} {
		r := octavo(strings.NewReader(""), word)
		require.Equal(t, exitUsage, r.status)
		match := regexp.MustCompile(`did you mean (.+)\? \(see octavo --help\)\n$`).FindStringSubmatch(r.stderr)
		require.Len(t, match, 2, r.stderr)
		var got []string
		for _, part := range regexp.MustCompile(`, | or `).Split(match[1], -1) {
			name, _, _ := strings.Cut(part, " ")
			require.True(t, is[name], r.stderr)
			got = append(got, name)
		}
		require.Equal(t, want, strings.Join(got, " "), word)
		require.False(t, is[word], "it is a command by now")
	}
	fail(t, 2, `there is no command "memory" (see octavo help --help)`, "help", "verify", "memory")
}
