package main

import "testing"

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
}
