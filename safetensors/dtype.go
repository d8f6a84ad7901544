package safetensors

// DType is the type of a tensor's elements, spelt as in the file. All types are
// stored little-endian. The zero value is no type.
type DType string

// The element types that this package reads and writes.
const (
	F8E4M3     DType = "F8_E4M3"     // OCP E4M3: no infinity, largest value 448
	F8E5M2     DType = "F8_E5M2"     // OCP E5M2: largest value 57344
	F8E8M0     DType = "F8_E8M0"     // OCP E8M0: a power-of-two scale
	F8E4M3FNUZ DType = "F8_E4M3FNUZ" // E4M3 without infinity or negative zero
	F8E5M2FNUZ DType = "F8_E5M2FNUZ" // E5M2 without infinity or negative zero
	BF16       DType = "BF16"        // bfloat16
	F16        DType = "F16"         // IEEE 754 binary16
	F32        DType = "F32"         // IEEE 754 binary32
	F64        DType = "F64"         // IEEE 754 binary64
	I8         DType = "I8"          // signed integers, two's complement
	I16        DType = "I16"
	I32        DType = "I32"
	I64        DType = "I64"
	U8         DType = "U8" // unsigned integers
	U16        DType = "U16"
	U32        DType = "U32"
	U64        DType = "U64"
	Bool       DType = "BOOL" // one byte, 0 or 1
)

// dtypes are the types by name.
var dtypes = map[string]DType{}

func init() {
	for _, d := range []DType{
		F8E4M3, F8E5M2, F8E8M0, F8E4M3FNUZ, F8E5M2FNUZ, BF16, F16, F32, F64,
		I8, I16, I32, I64, U8, U16, U32, U64, Bool,
	} {
		dtypes[string(d)] = d
	}
}

// Size returns the size of one element in bytes, or 0 for a type that this
// package does not know.
func (d DType) Size() int {
	switch d {
	case F8E4M3, F8E5M2, F8E8M0, F8E4M3FNUZ, F8E5M2FNUZ, I8, U8, Bool:
		return 1
	case BF16, F16, I16, U16:
		return 2
	case F32, I32, U32:
		return 4
	case F64, I64, U64:
		return 8
	}
	return 0
}
