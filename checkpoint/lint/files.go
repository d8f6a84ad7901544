package lint

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/safetensors"
)

// checkReadable has the files that are no safetensors files. Those whose metadata alone are
// wrong have a rule of their own.
func checkReadable(m *model, found func(Finding)) {
	for _, err := range m.problems {
		if errors.Is(err, safetensors.ErrFile) && !strings.Contains(err.Error(), "__metadata__") {
			found(m.problem(err))
		}
	}
	if m.c == nil || m.c.Index == nil {
		return
	}
	for _, name := range slices.Compact(slices.Sorted(maps.Values(m.c.Index.Files))) {
		path := filepath.Join(m.c.Dir(), filepath.FromSlash(name))
		if m.c.File(name) != nil {
			continue
		}
		if stat, err := os.Stat(path); err == nil && !m.blamed(path) {
			found(Finding{File: name, What: fmt.Sprintf("it cannot be opened (%v)", stat.Mode())})
		}
	}
}

// problem is a finding of an error of opening, whose text begins with the path of a file.
func (m *model) problem(err error) Finding {
	text := strings.TrimPrefix(err.Error(), "safetensors: ")
	for _, suffix := range []string{".safetensors", ".json"} {
		if path, what, ok := strings.Cut(text, suffix+": "); ok {
			return Finding{File: filepath.Base(path) + suffix, What: what}
		}
	}
	return Finding{What: text}
}

// blamed reports whether opening has said what is wrong with a file.
func (m *model) blamed(path string) bool {
	return slices.ContainsFunc(m.problems, func(err error) bool {
		return errors.Is(err, safetensors.ErrFile) && strings.Contains(err.Error(), path)
	})
}

func checkMetadataValues(m *model, found func(Finding)) {
	for _, err := range m.problems {
		if errors.Is(err, safetensors.ErrFile) && strings.Contains(err.Error(), "__metadata__") {
			found(m.problem(err))
		}
	}
	if m.c == nil {
		return
	}
	for _, name := range m.c.Files() {
		if hasNullMetadata(filepath.Join(m.c.Dir(), filepath.FromSlash(name))) {
			found(Finding{File: name, What: "__metadata__ is null"})
		}
	}
}

// hasNullMetadata reads the header of a file that has been read once.
func hasNullMetadata(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	var n [8]byte
	if _, err := io.ReadFull(file, n[:]); err != nil {
		return false
	}
	length := int64(min(binary.LittleEndian.Uint64(n[:]), 100_000_000))
	var header struct {
		Metadata json.RawMessage `json:"__metadata__"`
	}
	err = json.NewDecoder(io.LimitReader(file, length)).Decode(&header)
	return err == nil && string(header.Metadata) == "null"
}

// metadataFormats are the libraries that formats name.
var metadataFormats = []string{"pt", "tf", "flax", "mlx"}

func checkMetadataFormat(m *model, found func(Finding)) {
	for _, name := range m.c.Files() {
		metadata := m.c.File(name).Metadata()
		format, ok := metadata["format"]
		switch {
		case !ok:
			found(Finding{File: name, What: "__metadata__ has no format"})
		case !slices.Contains(metadataFormats, format):
			found(Finding{File: name, What: fmt.Sprintf("format is %q: want \"pt\"", format)})
		}
	}
}

// indexed returns the tensors that the index names, in order.
func (m *model) indexed() []string {
	if m.c.Index == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(m.c.Index.Files))
}

func checkIndexFiles(m *model, found func(Finding)) {
	absent := map[string][]string{}
	for _, tensor := range m.indexed() {
		name := m.c.Index.Files[tensor]
		if _, err := os.Stat(filepath.Join(m.c.Dir(), filepath.FromSlash(name))); errors.Is(err, os.ErrNotExist) {
			absent[name] = append(absent[name], tensor)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(absent)) {
		found(Finding{File: name, Tensors: absent[name], What: "it is absent; the index has " + counted(len(absent[name]), "1 tensor", "%d tensors") + " in it"})
	}
}

// holders returns the files that have a tensor, by its name.
func (m *model) holders() map[string][]string {
	in := map[string][]string{}
	for _, name := range m.c.Files() {
		for _, info := range m.c.File(name).Tensors() {
			in[info.Name] = append(in[info.Name], name)
		}
	}
	return in
}

func checkIndexTensors(m *model, found func(Finding)) {
	in := m.holders()
	for _, tensor := range m.indexed() {
		name := m.c.Index.Files[tensor]
		if m.c.File(name) != nil && len(in[tensor]) == 0 {
			found(Finding{File: name, Tensors: []string{tensor}, What: "the index has it in this file, which lacks it"})
		}
	}
}

func checkIndexPlaces(m *model, found func(Finding)) {
	in := m.holders()
	for _, tensor := range m.indexed() {
		name := m.c.Index.Files[tensor]
		if len(in[tensor]) > 0 && !slices.Contains(in[tensor], name) {
			found(Finding{File: in[tensor][0], Tensors: []string{tensor}, What: "it is in this file, and the index has it in " + name})
		}
	}
}

func checkIndexLacks(m *model, found func(Finding)) {
	if m.c.Index == nil {
		return
	}
	for _, name := range m.c.Files() {
		for _, info := range m.c.File(name).Tensors() {
			if _, ok := m.c.Index.Files[info.Name]; !ok {
				found(Finding{File: name, Tensors: []string{info.Name}, What: "it is in this file and not in the index"})
			}
		}
	}
}

func checkDuplicates(m *model, found func(Finding)) {
	in := m.holders()
	for _, tensor := range slices.Sorted(maps.Keys(in)) {
		if len(in[tensor]) > 1 {
			found(Finding{File: in[tensor][0], Tensors: []string{tensor}, What: "it is in " + strings.Join(in[tensor], " and ")})
		}
	}
}

// ofN matches the name of a shard of several.
var ofN = regexp.MustCompile(`^(.*)-(\d+)-of-(\d+)\.safetensors$`)

// checkShardCount looks at sets of shards by what their names begin with.
func checkShardCount(m *model, found func(Finding)) {
	type set struct {
		stem string
		n    string
	}
	sets := map[set][]string{}
	for _, name := range m.shardNames() {
		if parts := ofN.FindStringSubmatch(name); parts != nil {
			s := set{parts[1], parts[3]}
			sets[s] = append(sets[s], name)
		}
	}
	var all []set
	for s := range maps.Keys(sets) {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b set) int { return strings.Compare(a.stem+"\x00"+a.n, b.stem+"\x00"+b.n) })
	for i, s := range all {
		n, err := strconv.Atoi(s.n)
		if err != nil || n != len(sets[s]) {
			found(Finding{File: sets[s][0], What: fmt.Sprintf("names say %s-of-%s, and there are %d such files", s.stem, s.n, len(sets[s]))})
		}
		if i > 0 && all[i-1].stem == s.stem {
			found(Finding{File: sets[s][0], What: fmt.Sprintf("there are files of %s and of %s", all[i-1].n, s.n)})
		}
	}
}

