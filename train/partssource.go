package train

import (
	"fmt"
	"path/filepath"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/safetensors"
)

// partsSource are the tensors of a checkpoint in parts. One file is open at a time.
type partsSource struct {
	dir    string
	all    []safetensors.Info
	index  map[string]int
	begins [][]int             // by rank and tensor: where in the tensor the part begins
	sums   []map[string]string // by rank
}

// openParts opens the checkpoint in a directory.
func openParts(dir string) (*Checkpoint, error) {
	state, err := readManifest(filepath.Join(dir, manifestName))
	if err != nil {
		return nil, err
	}
	s, err := newPartsSource(dir, state)
	if err != nil {
		return nil, err
	}
	return checkpointOf(s, state), nil
}

// newPartsSource returns the tensors that a manifest names, once the parts were found to
// have them.
func newPartsSource(dir string, state checkpointState) (*partsSource, error) {
	s := &partsSource{dir: dir, index: map[string]int{}}
	for i, t := range state.Parts.Tensors {
		s.all = append(s.all, t.info())
		s.index[t.Name] = i
	}
	next := make([]int, len(s.all))
	for rank, want := range state.Parts.Parts {
		part := Partition{rank, len(state.Parts.Parts)}
		if err := s.add(part, want, next); err != nil {
			return nil, damaged("%s: %w", partName(part), err)
		}
	}
	for i, n := range next {
		if info := s.all[i]; int64(n) != info.Len() {
			return nil, damaged("tensor %q is %s %v: all parts have %d elements of it", info.Name, info.DType, info.Shape, n)
		}
	}
	return s, nil
}

// add adds a part, whose tensors begin at next, and moves that to where they end.
func (s *partsSource) add(part Partition, want savedPart, next []int) error {
	p, err := readPartFile(filepath.Join(s.dir, partName(part)))
	if err != nil {
		return err
	}
	if p.savedPart != want {
		return fmt.Errorf("it is not the part that was saved: it has %d bytes and a description with CRC-32C %s, and not %d and %.40q",
			p.Bytes, p.Checksum, want.Bytes, want.Checksum)
	}
	if (Partition{p.state.Rank, p.state.Ranks}) != part {
		return fmt.Errorf("it is the part of rank %d of %d", p.state.Rank, p.state.Ranks)
	}
	if len(p.infos) != len(s.all) {
		return fmt.Errorf("it has %d tensors, and not %d", len(p.infos), len(s.all))
	}
	begins := make([]int, len(s.all))
	for i, whole := range s.all {
		info, ok := p.infos[whole.Name]
		switch {
		case !ok:
			return fmt.Errorf("there is no tensor %q", whole.Name)
		case info.DType != whole.DType || len(info.Shape) != 1:
			return fmt.Errorf("tensor %q is %s %v: it must be %s and flat", info.Name, info.DType, info.Shape, whole.DType)
		case int64(info.Shape[0]) > whole.Len()-int64(next[i]):
			return fmt.Errorf("tensor %q has %d elements, %d come before it, and the whole has %d", info.Name, info.Shape[0], next[i], whole.Len())
		}
		begins[i] = next[i]
		next[i] += info.Shape[0]
	}
	s.begins, s.sums = append(s.begins, begins), append(s.sums, p.state.Checksums)
	return nil
}

func (s *partsSource) tensors() []safetensors.Info { return s.all }
func (s *partsSource) Close() error                { return nil }

func (s *partsSource) info(name string) (safetensors.Info, bool) {
	i, ok := s.index[name]
	if !ok {
		return safetensors.Info{}, false
	}
	return s.all[i], true
}

func (s *partsSource) read(done *meter.Meter, all []share) error {
	for rank := range s.begins {
		if err := s.readPart(done, rank, all); err != nil {
			return fmt.Errorf("%s: %w", partName(Partition{rank, len(s.begins)}), err)
		}
	}
	return nil
}

// readPart fills what shares have of the part of a rank.
func (s *partsSource) readPart(done *meter.Meter, rank int, all []share) error {
	var wanted []share
	for _, x := range all {
		begin, end := s.piece(rank, x.Name)
		if n := x.Count(); n > 0 && x.lo < end && begin < x.lo+n {
			wanted = append(wanted, x)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	f, err := safetensors.Open(filepath.Join(s.dir, partName(Partition{rank, len(s.begins)})))
	if err != nil {
		return err
	}
	defer f.Close()
	for _, x := range wanted {
		begin, _ := s.piece(rank, x.Name)
		if err := x.readFrom(done, f, begin, s.sums[rank][x.Name]); err != nil {
			return err
		}
	}
	return nil
}

// piece returns where in a tensor the part of a rank begins and ends.
func (s *partsSource) piece(rank int, name string) (begin, end int) {
	i := s.index[name]
	if rank+1 < len(s.begins) {
		return s.begins[rank][i], s.begins[rank+1][i]
	}
	return s.begins[rank][i], int(s.all[i].Len())
}
