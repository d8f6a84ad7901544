package lint

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/workpool"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// strip is how many bytes of codes or scales are read at a time, or one row if that is more.
const strip = 1 << 20

// place is the first of several elements that have the same defect.
type place struct {
	count int64
	first int64   // index in the tensor
	value float64 // there
}

func (p *place) add(at int64, value float64) {
	if p.count == 0 || at < p.first {
		p.first, p.value = at, value
	}
	p.count++
}

func (p *place) merge(o place) {
	if o.count > 0 && (p.count == 0 || o.first < p.first) {
		p.first, p.value = o.first, o.value
	}
	p.count += o.count
}

// stats is what a pass over a quantized weight gives.
type stats struct {
	mu sync.Mutex

	scales    int64
	bad       place      // scales that are NaN, infinite or negative
	zero      place      // scales that are 0, or the E8M0 byte 0, over codes that are not
	uneven    place      // scales that are no power of two
	counts    int64      // of scales that are whole numbers from 90 to 140
	least     float64    // scale that is finite and not 0; 0 if there is none
	largest   float64    // scale that is finite
	exponents [256]int64 // of scales: E8M0 bytes

	outer, input float64 // NaN where there is none
	notNumbers   place   // codes that are NaN
	units        int64   // that share a scale, and hold more than zeros
	low          place   // units whose largest code is less than half of the largest there is
	clipped      place   // units of which more than 5% are the largest code
	sized, full  int64   // units whose scale is not that of tiny weights, and those of them with the largest code
	top          byte    // the largest code of all, or one of half of the largest there is
}

// scan is a strip of rows of a matrix of a weight.
type scan struct {
	w              *checkpoint.Weight
	matrix, lo, hi int
}

// survey reads the scales of all quantized weights, and codes of eight bits.
func (m *model) survey(ctx context.Context, o Options) error {
	m.stats = map[*checkpoint.Weight]*stats{}
	var scans []scan
	total := int64(0)
	for _, w := range m.quantized() {
		st := &stats{outer: math.NaN(), input: math.NaN()}
		m.stats[w] = st
		if w.Len() == 0 {
			continue
		}
		for _, r := range []checkpoint.Role{checkpoint.Outer, checkpoint.Input} {
			if !w.Has(r) {
				continue
			}
			x, err := m.number(w.Parts[r])
			if err != nil {
				return err
			}
			if r == checkpoint.Outer {
				st.outer = x
			} else {
				st.input = x
			}
		}
		scans = append(scans, scansOf(w)...)
		total += w.Parts[checkpoint.Codes].Bytes()
	}
	var done meter.Meter
	done.Start(ctx, o.Progress, "lint", total)
	return workpool.Each(len(scans), o.Workers, func(b *buffers, i int) error {
		s := scans[i]
		own, err := m.scan(b, s)
		if err != nil {
			return err
		}
		m.stats[s.w].mergeLocked(own)
		return done.Add(s.share())
	})
}

// scansOf cuts a weight into strips of whole rows of blocks.
func scansOf(w *checkpoint.Weight) (scans []scan) {
	matrices, rows, cols := w.Dims()
	height := 1
	if w.Block.Rows > 0 {
		height, _ = w.Block.Extents(rows, cols)
	}
	n := max(strip/max(height*cols, 1), 1) * height
	if w.Block.Rows == 0 {
		n = rows // a unit is not cut
	}
	for matrix := range matrices {
		for lo := 0; lo < rows; lo += n {
			scans = append(scans, scan{w, matrix, lo, min(lo+n, rows)})
		}
	}
	return scans
}

// share returns the number of bytes of codes of a strip.
func (s scan) share() int64 {
	matrices, rows, _ := s.w.Dims()
	perRow := s.w.Parts[checkpoint.Codes].Bytes() / int64(matrices) / int64(rows)
	return perRow * int64(s.hi-s.lo)
}

// buffers are what a goroutine reads into.
type buffers struct {
	bytes  []byte
	scales []float64
	units  []unit
}

// unit is what is counted of the codes that share a scale.
type unit struct {
	top     byte // the largest magnitude, or one of half of the largest there is
	codes   int64
	topmost int64 // codes of the largest magnitude there is
}

