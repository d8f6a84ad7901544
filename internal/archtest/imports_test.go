package archtest

import (
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root   = "../.."
	module = "github.com/octavo-fp8/octavo"
)

// layers are the packages of the library from the bottom up. A package may import
// those on lines above its own here, which lie below it, but none on its own line.
var layers = [][]string{
	{"fp8"},
	{"telemetry"},
	{"tensor"},
	{"scaling"},
	{"gemm", "swiglu"},
	{"attention"},
	{"nn"},
	{"optim"},
	{"parallel/collective"},
	{"train"},
	{"parallel/layers"},
}

// beside are the packages that stand beside the layers, and all that they may import.
// For a layer and "below" it is that and everything below.
var beside = map[string][]string{
	"":                       {},
	"progress":               {},
	"safetensors":            {},
	"telemetry/expvars":      {"telemetry"},
	"telemetry/prometheus":   {"telemetry"},
	"checkpoint":             {"safetensors", "scaling and below"},
	"checkpoint/lint":        {"checkpoint", "safetensors", "scaling and below"},
	"checkpoint/quantize":    {"checkpoint", "safetensors", "scaling and below"},
	"nn/evaluate":            {"nn and below"},
	"nn/generate":            {"progress", "nn and below"},
	"nn/hf":                  {"checkpoint", "safetensors", "nn and below"},
	"nn/tokenizer":           {},
	"oracle":                 {"attention and below"},
	"oracle/explain":         {},
	"oracle/fault":           {"oracle", "oracle/explain", "attention and below"},
	"oracle/flash":           {"oracle", "oracle/explain", "progress", "attention and below"},
	"oracle/oracletest":      {"oracle/judge", "oracle/judge/attention", "oracle/judge/quantizer", "oracle", "attention and below"},
	"oracle/identify":        {"oracle", "progress", "safetensors", "gemm and below"},
	"oracle/judge":           {"oracle", "oracle/fault", "oracle/power", "attention and below"},
	"oracle/judge/attention": {"oracle", "oracle/explain", "oracle/flash", "progress", "attention and below"},
	"oracle/judge/quantizer": {"oracle/explain", "oracle/fault", "scaling and below"},
	"oracle/judge/cache":     {"oracle/explain", "oracle/judge/quantizer", "scaling and below"},
	"oracle/judge/agree":     {"oracle", "oracle/explain", "attention and below"},
	"oracle/power":           {"oracle", "attention and below"},
	"oracle/audit":           {"oracle", "oracle/fault", "oracle/judge", "oracle/power", "attention and below"},
	"plan":                   {"checkpoint", "safetensors", "nn and below"},
	"parallel/twin":          {"parallel/layers and below"},
}

// more is what layers may import besides.
var more = map[string][]string{
	"train": {"safetensors"}, // checkpoints of a run
}

// less is what layers may not import although it lies below them.
var less = map[string][]string{
	"tensor":  {"telemetry"}, // both report to it through an interface of tensor
	"scaling": {"telemetry"},
}

// internals are the internal packages that import public ones, and which. All others
// import none, so that every package may use them.
var internals = map[string][]string{
	"internal/certify":            {"progress", "parallel/layers", "parallel/twin", "train and below"},
	"internal/trial":              {"train and below"},
	"internal/meter":              {"progress"},
	"internal/random":             {"fp8"},
	"internal/number":             {"fp8"},
	"internal/rounding":           {"fp8"},
	"internal/softmax":            {"fp8"},
	"internal/microkernel":        {"fp8"},
	"internal/halves":             {"fp8"},
	"internal/canonical":          {"fp8"},
	"internal/arrays":             {"fp8", "safetensors"},
	"internal/kernels/levelcheck": {"gemm"}, // a command
	"internal/counter":            {"progress"},
	"internal/attentiontest":      {"attention", "fp8", "safetensors", "tensor"},
	"internal/filetest":           {"fp8", "safetensors"},
	"internal/loss":               {"fp8", "tensor"},
	"internal/operands":           {"fp8", "safetensors", "tensor"},
	"internal/subset":             {"tensor"},
	"internal/telemetrytext":      {"telemetry"},
	"internal/tensorfile":         {"fp8", "safetensors", "scaling", "tensor"},
}

