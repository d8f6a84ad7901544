package explore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/internal/npy"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/safetensors"
)

// most is how many values the page looks at: it answers within a fraction of a second then.
const most = 1 << 12

// matrix is what is looked at.
type matrix struct {
	values     []float32
	rows, cols int
	about      string   // where it is from, and how much of it was read
	tensor     string   // of a file: its name
	tensors    []string // of a file, those that can be looked at
}

// parse reads typed numbers. Lines of as many numbers each are rows, of which whole ones are looked
// at, or a part of the first.
func parse(text string) (*matrix, error) {
	m := &matrix{rows: 1}
	even, left := true, false
	for i, line := range strings.Split(text, "\n") {
		fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r,;[]", r) })
		if len(fields) == 0 {
			continue
		}
		if len(m.values) == most {
			left = true
			break
		}
		for j, field := range fields {
			x, err := strconv.ParseFloat(field, 32)
			if err != nil && !errors.Is(err, strconv.ErrRange) { // which is infinite
				return nil, fmt.Errorf("number %d of line %d, %s, is not a number: write such as 0.1, -3e-4, 0x1p-6, inf or nan", j+1, i+1, textout.Quoted(field))
			}
			if len(m.values) < most {
				m.values = append(m.values, float32(x))
			} else {
				left = true
			}
		}
		if m.cols == 0 {
			m.cols = len(fields)
		}
		even = even && len(fields) == m.cols
	}
	if len(m.values) == 0 {
		return nil, errors.New("there is no number yet: type some")
	}
	if !even || m.cols > most {
		m.cols = len(m.values)
	}
	m.rows = len(m.values) / m.cols
	m.values = m.values[:m.rows*m.cols]
	m.about = m.size() + ", typed"
	if left {
		m.about += fmt.Sprintf("; only the first %d are looked at", len(m.values))
	}
	return m, nil
}

func (m *matrix) size() string {
	return fmt.Sprintf("%s, %s of %d", textout.Count(len(m.values), "value"), textout.Count(m.rows, "row"), m.cols)
}

// read reads the first rows of a tensor of a safetensors file, the first that there is if
// name is that of none, or those of an array that NumPy saved.
func read(file *io.SectionReader, name string) (*matrix, error) {
	magic := make([]byte, 6)
	if n, err := file.ReadAt(magic, 0); err != nil && n < len(magic) {
		return nil, fmt.Errorf("the file has %d bytes: want a safetensors file or a .npy", file.Size())
	}
	if string(magic) == "\x93NUMPY" {
		return readNPY(file)
	}
	f, err := safetensors.NewReader(file, file.Size())
	if err != nil {
		return nil, fmt.Errorf("no safetensors file: %w", err)
	}
	m := &matrix{}
	for _, info := range f.Tensors() {
		if tensorfile.NewBuffer(tensorfile.TypeIn(f, info)) != nil && !slices.Contains(info.Shape, 0) {
			m.tensors = append(m.tensors, info.Name)
		}
	}
	if len(m.tensors) == 0 {
		return nil, fmt.Errorf("none of the file's tensors, of which there are %d, holds numbers of floating point", len(f.Tensors()))
	}
	m.tensor = name
	if !slices.Contains(m.tensors, name) {
		m.tensor = m.tensors[0]
	}
	info, _ := f.Info(m.tensor)
	of := tensorfile.TypeIn(f, info)
	n := m.cut(info.Shape)
	array, err := tensorfile.NewBuffer(of).Read(f, m.tensor, 0, n)
	if err != nil {
		return nil, err
	}
	var buffer []float32
	switch values := array.Widen(&buffer).(type) {
	case tensorfile.Values[float32]:
		m.values = values
	case tensorfile.Values[float64]:
		for _, x := range values {
			m.values = append(m.values, float32(x))
		}
		m.about = ", rounded to float32"
	}
	if of.Codes {
		m.about = ", codes without their scales"
	}
	m.say(textout.Name(m.tensor)+", "+string(info.DType), info.Shape)
	return m, nil
}

// cut takes whole rows of a shape, as many as are looked at, or a part of the first, and
// returns how many values that is.
func (m *matrix) cut(shape []int) int {
	m.rows, m.cols = 1, 1
	for i, n := range shape {
		if i < len(shape)-1 {
			m.rows = min(m.rows, most) * min(n, most)
		} else {
			m.cols = min(n, most)
		}
	}
	m.rows = min(m.rows, most/m.cols)
	return m.rows * m.cols
}

// say says what of a shape was read.
func (m *matrix) say(what string, shape []int) {
	n := 1
	for _, k := range shape {
		n = min(n*min(k, most+1), most+1) // of more it matters only that they are
	}
	part := "the first "
	if n == len(m.values) {
		part = ""
	}
	m.about = fmt.Sprintf("%s %v%s: %s%s", what, shape, m.about, part, m.size())
}

// readNPY reads an array of float32 or float16 whole.
func readNPY(file *io.SectionReader) (*matrix, error) {
	const largest = 64 << 20
	if file.Size() > largest {
		return nil, fmt.Errorf("the .npy file has %d MB: want at most %d, or a safetensors file, which is read in parts", file.Size()>>20, largest>>20)
	}
	a, err := npy.Read(file, file.Size())
	if err != nil {
		return nil, err
	}
	m := &matrix{}
	if slices.Contains(a.Shape, 0) {
		return nil, fmt.Errorf("the array has the shape %v: there is no value", a.Shape)
	}
	n := m.cut(a.Shape)
	m.values = make([]float32, n)
	for i := range m.values {
		switch a.Type {
		case npy.Float32:
			m.values[i] = math.Float32frombits(binary.LittleEndian.Uint32(a.Data[4*i:]))
		case npy.Float16:
			m.values[i] = float16.Frombits(binary.LittleEndian.Uint16(a.Data[2*i:])).Float32()
		default:
			return nil, fmt.Errorf("the array is of type %s: want %s or %s", a.Type, npy.Float32, npy.Float16)
		}
	}
	m.say("array of "+string(a.Type), a.Shape)
	return m, nil
}

// Example returns numbers to begin with, which are made up: activations as of a language model,
// one channel of which is far larger than all others.
func Example() string {
	return made(4, 256, func(random *rand.Rand, channel int) float64 {
		if channel == 77 {
			return 1500 * (1 + random.Float64()/4)
		}
		return 0.02 * random.NormFloat64()
	})
}

// gradients are made up, too: of magnitudes from 1e-9 to 1e-3.
func gradients() string {
	return made(2, 64, func(random *rand.Rand, _ int) float64 {
		return random.NormFloat64() * math.Pow(10, -3-6*random.Float64())
	})
}

func made(rows, cols int, value func(random *rand.Rand, channel int) float64) string {
	random := rand.New(rand.NewPCG(8, 3))
	var text bytes.Buffer
	for range rows {
		for col := range cols {
			if col > 0 {
				text.WriteByte(' ')
			}
			text.WriteString(strconv.FormatFloat(value(random, col), 'g', 3, 64))
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// amax returns the largest magnitude of each channel; a NaN is left out.
func (m *matrix) amax() []float32 {
	all := make([]float32, m.cols)
	for i, x := range m.values {
		if a := float32(math.Abs(float64(x))); a > all[i%m.cols] {
			all[i%m.cols] = a
		}
	}
	return all
}
