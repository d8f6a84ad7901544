package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// fileState is what tells whether a file of the source has changed.
type fileState struct {
	name        string
	size, nanos int64
}

func (p *Plan) stat() (all []fileState, err error) {
	for _, name := range append(p.source.Files(), p.CopiedFiles()...) {
		stat, err := os.Stat(p.path(name))
		if err != nil {
			return nil, err
		}
		all = append(all, fileState{name, stat.Size(), stat.ModTime().UnixNano()})
	}
	return all, nil
}

// path returns that of a file of the source.
func (p *Plan) path(name string) string {
	return filepath.Join(p.source.dir, filepath.FromSlash(name))
}

// checkSource makes sure that the files of the source are what they were.
func (c *converting) checkSource() error {
	for _, s := range c.p.states {
		stat, err := os.Stat(c.p.path(s.name))
		if err != nil || stat.Size() != s.size || stat.ModTime().UnixNano() != s.nanos {
			return sentinel.Errorf(ErrChanged, "%s: it has changed since the conversion began",
				c.p.path(s.name))
		}
	}
	return nil
}

// Digest returns what tells plans apart: a checksum of the names, sizes and times of the
// source's files, of what becomes of every tensor, and of the configuration.
func (p *Plan) Digest() string { return p.digest }

func (p *Plan) sum() string {
	h := sha256.New()
	for _, s := range p.states {
		fmt.Fprintf(h, "%q %d %d\n", s.name, s.size, s.nanos)
	}
	if p.smoothed != "" {
		fmt.Fprintf(h, "%q\n", p.smoothed)
	}
	for _, s := range p.Shards {
		fmt.Fprintf(h, "%q\n", s.Name)
		for _, t := range s.Targets {
			fmt.Fprintf(h, "%#v %v %q %v %v\n", t.Parts, t.Roles, t.Arithmetic, t.InputAmax, t.extra)
			if t.Weight != nil {
				fmt.Fprintf(h, "%q %#v %v\n", t.Weight.Name, t.Weight.Parts, t.Weight.Block)
			}
			if t.Scheme != nil {
				fmt.Fprintf(h, "%q\n", t.Scheme.Name)
			}
			for _, w := range t.Group() {
				fmt.Fprintf(h, "%q\n", w.Name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.documents)) {
		fmt.Fprintf(h, "%q %q\n", name, p.documents[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}
