package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestConvertGoldens converts the golden models and compares them with what the libraries
// made: tensors by their bytes, configurations as JSON values.
func TestConvertGoldens(t *testing.T) {
	shared := testutil.Shared(t, "golden", "checkpoints")
	calibration := filepath.Join(shared, "llama-fp8-static", "calibration.json")
	for to, args := range map[string][]string{
		"llama-deepseek-fp8":            {"llama-bf16", "deepseek-v3"},
		"moe-deepseek-fp8":              {"moe-bf16", "deepseek-v3", "--jobs", "3"},
		"moe-layer1-deepseek-fp8-ue8m0": {"moe-bf16", "deepseek-v3-ue8m0"},
		"moe-experts-v4style-fp4":       {"moe-bf16", "deepseek-v4", "--only", `\.experts\.`},
		"llama-fp8-static":              {"llama-bf16", "fp8", "--amax", calibration},
		"llama-layer0-fp8-static-f32":   {"llama-bf16", "fp8", "--profile", "deepgemm"},
		"llama-ct-fp8-dynamic":          {"llama-bf16", "ct-fp8-dynamic"},
		"tied-ct-fp8-dynamic":           {"tied-bf16", "ct-fp8-dynamic"},
		"llama-layer0-ct-fp8-block":     {"llama-bf16", "ct-fp8-block", "--except", `layers\.1\.`},
		"llama-layer0-ct-mxfp8":         {"llama-bf16", "ct-mxfp8"},
		"llama-ct-mxfp4":                {"llama-bf16", "ct-mxfp4"},
		"llama-ct-nvfp4a16":             {"llama-bf16", "ct-nvfp4a16"},
		"moe-ct-nvfp4a16":               {"moe-bf16", "ct-nvfp4a16"},
		"llama-dequant-bf16":            {"llama-deepseek-fp8", "bf16"},
	} {
		t.Run(to, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			line := append([]string{"convert", filepath.Join(shared, args[0]), "-o", out, "--to"}, args[1:]...)
			require.Contains(t, succeed(t, line...), out+": "+args[1])
			requireModel(t, filepath.Join(shared, to), out)
		})
	}
}

// requireModel compares a model with a golden one, which may be a part of it.
func requireModel(t *testing.T, golden, out string) {
	t.Helper()
	want, err := checkpoint.Open(golden)
	require.NoError(t, err)
	defer want.Close()
	got, err := checkpoint.Open(out)
	require.NoError(t, err)
	defer got.Close()
	compared := 0
	for _, e := range want.Entries() {
		own, ok := got.Entry(e.Name)
		require.True(t, ok, e.Name)
		require.Equal(t, e.DType, own.DType, e.Name)
		require.Equal(t, fmt.Sprint(e.Shape), fmt.Sprint(own.Shape), e.Name)
		a, b := make([]byte, e.Bytes()), make([]byte, e.Bytes())
		require.NoError(t, want.ReadBytes(e, 0, a))
		require.NoError(t, got.ReadBytes(own, 0, b))
		require.True(t, bytes.Equal(a, b), e.Name)
		compared++
	}
	require.Positive(t, compared)
	for _, file := range got.Files() {
		require.Equal(t, map[string]string{"format": "pt"}, got.File(file).Metadata())
	}
	m, err := outdir.Read(out)
	require.NoError(t, err)
	require.Equal(t, "convert", m.Kind)
	for _, file := range got.Files() {
		require.Contains(t, m.Sums, file)
	}
	require.ElementsMatch(t, append(m.Files, outdir.ManifestName), entriesOf(t, out))
	if want.Config.Model == nil {
		return
	}
	require.Len(t, got.Entries(), len(want.Entries()))
	config, err := os.ReadFile(filepath.Join(golden, checkpoint.ConfigName))
	require.NoError(t, err)
	own, err := os.ReadFile(filepath.Join(out, checkpoint.ConfigName))
	require.NoError(t, err)
	require.JSONEq(t, string(config), string(own))
	if want.Index != nil {
		require.Equal(t, want.Index.TotalSize, got.Index.TotalSize)
	}
}

