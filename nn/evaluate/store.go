package evaluate

import (
	"cmp"
	"encoding/binary"
	"math"
	"os"

	"github.com/octavo-fp8/octavo/internal/memory"
)

// streamStore is the residual streams of all windows between two layers, in memory or, where there
// are too many, in a file.
type streamStore struct {
	values [][][]float32 // of streams and windows; nil: in the file

	file    *os.File
	offsets []int64 // of windows in a stream, and the size of a stream
	x       []float32
	bytes   []byte
}

// newStreamStore returns a store of streams that take no more memory than most.
func newStreamStore(streams []stream, windows []window, dim int, most int64) (*streamStore, error) {
	s := &streamStore{offsets: []int64{0}}
	total := int64(0)
	for _, w := range windows {
		s.offsets = append(s.offsets, s.offsets[len(s.offsets)-1]+4*int64(len(w.tokens)*dim))
	}
	for _, st := range streams {
		s.values = append(s.values, make([][]float32, st.windows))
		total += s.offsets[st.windows]
	}
	if total <= cmp.Or(most, memory.Limit()/4) {
		return s, nil
	}
	s.values = nil
	var err error
	s.file, err = os.CreateTemp("", "octavo-evaluate-")
	return s, err
}

// close removes the file.
func (s *streamStore) close() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
	}
}

// read returns a stream of a window, until the next read.
func (s *streamStore) read(stream, window int) ([]float32, error) {
	if s.values != nil {
		return s.values[stream][window], nil
	}
	at, size := s.place(stream, window)
	if _, err := s.file.ReadAt(sizedBytes(&s.bytes, size), at); err != nil {
		return nil, err
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
	for i, v := range *x {
		binary.LittleEndian.PutUint32(sizedBytes(&s.bytes, size)[4*i:], math.Float32bits(v))
	}
	_, err := s.file.WriteAt(s.bytes, at)
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
