package comparison

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/octavo-fp8/octavo/internal/atomicfile"
	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/train"
)

// saved is what a run has come to besides its models: the file run.json, by [marshalExact],
// whose form is that of runVersion. Times are in a file of their own; a version that had none
// kept them here.
type saved struct {
	Version    int
	Flags      []Flag      // of the options
	Others     []Flag      `json:"other_flags,omitempty"` // that a run which goes on has too unless it is given others
	Extensions []Extension `json:"extensions,omitempty"`
	Points     []Point
	Totals     []telemetry.Summary
	Events     []telemetry.Event
	NonFinite  *telemetry.NonFinite `json:"first_non_finite,omitempty"`
	Skips      []Skip               `json:"skips,omitempty"`
	Spikes     []Spike              `json:"spikes,omitempty"`

	// What a version did not keep is nil, and so are loads without experts and a flight
	// without rules.
	Suspects  *train.Suspects `json:"suspects,omitempty"`
	LoadsFP32 loads           `json:"fp32_loads,omitempty"`
	LoadsFP8  loads           `json:"fp8_loads,omitempty"`
	Flight    *flightJSON     `json:"flight,omitempty"`
	Health    json.RawMessage `json:"health,omitempty"`
	times
}

// times are those spent in steps: the file times.json.
type times struct {
	FP32 time.Duration `json:"fp32_nanoseconds,omitempty"`
	FP8  time.Duration `json:"fp8_nanoseconds,omitempty"`
}

// The file of a saved run, and that of octavo before it had a version.
const (
	runVersion = 1
	oldRunFile = "run.gob"
)

// maxRun returns the most bytes of a saved run: what can be read again. A step whose
// telemetry is kept takes some 30 kB for each layer.
var maxRun = func() int64 { return min(memory.Limit()/4, 1<<36) }

// writeRun writes a file and returns its SHA-256. It writes none that readRun would
// refuse.
func writeRun(path string, run saved) (sum string, err error) {
	run.Version, run.times = runVersion, times{}
	data, err := marshalExact(run)
	if err != nil {
		return "", err
	}
	if most := maxRun(); int64(len(data)) > most {
		return "", fmt.Errorf("%s has %d bytes: at most %d can be read again: choose a larger --telemetry-every", path, len(data), most)
	}
	return sumOf(data), atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// readRun reads a file that must have the given SHA-256.
func readRun(path, sum string) (run saved, err error) {
	data, err := inputfile.ReadAll(path, maxRun())
	if errors.Is(err, fs.ErrNotExist) && isThere(filepath.Join(filepath.Dir(path), oldRunFile)) {
		return run, fmt.Errorf("it has a %s, and is of a version of octavo before 0.1.0, whose runs cannot be resumed", oldRunFile)
	}
	if err != nil {
		return run, err
	}
	if got := sumOf(data); got != sum {
		return run, fmt.Errorf("%s is damaged: its SHA-256 is %s and not %s", runFile, got, sum)
	}
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return run, fmt.Errorf("%s: %w", runFile, err)
	}
	if version.Version != runVersion {
		return run, fmt.Errorf("%s has version %d: this octavo reads version %d", runFile, version.Version, runVersion)
	}
	if err := unmarshalExact(data, &run); err != nil {
		return run, fmt.Errorf("%s: %w", runFile, err)
	}
	return run, nil
}

// writeTimes writes the times of a run.
func writeTimes(path string, run saved) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		return jsonout.Print(w, run.times)
	})
}

// readTimes adds what writeTimes wrote, unless run has times already: earlier versions kept
// them with the rest.
func (run *saved) readTimes(path string) error {
	if run.FP32 != 0 || run.FP8 != 0 {
		return nil
	}
	data, err := inputfile.ReadAll(path, 1<<10)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &run.times); err != nil {
		return fmt.Errorf("%s: %w", timesFile, err)
	}
	return nil
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
