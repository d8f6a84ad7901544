package vocabulary

import (
	"slices"
	"strings"
)

// commands are words for what commands do, and the commands, with what each is for where several do
// it.
var commands = []struct{ words, meant string }{
	{"compare cmp delta difference", "diff for two checkpoints, agree for two engines or report for runs of training"},
	{"check validate", "lint for a checkpoint, verify for the result of a kernel or selftest for this machine"},
	{"test", "verify for the result of a kernel, audit for a test of one or selftest for this machine"},
	{"fit memory mem vram estimate size flops parallelism", "plan"},
	{"health monitor watch", "train for a verdict on the run or report for several"},
	{"perplexity ppl eval accuracy quality loss", "evaluate"},
	{"sample chat complete prompt infer inference run", "generate"},
	{"benchmark perf speed throughput peak roofline", "bench"},
	{"info show ls list cat dump describe view stats print head analyze analyse", "inspect"},
	{"calibrate calibration", "convert with --calibrate"},
	{"smooth smoothquant", "convert with --smooth"},
	{"quant compress cast", "quantize for a file or convert for a model as a loader wants it"},
	{"export", "convert for a model or vectors for conformance vectors"},
	{"dequantize dequant", "convert with --to bf16"},
	{"matmul mm multiply product", "gemm"},
	{"explain diagnose debug faults", "verify for the result of a kernel or audit for a test of one"},
	{"attention flash", "verify attention"},
	{"kv cache kvcache", "verify cache"},
	{"quantizer", "verify quantizer or identify quantizer"},
	{"probe probes fingerprint detect gpu", "identify"},
	{"finetune pretrain fine-tune", "train"},
	{"experiment experiments claims claim", "lab"},
	{"determinism deterministic reproduce prove", "certify"},
	{"doctor env system cpu hardware level levels", "version"},
	{"play page gui ui web", "explore"},
	{"example examples tutorial start init quickstart samples", "demo"},
	{"recipe recipes formats profiles", "help recipes"},
	{"merge split shard upload push pull", ""}, // no command does it, whatever is spelt like it
}

// Command returns which command may have been meant by a name that is none of some, as the end of
// a sentence; "" if nobody knows.
func Command(name string, all []string) string {
	for _, c := range commands {
		if slices.Contains(strings.Fields(c.words), strings.ToLower(name)) {
			return question(slices.DeleteFunc([]string{c.meant}, func(m string) bool { return m == "" }))
		}
	}
	return Hint(name, all)
}
