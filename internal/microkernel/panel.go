package microkernel

// PackPanel writes the codes of up to [PanelWidth] rows to dst, K-major: src has
// the given number of rows, a stride apart, of n codes each, and dst gets n rows of
// PanelWidth codes. Row i of src becomes column i of dst; where src has fewer than
// PanelWidth rows, the last columns are zeros. k may be nil.
func (k *Kernels) PackPanel(dst, src []byte, stride, rows, n int) {
	whole, done := 0, 0
	if k != nil && k.Transpose != nil && n >= k.TransposeCols {
		done = n / k.TransposeCols * k.TransposeCols
		for ; whole+k.TransposeRows <= rows; whole += k.TransposeRows {
			k.Transpose(&dst[whole], &src[whole*stride], stride, n/k.TransposeCols)
		}
	}
	for r := range rows {
		first := 0
		if r < whole {
			first = done
		}
		for i, code := range src[r*stride+first : r*stride+n] {
			dst[(first+i)*PanelWidth+r] = code
		}
	}
	if rows < PanelWidth {
		for i := range n {
			clear(dst[i*PanelWidth+rows : (i+1)*PanelWidth])
		}
	}
}