// shardNames returns the safetensors files: those of the index and those beside them.
func (m *model) shardNames() []string {
	names := m.c.Files()
	if m.c.Index != nil {
		names = append(names, slices.Collect(maps.Values(m.c.Index.Files))...)
		names = append(names, m.unlisted()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unlisted returns the safetensors files that the index does not name.
func (m *model) unlisted() (names []string) {
	if m.c.Index == nil {
		return nil
	}
	listed := map[string]bool{}
	for _, name := range m.c.Index.Files {
		listed[name] = true
	}
	for _, name := range m.c.Others() {
		if strings.HasSuffix(name, ".safetensors") && !listed[name] {
			names = append(names, name)
		}
	}
	return names
}

// checkUnlisted only notes files that no loader takes for shards and that have no tensor of
// theirs: an adapter, or the same weights under the names of another program.
func checkUnlisted(m *model, found func(Finding)) {
	for _, name := range m.unlisted() {
		f := Finding{File: name, What: "the index does not name it"}
		file, err := safetensors.Open(filepath.Join(m.c.Dir(), name))
		if err != nil {
			f.What += ", and it cannot be read"
			found(f)
			continue
		}
		for _, info := range file.Tensors() {
			if _, ok := m.c.Index.Files[info.Name]; ok {
				f.Tensors = append(f.Tensors, info.Name)
			}
		}
		file.Close()
		if n := len(f.Tensors); n > 0 {
			f.What += ", and " + counted(n, "1 of its tensors is", "%d of its tensors are") + " in the shards, too"
		} else {
			f.What += ", and none of its tensors is in the shards"
		}
		if len(f.Tensors) == 0 && !strings.HasPrefix(name, "model") {
			f.Severity = Info
			f.Consequence = "tools that read every safetensors file take its tensors for the model's"
		}
		found(f)
	}
}

// checkTwins has weights that are there under their own name beside codes of another.
func checkTwins(m *model, found func(Finding)) {
	for _, e := range m.entries {
		for _, s := range codeSuffixes {
			module, ok := strings.CutSuffix(e.Name, s)
			if !ok || !m.isCodes(e) {
				continue
			}
			for _, name := range []string{module + ".weight", module} {
				if twin, ok := m.c.Entry(name); ok {
					found(Finding{File: twin.File, Tensors: []string{name, e.Name}, What: fmt.Sprintf("%s as %s and as %s in %s", module, twin.DType, e.DType, s)})
				}
			}
		}
	}
}

func checkTotalSize(m *model, found func(Finding)) {
	if m.c.Index == nil || m.c.Index.TotalSize < 0 || m.incomplete() {
		return
	}
	size := int64(0)
	for _, name := range m.c.Files() {
		for _, info := range m.c.File(name).Tensors() {
			size += info.Bytes()
		}
	}
	if size != m.c.Index.TotalSize {
		found(Finding{File: checkpoint.IndexName, What: fmt.Sprintf("total_size is %d, and tensors have %d bytes", m.c.Index.TotalSize, size)})
	}
}

// incomplete reports whether a file of the index could not be opened: its size is unknown.
func (m *model) incomplete() bool {
	for _, name := range m.c.Index.Files {
		if m.c.File(name) == nil {
			return true
		}
	}
	return false
}

func checkTotalSizeAbsent(m *model, found func(Finding)) {
	if m.c.Index != nil && m.c.Index.TotalSize < 0 {
		found(Finding{File: checkpoint.IndexName, What: "metadata has no total_size"})
	}
}