// smallModel writes a model of three shards, each with weights of rows x 256 in BF16.
func smallModel(t *testing.T, weights, rows int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	index := checkpoint.Index{Files: map[string]string{}}
	for s := range 3 {
		file := fmt.Sprintf("model-%05d-of-00003.safetensors", s+1)
		var all []safetensors.Tensor
		for w := range weights {
			name := fmt.Sprintf("model.layers.%d.mlp.%s_proj.weight", s*weights+w, []string{"up", "gate"}[w%2])
			data := make([]byte, 0, 2*rows*256)
			for i := range rows * 256 {
				data = binary.LittleEndian.AppendUint16(data, uint16(0x3c00+(i*i*7+i*13+w*31+s)%0x180))
			}
			all = append(all, safetensors.Tensor{
				Info: safetensors.Info{Name: name, DType: safetensors.BF16, Shape: []int{rows, 256}}, Data: data,
			})
			index.Files[name] = file
			index.TotalSize += int64(len(data))
		}
		require.NoError(t, safetensors.WriteFile(filepath.Join(dir, file), all, checkpoint.Metadata()))
	}
	text, err := json.Marshal(&index)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, checkpoint.IndexName), text, 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type":"llama","torch_dtype":"bfloat16"}`), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(`{}`), 0o666))
	return dir
}

// TestConvertBadInput damages a model in every way that is known. Each is a line that says
// what it is about, and nothing is written.
func TestConvertBadInput(t *testing.T) {
	const second = "model-00002-of-00003.safetensors"
	edit := func(name string, change func(text string) string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			data, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(change(string(data))), 0o666))
		}
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string)
		says   string
		args   []string
		status int
		lint   bool // octavo lint says more
	}{
		"missing shard": {
			damage: func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, second))) },
			says:   second + ": the index names it", status: exitData,
		},
		"truncated shard": {
			damage: edit(second, func(s string) string { return s[:len(s)-1] }),
			says:   "it is damaged or cut off: get it again", status: exitData,
		},
		"truncated header": {
			damage: edit(second, func(s string) string { return s[:20] }),
			says:   "get it again", status: exitData,
		},
		"index with a tensor in another shard": {
			damage: edit(checkpoint.IndexName, func(s string) string {
				return strings.Replace(s, "00002-of", "00001-of", 1)
			}),
			says: "the index has it in model-00001-of-00003.safetensors", status: exitData, lint: true,
		},
		"index with a tensor too many": {
			damage: edit(checkpoint.IndexName, func(s string) string {
				return strings.Replace(s, `"weight_map":{`, `"weight_map":{"x":"`+second+`",`, 1)
			}),
			says: `lacks tensor "x"`, status: exitData, lint: true,
		},
		"index with a tensor too few": {
			damage: edit(checkpoint.IndexName, func(s string) string {
				return strings.Replace(s, `"model.layers.0.mlp.up_proj.weight":"model-00001-of-00003.safetensors",`, "", 1)
			}),
			says: "is not in the index", status: exitData, lint: true,
		},
		"index that is none": {
			damage: edit(checkpoint.IndexName, func(string) string { return "{" }), says: "index.json", status: exitData,
		},
		"index that leads elsewhere": {
			damage: edit(checkpoint.IndexName, func(s string) string { return strings.Replace(s, second, "../"+second, 1) }),
			says:   "does not lie in the checkpoint's directory", status: exitData,
		},
		"config that is none": {
			damage: edit("config.json", func(string) string { return "[" }), says: "config.json", status: exitData, lint: true,
		},
		"scale without its weight": {
			damage: func(t *testing.T, dir string) {
				require.NoError(t, os.Remove(filepath.Join(dir, checkpoint.IndexName)))
				require.NoError(t, safetensors.WriteFile(filepath.Join(dir, "x.safetensors"), []safetensors.Tensor{{
					Info: safetensors.Info{Name: "model.layers.9.mlp.up_proj.weight_scale_inv", DType: safetensors.F32, Shape: []int{1, 1}},
					Data: make([]byte, 4),
				}}, nil))
			},
			says: "model.layers.9.mlp.up_proj.weight", status: exitData, lint: true,
		},
		"calibration is missing":      {args: []string{"--to", "modelopt-fp8"}, says: "--amax", status: exitData},
		"calibration is none":         {args: []string{"--to", "fp8", "--amax", "convert_test.go"}, says: "JSON object of numbers", status: exitData},
		"layout is unknown":           {args: []string{"--to", "deepseek"}, says: "deepseek-v3", status: exitUsage},
		"layout is read only":         {args: []string{"--to", "torchao"}, says: "it can be read, not written", status: exitUsage},
		"arithmetic is of another":    {args: []string{"--to", "ct-mxfp4", "--profile", "autofp8"}, says: "autofp8", status: exitData},
		"arithmetic is unknown":       {args: []string{"--recipe", "fp9"}, says: "did you mean fp8?", status: exitUsage},
		"resume and overwrite":        {args: []string{"--resume", "--overwrite"}, says: "give one of them", status: exitUsage},
		"pattern is none":             {args: []string{"--except", "("}, says: "--except", status: exitUsage},
		"number of jobs is not whole": {args: []string{"--jobs", "-1"}, says: "whole number", status: exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			dir := smallModel(t, 2, 64)
			if c.damage != nil {
				c.damage(t, dir)
			}
			out := filepath.Join(t.TempDir(), "out")
			line := append([]string{"convert", dir, "-o", out, "--to", "deepseek-v3"}, c.args...)
			fail(t, c.status, c.says, line...)
			if c.lint {
				fail(t, c.status, "octavo lint "+dir+" says all that is wrong", line...)
			}
			require.NoDirExists(t, out)
		})
	}
	dir := smallModel(t, 2, 64)
	fail(t, exitUsage, "name another directory with -o", "convert", dir, "-o", dir+"/.", "--to", "bf16")
	fail(t, exitUsage, "want one model", "convert", dir, dir, "-o", "x", "--to", "bf16")
	fail(t, exitUsage, "required", "convert", dir)
	fail(t, exitData, "no such file", "convert", dir+"x", "-o", dir+"y", "--to", "bf16")
}

