// Package tokens reads the tokens that commands run through a model: --text or --calibrate
// by its tokenizer.json, or IDs from --tokens.
package tokens

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn/tokenizer"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Tokens are those of a text, and what comes before every window of it.
type Tokens struct {
	IDs    []int32
	Prefix []int32
	From   string // where they come from, for people
}

// mostText is the most bytes of a text or of a list of tokens.
const mostText = 1 << 30

// FromText reads a text and makes tokens of it with the tokenizer.json in the directory of a
// model.
func FromText(dir, path string) (t Tokens, err error) {
	file := filepath.Join(dir, "tokenizer.json")
	if _, err := os.Stat(file); err != nil {
		return t, fmt.Errorf("%w: without a tokenizer.json give the tokens as IDs with --tokens", err)
	}
	text, err := ReadFile(path, "a text")
	if err != nil {
		return t, err
	}
	by, err := tokenizer.Read(file)
	if err != nil {
		return t, orAsIDs(err)
	}
	if t.IDs, err = by.Encode(string(text)); err != nil {
		return t, orAsIDs(fmt.Errorf("%s: %w", textout.Name(path), err))
	}
	t.Prefix, t.From = by.Prefix(), textout.Name(filepath.Base(path))
	return t, nil
}

// orAsIDs adds to an error what to do without a tokenizer.
func orAsIDs(err error) error {
	if errors.Is(err, tokenizer.ErrUnsupported) {
		return fmt.Errorf("%w: give the tokens as IDs with --tokens", err)
	}
	return err
}

// FromIDs reads tokens: whole numbers in a text, apart by spaces, commas, brackets or line
// ends, or a tensor of I32 or I64 in a safetensors file: the one called tokens or input_ids,
// or the only one.
func FromIDs(path string) (t Tokens, err error) {
	t.From = textout.Name(filepath.Base(path))
	if strings.HasSuffix(path, ".safetensors") {
		t.IDs, err = readTensor(path)
	} else {
		t.IDs, err = readNumbers(path)
	}
	return t, err
}

func readNumbers(path string) (ids []int32, err error) {
	text, err := ReadFile(path, "a file of token IDs, as --tokens has it")
	if err != nil {
		return nil, err
	}
	if ids, err = Numbers(string(text)); err != nil {
		return nil, fmt.Errorf("%s: %w, or a file whose name ends in .safetensors", textout.Name(path), err)
	}
	return ids, nil
}

// ReadFile reads a file of at most 1 GiB that is to be something.
func ReadFile(path, what string) ([]byte, error) {
	data, err := inputfile.ReadAll(path, mostText)
	if err != nil {
		return nil, fmt.Errorf("%w: want %s", err, what)
	}
	return data, nil
}

// Numbers reads whole numbers apart by spaces, commas, brackets or line ends.
func Numbers(text string) (ids []int32, err error) {
	apart := func(r rune) bool { return strings.ContainsRune(" \t\r\n,[]", r) }
	for word := range strings.FieldsFuncSeq(text, apart) {
		id, err := strconv.ParseInt(word, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("token %d is %.40q: want whole numbers", len(ids), word)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}

func readTensor(path string) (ids []int32, err error) {
	file, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := findTensor(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", textout.Name(path), err)
	}
	data, err := file.Bytes(info.Name)
	if err != nil {
		return nil, err
	}
	size := 4
	if info.DType == safetensors.I64 {
		size = 8
	}
	ids = make([]int32, len(data)/size)
	for i := range ids {
		id := int64(int32(binary.LittleEndian.Uint32(data[i*size:])))
		if size == 8 {
			id = int64(binary.LittleEndian.Uint64(data[i*size:]))
		}
		if id < 0 || id > math.MaxInt32 {
			return nil, fmt.Errorf("%s: tensor %q: token %d is %d: want IDs of tokens",
				textout.Name(path), info.Name, i, id)
		}
		ids[i] = int32(id)
	}
	return ids, nil
}

// findTensor returns the tensor that holds tokens.
func findTensor(file *safetensors.File) (info safetensors.Info, err error) {
	var found []safetensors.Info
	for _, t := range file.Tensors() {
		if t.DType == safetensors.I32 || t.DType == safetensors.I64 {
			found = append(found, t)
		}
	}
	for _, name := range []string{"tokens", "input_ids"} {
		if i := slices.IndexFunc(found, func(t safetensors.Info) bool { return t.Name == name }); i >= 0 {
			return found[i], nil
		}
	}
	if len(found) != 1 {
		return info, fmt.Errorf("%d tensors are I32 or I64 and none is called tokens or input_ids: "+
			"name one so", len(found))
	}
	return found[0], nil
}

// Windows cuts the tokens into sequences of at most so many, the prefix at the start of each.
func (t *Tokens) Windows(size int) (sequences [][]int32) {
	step := max(size-len(t.Prefix), 1)
	for lo := 0; lo < len(t.IDs); lo += step {
		s := slices.Clone(t.Prefix)
		sequences = append(sequences, append(s, t.IDs[lo:min(lo+step, len(t.IDs))]...))
	}
	return sequences
}

// Cut leaves the first tokens, at most n; 0 is all. It returns how many there were.
func (t *Tokens) Cut(n int) (had int) {
	had = len(t.IDs)
	if n > 0 && n < had {
		t.IDs = t.IDs[:n]
	}
	return had
}