func (m *model) scan(b *buffers, s scan) (*stats, error) {
	_, rows, cols := s.w.Dims()
	gridRows, gridCols := s.w.Grid()
	height, _ := s.w.Block.Extents(rows, cols)
	st := new(stats)
	for lo := s.lo; lo < s.hi; lo += height {
		at := int64(s.matrix*gridRows+lo/height) * int64(gridCols)
		if err := m.scanScales(b, st, s.w, at, gridCols); err != nil {
			return nil, err
		}
		packed := s.w.Scheme.Packed()
		if packed && !slices.Contains(b.scales, 0) && !(hasE8M0(s.w) && slices.Contains(b.scales, lowest)) {
			continue // codes do not matter
		}
		b.units = append(b.units[:0], make([]unit, gridCols)...)
		row := int64(s.matrix)*int64(rows) + int64(lo)
		if err := m.scanCodes(b, st, s.w, row, min(height, rows-lo)); err != nil {
			return nil, err
		}
		st.judge(b, s.w, at)
	}
	return st, nil
}

// lowest is the smallest E8M0 scale, the byte 0, which groups of zeros have.
const lowest = 0x1p-127

func hasE8M0(w *checkpoint.Weight) bool {
	return w.Parts[checkpoint.Scales].DType.Size() == 1 && w.Scheme.ScaleFormat == tensor.E8M0Scales
}

// scanScales reads a row of scales into b and counts them.
func (m *model) scanScales(b *buffers, st *stats, w *checkpoint.Weight, at int64, n int) error {
	e := w.Parts[checkpoint.Scales]
	size := e.DType.Size()
	b.bytes = slices.Grow(b.bytes[:0], n*size)[:n*size]
	if err := m.c.ReadBytes(e, at*int64(size), b.bytes); err != nil {
		return err
	}
	b.scales = slices.Grow(b.scales[:0], n)[:n]
	decode(b.scales, b.bytes, e.DType, w.Scheme.ScaleFormat)
	st.scales += int64(n)
	for i, x := range b.scales {
		if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 || x == 0 && math.Signbit(x) {
			st.bad.add(at+int64(i), x)
			continue
		}
		st.largest = max(st.largest, x)
		if x > 0 && (st.least == 0 || x < st.least) {
			st.least = x
		}
		bits := math.Float64bits(x) // which is normal, or 0
		if x == 0 || bits<<12 != 0 {
			st.uneven.add(at+int64(i), x)
		}
		if x >= 90 && x <= 140 && x == math.Trunc(x) {
			st.counts++
		}
		st.exponents[min(max(int(bits>>52)-1023+127, 0), 255)]++
	}
	return nil
}

// scanCodes reads rows of codes and counts them by units.
func (m *model) scanCodes(b *buffers, st *stats, w *checkpoint.Weight, row int64, n int) error {
	_, _, cols := w.Dims()
	_, width := w.Block.Extents(n, cols)
	stride := cols
	if w.Scheme.Packed() {
		stride /= 2
	}
	chunk := max(strip/max(stride, 1), 1)
	for lo := 0; lo < n; lo += chunk {
		k := min(chunk, n-lo)
		b.bytes = slices.Grow(b.bytes[:0], k*stride)[:k*stride]
		if err := m.c.ReadBytes(w.Parts[checkpoint.Codes], (row+int64(lo))*int64(stride), b.bytes); err != nil {
			return err
		}
		for i := range k {
			codes := b.bytes[i*stride : (i+1)*stride]
			if w.Scheme.Packed() {
				countNibbles(b.units, codes, width)
			} else {
				countBytes(b.units, codes, width, &st.notNumbers, (row+int64(lo+i))*int64(cols))
			}
		}
	}
	return nil
}

// Magnitudes of E4M3: the largest number, the only NaN, and 224, half of the largest. A unit
// whose largest code is below that does not belong to its scale, whether scales are powers of
// two or not.
const (
	largest = 0x7E
	nan     = 0x7F
	half    = 0x76
)

func countBytes(units []unit, codes []byte, width int, notNumbers *place, at int64) {
	for i := range units {
		lo := i * width
		part := codes[lo:min(lo+width, len(codes))]
		units[i].codes += int64(len(part))
		units[i].count(part, notNumbers, at+int64(lo))
	}
}