// TestConvertTwice: a model is not written over another, nor a conversion that is complete
// done again.
func TestConvertTwice(t *testing.T) {
	dir, out := smallModel(t, 2, 64), filepath.Join(t.TempDir(), "out")
	line := []string{"convert", dir, "-o", out, "--to", "deepseek-v3"}
	succeed(t, append(line, "--resume")...)
	fail(t, exitUsage, "it holds a run already", line...)
	before := modelOf(t, out)
	// Kills while files go to their places: none, or the last of them, are still to do.
	commit := filepath.Join(out, ".octavo-commit")
	for _, left := range [][]string{nil, {outdir.ManifestName}, {"config.json", checkpoint.CertificateName, outdir.ManifestName}} {
		require.NoError(t, os.WriteFile(filepath.Join(out, ".octavo-lock"), nil, 0o666))
		require.NoError(t, os.Mkdir(commit, 0o777))
		for _, name := range left {
			require.NoError(t, os.Rename(filepath.Join(out, name), filepath.Join(commit, name)))
		}
		r := octavo(strings.NewReader(""), append(line, "--resume")...)
		require.Equal(t, exitOK, r.status, "%s", r.stderr)
		require.Equal(t, "octavo: the conversion in "+out+" is complete\n", r.stderr)
		require.Equal(t, before, modelOf(t, out))
	}
	fail(t, exitUsage, "none that was cut off", append(line, "--resume", "--to", "ct-mxfp4")...)
	succeed(t, append(line, "--overwrite", "--to", "ct-mxfp4")...)
	require.NotEqual(t, before, modelOf(t, out))
	require.Empty(t, succeed(t, append(line, "--overwrite", "--quiet")...))
	require.Equal(t, before, modelOf(t, out))
	text := succeed(t, append(line, "--overwrite", "--json")...)
	var cert checkpoint.Certificate
	require.NoError(t, json.Unmarshal([]byte(text), &cert))
	require.Len(t, cert.Tensors, 6)

	extra, more := filepath.Join(dir, "extra.safetensors"), filepath.Join(dir, "more.safetensors")
	require.NoError(t, safetensors.WriteFile(extra, nil, nil))
	require.NoError(t, safetensors.WriteFile(more, nil, nil))
	r := octavo(strings.NewReader(""), append(line, "--overwrite", "--quiet")...)
	require.Equal(t, exitOK, r.status)
	require.Equal(t, "octavo: warning: what the index does not name was not converted: extra.safetensors, more.safetensors; mend the index if that is of the model\n", r.stderr)
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.Mkdir(other, 0o777))
	stray := filepath.Join(other, "stray.safetensors")
	require.NoError(t, os.WriteFile(stray, nil, 0o666))
	fail(t, exitData, "stray.safetensors is there and is of no run, and loaders would take it for a part of the model: move it away",
		"convert", dir, "-o", other, "--to", "bf16", "--quiet")
	require.NoError(t, os.Remove(stray))
	stage := filepath.Join(other, ".octavo-beam-0123456789abcdef")
	require.NoError(t, os.Mkdir(stage, 0o777))
	for _, flag := range []string{"--quiet", "--resume", "--overwrite"} {
		fail(t, exitData, ".octavo-beam-0123456789abcdef is of octavo-beam, which is at work there or was cut off: start that again",
			"convert", dir, "-o", other, "--to", "bf16", flag)
	}
	require.Equal(t, []string{filepath.Base(stage)}, entriesOf(t, other))
	require.NoError(t, os.Remove(stage))
	require.NoError(t, os.WriteFile(filepath.Join(other, "config.json"), []byte("mine"), 0o666))
	fail(t, exitData, "move it away", "convert", dir, "-o", other, "--to", "bf16", "--quiet")
	require.Equal(t, map[string]string{"config.json": "mine"}, modelOf(t, other))

	require.NoError(t, errors.Join(os.Remove(extra), os.Remove(more)))
	require.NoError(t, os.Remove(filepath.Join(dir, "config.json")))
	r = octavo(strings.NewReader(""), append(line, "--overwrite", "--quiet")...)
	require.Equal(t, "octavo: warning: "+dir+" has no config.json, and so none was written, which would tell loaders how weights are quantized\n", r.stderr)
}

