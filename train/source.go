package train

import (
	"fmt"
	"io"
	"slices"

	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/safetensors"
)

// source is where the tensors of a checkpoint are.
type source interface {
	info(name string) (safetensors.Info, bool)
	tensors() []safetensors.Info

	// read fills shares of tensors that are there.
	read(done *meter.Meter, all []share) error

	io.Closer
}

// wholeFile has all tensors as they are.
type wholeFile struct {
	*safetensors.File
	checksums map[string]string
}

func (f wholeFile) info(name string) (safetensors.Info, bool) { return f.Info(name) }
func (f wholeFile) tensors() []safetensors.Info               { return f.Tensors() }

func (f wholeFile) read(done *meter.Meter, all []share) error {
	for _, s := range all {
		if err := s.readFrom(done, f.File, 0, f.checksums[s.Name]); err != nil {
			return err
		}
	}
	return nil
}

// copies are tensors in memory, of a whole run.
type copies struct{ contents }

func (c copies) info(name string) (safetensors.Info, bool) {
	s, ok := c.share(name)
	return s.whole, ok
}

func (c copies) share(name string) (share, bool) {
	i := slices.IndexFunc(c.all, func(s share) bool { return s.Name == name })
	if i < 0 {
		return share{}, false
	}
	return c.all[i], true
}

func (c copies) read(done *meter.Meter, all []share) error {
	for _, s := range all {
		if saved, ok := c.share(s.Name); ok {
			saved.Elements.CopyTo(s.Elements, 0, s.Count())
		}
		if err := done.Add(s.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func (c copies) Close() error { return nil }

// readFrom fills what a share has of the piece of its tensor in a file, which begins at
// element begin of the whole. The piece has the checksum.
func (s share) readFrom(done *meter.Meter, f *safetensors.File, begin int, checksum string) error {
	info, ok := f.Info(s.Name)
	if !ok {
		return fmt.Errorf("there is no tensor %q", s.Name)
	}
	piece := arrays.Array{
		Info:     info,
		Elements: arrays.Window{Elements: s.Elements, N: int(info.Len()), At: s.lo - begin},
		Valid:    s.Valid,
		First:    begin,
	}
	return piece.Read(done, f, checksum)
}
