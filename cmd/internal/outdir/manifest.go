package outdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// ManifestName is the file that says which files of a directory are a run's.
const ManifestName = "octavo-run.json"

// manifestVersion is the version that this package writes and reads.
const manifestVersion = 1

// maxManifest is the most bytes of a manifest.
const maxManifest = 1 << 20

// Manifest describes a run. Version and Files are filled in when it is written.
type Manifest struct {
	Version int      `json:"version"`
	Kind    string   `json:"kind"`    // the command that wrote it, such as "train"
	Command string   `json:"command"` // what repeats the run
	Machine string   `json:"machine"` // what it ran on
	Files   []string `json:"files"`   // of this directory, but for the manifest

	// Sums are CRC-32C of files, in hexadecimal, where the command has them.
	Sums map[string]string `json:"crc32c,omitempty"`
}

// ErrNoRun is the error of a directory without a run.
var ErrNoRun = errors.New("there is no " + ManifestName)

// Read returns the manifest of the run in a directory. The error is [ErrNoRun] if
// there is none.
func Read(dir string) (Manifest, error) {
	m, err := readManifest(filepath.Join(dir, ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		if _, missing := os.Stat(dir); missing != nil {
			return m, missing
		}
		return m, fmt.Errorf("%s holds no run: %w", textout.Name(dir), ErrNoRun)
	}
	return m, err
}

func readManifest(path string) (Manifest, error) {
	data, err := inputfile.ReadAll(path, maxManifest)
	if err != nil {
		return Manifest{}, err
	}
	m, err := parseManifest(data)
	if err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", textout.Name(path), err)
	}
	return m, nil
}

func parseManifest(data []byte) (m Manifest, err error) {
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("it is no manifest of a run: %w", err)
	}
	if m.Version != manifestVersion {
		return m, fmt.Errorf("it has version %d: this octavo reads version %d", m.Version, manifestVersion)
	}
	if m.Kind == "" {
		return m, errors.New(`it has no "kind"`)
	}
	for _, name := range m.Files {
		if err := checkName(name); err != nil {
			return m, err
		}
	}
	return m, nil
}

// write writes m as indented JSON.
func (m Manifest) write(w io.Writer) error { return jsonout.Print(w, m) }

// checkName refuses what is not a plain name of a file in the directory itself, or is
// one that this package uses.
func checkName(name string) error {
	if name == "" || name == ManifestName || name == LiveName || strings.HasPrefix(name, ".") ||
		strings.ContainsAny(name, `/\:`) || !filepath.IsLocal(name) || !textout.IsPrintable(name) {
		return fmt.Errorf("%s is no name of a file of a run", textout.Quoted(name))
	}
	return nil
}
