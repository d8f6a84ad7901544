package train

import (
	"fmt"
	"io"

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
