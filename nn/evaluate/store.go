package evaluate

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/octavo-fp8/octavo/internal/checksum"
	"github.com/octavo-fp8/octavo/internal/memory"
)

// streamStore is the residual streams of all windows between two layers, in memory or, where there
// are too many or a [State] keeps them, in files.
type streamStore struct {
	values   [][][]float32 // of streams and windows; nil: in files
	from, to *activations  // what is read and what is written: one file, or two in turn

	offsets []int64 // of windows in a stream, and the size of a stream
	x       []float32
	bytes   []byte
}

// activations are the streams in a file.
type activations struct {
	*os.File
	sums [][]uint32 // CRC-32C of streams and windows
	kept bool       // when the store is closed
}

// activationNames are the files of a [State] after an even number of layers, and an odd one.
var activationNames = [2]string{"evaluate-activations-0.f32", "evaluate-activations-1.f32"}

// newStreamStore returns a store of streams that take no more memory than most, or, unless dir is "",
// are in files there.
func newStreamStore(streams []stream, windows []window, dim int, most int64, dir string) (s *streamStore, err error) {
	s = &streamStore{offsets: []int64{0}}
	total := int64(0)
	for _, w := range windows {
		s.offsets = append(s.offsets, s.offsets[len(s.offsets)-1]+4*int64(len(w.tokens)*dim))
	}
	for _, st := range streams {
		s.values = append(s.values, make([][]float32, st.windows))
		total += s.offsets[st.windows]
	}
	if dir == "" && total <= cmp.Or(most, memory.Limit()/4) {
		return s, nil
	}
	s.values = nil
	open := func(i int) *activations {
		a := &activations{kept: dir != ""}
		for _, st := range streams {
			a.sums = append(a.sums, make([]uint32, st.windows))
		}
		var e error
		if a.kept {
			a.File, e = os.OpenFile(filepath.Join(dir, activationNames[i]), os.O_RDWR|os.O_CREATE, 0o666)
		} else {
			a.File, e = os.CreateTemp("", "octavo-evaluate-")
		}
		err = cmp.Or(err, e)
		return a
	}
	s.to = open(0) // where the embedding goes
	if s.from = s.to; dir != "" {
		s.from = open(1)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// close closes the files, and removes what no state keeps.
func (s *streamStore) close() {
	for _, a := range []*activations{s.from, s.to} {
		if a != nil && a.File != nil {
			a.Close()
			if !a.kept {
				os.Remove(a.Name())
			}
		}
	}
}

// turn makes what was written what is read.
func (s *streamStore) turn() { s.from, s.to = s.to, s.from }

// read returns a stream of a window, until the next read.
func (s *streamStore) read(stream, window int) ([]float32, error) {
	if s.values != nil {
		return s.values[stream][window], nil
	}
	at, size := s.place(stream, window)
	_, err := s.from.ReadAt(sizedBytes(&s.bytes, size), at)
	switch {
	case errors.Is(err, io.EOF):
		return nil, stateError("%s: it ends before byte %d", s.from.Name(), at+int64(size))
	case err != nil:
		return nil, err
	case checksum.Of(s.bytes) != s.from.sums[stream][window]:
		return nil, stateError("%s: bytes %d to %d are not what was written", s.from.Name(), at, at+int64(size))
	}
	x := sized(&s.x, size/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(s.bytes[4*i:]))
	}
	return x, nil
}

// write keeps a stream of a window. In memory it takes what x points to and gives what was there.
func (s *streamStore) write(stream, window int, x *[]float32) error {
	if s.values != nil {
		to := &s.values[stream][window]
		*to, *x = *x, *to
		return nil
	}
	at, size := s.place(stream, window)
	b := sizedBytes(&s.bytes, size)
	for i, v := range *x {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
	}
	s.to.sums[stream][window] = checksum.Of(b)
	_, err := s.to.WriteAt(b, at)
	return err
}

func (s *streamStore) place(stream, window int) (at int64, size int) {
	last := len(s.offsets) - 1
	return int64(stream)*s.offsets[last] + s.offsets[window], int(s.offsets[window+1] - s.offsets[window])
}

func sizedBytes(buf *[]byte, n int) []byte {
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	*buf = (*buf)[:n]
	return *buf
}
