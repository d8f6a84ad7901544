package fp8_test

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/fp8"
)

func ExampleEncode() {
	src := []float32{0.1, 1, -3.14159, 464, 1e6}
	codes := make([]byte, len(src))
	fp8.Encode(codes, src, fp8.E4M3, fp8.Policy{}, nil)
	fmt.Printf("% x\n", codes)
	// Output:
	// 1d 38 c5 7e 7e
}

func ExampleDecode() {
	codes := []byte{0x1D, 0x38, 0xC5, 0x7E, 0x01, 0x7F}
	values := make([]float32, len(codes))
	fp8.Decode(values, codes, fp8.E4M3)
	fmt.Println(values)
	// Output:
	// [0.1015625 1 -3.25 448 0.001953125 NaN]
}

func ExampleEncodeScaled() {
	// The largest magnitude, 0.02, shall become the largest code.
	src := []float32{0.02, -0.01, 0.0005}
	amax, _ := fp8.Amax(src)
	scale := fp8.Scale{Stored: amax / fp8.E4M3.Max()}
	codes := make([]byte, len(src))
	fp8.EncodeScaled(codes, src, fp8.E4M3, fp8.Policy{}, scale, 0, nil)
	fmt.Printf("% x\n", codes)

	back := make([]float32, len(codes))
	fp8.DecodeScaled(back, codes, fp8.E4M3, scale.Stored)
	fmt.Printf("%.5f\n", back)
	// Output:
	// 7e f6 53
	// [0.02000 -0.01000 0.00049]
}

func ExampleStats() {
	src := []float32{1, -0.004, 0.0009, 0, 500, -1e9, float32(math.NaN())}
	var st fp8.Stats
	fp8.Encode(make([]byte, len(src)), src, fp8.E4M3, fp8.Policy{}, &st)
	fmt.Println("amax", st.Amax)
	fmt.Println("saturated", st.SaturatedPos, st.SaturatedNeg)
	fmt.Println("flushed", st.Flushed, "subnormal", st.Subnormal, "zeros", st.Zeros, "NaN", st.NaN)
	// Output:
	// amax 1e+09
	// saturated 1 1
	// flushed 1 subnormal 1 zeros 1 NaN 1
}

func ExampleDetail_SQNR() {
	src := []float32{0.1, 0.2, 0.3, -0.7}
	for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2} {
		st := fp8.Stats{Detail: &fp8.Detail{}}
		fp8.Encode(make([]byte, len(src)), src, f, fp8.Policy{}, &st)
		fmt.Printf("%v %.1f dB\n", f, st.Detail.SQNR())
	}
	// Output:
	// E4M3 32.9 dB
	// E5M2 23.4 dB
}

func ExamplePolicy() {
	inf := float32(math.Inf(1))
	saturating := fp8.Policy{}
	mlDtypes := fp8.Policy{Overflow: fp8.OverflowNonFinite, Inf: fp8.InfPropagate}
	for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2, fp8.E4M3FNUZ, fp8.E5M2FNUZ} {
		fmt.Printf("%-8v  1e6: %02x %02x  Inf: %02x %02x\n", f,
			fp8.EncodeOne(float32(1e6), f, saturating), fp8.EncodeOne(float32(1e6), f, mlDtypes),
			fp8.EncodeOne(inf, f, saturating), fp8.EncodeOne(inf, f, mlDtypes))
	}
	// Output:
	// E4M3      1e6: 7e 7f  Inf: 7e 7f
	// E5M2      1e6: 7b 7c  Inf: 7b 7c
	// E4M3FNUZ  1e6: 7f 80  Inf: 7f 80
	// E5M2FNUZ  1e6: 7f 80  Inf: 7f 80
}

func ExamplePolicy_stochastic() {
	// 1.03125 is a quarter of the way from 1 to 1.125.
	src := make([]float32, 100_000)
	for i := range src {
		src[i] = 1.03125
	}
	codes := make([]byte, len(src))
	fp8.Encode(codes, src, fp8.E4M3, fp8.Policy{Rounding: fp8.Stochastic, Seed: 42}, nil)
	sum := 0.0
	for _, code := range codes {
		sum += float64(fp8.E4M3.Float32(code))
	}
	fmt.Printf("mean %.3f\n", sum/float64(len(src)))
	// Output:
	// mean 1.031
}

func ExampleE8M0() {
	scale, ok := fp8.E8M0FromFloat32(0.25)
	fmt.Println(uint8(scale), ok, scale.Float32())
	_, ok = fp8.E8M0FromFloat32(0.3)
	fmt.Println(ok)
	fmt.Println(fp8.E8M0(0).Float32(), fp8.E8M0NaN.Float32())
	// Output:
	// 125 true 0.25
	// false
	// 5.877472e-39 NaN
}
