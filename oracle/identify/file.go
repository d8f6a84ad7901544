package identify

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// metadataKey is that of the setup, as JSON, in a file of probes.
const metadataKey = "octavo.identify"

// WriteFile writes the probes as a safetensors file: of each product, such as order,
// order.a and order.b are codes of shape [M, K] and [N, K], and order.a_scale_inv and
// order.b_scale_inv grids of scales, F32 or F8_E8M0. value = decode(code)·scale. The
// answer that belongs there is order.c of shape [M, N]. Codes of NVFP4, and of formats of
// eight bits that safetensors has no type for, are U8, one to a byte; scales of NVFP4 are
// F8_E4M3. Numbers are BF16, F16 or, of TF32, F32, and have no
// scales. The C that a product is added to is old.old, F32, if the setup has one.
func (p *Probes) WriteFile(path string) error {
	setup, err := json.Marshal(p.Setup)
	if err != nil {
		return fmt.Errorf("identify: %w", err)
	}
	metadata := map[string]string{metadataKey: string(setup)}
	for _, product := range p.Products {
		metadata[product.Name] = product.Purpose
	}
	if err := safetensors.WriteFile(path, p.tensors(), metadata); err != nil {
		return fmt.Errorf("identify: %w", err)
	}
	return nil
}

// tensors are what a file of the probes holds.
func (p *Probes) tensors() (tensors []safetensors.Tensor) {
	for _, product := range p.Products {
		for _, m := range []*oracle.Floats{product.AFloats, product.BFloats} {
			if m == nil {
				continue
			}
			tensors = append(tensors, safetensors.Tensor{Info: safetensors.Info{Name: product.Name + "." + m.Name,
				DType: floatTypes[m.Format], Shape: []int{m.Rows, m.K}}, Data: floatBytes(m.Format, m.Values)})
		}
		if product.Old != nil {
			m, n, _ := product.Size()
			tensors = append(tensors, safetensors.Tensor{Info: safetensors.Info{Name: product.Name + ".old",
				DType: safetensors.F32, Shape: []int{m, n}}, Data: bytesOf(safetensors.F32, product.Old)})
		}
		for _, t := range []*tensor.Tensor{product.A, product.B} {
			if t == nil {
				continue
			}
			name := product.Name + "." + t.Name
			tensors = append(tensors,
				safetensors.Tensor{Info: safetensors.Info{Name: name, DType: codeType(t.Format), Shape: t.Shape}, Data: t.Codes},
				p.Setup.scaleTensor(name+"_scale_inv", t))
		}
	}
	return tensors
}

// codeType is the type of codes, one to a byte: U8 of formats that have none of their own.
func codeType(f fp8.Format) safetensors.DType {
	if d := operands.DTypeOf(f); d != "" && f.Bits() == 8 {
		return d
	}
	return safetensors.U8
}

func (s Setup) scaleTensor(name string, t *tensor.Tensor) safetensors.Tensor {
	rows, cols := t.Grid()
	info := safetensors.Info{Name: name, DType: safetensors.F32, Shape: []int{rows, cols}}
	var data []byte
	if t.ScaleFormat == tensor.UE4M3Scales {
		info.DType = safetensors.F8E4M3
		data = make([]byte, len(t.Scales))
		fp8.Encode(data, t.Scales, fp8.E4M3, fp8.Policy{}, nil)
		return safetensors.Tensor{Info: info, Data: data}
	}
	if s.E8M0 {
		info.DType = safetensors.F8E8M0
		for _, x := range t.Scales {
			e, _ := fp8.E8M0FromFloat32(x)
			data = append(data, byte(e))
		}
		return safetensors.Tensor{Info: info, Data: data}
	}
	data, _ = binary.Append(nil, binary.LittleEndian, t.Scales) // of a slice of float32: no error
	return safetensors.Tensor{Info: info, Data: data}
}

