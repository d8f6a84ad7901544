package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/beam"
	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/testutil"
)

func TestMain(m *testing.M) {
	log.SetupLogging("error", "text")
	sdk.Init()
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	job := &beam.Job{Layout: "ct-fp8", Out: filepath.Join(t.TempDir(), "out")}
	from := testutil.Shared(t, "golden", "checkpoints", "llama-bf16")
	amax := testutil.Shared(t, "golden", "checkpoints", "llama-fp8-static", "calibration.json")
	require.ErrorContains(t, run(t.Context(), job, "", nil), "want one model, there are 0 arguments")
	require.ErrorContains(t, run(t.Context(), &beam.Job{Out: job.Out}, "", []string{from}), "want -o DIR and --to LAYOUT")
	require.ErrorContains(t, run(t.Context(), job, "", []string{from}), "calibrate it first")
	require.ErrorContains(t, run(t.Context(), job, filepath.Join(from, "config.json"), []string{from}), "want a JSON object of numbers")
	require.NoDirExists(t, job.Out)
	for range 2 { // the second time it is there
		require.NoError(t, run(t.Context(), job, amax, []string{from}))
	}
	cert, err := checkpoint.ReadCertificate(job.Out)
	require.NoError(t, err)
	require.Equal(t, "ct-fp8", cert.Layout)
}

func TestCause(t *testing.T) {
	require.Equal(t, "the disk is full", cause(errors.New("job failed:\n1: DataSource\n\tcaused by:\nthe disk is full\n")))
	require.Equal(t, "one line", cause(errors.New("one line")))
}

func TestParse(t *testing.T) {
	flags := flag.NewFlagSet("", flag.ExitOnError)
	to, jobs := flags.String("to", "", ""), flags.Int("jobs", 0, "")
	require.Equal(t, []string{"a", "b"}, parse(flags, []string{"a", "-to", "bf16", "b", "--jobs=2"}))
	require.Equal(t, "bf16", *to)
	require.Equal(t, 2, *jobs)
}
