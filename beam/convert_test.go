package beam

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/testutil"
)

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetupLogging("error", "text")
	sdk.Init()
	os.Exit(m.Run())
}

// golden returns the directory of a golden checkpoint.
func golden(t *testing.T, name string) string {
	return testutil.Shared(t, "golden", "checkpoints", name)
}

// files returns the content of the files of a directory, by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		all[e.Name()] = string(data)
	}
	return all
}

// same fails unless a job has written what checkpoint.Convert writes, and nothing else.
func same(t *testing.T, job Job) {
	t.Helper()
	source, plan, err := job.open()
	require.NoError(t, err)
	defer source.Close()
	dir := t.TempDir()
	_, err = checkpoint.Convert(t.Context(), plan, dir, checkpoint.Options{})
	require.NoError(t, err)
	want, got := files(t, dir), files(t, job.Out)
	require.Len(t, got, len(want))
	for name, data := range want {
		require.True(t, data == got[name], name)
	}
}

// run runs a job on Beam's embedded runner.
func run(ctx context.Context, job Job, each, finish worker) error {
	p, s := sdk.NewPipelineWithRoot()
	shards, err := convert(s, job, each, finish)
	if err != nil || shards == 0 {
		return err
	}
	_, err = sdk.Run(ctx, "prism", p)
	return err
}

func newJob(t *testing.T, from, layout string) Job {
	return Job{Source: golden(t, from), Out: filepath.Join(t.TempDir(), "out"), Layout: layout}
}

// TestBytes compares what pipelines write with what package checkpoint writes.
func TestBytes(t *testing.T) {
	for _, test := range []struct {
		from    string
		layouts string
	}{
		{"llama-bf16", "deepseek-v3 ct-fp8-dynamic ct-mxfp4 ct-nvfp4a16 f32"},
		{"moe-bf16", "deepseek-v3-ue8m0 ct-nvfp4a16"},
		{"tied-bf16", "ct-fp8-block"},
		{"llama-ct-mxfp4", "bf16"},
	} {
		for layout := range strings.FieldsSeq(test.layouts) {
			t.Run(test.from+" "+layout, func(t *testing.T) {
				job := newJob(t, test.from, layout)
				require.NoError(t, run(t.Context(), job, new(convertFn), new(finishFn)))
				same(t, job)
				before := files(t, job.Out)
				require.NoError(t, run(t.Context(), job, new(convertFn), new(finishFn)))
				require.Equal(t, len(before), len(files(t, job.Out)))
			})
		}
	}
}

// TestOptions: what chooses weights and arithmetic reaches the workers.
func TestOptions(t *testing.T) {
	job := newJob(t, "llama-bf16", "fp8")
	job.Arithmetic, job.Only, job.Except, job.Workers = "deepgemm", `layers\.0`, "down_proj", 1
	require.NoError(t, run(t.Context(), job, new(convertFn), new(finishFn)))
	same(t, job)
	cert, err := checkpoint.ReadCertificate(job.Out)
	require.NoError(t, err)
	quantized := 0
	for _, l := range cert.Tensors {
		if l.Arithmetic != "" {
			require.Equal(t, checkpoint.Arithmetic("deepgemm"), l.Arithmetic)
			require.Contains(t, l.Name, "layers.0.")
			require.NotContains(t, l.Name, "down_proj")
			quantized++
		}
	}
	require.Equal(t, 6, quantized)
}

// TestAtOnce runs one job by two pipelines at once: every bundle is duplicated, in another
// process as far as the code can tell.
func TestAtOnce(t *testing.T) {
	for range 3 {
		job := newJob(t, "moe-bf16", "ct-nvfp4a16")
		require.NoError(t, run(t.Context(), newJob(t, "tied-bf16", "bf16"), new(convertFn), new(finishFn))) // starts the runner
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = run(t.Context(), job, new(convertFn), new(finishFn)) })
		}
		wg.Wait()
		if errs[0] != nil && errs[1] != nil { // one may have found that the other has moved its files
			t.Fatal(errs)
		}
		same(t, job)
	}
}

// TestRefuses has jobs that cannot begin, and leaves everything as it is.
func TestRefuses(t *testing.T) {
	job := newJob(t, "tied-bf16", "ct-fp8-dynamic")
	begin := func(job Job) error {
		_, s := sdk.NewPipelineWithRoot()
		_, err := Convert(s, job)
		return err
	}
	for says, change := range map[string]func(*Job){
		`layout "x" is unknown`:    func(j *Job) { j.Layout = "x" },
		"missing closing )":        func(j *Job) { j.Only = "(" },
		"missing argument to repe": func(j *Job) { j.Except = "*" },
		"no such file":             func(j *Job) { j.Source = filepath.Join(j.Out, "none") },
		"the model is there":       func(j *Job) { j.Out = j.Source },
		`"none"`:                   func(j *Job) { j.Arithmetic = "none" },
	} {
		changed := job
		change(&changed)
		require.ErrorContains(t, begin(changed), says)
		require.NoDirExists(t, job.Out)
	}

	require.NoError(t, begin(job))
	stage := entries(t, job.Out)
	require.Len(t, stage, 1)
	other := job
	other.Layout = "bf16"
	require.ErrorContains(t, begin(other), "another conversion is at work there")
	require.Equal(t, stage, entries(t, job.Out))
	require.NoError(t, begin(job), "the same job goes on")
	require.NoError(t, os.Remove(filepath.Join(job.Out, stage[0])))

	mine := filepath.Join(job.Out, "config.json")
	require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o666))
	require.ErrorContains(t, begin(job), "it has config.json: name a directory that is empty or absent")
	require.NoError(t, os.Remove(mine))

	require.NoError(t, run(t.Context(), job, new(convertFn), new(finishFn)))
	require.ErrorContains(t, begin(other), "it holds another model")
	same(t, job)
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// TestAnotherSource: a worker whose files are not those of the program that started the
// pipeline refuses to work.
func TestAnotherSource(t *testing.T) {
	job := newJob(t, "tied-bf16", "bf16")
	job.Plan = strings.Repeat("0", 64)
	f := &convertFn{Job: job}
	require.ErrorContains(t, f.Setup(t.Context()), "all workers must see one source")
	require.NoError(t, f.Teardown())
	require.ErrorContains(t, (&finishFn{Job: job}).ProcessElement(t.Context(), Result{}), "all workers must see one source")
}

// TestOtherBytes: a model is not finished where shards are not what workers said.
func TestOtherBytes(t *testing.T) {
	job := newJob(t, "tied-bf16", "bf16")
	_, s := sdk.NewPipelineWithRoot()
	_, err := Convert(s, job)
	require.NoError(t, err)
	source, _, err := job.open()
	require.NoError(t, err)
	defer source.Close()
	each := &convertFn{Job: job}
	require.NoError(t, each.Setup(t.Context()))
	defer func() { require.NoError(t, each.Teardown()) }()
	var r Result
	require.NoError(t, each.ProcessElement(t.Context(), 0, func(one Result) { r = one }))
	r.Shards[0].File.CRC32 = "00000000"
	err = (&finishFn{Job: job}).ProcessElement(t.Context(), r)
	require.ErrorContains(t, err, fmt.Sprintf("%s: workers have written different bytes", r.Shards[0].File.Name))
	require.Equal(t, []string{filepath.Base(job.stage())}, entries(t, job.Out))
}
