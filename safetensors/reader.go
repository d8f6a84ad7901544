package safetensors

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/memory"
)

// File gives access to the tensors of a safetensors file. Its methods may be
// called by several goroutines at once, except that Close must come after the
// others have returned. What they return is the caller's to change. A File that is
// nil has no tensors.
type File struct {
	r        io.ReaderAt
	closer   io.Closer // nil unless Open opened r
	data     int64     // where the data begins in r
	tensors  []Info    // in data order
	index    map[string]int
	metadata map[string]string
}

// Open opens the regular file at path and reads its header, as [NewReader] does. A
// pipe, a directory or a device is an error at once. The caller must Close the File.
func Open(path string) (*File, error) {
	file, size, err := inputfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f, err := newFile(file, size)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("safetensors: %s: %w", path, err)
	}
	f.closer = file
	return f, nil
}

// NewReader reads the header of the safetensors file that r holds in its first
// size bytes, and no data. The error for a malformed file is [ErrFile] and names the
// tensor and the offsets that are wrong. The File reads from r for as long as it is
// used.
func NewReader(r io.ReaderAt, size int64) (*File, error) {
	if r == nil {
		return nil, fmt.Errorf("safetensors: %w", errNoReader)
	}
	f, err := newFile(r, size)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return f, nil
}

func newFile(r io.ReaderAt, size int64) (*File, error) {
	text, err := readHeaderText(r, size)
	if err != nil {
		return nil, err
	}
	h, err := parseHeader(text)
	if err != nil {
		return nil, malformed(err)
	}
	data := prefixSize + int64(len(text))
	if sortByOffset(h.tensors) {
		for i, info := range h.tensors {
			h.index[info.Name] = i
		}
	}
	if err := checkLayout(h.tensors, size-data); err != nil {
		return nil, malformed(err)
	}
	return &File{r: r, data: data, tensors: h.tensors, index: h.index, metadata: h.metadata}, nil
}

// sortByOffset puts tensors in data order, and reports whether they were not. Empty
// ones come before the one whose offset they share, otherwise in the order of the
// header.
func sortByOffset(tensors []Info) bool {
	compare := func(a, b Info) int {
		if c := cmp.Compare(a.Offset, b.Offset); c != 0 {
			return c
		}
		return cmp.Compare(a.Bytes(), b.Bytes())
	}
	if slices.IsSortedFunc(tensors, compare) {
		return false
	}
	slices.SortStableFunc(tensors, compare)
	return true
}

// checkLayout checks that tensors, in data order, fill size bytes exactly.
func checkLayout(tensors []Info, size int64) error {
	var end int64
	for i, info := range tensors {
		begin, next := info.Offset, info.Offset+info.Bytes()
		switch {
		case begin > end:
			return fmt.Errorf("tensor %q: data_offsets [%d %d] leave a hole from %d to %d", info.Name, begin, next, end, begin)
		case begin < end:
			return fmt.Errorf("tensor %q: data_offsets [%d %d] overlap tensor %q, which ends at %d",
				info.Name, begin, next, tensors[i-1].Name, end)
		case next > size:
			return fmt.Errorf("tensor %q: data_offsets [%d %d] run past the data, which has %d bytes", info.Name, begin, next, size)
		}
		end = next
	}
	if end < size {
		return fmt.Errorf("the tensors end at offset %d but the data has %d bytes: %d too many", end, size, size-end)
	}
	return nil
}

// Close closes the file that [Open] opened. It does nothing to the reader given
// to [NewReader].
func (f *File) Close() error {
	if f == nil || f.closer == nil {
		return nil
	}
	if err := f.closer.Close(); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}

// Tensors returns a description of every tensor, in the order of the data.
func (f *File) Tensors() []Info {
	if f == nil {
		return nil
	}
	dims := 0
	for _, info := range f.tensors {
		dims += len(info.Shape)
	}
	tensors, shapes := slices.Clone(f.tensors), make([]int, 0, dims)
	for i := range tensors {
		begin := len(shapes)
		shapes = append(shapes, tensors[i].Shape...)
		tensors[i].Shape = shapes[begin:len(shapes):len(shapes)]
	}
	return tensors
}

