package judge

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
)

// Sample says which elements of C are looked at where it is too large to look at all:
// each of them as exactly as if it were all.
//
// C is cut into equal tiles, and in each one element is chosen at random, independently
// of the others. So none of these tiles goes without one, nor does any region of twice
// their height and width, and k wrong elements, wherever they are, are all missed with a probability of at most
// (1 - 1/T)^k, T being the elements of a tile, if they do not depend on the seed. Rows,
// columns and tiles that are named are looked at whole, besides.
//
// So that what is grossly wrong is not left to chance, all of C is compared with the
// product of package gemm, which is fast, and the elements that are farthest from it are
// looked at too. NaN and infinities that gemm does not have come first.
//
// The time is in proportion to the elements that are looked at, and the errors of no more
// are taken together; that product of gemm's comes to it, unless Suspects is negative.
type Sample struct {
	Elements int    // at random, about; 0: 65536, negative: none
	Suspects int    // the farthest from gemm's product; 0: 4096, negative: none
	Rows     []int  // whole rows of C
	Cols     []int  // whole columns
	Tiles    []Tile // whole tiles
	Seed     uint64
}

// Tile is a part of C.
type Tile struct {
	Row, Col      int // of its first element
	Height, Width int
}

// ErrSample is of a [Sample] with a row, a column or a tile that C does not have.
var ErrSample = errors.New("judge: no such part of C")

const (
	defaultElements = 1 << 16
	defaultSuspects = 1 << 12
)

// suspects is the number of elements that are looked at since they are far from gemm's
// product.
func (s *Sample) suspects() int {
	if s.Suspects == 0 {
		return defaultSuspects
	}
	return max(s.Suspects, 0)
}

// check returns an error unless C, of m rows and n columns, has all that s names.
func (s *Sample) check(m, n int) error {
	for _, i := range s.Rows {
		if i < 0 || i >= m {
			return sentinel.Errorf(ErrSample, "judge: row %d of a sample: C has %d", i, m)
		}
	}
	for _, j := range s.Cols {
		if j < 0 || j >= n {
			return sentinel.Errorf(ErrSample, "judge: column %d of a sample: C has %d", j, n)
		}
	}
	for _, t := range s.Tiles {
		if t.Row < 0 || t.Col < 0 || t.Height < 0 || t.Width < 0 || t.Height > m-t.Row || t.Width > n-t.Col {
			return sentinel.Errorf(ErrSample, "judge: tile of %dx%d at (%d, %d) of a sample: C is %dx%d", t.Height, t.Width, t.Row, t.Col, m, n)
		}
	}
	return nil
}

// tile returns the size of the tiles, of each of which one element is looked at: as
// square as C allows.
func (s *Sample) tile(m, n int) (height, width int) {
	elements := s.Elements
	if elements == 0 {
		elements = defaultElements
	}
	area := float64(m) * float64(n) / float64(elements)
	side := max(int(math.Ceil(math.Sqrt(area))), 1)
	height = min(side, m)
	width = min(max(int(math.Ceil(area/float64(height))), 1), n)
	return max(min(int(math.Ceil(area/float64(width))), m), 1), width
}