// modelOf returns the content of all files of a directory but for the list of the run.
func modelOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range entriesOf(t, dir) {
		if name != outdir.ManifestName {
			data, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			files[name] = withoutCommand(string(data))
		}
	}
	return files
}

// withoutCommand is a page without the command to repeat it, or another file.
func withoutCommand(file string) string {
	before, after, found := strings.Cut(file, "<h2>To repeat it</h2>")
	if _, rest, end := strings.Cut(after, "</code>"); found && end {
		return before + rest
	}
	return file
}

// mxfp4Model writes a model of two weights in MXFP4, the scales of which differ in one block by
// 2^14 and by 2^15, which is one step too far for a block of FP8.
func mxfp4Model(t *testing.T) string {
	t.Helper()
	var all []safetensors.Tensor
	for layer, scale := range []byte{134, 135} {
		codes, scales := make([]byte, 4*32), bytes.Repeat([]byte{120}, 4*2)
		for i := range codes {
			codes[i] = byte(i) | byte(i)<<4 // every code in every block
		}
		scales[5] = scale
		name := fmt.Sprintf("model.layers.%d.mlp.up_proj", layer)
		all = append(all,
			filetest.Raw(name+".weight_packed", safetensors.U8, []int{4, 32}, codes...),
			filetest.Raw(name+".weight_scale", safetensors.U8, []int{4, 2}, scales...))
	}
	return filetest.Write(t, nil, all...)
}

// TestConvertLossless says which weights keep their values, and which block keeps the others
// from it.
func TestConvertLossless(t *testing.T) {
	model, out := mxfp4Model(t), filepath.Join(t.TempDir(), "out")
	line := []string{"convert", model, "-o", out, "--to", "deepseek-v3-ue8m0", "--overwrite"}
	stdout := succeed(t, line...)
	require.Contains(t, stdout, `
Codes under scales that are powers of two: 1 of 2 weights keep all their values.
In each of their blocks the highest bit of a value is at most 17 above the
lowest bit of one, of the 17 that their new type allows under one scale, and the
scale is one that can be stored. Of the others this is the first block that
keeps them from it:
  model.layers.1.mlp.up_proj.weight
    ^ block [0, 0] of matrix 0: from 1536 down to 2^-8 it spans 2^18: one
    scale of E4M3 allows 2^17; its scales differ by 2^15
To keep them, leave them out with --except, or convert to a layout of values,
such as bf16.

SQNR dB    worst  saturated  flushed  weight
`)
	const says = `tensor "model.layers.1.mlp.up_proj.weight": block [0, 0] of matrix 0: from 1536 down to 2^-8 it ` +
		`spans 2^18: one scale of E4M3 allows 2^17; its scales differ by 2^15: nothing was written: leave out --lossless`
	before := modelOf(t, out)
	fail(t, exitData, says, append(line, "--lossless")...)
	require.Equal(t, before, modelOf(t, out))
	stdout = succeed(t, append(line, "--lossless", "--except", `layers\.1\.`)...)
	require.Contains(t, stdout, "\nNothing was lost: every weight was read back from the files and compared with\nthe source: all values are the same.\n")
	require.Contains(t, stdout, "\nCodes under scales that are powers of two: 2 of 2 weights keep all their values.\n")

	stdout = succeed(t, "convert", model, "-o", out, "--to", "deepseek-v3", "--overwrite")
	require.Contains(t, stdout, "\nCodes under scales that are powers of two: 0 of 2 weights keep all their values.\n")
	require.Contains(t, stdout, "Where there is a scale that loses nothing, --recipe te-block-pow2 finds it.\n")
	stdout = succeed(t, "convert", model, "-o", out, "--to", "deepseek-v3", "--overwrite", "--profile", "te-block-pow2")
	require.Contains(t, stdout, ": 1 of 2 weights keep all their values.\n")
	fail(t, exitData, "values of BF16 lose something in fp8-block: nothing was written: leave out --lossless",
		"convert", smallModel(t, 2, 64), "-o", out+"2", "--to", "deepseek-v3", "--lossless")
	require.NoDirExists(t, out+"2")
}

