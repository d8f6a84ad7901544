package fp8

// stream gives 32 random bits to each element index, from a seed and nothing
// else. It needs only 32-bit operations for an element, so that vector units
// can do the same.
type stream struct {
	seed   uint64
	high   uint32 // upper half of the index that k0 and k1 belong to
	k0, k1 uint32
}

func newStream(seed, index uint64) stream {
	s := stream{seed: seed}
	s.rekey(uint32(index >> 32))
	return s
}

func (s *stream) rekey(high uint32) {
	k := mix64(mix64(s.seed) + uint64(high))
	s.high, s.k0, s.k1 = high, uint32(k), uint32(k>>32)
}

func (s *stream) at(index uint64) uint32 {
	if high := uint32(index >> 32); high != s.high {
		s.rekey(high)
	}
	return mix32(mix32(uint32(index)^s.k0) + s.k1)
}

// mix64 is the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) after
// one step of its counter, so that 0 does not stay 0.
func mix64(z uint64) uint64 {
	z += 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// mix32 is the finalizer of MurmurHash3, a bijection of 32 bits.
func mix32(h uint32) uint32 {
	h = (h ^ h>>16) * 0x85EBCA6B
	h = (h ^ h>>13) * 0xC2B2AE35
	return h ^ h>>16
}
