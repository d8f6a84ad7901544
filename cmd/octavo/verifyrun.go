package main

import (
	"fmt"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/cmd/internal/verify"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// verifyInputs are the files that verify reads.
type verifyInputs struct{ in, got source }

func (i *verifyInputs) close() {
	for _, s := range []*source{&i.in, &i.got} {
		if s.file != nil {
			s.file.Close()
		}
	}
}

// open opens the files that the flags and arguments name.
func (v *verifyFlags) open(args []string) (*verifyInputs, error) {
	i := &verifyInputs{source{npy: true, bfloat16: v.npyBF16}, source{npy: true, bfloat16: v.npyBF16}}
	if isNPY(v.got) && v.c != "" {
		return nil, usagef("--c %s: a .npy file has but one array", v.c)
	}
	var err error
	if len(args) > 0 {
		if i.in.file, err = open(args[0]); err != nil {
			return nil, err
		}
	}
	if !isNPY(v.got) {
		if i.got.file, err = open(v.got); err != nil {
			i.close()
			return nil, err
		}
	}
	return i, nil
}

// run reads everything and compares.
func (v *verifyFlags) run(files *verifyInputs, d verify.Demand) (*verify.Result, error) {
	a, b, err := readPair(&files.in, v.a, v.b)
	if err != nil {
		return nil, err
	}
	got, err := v.findC(&files.got)
	if err != nil {
		return nil, err
	}
	m, _ := a.Dims()
	n, _ := b.Dims()
	if err := checkShape(got.Info, m, n); err != nil {
		return nil, fmt.Errorf("%w, the product of tensors %q and %q", err, a.Name, b.Name)
	}
	job := verify.Job{A: a, B: b, Demand: d, Options: oracle.Options{Workers: int(min(v.workers, 1<<16)), Accumulate: v.accumulate != ""}}
	if v.bias != "" {
		if job.Options.Bias, err = readBias(&files.in, v.bias, n); err != nil {
			return nil, err
		}
	}
	switch got.DType {
	case safetensors.BF16:
		return runVerify[fp8.BFloat16](v, job, files, got)
	case safetensors.F16:
		return runVerify[float16.Float16](v, job, files, got)
	}
	return runVerify[float32](v, job, files, got)
}

// runVerify reads C, and the old C if there is one, as the type that it has.
func runVerify[T gemm.Output](v *verifyFlags, job verify.Job, files *verifyInputs, got located) (*verify.Result, error) {
	c, err := safetensors.Elements[T](got.file, got.Name)
	if err != nil {
		return nil, err
	}
	var old []T
	if job.Options.Accumulate {
		info, err := files.in.find(v.accumulate)
		if err != nil {
			return nil, err
		}
		if info.DType != got.DType {
			return nil, fmt.Errorf("tensor %q, the old C, is %s and tensor %q is %s: want the same type", info.Name, info.DType, got.Name, got.DType)
		}
		m, _ := job.A.Dims()
		n, _ := job.B.Dims()
		if err := checkShape(info.Info, m, n); err != nil {
			return nil, err
		}
		if old, err = safetensors.Elements[T](info.file, info.Name); err != nil {
			return nil, err
		}
	}
	r, err := verify.Run(job, c, old)
	if err == nil {
		r.Type = string(got.DType)
	}
	return r, err
}

// findC returns the description of C: the array of a .npy file, the tensor of the
// given name, c, or the only one.
func (v *verifyFlags) findC(s *source) (c located, err error) {
	name := v.c
	switch {
	case s.file == nil:
		name = v.got
	case name == "" && len(s.file.Tensors()) == 1:
		name = s.file.Tensors()[0].Name
	case name == "" && !has(s.file, "c"):
		return c, fmt.Errorf("%s has %d tensors and none is called c: name one with --c", v.got, len(s.file.Tensors()))
	case name == "":
		name = "c"
	}
	if c, err = s.find(name); err != nil {
		return c, err
	}
	switch c.DType {
	case safetensors.F32, safetensors.BF16, safetensors.F16:
		return c, nil
	case safetensors.U16:
		return c, fmt.Errorf("tensor %q is U16: C is F32, BF16 or F16; --npy-bf16 says that <u2 is bfloat16", c.Name)
	}
	return c, fmt.Errorf("tensor %q is %s: C is F32, BF16 or F16", c.Name, c.DType)
}

// checkShape refuses a C that is not a matrix of m x n.
func checkShape(c safetensors.Info, m, n int) error {
	rows, cols := (&tensor.Tensor{Shape: c.Shape}).Dims()
	if rows != m || cols != n {
		return fmt.Errorf("tensor %q of shape %v is not C: want %dx%d", c.Name, c.Shape, m, n)
	}
	return nil
}

// readBias reads a vector of n values.
func readBias(s *source, name string, n int) ([]float32, error) {
	bias, err := s.find(name)
	if err != nil {
		return nil, err
	}
	if bias.DType != safetensors.F32 || bias.Len() != int64(n) {
		return nil, fmt.Errorf("tensor %q, the bias, is %s of shape %v: want F32 and %d values", bias.Name, bias.DType, bias.Shape, n)
	}
	return bias.file.Float32s(bias.Name)
}