// TestUnread: of methods that are not read nothing is converted, and lint and diff say what they
// do not judge.
func TestUnread(t *testing.T) {
	for name, want := range map[string]struct {
		method  string
		tensors int
	}{"gptq-leftover": {"GPTQ", 12}, "awq-leftover": {"AWQ", 9}, "bnb-leftover": {"bitsandbytes", 12}} {
		honest, wrong := testutil.Shared(t, "museum", name, "honest"), testutil.Shared(t, "museum", name, "wrong")
		out := filepath.Join(t.TempDir(), "out")
		for _, to := range []string{"f16", "bf16", "deepseek-v3"} {
			fail(t, 1, fmt.Sprintf("%d tensors, such as ", want.tensors), "convert", wrong, "-o", out, "--to", to)
			fail(t, 1, "are quantized by "+want.method+", which is not read", "convert", wrong, "-o", out, "--to", to, "--lossless")
			require.NoDirExists(t, out)
		}
		count := fmt.Sprintf("%d of %s", want.tensors, want.method)
		found(t, fmt.Sprintf(": 1 error in [0-9]+ tensors, not judged: %d of [0-9]+ tensors .%s.", want.tensors, count), "lint", wrong)
		require.NotContains(t, succeed(t, "lint", wrong, "--fail-on", "none"), "clean")
		require.NotContains(t, succeed(t, "lint", honest), "not judged")

		same, _ := diffOf(t, 0, wrong, wrong)
		require.Contains(t, same, fmt.Sprintf("not judged but by bytes: %d tensors: %s", want.tensors, count))
		_, stderr := diffOf(t, 1, wrong, honest)
		require.Regexp(t, `^octavo: [0-9]+ of [0-9]+ tensors are not judged\n$`, stderr)
		same, _ = diffOf(t, 0, honest, honest)
		require.NotContains(t, same, "not judged")
	}
}

// TestDeclaredUnread: what is declared and not read is refused by name, though tensors are those
// of a layout that is.
func TestDeclaredUnread(t *testing.T) {
	source := testutil.Shared(t, "golden", "checkpoints", "llama-deepseek-fp8")
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(source)))
	config := filepath.Join(dir, checkpoint.ConfigName)
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, bytes.Replace(text, []byte(`"fp8"`), []byte(`"gptq"`), 1), 0o600))
	out := filepath.Join(t.TempDir(), "out")
	fail(t, 1, "config.json: it declares GPTQ, which is not read, and 28 tensors, such as ", "convert", dir, "-o", out, "--to", "bf16")
	require.NoDirExists(t, out)
	found(t, ": 1 error, 1 info in [0-9]+ tensors, not judged: 28 of [0-9]+ tensors .28 of GPTQ.", "lint", dir)
	_, stderr := diffOf(t, 1, source, dir)
	require.Contains(t, stderr, "14 of 21 tensors are not judged")
}

// TestNoCertificate: tensors that may be codes are copied and listed, and the certificate is none,
// in its title, its page and the exit status, also when it is shown again.
func TestNoCertificate(t *testing.T) {
	in := filetest.Write(t, map[string]string{"format": "pt"}, filetest.F32("a.weight", []int{2, 2}, 1, 2, 3, 4), filetest.Raw("<table>", safetensors.U8, []int{2, 2}, 1, 2, 3, 4))
	out := filepath.Join(t.TempDir(), "out")
	fail(t, 1, `tensor "<table>": U8 [2 2] may hold codes of a method that is not known`, "convert", in, "-o", out, "--to", "f32", "--lossless")
	require.NoDirExists(t, out)
	for _, more := range [][]string{nil, {"--resume"}} {
		r := octavo(strings.NewReader(""), append([]string{"convert", in, "-o", out, "--to", "f32"}, more...)...)
		require.Equal(t, exitData, r.status)
		require.Contains(t, r.stderr, "1 tensors were copied and not understood: this is no certificate")
		require.Contains(t, r.stdout, "This is no certificate: 1 tensors were copied and not understood")
		require.NotContains(t, r.stdout, "Nothing was lost")
		require.NotContains(t, r.stdout, "SQNR")
	}
	page, err := os.ReadFile(filepath.Join(out, checkpoint.CertificatePage))
	require.NoError(t, err)
	require.Contains(t, string(page), "<h1>No certificate of f32</h1>")
	require.Contains(t, string(page), "&lt;table&gt;")
	require.NotContains(t, string(page), "Nothing was lost")
	require.NotContains(t, string(page), "What was lost")
}