// places returns the elements that are looked at of a C of m rows and n columns, row by
// row, and what is to be said of them; some more are given.
func (s *Sample) places(m, n int, more ...suspect) ([]int, *Sampled) {
	d := &Sampled{Of: m * n, Suspects: len(more), Rows: len(s.Rows), Cols: len(s.Cols), Tiles: len(s.Tiles), Seed: s.Seed}
	at := []int{} // not nil, which is all of C for oracle.ExactAt
	for _, x := range more {
		at = append(at, x.at)
	}
	if m > 0 && n > 0 && s.Elements >= 0 {
		d.Height, d.Width = s.tile(m, n)
		source := rand.NewPCG(s.Seed, 0x6a75646765)
		for i := 0; i < m; i += d.Height {
			for j := 0; j < n; j += d.Width {
				at = append(at, (i+random.Below(source.Uint64(), min(d.Height, m-i)))*n+
					j+random.Below(source.Uint64(), min(d.Width, n-j)))
			}
		}
		d.Random = len(at) - len(more)
	}
	for _, i := range s.Rows {
		at = appendTile(at, n, Tile{i, 0, 1, n})
	}
	for _, j := range s.Cols {
		at = appendTile(at, n, Tile{0, j, m, 1})
	}
	for _, t := range s.Tiles {
		at = appendTile(at, n, t)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	d.Elements = len(at)
	d.describe(m, n)
	return at, d
}

// appendTile appends the elements of a tile, of a C of n columns.
func appendTile(at []int, n int, t Tile) []int {
	for i := t.Row; i < t.Row+t.Height; i++ {
		for j := t.Col; j < t.Col+t.Width; j++ {
			at = append(at, i*n+j)
		}
	}
	return at
}

// Sampled says which elements a verdict rests on, and what could have been missed.
type Sampled struct {
	Elements int    `json:"elements"` // that were looked at
	Of       int    `json:"of"`       // all elements of C
	Random   int    `json:"random"`   // of those looked at, chosen at random, one in each tile
	Height   int    `json:"height"`   // of a tile
	Width    int    `json:"width"`
	Suspects int    `json:"suspects"` // those farthest from gemm's product
	Rows     int    `json:"rows"`     // that were looked at whole
	Cols     int    `json:"cols"`
	Tiles    int    `json:"tiles"`
	Seed     uint64 `json:"seed"`

	// Rest is the largest distance to gemm's product of elements that are no suspects, in
	// units of half of C's last place and 2^-24 times the lengths of the element's rows of
	// A and B, together: about what one rounding of a sum and that to C do. It is NaN where
	// C was not compared with that product.
	Rest oracle.Number `json:"rest"`

	// Misses are probabilities, at most, with which so many wrong elements would all have
	// been missed, wherever they are.
	Misses []Miss `json:"misses"`
	// Row and Col are those with which a row, or a column, would have been missed all of
	// whose elements are wrong.
	Row oracle.Number `json:"row"`
	Col oracle.Number `json:"col"`
}

// Miss is the probability, at most, of missing some wrong elements.
type Miss struct {
	Wrong       int           `json:"wrong"`
	Probability oracle.Number `json:"probability"`
}

// Missing returns the probability, at most, with which k wrong elements would all have
// been missed, wherever they are, if they do not depend on the seed: 1 where none was
// chosen at random.
func (d *Sampled) Missing(k int) float64 {
	if d.Random == 0 {
		return 1
	}
	return raised(1-1/(float64(d.Height)*float64(d.Width)), max(k, 0))
}

// String says which elements were looked at.
func (d *Sampled) String() string {
	text := fmt.Sprintf("%d of %d elements", d.Elements, d.Of)
	var parts []string
	if d.Random > 0 {
		parts = append(parts, fmt.Sprintf("one at random in each tile of %dx%d, seed %d", d.Height, d.Width, d.Seed))
	}
	if d.Suspects > 0 {
		parts = append(parts, fmt.Sprintf("the %d farthest from octavo's product", d.Suspects))
	}
	for _, whole := range []struct {
		n    int
		name string
	}{{d.Rows, "row"}, {d.Cols, "column"}, {d.Tiles, "tile"}} {
		switch {
		case whole.n == 1:
			parts = append(parts, "1 whole "+whole.name)
		case whole.n > 1:
			parts = append(parts, fmt.Sprintf("%d whole %ss", whole.n, whole.name))
		}
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, "; ")
	}
	if d.Elements < d.Of {
		text += "; the others were not judged"
	}
	return text
}

// missed says how much could have been missed, and with what probability.
func (d *Sampled) missed() string {
	var b strings.Builder
	switch {
	case d.Rest != d.Rest && d.Random == 0:
		return "anything elsewhere"
	case d.Rest == 0:
		b.WriteString("only what equals octavo's product")
	case d.Rest == d.Rest:
		fmt.Fprintf(&b, "only what is within %s roundings of octavo's product", strconv.FormatFloat(float64(d.Rest), 'g', 3, 64))
	}
	if d.Random == 0 {
		return b.String()
	}
	if d.Rest == d.Rest {
		b.WriteString("; of that, ")
	}
	for i, miss := range d.Misses {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d wrong element", miss.Wrong)
		if miss.Wrong != 1 {
			b.WriteString("s")
		}
		fmt.Fprintf(&b, " with probability %s", probability(miss.Probability))
	}
	fmt.Fprintf(&b, " at most, wherever they are; a row that is wrong throughout with %s, a column with %s; one of those tiles, never",
		probability(d.Row), probability(d.Col))
	return b.String()
}

// probability returns three digits of p.
func probability(p oracle.Number) string { return strconv.FormatFloat(float64(p), 'g', 3, 64) }

// raised is x^n rounded up, and the same on every machine; 0^0 is 1.
func raised(x float64, n int) float64 {
	p := 1.0
	for ; n > 0; n /= 2 {
		if n%2 == 1 {
			p *= x * (1 + 0x1p-50)
		}
		x *= x * (1 + 0x1p-50)
	}
	return min(p, 1)
}

// seldom are the probabilities for which the numbers of wrong elements are told.
var seldom = []float64{1e-2, 1e-6}

// describe computes what could have been missed in a C of m rows and n columns.
func (d *Sampled) describe(m, n int) {
	d.Misses = []Miss{{1, oracle.Number(d.Missing(1))}}
	d.Row, d.Col = 1, 1
	if d.Random == 0 {
		return
	}
	for _, p := range seldom {
		k := 1 + sort.Search(d.Of, func(i int) bool { return d.Missing(1+i) <= p })
		if k <= d.Of && k > d.Misses[len(d.Misses)-1].Wrong {
			d.Misses = append(d.Misses, Miss{k, oracle.Number(d.Missing(k))})
		}
	}
	// Of a tile that a wrong row goes through, one in Height elements is wrong.
	d.Row = oracle.Number(raised(1-1/float64(d.Height), ceilDiv(n, d.Width)))
	d.Col = oracle.Number(raised(1-1/float64(d.Width), ceilDiv(m, d.Height)))
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
