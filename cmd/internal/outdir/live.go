package outdir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/octavo-fp8/octavo/internal/atomicfile"
)

// LiveName is the file that says which files of a directory are those of a run that goes on, or
// that was killed: [Run.Publish] writes them.
const LiveName = "octavo-live.json"

// ReadLive returns the manifest of the run that goes on in a directory, or that was killed there.
// The error is fs.ErrNotExist if none has published anything.
func ReadLive(dir string) (Manifest, error) { return readManifest(filepath.Join(dir, LiveName)) }

// Publish makes files seen while the run goes on, each whole at any time; those of the call before
// are replaced. They go when the run ends, but for one that is a file of the run too, which takes
// the place of it. One in the place of a file of the run to be replaced gives way to that again after
// Abort. What is left of a run that was killed goes when another in the directory ends.
func (r *Run) Publish(m Manifest, files ...File) error {
	if r.done {
		return errors.New("the run has ended")
	}
	m.Version, m.Files = manifestVersion, slices.Clone(r.live)
	for _, f := range files {
		if err := errors.Join(checkName(f.Name), r.checkFree(f.Name)); err != nil {
			return err
		}
		if !slices.Contains(m.Files, f.Name) {
			m.Files = append(m.Files, f.Name)
		}
	}
	if err := r.hide(m.Files[len(r.live):]); err != nil {
		return err
	}
	if !r.published || len(r.live) < len(m.Files) { // the list comes first: a file that it lacks is of no run
		if err := atomicfile.Write(filepath.Join(r.dir, LiveName), m.write); err != nil {
			return err
		}
		r.live, r.published = m.Files, true
	}
	for _, f := range files {
		if err := writeFile(r.dir, f); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(dir string, f File) error {
	return atomicfile.Write(filepath.Join(dir, f.Name), func(w io.Writer) error {
		_, err := w.Write(f.Data)
		return err
	})
}

// hide keeps files of the run to be replaced that are about to be published over for the first time.
func (r *Run) hide(names []string) error {
	for _, name := range names {
		if r.old == nil || !slices.Contains(r.old.Files, name) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(r.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		r.hidden = append(r.hidden, File{Name: name, Data: data})
	}
	return nil
}

// removeLive removes what runs have published in a directory, but for files of these names.
func removeLive(dir string, keep []string) {
	m, err := ReadLive(dir)
	if err != nil {
		return
	}
	for _, name := range m.Files {
		if !slices.Contains(keep, name) {
			os.Remove(filepath.Join(dir, name))
		}
	}
	os.Remove(filepath.Join(dir, LiveName))
}
