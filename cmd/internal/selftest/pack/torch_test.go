package pack

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestTorch runs the script on the files, by a stand-in for PyTorch on NumPy: it shows that
// operands, expected results and script go together, not what PyTorch does. The environment
// variable OCTAVO_TORCH names a Python that has PyTorch to run it by.
func TestTorch(t *testing.T) {
	if testing.Short() {
		smallFiles(t)
	}
	python, environment := os.Getenv("OCTAVO_TORCH"), os.Environ()
	if python == "" {
		python = "/usr/bin/python3"
		standIn, err := filepath.Abs("testdata/standin")
		require.NoError(t, err)
		environment = append(environment, "PYTHONPATH="+standIn, "PYTHONDONTWRITEBYTECODE=1")
		if err := exec.Command(python, "-c", "import numpy").Run(); err != nil {
			testutil.Lacking(t, "no Python with NumPy: %v", err)
		}
	}
	files, err := Files(t.Context(), 1, nil)
	require.NoError(t, err)
	dir := t.TempDir()
	for _, f := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o666))
	}
	run := func(args ...string) *Result {
		var out, log bytes.Buffer
		cmd := exec.Command(python, append([]string{filepath.Join(dir, ScriptFile), "--device", "cpu"}, args...)...)
		cmd.Env, cmd.Stdout, cmd.Stderr = environment, &out, &log
		err := cmd.Run()
		t.Logf("%v %s", err, &log)
		v, err := Read(bytes.NewReader(out.Bytes()))
		require.NoError(t, err, "%.2000s", &out)
		status := map[Outcome]int{Pass: 0, Fail: 1, Incomplete: 2}[v.Outcome]
		require.Equal(t, status, cmd.ProcessState.ExitCode())
		return v
	}
	v := run("--for", "1e-9")
	require.Nil(t, v.Failure, "%v", v.Failure)
	require.Equal(t, 1, v.Repetitions)
	skipped := 0
	for _, o := range v.Operators {
		t.Logf("%+v", o)
		if o.Skipped != "" {
			require.True(t, strings.HasPrefix(o.Name, "cast/"))
			require.Contains(t, o.Skipped, "this PyTorch has no float8_")
			skipped++
		}
	}
	if skipped > 0 {
		require.Equal(t, Incomplete, v.Outcome)
	}

	// One bit of an operand is another, as if the device's memory had lost it.
	info, operands := operandsOf(t, files)
	for name, want := range map[string]string{"grouped/rows.a": "grouped/rows", "rmsnorm.x": "rmsnorm"} {
		damaged := bytes.Clone(operands)
		damaged[info(name)+2] ^= 8
		require.NoError(t, os.WriteFile(filepath.Join(dir, OperandsFile), damaged, 0o666))
		v = run("--for", "1e-9")
		require.Equal(t, Fail, v.Outcome)
		require.Equal(t, want, v.Failure.Operator)
		require.Contains(t, v.Failure.Place, "row 0, column ")
		require.NotEqual(t, v.Failure.Expected, v.Failure.Got)
	}
}

// operandsOf returns the file of operands and where in it the data of a tensor begins.
func operandsOf(t *testing.T, files []outdir.File) (begin func(name string) int64, data []byte) {
	t.Helper()
	data = files[0].Data
	f, err := safetensors.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	var all int64
	for _, i := range f.Tensors() {
		all += i.Bytes()
		require.Zero(t, i.Offset%int64(i.DType.Size()), i.Name)
	}
	return func(name string) int64 {
		i, ok := f.Info(name)
		require.True(t, ok, name)
		return int64(len(data)) - all + i.Offset
	}, data
}

// TestFiles demands that files depend on the seed alone.
func TestFiles(t *testing.T) {
	smallFiles(t)
	a, err := Files(t.Context(), 3, nil)
	require.NoError(t, err)
	b, err := Files(t.Context(), 3, nil)
	require.NoError(t, err)
	c, err := Files(t.Context(), 4, nil)
	require.NoError(t, err)
	for i, name := range FileNames() {
		require.Equal(t, name, a[i].Name)
		require.True(t, bytes.Equal(a[i].Data, b[i].Data), name)
		require.Equal(t, name == ScriptFile, bytes.Equal(a[i].Data, c[i].Data), name)
	}
	var e expected
	require.NoError(t, json.Unmarshal(a[1].Data, &e))
	require.EqualValues(t, 3, e.Seed)
	require.Len(t, e.Operators, len(operatorsOf(fileSize)))
}
