// Package operands reads the operands of products and the results of kernels from
// files: safetensors, arrays of NumPy (.npy) and raw bytes.
//
// A name is that of a tensor in a safetensors file, or says a file of its own:
//
//	x                        tensor x of the safetensors file
//	x.npy                    an array that numpy.save wrote: |u1, <u2, <f2, <f4, <i4 or <i8
//	x.bin:E4M3:4096x7168     raw bytes of a type and a shape, row by row, little-endian
//
// Codes of less than a byte lie side by side in a safetensors file (F4, F6_E2M3,
// F6_E3M2) and one a byte where the type is U8, unless the operand says that those are
// packed too. In memory each has a byte. Scales of type F8_E4M3 are UE4M3.
//
// A [Product] says the names of everything that belongs to one: codes, their scales,
// bias, old C and a kernel's C. What a file does not say has to be said: the format of
// codes that are bytes, and the block that shares a scale where several fit the shapes.
//
//	p := operands.Product{
//		Files: []string{"layer.safetensors"}, Got: "c.npy",
//		A: operands.Operand{Codes: "x"}, B: operands.Operand{Codes: "w"},
//	}
//	files, err := p.Open()
//	...
//	defer files.Close()
//	a, err := files.A()
//	b, err := files.B()
//	c, err := files.Result(a, b)
//	got, err := safetensors.Elements[float32](c.File, c.Name)
//
// Nothing in a file is trusted: what is allocated is bounded by the size of the files.
// [InMemory] takes tensors that are in no file the same way.
package operands
