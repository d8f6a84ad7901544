package train

// orDefault returns v, or what it means where it is 0.
func orDefault(v, byDefault float64) float64 {
	if v == 0 {
		return byDefault
	}
	return v
}

func addTo(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}
