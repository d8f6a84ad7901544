package tile

// Panel writes the codes of up to [Columns] rows to dst, K-major: src has the
// given number of rows, a stride apart, of n codes each, and dst gets n rows of
// Columns codes, the last of them zeros where src has fewer rows. k may be nil.
func (k *Kernel) Panel(dst, src []byte, stride, rows, n int) {
	whole, done := 0, 0
	if k != nil && k.Transpose != nil && n >= k.Across {
		done = n / k.Across * k.Across
		for ; whole+k.Down <= rows; whole += k.Down {
			k.Transpose(&dst[whole], &src[whole*stride], stride, n/k.Across)
		}
	}
	for r := range rows {
		first := 0
		if r < whole {
			first = done
		}
		for i, code := range src[r*stride+first : r*stride+n] {
			dst[(first+i)*Columns+r] = code
		}
	}
	if rows < Columns {
		for i := range n {
			clear(dst[i*Columns+rows : (i+1)*Columns])
		}
	}
}
