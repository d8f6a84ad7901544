package beam

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
)

// stagePrefix begins the name of the directory in which shards lie until all are complete; the
// digest of the plan follows. Command octavo convert refuses a directory where it finds that name.
const stagePrefix = ".octavo-beam-"

func (j *Job) stage() string { return filepath.Join(j.Out, stagePrefix+j.Plan[:16]) }

// complete returns the certificate of the model in Out, nil if there is none. It is an error if
// it is another model.
func (j *Job) complete() (*checkpoint.Certificate, error) {
	cert, err := certificate(j.Out)
	if cert != nil && cert.Plan != j.Plan {
		return nil, fmt.Errorf("%s: it holds another model, or one that was converted with other "+
			"options: name another directory", j.Out)
	}
	return cert, err
}

// certificate reads that of a directory, nil if there is none.
func certificate(dir string) (*checkpoint.Certificate, error) {
	cert, err := checkpoint.ReadCertificate(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return cert, err
}

// resume reports whether the whole model is there. Where it was, but for the last renaming, it
// does that.
func (j *Job) resume() (done bool, err error) {
	cert, err := j.complete()
	if err != nil {
		return false, err
	}
	if cert == nil {
		if cert, err = certificate(j.stage()); cert == nil || err != nil {
			return false, err
		}
	}
	return true, j.adopt(cert)
}

// claim makes the stage, of which there must be no other in Out: two plans in one directory
// would mix. Of two that claim it at once, none or one gets it.
func (j *Job) claim() error {
	if err := j.checkOut(); err != nil {
		return err
	}
	if err := os.MkdirAll(j.Out, 0o777); err != nil {
		return err
	}
	made := os.Mkdir(j.stage(), 0o777)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return made
	}
	entries, err := os.ReadDir(j.Out)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), stagePrefix) && e.Name() != filepath.Base(j.stage()) {
			if made == nil {
				os.Remove(j.stage()) // unless the same job has begun to fill it
			}
			return fmt.Errorf("%s: another conversion is at work there, or was cut off: start it again, "+
				"or remove that directory", filepath.Join(j.Out, e.Name()))
		}
	}
	return nil
}

// checkOut makes sure that Out has nothing but what claim will judge.
func (j *Job) checkOut() error {
	if a, err := os.Stat(j.Source); err == nil {
		if b, err := os.Stat(j.Out); err == nil && os.SameFile(a, b) {
			return fmt.Errorf("%s: the model is there: name another directory", j.Out)
		}
	}
	entries, err := os.ReadDir(j.Out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), stagePrefix) {
			return fmt.Errorf("%s: it has %s: name a directory that is empty or absent", j.Out, e.Name())
		}
	}
	return nil
}

// adopt renames the files of the stage to their places, the certificate last, and removes the
// stage. It may be called again where an earlier call was cut off at any point, and by several
// at once: they move the same bytes.
func (j *Job) adopt(cert *checkpoint.Certificate) error {
	for _, f := range cert.Files {
		to := filepath.Join(j.Out, f.Name)
		err := os.Rename(filepath.Join(j.stage(), f.Name), to)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if stat, err := os.Stat(to); err != nil || stat.Size() != f.Bytes {
			return fmt.Errorf("%s: it is not there as it was written: start the conversion again", to)
		}
	}
	from := filepath.Join(j.stage(), checkpoint.CertificateName)
	err := os.Rename(from, filepath.Join(j.Out, checkpoint.CertificateName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(j.stage())
}
