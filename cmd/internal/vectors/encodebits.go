package vectors

import "github.com/octavo-fp8/octavo/fp8"

// bitsCase is a case of rounding by random bits that are given.
type bitsCase struct {
	Format string      `json:"format"`
	Rule   fp8.BitRule `json:"rule"`
	Input  string      `json:"input"`
	Random string      `json:"random"`
	Codes  string      `json:"codes"`
	Stats  stats       `json:"stats"`
}

// bits adds values between codes that are rounded by given bytes: a few by all 256 of
// them, and others by any.
func (e *encoder) bits(f fp8.Format) {
	d := newRNG(e.seed, 200+uint64(f))
	between := func() float32 {
		c := byte(d.below(int(f.MaxCode())))
		low, high := float64(f.Float32(c)), float64(f.Float32(c+1))
		x := low + float64((high-low)*float64(d.below(1<<12)))/(1<<12)
		if d.below(2) == 1 {
			x = -x
		}
		return float32(x)
	}
	var x []float32
	var random []byte
	for range 4 {
		v := between()
		for k := range 256 {
			x, random = append(x, v), append(random, byte(k))
		}
	}
	for range 256 {
		x, random = append(x, between()), append(random, d.code())
	}
	for _, v := range []float32{0, f.MinSubnormal() / 300, f.Max(), 1.5 * f.Max(), -1.5 * f.Max()} {
		for _, k := range []byte{0, 1, 128, 255} {
			x, random = append(x, v), append(random, k)
		}
	}
	input := numbers(e.tensors, "x.bits."+lower(f), x)
	bytes := e.add("random."+lower(f), "U8", []int{len(random)}, random)
	rules := []fp8.BitRule{fp8.BitsExact}
	if f == fp8.E2M1 {
		rules = append(rules, fp8.BitsAdded)
	}
	for _, rule := range rules {
		codes := make([]byte, len(x))
		var st fp8.Stats
		fp8.EncodeBits(codes, x, f, fp8.Policy{}, fp8.Scale{}, random, rule, &st)
		name := "codes.bits." + lower(f) + "." + rule.String()
		e.index.EncodeBits = append(e.index.EncodeBits, bitsCase{f.String(), rule, input, bytes,
			e.codes(name, f, []int{len(x)}, codes), newStats(&st)})
	}
}
