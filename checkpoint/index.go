package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// IndexName is the name of the index of a model of several files.
const IndexName = "model.safetensors.index.json"

// mostJSON bounds what is read of an index or a configuration: as much as the header of a
// safetensors file may have.
const mostJSON = 100 << 20

// Index says which file each tensor of a model is in. Its JSON is that of
// model.safetensors.index.json.
type Index struct {
	// TotalSize is the number of bytes of all tensors' data; -1 where the index does not
	// say.
	TotalSize int64

	// Files has the name of the file of each tensor, relative to the index.
	Files map[string]string
}

// readIndex reads the index at path. An error is ErrIndex where the content is wrong.
func readIndex(path string) (*Index, error) {
	data, err := inputfile.ReadAll(path, mostJSON)
	if err != nil {
		return nil, err
	}
	index := new(Index)
	if err := index.UnmarshalJSON(data); err != nil {
		return nil, sentinel.Errorf(ErrIndex, "%s: %w", path, err)
	}
	return index, nil
}

// MarshalJSON implements [json.Marshaler]. Tensors are in the order of their names.
func (x *Index) MarshalJSON() ([]byte, error) {
	metadata := map[string]int64{}
	if x.TotalSize >= 0 {
		metadata["total_size"] = x.TotalSize
	}
	files := x.Files
	if files == nil {
		files = map[string]string{}
	}
	var buffer bytes.Buffer
	e := json.NewEncoder(&buffer)
	e.SetEscapeHTML(false)
	err := e.Encode(map[string]any{"metadata": metadata, "weight_map": files})
	return buffer.Bytes(), err
}

// UnmarshalJSON implements [json.Unmarshaler]. A tensor that is named twice, and a file
// outside the directory of the index, are errors.
func (x *Index) UnmarshalJSON(data []byte) error {
	var raw struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
		Map      json.RawMessage            `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if raw.Map == nil {
		return errors.New("it has no weight_map")
	}
	files, err := parseWeightMap(raw.Map)
	if err != nil {
		return fmt.Errorf("weight_map: %w", err)
	}
	*x = Index{TotalSize: -1, Files: files}
	if size, ok := raw.Metadata["total_size"]; ok {
		var n float64 // some writers have a float here
		if err := json.Unmarshal(size, &n); err != nil || n < 0 || n >= 1<<62 || n != float64(int64(n)) {
			return fmt.Errorf("metadata: total_size is %s: want a number of bytes", size)
		}
		if json.Unmarshal(size, &x.TotalSize) != nil {
			x.TotalSize = int64(n)
		}
	}
	return nil
}

// parseWeightMap reads an object of strings without repeated keys, which [json.Unmarshal]
// would let the last one win.
func parseWeightMap(data []byte) (map[string]string, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	open, err := d.Token()
	if err != nil {
		return nil, err
	}
	if open != json.Delim('{') {
		return nil, fmt.Errorf("it is %v: want an object", open)
	}
	files := map[string]string{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		name := key.(string) // a decoder gives no other key
		value, err := d.Token()
		if err != nil {
			return nil, err
		}
		file, ok := value.(string)
		switch {
		case !ok:
			return nil, fmt.Errorf("tensor %q: its file is %v: want a name", name, value)
		case !isFileName(file):
			return nil, fmt.Errorf("tensor %q: file %q does not lie in the checkpoint's directory", name, file)
		}
		if before, twice := files[name]; twice {
			return nil, fmt.Errorf("tensor %q is named twice, in %q and %q", name, before, file)
		}
		files[name] = file
	}
	if _, err := d.Token(); err != nil && err != io.EOF {
		return nil, err
	}
	return files, nil
}

// isFileName reports whether a name from an index is one of a file in its directory or
// below.
func isFileName(name string) bool {
	return name != "." && !strings.ContainsAny(name, "\\\x00") && path.Clean(name) == name &&
		filepath.IsLocal(filepath.FromSlash(name))
}