// ReadFile reads which probes a file that [Probes.WriteFile] wrote holds, and makes them
// anew. Another file is an [ErrFile].
func ReadFile(path string) (*Probes, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, fmt.Errorf("identify: %w", err)
	}
	defer f.Close()
	text, there := f.Metadata()[metadataKey]
	if !there {
		return nil, sentinel.Errorf(ErrFile, "identify: %s holds no probes", path)
	}
	var s Setup
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, sentinel.Errorf(ErrFile, "identify: %s: the setup of its probes: %w", path, err)
	}
	p, err := New(s)
	if err != nil {
		return nil, err
	}
	for _, want := range p.tensors() {
		info, there := f.Info(want.Name)
		data, err := f.Bytes(want.Name)
		if !there || err != nil || info.DType != want.DType || !slices.Equal(info.Shape, want.Shape) || !bytes.Equal(data, want.Data) {
			return nil, sentinel.Errorf(ErrFile, "identify: %s: tensor %q is not what this version asks: write the probes again", path, want.Name)
		}
	}
	return p, nil
}

// ReadAnswers reads C of all products from a safetensors file, in which that of order is
// the tensor order.c, or from a directory of arrays such as order.npy. They are F32,
// BF16 or F16, all of one type.
func (p *Probes) ReadAnswers(path string) (*Answers, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("identify: %w", err)
	}
	source := operands.Source{BFloat16: true}
	name := func(product string) string { return filepath.Join(path, product+".npy") }
	if !info.IsDir() {
		if source.File, err = safetensors.Open(path); err != nil {
			return nil, fmt.Errorf("identify: %w", err)
		}
		defer source.File.Close()
		source.Path = path
		name = func(product string) string { return product + ".c" }
	}
	a := &Answers{C: map[string][]float32{}}
	for i := range p.Products {
		product := &p.Products[i]
		t, err := source.Find(name(product.Name))
		if err != nil {
			return nil, sentinel.Errorf(ErrFile, "identify: %w", err)
		}
		typ := safetensors.DType(t.DType)
		if _, ok := formats[typ]; !ok {
			return nil, sentinel.Errorf(ErrFile, "identify: tensor %q is %s: want F32, BF16 or F16", t.Name, t.DType)
		}
		if i > 0 && typ != a.Type {
			return nil, sentinel.Errorf(ErrFile, "identify: tensor %q is %s and others are %v: want one type", t.Name, t.DType, a.Type)
		}
		m, n, _ := product.Size()
		if len(t.Shape) != 2 || t.Shape[0] != m || t.Shape[1] != n {
			return nil, sentinel.Errorf(ErrFile, "identify: tensor %q is of shape %v: want [%d, %d]", t.Name, t.Shape, m, n)
		}
		a.Type = typ
		if a.C[product.Name], err = readValues(t, typ); err != nil {
			return nil, fmt.Errorf("identify: %w", err)
		}
	}
	return a, a.check(p)
}

func readValues(t operands.Tensor, typ safetensors.DType) ([]float32, error) {
	switch typ {
	case safetensors.BF16:
		return widened(safetensors.Elements[fp8.BFloat16](t.File, t.Name))
	case safetensors.F16:
		return widened(safetensors.Elements[float16.Float16](t.File, t.Name))
	}
	return t.File.Float32s(t.Name)
}

// WriteFile writes the answers as [Probes.ReadAnswers] reads them.
func (a *Answers) WriteFile(path string, p *Probes) error {
	if err := a.check(p); err != nil {
		return err
	}
	var tensors []safetensors.Tensor
	for i := range p.Products {
		product := &p.Products[i]
		m, n, _ := product.Size()
		info := safetensors.Info{Name: product.Name + ".c", DType: a.Type, Shape: []int{m, n}}
		tensors = append(tensors, safetensors.Tensor{Info: info, Data: bytesOf(a.Type, a.C[product.Name])})
	}
	if err := safetensors.WriteFile(path, tensors, nil); err != nil {
		return fmt.Errorf("identify: %w", err)
	}
	return nil
}

// bytesOf are values as they are in a file.
func bytesOf(t safetensors.DType, values []float32) (data []byte) {
	for _, x := range values {
		switch t {
		case safetensors.BF16:
			data = binary.LittleEndian.AppendUint16(data, uint16(fp8.BFloat16FromFloat32(x)))
		case safetensors.F16:
			data = binary.LittleEndian.AppendUint16(data, float16.Fromfloat32(x).Bits())
		default:
			data, _ = binary.Append(data, binary.LittleEndian, x)
		}
	}
	return data
}