// Info returns the description of the named tensor, and whether there is one.
func (f *File) Info(name string) (Info, bool) {
	if f == nil {
		return Info{}, false
	}
	i, ok := f.index[name]
	if !ok {
		return Info{}, false
	}
	return f.tensors[i].clone(), true
}

// Metadata returns the file's metadata: nil if it has none, empty if it has an
// empty map.
func (f *File) Metadata() map[string]string {
	if f == nil {
		return nil
	}
	return maps.Clone(f.metadata)
}

// Section returns a reader of the named tensor's data. It reads straight from
// the underlying reader: the File keeps no buffer, and Close ends it. It is an
// error if there is no such tensor.
func (f *File) Section(name string) (*io.SectionReader, error) {
	_, section, err := f.lookup(name)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return section, nil
}

// Bytes reads the named tensor's data into memory. It is an error if there is no
// such tensor, if it cannot be in memory ([ErrTooLarge]), or if reading fails.
func (f *File) Bytes(name string) ([]byte, error) {
	data, err := f.bytes(name)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return data, nil
}

func (f *File) bytes(name string) ([]byte, error) {
	info, section, err := f.lookup(name)
	if err != nil {
		return nil, err
	}
	if err := checkLoadable(info, section, section.Size(), 1); err != nil {
		return nil, err
	}
	data := make([]byte, section.Size())
	if _, err := io.ReadFull(section, data); err != nil {
		return nil, readError(info, err)
	}
	return data, nil
}

// ReadBytes fills dst with the named tensor's data from byte off on. Nothing is
// kept, so goroutines may read parts of one tensor at once. It is an error if there
// is no such tensor, if it ends before dst is full, or if reading fails; dst may then
// hold anything.
func (f *File) ReadBytes(name string, off int64, dst []byte) error {
	info, section, err := f.lookup(name)
	if err == nil {
		err = readPart(info, section, off, dst)
	}
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}

func readPart(info Info, section *io.SectionReader, off int64, dst []byte) error {
	if err := checkPart(info, len(dst), off); err != nil {
		return err
	}
	if n, err := section.ReadAt(dst, off); n < len(dst) {
		return fmt.Errorf("tensor %q: reading %d of its %d bytes at data offset %d: %w",
			info.Name, len(dst), info.Bytes(), info.Offset+off, unexpected(err))
	}
	return nil
}

// checkPart checks that n bytes from off on are a tensor's.
func checkPart(info Info, n int, off int64) error {
	if size := info.Bytes(); off < 0 || off > size-int64(n) {
		return fmt.Errorf("tensor %q: %d bytes at %d are not all among its %d", info.Name, n, off, size)
	}
	return nil
}

// lookup returns the description and the data of the named tensor.
func (f *File) lookup(name string) (Info, *io.SectionReader, error) {
	if f == nil {
		return Info{}, nil, errNoFile
	}
	i, ok := f.index[name]
	if !ok {
		return Info{}, nil, fmt.Errorf("there is no tensor %q", name)
	}
	info := f.tensors[i]
	return info, io.NewSectionReader(f.r, f.data+info.Offset, info.Bytes()), nil
}

// checkLoadable checks that a slice can hold n elements of unit bytes each, and by
// the last byte of the tensor that its data is there: no memory is to be allocated
// for what a false size claims.
func checkLoadable(info Info, section *io.SectionReader, n, unit int64) error {
	what := fmt.Sprintf("tensor %q: %s %v", info.Name, info.DType, info.Shape)
	if err := memory.Check(n, unit, what, "read it in parts, or take a smaller one"); err != nil {
		return kindError{err, ErrTooLarge}
	}
	size := section.Size()
	if size == 0 {
		return nil
	}
	var last [1]byte
	if n, err := section.ReadAt(last[:], size-1); n < 1 {
		return readError(info, err)
	}
	return nil
}

// readError is what became of reading all of a tensor.
func readError(info Info, err error) error {
	return fmt.Errorf("tensor %q: reading its %d bytes at data offset %d: %w", info.Name, info.Bytes(), info.Offset, unexpected(err))
}

// unexpected makes an error of the end of a file that ends too early.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
