package integer

import (
	"math"
	"unsafe"

	"github.com/octavo-fp8/octavo/internal/canonical"
)

// generic is plain Go, and what the others are compared with.
var generic = Kernels{MR: 1, Largest: 1 << 15, Multiply: multiplyGeneric, MultiplyNibbles: multiplyNibblesGeneric}

func multiplyGeneric(t *Task) { t.multiply(false) }

func multiplyNibblesGeneric(t *Task) { t.multiply(true) }

// multiply is the task for register blocks of a row.
func (t *Task) multiply(nibbles bool) {
	depth := t.Blocks * t.Quads
	var panel []byte
	if nibbles {
		panel = unsafe.Slice(t.Nibbles, depth/2*Quad*PanelWidth)
	} else {
		panel = unsafe.Slice(t.B, depth*Quad*PanelWidth)
	}
	scalesB := unsafe.Slice(t.ScaleB, t.Blocks*PanelWidth)
	var sums [PanelWidth]int32
	for i := range t.RowBlocks {
		a := unsafe.Slice(offset(t.A, i*t.StrideA), depth*Quad)
		c := unsafe.Slice(offset(t.C, i*PanelWidth*4), PanelWidth)
		if t.Flags&Zero != 0 {
			clear(c)
		}
		for b := range t.Blocks {
			start := *offset(t.Start, b*t.StrideScaleA+4*i)
			for j := range sums {
				sums[j] = start
			}
			at := b * t.Quads
			if nibbles {
				t.addNibbles(&sums, a[at*Quad:][:t.Quads*Quad], panel[at/2*Quad*PanelWidth:])
			} else {
				add(&sums, a[at*Quad:][:t.Quads*Quad], panel[at*Quad*PanelWidth:])
			}
			sa := *offset(t.ScaleA, b*t.StrideScaleA+4*i)
			t.finish(i, c, &sums, sa, scalesB[b*PanelWidth:])
		}
		if t.Flags&Canonical != 0 {
			t.canonical(i, c)
		}
	}
}

// add adds the products of a row with the columns of a panel.
func add(sums *[PanelWidth]int32, a []int8, panel []byte) {
	for len(a) >= Quad {
		q := panel[:Quad*PanelWidth]
		a0, a1, a2, a3 := int32(a[0]), int32(a[1]), int32(a[2]), int32(a[3])
		for j := range sums {
			b := q[Quad*j:][:Quad]
			sums[j] += a0*int32(int8(b[0])) + a1*int32(int8(b[1])) + a2*int32(int8(b[2])) + a3*int32(int8(b[3]))
		}
		a, panel = a[Quad:], panel[Quad*PanelWidth:]
	}
}

// addNibbles is add for a panel in nibbles.
func (t *Task) addNibbles(sums *[PanelWidth]int32, a []int8, panel []byte) {
	for len(a) >= Octet {
		for j := range sums {
			for q := range Quad {
				codes := panel[Quad*j+q]
				sums[j] += int32(a[q])*int32(int8(t.Table[codes&15])) + int32(a[q+Quad])*int32(int8(t.Table[codes>>4]))
			}
		}
		a, panel = a[Octet:], panel[Quad*PanelWidth:]
	}
}

// finish adds the block's sums for row i to P, or scales them and adds them to c.
func (t *Task) finish(i int, c []float32, sums *[PanelWidth]int32, sa float32, sb []float32) {
	var before []float32
	if t.Flags&(First|Last) != First|Last {
		before = unsafe.Slice(offset(t.P, i*PanelWidth*4), PanelWidth)
	}
	for j, sum := range sums {
		p := math.Float32frombits(uint32(sum)) - t.Magic
		if t.Flags&First == 0 {
			p += before[j]
		}
		if t.Flags&Last == 0 {
			before[j] = p
			continue
		}
		c[j] = canonical.FMA(float32(p*sa), sb[j], c[j])
	}
}

// canonical gives NaN its bits, and writes results of row i where they go.
func (t *Task) canonical(i int, c []float32) {
	for j, v := range c {
		if v != v {
			c[j] = math.Float32frombits(0x7FC00000)
		}
	}
	if t.Out != nil {
		copy(unsafe.Slice(offset(t.Out, i*t.StrideOut), PanelWidth), c)
	}
}

func offset[T any](p *T, bytes int) *T { return (*T)(unsafe.Add(unsafe.Pointer(p), bytes)) }