// exporters are the only packages that may import net/http and expvar, of which the
// second adds a page to http.DefaultServeMux.
var exporters = map[string][]string{
	"net/http": {"telemetry/expvars", "telemetry/prometheus"},
	"expvar":   {"telemetry/expvars"},
}

// imports returns, for each package of the root module, what its files other than
// tests import, whatever their build constraints. Packages of ours are relative to
// the module.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	sets := map[string]map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(file, "go.mod"))
			if file != root && (err == nil || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		if len(parsed.Comments) > 0 && constraint.IsGoBuild(parsed.Comments[0].List[0].Text) && strings.Contains(parsed.Comments[0].List[0].Text, "ignore") {
			return nil
		}
		relative, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		pkg := strings.TrimPrefix(filepath.ToSlash(relative), ".")
		if sets[pkg] == nil {
			sets[pkg] = map[string]bool{}
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
				imported = "ours:" + ours
			} else if imported == module {
				imported = "ours:"
			}
			sets[pkg][imported] = true
		}
		return nil
	}))
	all := map[string][]string{}
	for pkg, set := range sets {
		all[pkg] = slices.Sorted(maps.Keys(set))
	}
	return all
}

// upTo returns the packages of a layer and of all below it.
func upTo(layer string) (list []string) {
	for _, line := range layers {
		list = append(list, line...)
		if slices.Contains(line, layer) {
			return list
		}
	}
	return nil
}

// expanded returns the packages that rules name.
func expanded(rules []string) (list []string) {
	for _, rule := range rules {
		if layer, below := strings.CutSuffix(rule, " and below"); below {
			list = append(list, upTo(layer)...)
		} else {
			list = append(list, rule)
		}
	}
	return list
}

// allowed returns the public packages that a public one may import, besides progress,
// and whether it has a place.
func allowed(pkg string) (list []string, ok bool) {
	if rules, ok := beside[pkg]; ok {
		return expanded(rules), true
	}
	for i, line := range layers {
		if !slices.Contains(line, pkg) {
			continue
		}
		for _, below := range layers[:i] {
			list = append(list, below...)
		}
		list = slices.DeleteFunc(list, func(p string) bool { return slices.Contains(less[pkg], p) })
		return append(list, more[pkg]...), true
	}
	return nil, false
}

// wrong returns what is wrong with the imports of packages.
func wrong(all map[string][]string) (list []string) {
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		var may []string
		switch {
		case strings.HasPrefix(pkg, "examples/"):
			continue
		case strings.HasPrefix(pkg, "internal/"):
			may = expanded(internals[pkg])
		default:
			var ok bool
			if may, ok = allowed(pkg); !ok {
				list = append(list, "package "+pkg+" has no place: give it one in "+path.Join("internal/archtest", "imports_test.go"))
				continue
			}
			may = append(may, "progress")
		}
		for _, imported := range all[pkg] {
			if ours, ok := strings.CutPrefix(imported, "ours:"); ok && !strings.HasPrefix(ours, "internal/") && !slices.Contains(may, ours) {
				list = append(list, "package "+pkg+" may not import "+ours)
			}
			if may, limited := exporters[imported]; limited && !slices.Contains(may, pkg) {
				list = append(list, "package "+pkg+" may not import "+imported)
			}
		}
	}
	return list
}

func TestImports(t *testing.T) {
	all := imports(t)
	for _, pkg := range []string{"fp8", "tensor", "gemm", "oracle", "internal/convert"} {
		require.Contains(t, all, pkg)
	}
	require.Contains(t, all["gemm"], "ours:tensor")
	require.Empty(t, wrong(all))
}

