package vectors

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
)

// encodeScaleCase is a case of encoding scales.
type encodeScaleCase struct {
	Format   string `json:"format"`
	Overflow string `json:"overflow"`
	Rounding string `json:"rounding"`
	Input    string `json:"input"`
	Codes    string `json:"codes"`
}

// scales adds the formats that only scales have.
func (e *encoder) scales() {
	e.e8m0()
	e.ue4m3()
}

func (e *encoder) e8m0() {
	values := make([]float32, 256)
	for i := range values {
		values[i] = fp8.E8M0(i).Float32()
	}
	e.index.Decode = append(e.index.Decode, decodeCase{"E8M0", numbers(e.tensors, "decode.e8m0", values)})
	var points []float32
	for _, v := range values[:255] {
		points = append(points, v, 1.5*v)
	}
	x := e.scaleEdges(points, 300)
	input := numbers(e.tensors, "x.f32.e8m0", x)
	for r := fp8.E8M0Down; r <= fp8.E8M0Nearest; r++ {
		for o := fp8.OverflowSaturate; o <= fp8.OverflowNonFinite; o++ {
			codes := make([]byte, len(x))
			for i, v := range x {
				codes[i] = byte(r.Encode(v, o))
			}
			name := "codes.e8m0." + r.String() + "." + overflows[o]
			e.index.EncodeScale = append(e.index.EncodeScale, encodeScaleCase{"E8M0", overflows[o], r.String(), input,
				e.add(name, safetensors.F8E8M0, []int{len(codes)}, codes)})
		}
	}
}

func (e *encoder) ue4m3() {
	values := make([]float32, 128)
	var points []float32
	for i := range values {
		values[i] = fp8.UE4M3(i).Float32()
		if i > 0 && i <= int(fp8.UE4M3Max) {
			points = append(points, values[i], (values[i-1]+values[i])/2)
		}
	}
	e.index.Decode = append(e.index.Decode, decodeCase{"UE4M3", numbers(e.tensors, "decode.ue4m3", values)})
	x := e.scaleEdges(append(points, 464, 480), 301)
	codes := make([]byte, len(x))
	for i, v := range x {
		codes[i] = byte(fp8.EncodeUE4M3(v))
	}
	e.index.EncodeScale = append(e.index.EncodeScale, encodeScaleCase{"UE4M3", overflows[fp8.OverflowSaturate], fp8.NearestEven.String(),
		numbers(e.tensors, "x.f32.ue4m3", x), e.add("codes.ue4m3", safetensors.F8E4M3, []int{len(codes)}, codes)})
}

// scaleEdges returns points with their neighbours, some negative values, what every
// encoder must know, and values of any bits.
func (e *encoder) scaleEdges(points []float32, stream uint64) (x []float32) {
	inf := float32(math.Inf(1))
	for i, p := range points {
		x = append(x, math.Nextafter32(p, 0), p, math.Nextafter32(p, inf))
		if i%16 == 0 {
			x = append(x, -p)
		}
	}
	for _, bits := range []uint32{0, 1, 0x001FFFFF, 0x00200000, 0x007FFFFF, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000} {
		x = append(x, math.Float32frombits(bits), math.Float32frombits(bits|1<<31))
	}
	d := newRNG(e.seed, stream)
	for range 100 {
		x = append(x, math.Float32frombits(d.bits()))
	}
	return x
}