// eight is a word of eight bytes that are 1.
const eight = 0x0101010101010101

// count counts codes, of which the first has the given index. Most units soon have one of half
// of the largest: then only the largest and NaN matter, which few words hold.
func (u *unit) count(codes []byte, notNumbers *place, at int64) {
	for i := 0; i < len(codes); {
		end := len(codes)
		if u.top >= half && i+8 <= end {
			x := binary.LittleEndian.Uint64(codes[i:]) & (0x7F * eight)
			if (x+(0x80-largest)*eight)&(0x80*eight) == 0 {
				i += 8
				continue
			}
			end = i + 8
		}
		for ; i < end; i++ {
			switch c := codes[i] & 0x7F; {
			case c == nan:
				notNumbers.add(at+int64(i), math.NaN())
			case c == largest:
				u.topmost++
				u.top = c
			case c > u.top:
				u.top = c
			}
			if u.top >= half && i+8 < end {
				end = i + 1
			}
		}
	}
}

// countNibbles looks only whether codes are zero.
func countNibbles(units []unit, codes []byte, width int) {
	for i := range units {
		lo := i * width / 2
		for _, c := range codes[lo:min(lo+width/2, len(codes))] {
			units[i].top |= c & 7
			units[i].top |= c >> 4 & 7
		}
	}
}

// tiny is the scale of a block whose largest magnitude is DeepSeek's least, 1e-4, where it is
// rounded up to a power of two: of smaller ones codes stay small.
const tiny = 0x1p-22

// judge adds what the codes of a row of units are beside their scales, which are in b. The
// first has the given index.
func (st *stats) judge(b *buffers, w *checkpoint.Weight, at int64) {
	for i, u := range b.units {
		if u.top == 0 {
			continue
		}
		x := b.scales[i]
		if x == 0 || hasE8M0(w) && x == lowest {
			st.zero.add(at+int64(i), x)
			continue
		}
		if w.Scheme.Packed() {
			continue
		}
		st.units++
		st.top = max(st.top, u.top)
		if x > tiny {
			st.sized++
		}
		if x > tiny && u.top == largest {
			st.full++
		}
		if u.top < half && x > tiny {
			st.low.add(at+int64(i), float64(fp8.E4M3.Float32(u.top)))
		}
		if u.codes >= 256 && u.topmost > 8 && u.topmost*20 > u.codes {
			st.clipped.add(at+int64(i), float64(u.topmost)/float64(u.codes))
		}
	}
}

func (st *stats) mergeLocked(o *stats) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.merge(o)
}

func (st *stats) merge(o *stats) {
	st.scales += o.scales
	st.bad.merge(o.bad)
	st.zero.merge(o.zero)
	st.uneven.merge(o.uneven)
	st.counts += o.counts
	st.largest = max(st.largest, o.largest)
	if o.least > 0 && (st.least == 0 || o.least < st.least) {
		st.least = o.least
	}
	st.sized += o.sized
	st.full += o.full
	for i, n := range o.exponents {
		st.exponents[i] += n
	}
	st.notNumbers.merge(o.notNumbers)
	st.units += o.units
	st.low.merge(o.low)
	st.clipped.merge(o.clipped)
	st.top = max(st.top, o.top)
}

// median returns the exponent that as many scales are below as above.
func (st *stats) median() int {
	seen := int64(0)
	for i, n := range st.exponents {
		if seen += n; 2*seen >= st.scales {
			return i - 127
		}
	}
	return 0
}

// decode decodes numbers of a type in files. Bytes are of the given format.
func decode(dst []float64, src []byte, d safetensors.DType, f tensor.ScaleFormat) {
	for i := range dst {
		switch {
		case d == safetensors.F32:
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:])))
		case d == safetensors.BF16:
			dst[i] = float64(fp8.BFloat16(binary.LittleEndian.Uint16(src[2*i:])).Float32())
		case d == safetensors.F16:
			dst[i] = float64(float16.Frombits(binary.LittleEndian.Uint16(src[2*i:])).Float32())
		case f == tensor.UE4M3Scales:
			dst[i] = float64(fp8.E4M3.Float32(src[i]))
		default:
			dst[i] = float64(fp8.E8M0(src[i]).Float32())
		}
	}
}