// TestWrong has trees that break each rule.
func TestWrong(t *testing.T) {
	for _, test := range []struct {
		pkg, imported, want string
	}{
		{"fp8", "ours:tensor", "package fp8 may not import tensor"},
		{"gemm", "ours:swiglu", "package gemm may not import swiglu"},
		{"swiglu", "ours:gemm", "package swiglu may not import gemm"},
		{"tensor", "ours:telemetry", "package tensor may not import telemetry"},
		{"safetensors", "ours:fp8", "package safetensors may not import fp8"},
		{"checkpoint", "ours:gemm", "package checkpoint may not import gemm"},
		{"oracle", "ours:nn", "package oracle may not import nn"},
		{"nn", "ours:optim", "package nn may not import optim"},
		{"plan", "ours:optim", "package plan may not import optim"},
		{"internal/parallel", "ours:tensor", "package internal/parallel may not import tensor"},
		{"telemetry", "expvar", "package telemetry may not import expvar"},
		{"telemetry/prometheus", "expvar", "package telemetry/prometheus may not import expvar"},
		{"internal/meter", "net/http", "package internal/meter may not import net/http"},
		{"novelty", "fmt", "package novelty has no place: give it one in internal/archtest/imports_test.go"},
	} {
		require.Equal(t, []string{test.want}, wrong(map[string][]string{test.pkg: {test.imported}}))
	}
	for pkg, imported := range map[string]string{
		"gemm": "ours:scaling", "train": "ours:fp8", "nn/hf": "ours:checkpoint", "oracle": "ours:attention",
		"telemetry/expvars": "net/http", "telemetry/prometheus": "net/http", "tensor": "ours:progress", "examples/serve": "ours:gemm", "fp8": "ours:internal/convert",
	} {
		require.Empty(t, wrong(map[string][]string{pkg: {imported}}), pkg)
	}
}

// TestRequires checks what the module requires directly: testify for tests only.
func TestRequires(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	var direct []string
	in := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "require (":
			in = true
			continue
		case line == ")":
			in = false
		case strings.HasPrefix(line, "require "):
			line = strings.TrimPrefix(line, "require ")
		case !in:
			continue
		}
		if fields := strings.Fields(line); len(fields) >= 2 && !strings.Contains(line, "// indirect") {
			direct = append(direct, fields[0])
		}
	}
	slices.Sort(direct)
	require.Equal(t, []string{"github.com/stretchr/testify", "github.com/x448/float16", "golang.org/x/sys", "gonum.org/v1/gonum"}, direct)
	for pkg, list := range imports(t) {
		for _, imported := range list {
			require.False(t, strings.HasPrefix(imported, "github.com/stretchr/"), "package %s imports %s", pkg, imported)
		}
	}
}

// TestBeamApart: Apache Beam's modules are those of module beam alone.
func TestBeamApart(t *testing.T) {
	for _, name := range []string{"go.mod", "cmd/go.mod", "bench/go.mod", "lab/go.mod", "go.work"} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		require.NoError(t, err)
		require.NotContains(t, string(text), "beam", name)
	}
	text, err := os.ReadFile(filepath.Join(root, "beam", "go.mod"))
	require.NoError(t, err)
	require.Contains(t, string(text), "\tgithub.com/apache/beam/sdks/v2 v")
	require.NotContains(t, string(text), "replace")
}

// TestModules: of our modules each requires only those below it.
func TestModules(t *testing.T) {
	for folder, want := range map[string][]string{
		"bench": {module}, "lab": {module}, "cmd": {module, module + "/bench", module + "/lab"}, "beam": {module},
	} {
		text, err := os.ReadFile(filepath.Join(root, folder, "go.mod"))
		require.NoError(t, err)
		var ours []string
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) == 2 && strings.HasPrefix(fields[0], module) {
				ours = append(ours, fields[0])
			}
		}
		require.ElementsMatch(t, want, ours, folder)
	}
}
