package fp8

import "github.com/x448/float16"

// Float is the set of types that are encoded to FP8 and decoded from it.
type Float interface {
	float32 | float64 | float16.Float16 | BFloat16
}

const shortDestination = "fp8: destination shorter than source"

// EncodeOne returns the code of x. For stochastic rounding x is element 0. It panics
// if the format or a value of the policy is unknown.
func EncodeOne[T Float](x T, f Format, p Policy) byte {
	var code [1]byte
	Encode(code[:], []T{x}, f, p, nil)
	return code[0]
}

// Encode writes the codes of src to dst[:len(src)] and, where st is not nil,
// adds what happened to st. For stochastic rounding src[i] is element i.
//
// It panics if dst is shorter than src, or the format or a value of the policy is
// unknown. Nothing is allocated.
func Encode[T Float](dst []byte, src []T, f Format, p Policy, st *Stats) {
	EncodeScaled(dst, src, f, p, Scale{}, 0, st)
}

// EncodeScaled is [Encode] of values that share a scale, for a part of a larger
// array: src[i] is element first+i. A finite value whose scaled magnitude is
// too large for float32 counts as finite overflow. It panics as Encode does.
func EncodeScaled[T Float](dst []byte, src []T, f Format, p Policy, s Scale, first uint64, st *Stats) {
	e := NewEncoder(f, p)
	EncodeBlock(&e, dst, src, s, first, st)
}

// EncodeBlock is [EncodeScaled] with the format and policy of e, which serves
// many blocks. It panics if dst is shorter than src or e was not made by [NewEncoder].
func EncodeBlock[T Float](e *Encoder, dst []byte, src []T, s Scale, first uint64, st *Stats) {
	if len(dst) < len(src) {
		panic(shortDestination)
	}
	e.mustBeMade()
	e.setScale(s)
	dst = dst[:len(src)]
	switch src := any(src).(type) {
	case []float32:
		encode(e, dst, src, first, st)
	case []float64:
		for i, x := range src {
			dst[i] = e.encodeScaled64(x, first+uint64(i), st)
		}
	case []float16.Float16:
		encode(e, dst, src, first, st)
	case []BFloat16:
		encode(e, dst, src, first, st)
	}
}

func encode[T direct](e *Encoder, dst []byte, src []T, first uint64, st *Stats) {
	done := encodeKernels(e, dst, src, first, st)
	if done < len(src) {
		encodeRest(e, dst[done:], src[done:], first+uint64(done), st)
	}
}

// encodeRest encodes what kernels do not; those of float32 may, once src is widened.
func encodeRest[T direct](e *Encoder, dst []byte, src []T, first uint64, st *Stats) {
	switch src := any(src).(type) {
	case []float32:
		e.encodeGeneric(dst, src, first, st)
	case []float16.Float16:
		encodeWidened(e, dst, src, first, st)
	case []BFloat16:
		encodeWidened(e, dst, src, first, st)
	}
}

func encodeWidened[T half](e *Encoder, dst []byte, src []T, first uint64, st *Stats) {
	var w wide
	for done := 0; done < len(src); done += wideLength {
		values := widened(&w, src[done:])
		encode(e, dst[done:done+len(values)], values, first+uint64(done), st)
	}
}

func (e *Encoder) encodeGeneric(dst []byte, src []float32, first uint64, st *Stats) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = e.encodeScaled32(x, first+uint64(i), st)
	}
}

func (e *Encoder) encodeScaled32(x float32, index uint64, st *Stats) uint8 {
	y := x
	if e.scaled {
		y = e.scale.float32(x)
	}
	y = e.policy.Quotient.float32(y)
	code, saturated := e.encode32(y, index)
	if st != nil {
		st.add(float64(x), e, code, saturated, y != y, e.valueOf(code, st))
	}
	return code
}

func (e *Encoder) encodeScaled64(x float64, index uint64, st *Stats) uint8 {
	y := x
	if e.scaled {
		y = e.scale.float64(x)
	}
	y = e.policy.Quotient.float64(y)
	code, saturated := e.encode64(y, index)
	if st != nil {
		st.add(x, e, code, saturated, y != y, e.valueOf(code, st))
	}
	return code
}

// valueOf returns what code stands for, where a Detail asks for it.
func (e *Encoder) valueOf(code uint8, st *Stats) float64 {
	if st.Detail == nil {
		return 0
	}
	return float64(e.table[code]) * e.scale.stored()
}
