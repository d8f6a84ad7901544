package safetensors

// DType is the type of a tensor's elements, spelt as in the file. All types are
// stored little-endian. The zero value is no type.
type DType string

// The element types that this package reads and writes.
const (
	F4         DType = "F4"          // OCP E2M1: four bits, two in a byte
	F6E2M3     DType = "F6_E2M3"     // OCP E2M3: six bits, four in three bytes
	F6E3M2     DType = "F6_E3M2"     // OCP E3M2: six bits
	F8E4M3     DType = "F8_E4M3"     // OCP E4M3: no infinity, largest value 448
	F8E5M2     DType = "F8_E5M2"     // OCP E5M2: largest value 57344
	F8E8M0     DType = "F8_E8M0"     // OCP E8M0: a power-of-two scale
	F8E4M3FNUZ DType = "F8_E4M3FNUZ" // E4M3 without infinity or negative zero
	F8E5M2FNUZ DType = "F8_E5M2FNUZ" // E5M2 without infinity or negative zero
	BF16       DType = "BF16"        // bfloat16
	F16        DType = "F16"         // IEEE 754 binary16
	F32        DType = "F32"         // IEEE 754 binary32
	F64        DType = "F64"         // IEEE 754 binary64
	C64        DType = "C64"         // complex: two F32, the real part first
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

// widths are the sizes of the types in bits.
var widths = map[DType]int{
	F4: 4, F6E2M3: 6, F6E3M2: 6,
	F8E4M3: 8, F8E5M2: 8, F8E8M0: 8, F8E4M3FNUZ: 8, F8E5M2FNUZ: 8, I8: 8, U8: 8, Bool: 8,
	BF16: 16, F16: 16, I16: 16, U16: 16,
	F32: 32, I32: 32, U32: 32,
	F64: 64, C64: 64, I64: 64, U64: 64,
}

// dtypes are the types by name.
var dtypes = map[string]DType{}

func init() {
	for d := range widths {
		dtypes[string(d)] = d
	}
}

// Bits returns the size of one element in bits, or 0 for a type that this package
// does not know.
func (d DType) Bits() int { return widths[d] }

// Size returns the size of one element in bytes, or 0 for a type whose elements are
// less than a byte (F4, F6_E2M3 and F6_E3M2: see [DType.Bits]) or that this package
// does not know.
func (d DType) Size() int { return widths[d] / 8 }

// part returns the bytes that are reversed together on a big-endian machine.
func (d DType) part() int {
	if d == C64 {
		return 4
	}
	return d.Size()
}
