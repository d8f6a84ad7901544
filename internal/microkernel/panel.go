package microkernel

import "encoding/binary"

// PackPanel writes the codes of up to [PanelWidth] rows to dst, K-major: src has
// the given number of rows, a stride apart, of n codes each, and dst gets n rows of
// PanelWidth codes. Row i of src becomes column i of dst; where src has fewer than
// PanelWidth rows, the last columns are zeros. k may be nil.
func (k *Kernels) PackPanel(dst, src []byte, stride, rows, n int) {
	whole, done := 0, 0
	if k != nil && k.Transpose != nil && n >= k.TransposeCols {
		if whole = rows / 8 * 8; whole > 0 {
			k.Transpose(&dst[0], &src[0], stride, whole, n/k.TransposeCols)
		}
		done = n / k.TransposeCols * k.TransposeCols
	}
	for r := 0; r < rows; r += square {
		first := 0
		if r < whole {
			first = done
		}
		packSquares(dst, src, stride, r, rows, first, n)
	}
	if rows < PanelWidth {
		for i := range n {
			clear(dst[i*PanelWidth+rows : (i+1)*PanelWidth])
		}
	}
}

// square is the number of rows, and of codes of each, that plain Go transposes at once.
const square = 8

// packSquares packs codes [j, n) of up to square rows of [i, rows). Where there are less
// than a square of either it begins so much earlier, and writes some codes again.
func packSquares(dst, src []byte, stride, i, rows, j, n int) {
	if rows < square || n < square {
		for r := i; r < min(i+square, rows); r++ {
			for c := j; c < n; c++ {
				dst[c*PanelWidth+r] = src[r*stride+c]
			}
		}
		return
	}
	i = min(i, rows-square)
	for ; j < n; j += square {
		c := min(j, n-square)
		transpose(dst[c*PanelWidth+i:], src[i*stride+c:], stride)
	}
}

// transpose writes a square, whose rows are a stride apart, to 8 rows of a panel. A row is
// a word, its first code in the lowest byte: first exchanged are the quarters that are off
// the diagonal, 4x4 codes, then those of each quarter, 2x2 codes, then single codes.
// Words are variables and not an array because the compiler keeps only those in
// registers, and are read from slices of 8 because that leaves the fewest checks.
func transpose(dst, src []byte, stride int) {
	word := func(i int) uint64 {
		at := i * stride
		return binary.LittleEndian.Uint64(src[at : at+8 : at+8])
	}
	a, b, c, d, e, f, g, h := word(0), word(1), word(2), word(3), word(4), word(5), word(6), word(7)

	const quarters = 0x0000_0000_FFFF_FFFF
	a, e = exchange(a, e, 32, quarters)
	b, f = exchange(b, f, 32, quarters)
	c, g = exchange(c, g, 32, quarters)
	d, h = exchange(d, h, 32, quarters)

	const squares = 0x0000_FFFF_0000_FFFF
	a, c = exchange(a, c, 16, squares)
	b, d = exchange(b, d, 16, squares)
	e, g = exchange(e, g, 16, squares)
	f, h = exchange(f, h, 16, squares)

	const codes = 0x00FF_00FF_00FF_00FF
	a, b = exchange(a, b, 8, codes)
	c, d = exchange(c, d, 8, codes)
	e, f = exchange(e, f, 8, codes)
	g, h = exchange(g, h, 8, codes)

	dst = dst[:7*PanelWidth+8]
	binary.LittleEndian.PutUint64(dst, a)
	binary.LittleEndian.PutUint64(dst[PanelWidth:], b)
	binary.LittleEndian.PutUint64(dst[2*PanelWidth:], c)
	binary.LittleEndian.PutUint64(dst[3*PanelWidth:], d)
	binary.LittleEndian.PutUint64(dst[4*PanelWidth:], e)
	binary.LittleEndian.PutUint64(dst[5*PanelWidth:], f)
	binary.LittleEndian.PutUint64(dst[6*PanelWidth:], g)
	binary.LittleEndian.PutUint64(dst[7*PanelWidth:], h)
}

// exchange exchanges the upper parts of x with the lower ones of y, which the mask has.
func exchange(x, y uint64, shift int, mask uint64) (uint64, uint64) {
	t := (x>>shift ^ y) & mask
	return x ^ t<<shift, y ^ t
}
