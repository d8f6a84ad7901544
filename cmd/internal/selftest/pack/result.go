package pack

import (
	"fmt"
	"hash/crc32"
	"math"

	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/random"
)

// result is a matrix that an operator writes and what is known of it.
type result struct {
	what       string
	rows, cols int
	unit       int // got is a multiple of 2^unit

	got func(i, j int) float64 // what was written

	want func(i, j int) int64 // in units
	// sum returns Σ w_j·want(i,j) mod 2^64 for each row; nil adds elements.
	sum func(w []uint64) []uint64

	sums []uint64 // of rows, what is right, found once
}

// weights returns w of n columns.
func weights(n int) []uint64 {
	w := make([]uint64, n)
	for i := range w {
		w[i] = random.Hash(0x0C7A70, 1, uint64(i)) | 1
	}
	return w
}

// right returns the sums of rows.
func (r *result) right() []uint64 {
	if r.sums != nil {
		return r.sums
	}
	w := weights(r.cols)
	if r.sum != nil {
		r.sums = r.sum(w)
		return r.sums
	}
	r.sums = make([]uint64, r.rows)
	parallel.For(r.rows, 1, 0, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for j := range r.cols {
				r.sums[i] += w[j] * uint64(r.want(i, j))
			}
		}
	})
	return r.sums
}

// check returns the first element that is wrong, or nil.
func (r *result) check() *Failure {
	right, w := r.right(), weights(r.cols)
	wrong := make([]bool, r.rows)
	parallel.For(r.rows, 1, 0, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			var sum uint64
			for j := range r.cols {
				x, ok := r.units(i, j)
				wrong[i] = wrong[i] || !ok
				sum += w[j] * uint64(x)
			}
			wrong[i] = wrong[i] || sum != right[i]
		}
	})
	for i, is := range wrong {
		if is {
			return r.find(i)
		}
	}
	return nil
}

// units returns an element in units and whether it is a whole number of them.
func (r *result) units(i, j int) (int64, bool) {
	x := math.Ldexp(r.got(i, j), -r.unit)
	if !(math.Abs(x) < 1<<53) {
		return 0, false
	}
	n := int64(x)
	return n, float64(n) == x
}

func (r *result) find(i int) *Failure {
	for j := range r.cols {
		if x, ok := r.units(i, j); !ok || x != r.want(i, j) {
			want := math.Ldexp(float64(r.want(i, j)), r.unit)
			return &Failure{
				Place:    fmt.Sprintf("row %d, column %d of %s, %dx%d", i, j, r.what, r.rows, r.cols),
				Expected: fmt.Sprint(want), Got: fmt.Sprint(r.got(i, j)),
			}
		}
	}
	return &Failure{
		Place:    fmt.Sprintf("row %d of %s, %dx%d", i, r.what, r.rows, r.cols),
		Expected: "the sum that follows from the operands", Got: "another, of elements that are right",
	}
}

// checksum is Σ w_i·sum of row i mod 2^64, of what is right.
func (r *result) checksum() (sum uint64) {
	right := r.right()
	w := weights(r.rows)
	for i, x := range right {
		sum += w[i] * x
	}
	return sum
}

// check returns the first wrong element of a job's results, and the checksum of what is right:
// of results that are rounded, of what there is.
func (j *job) check() (*Failure, string) {
	if j.bytes != nil {
		return nil, fmt.Sprintf("%08x", crc32.Checksum(j.bytes(), castagnoli))
	}
	for _, r := range j.results {
		if f := r.check(); f != nil {
			return f, ""
		}
	}
	return nil, j.checksum()
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is that of the right results.
func (j *job) checksum() string {
	var sum uint64
	for i, r := range j.results {
		sum += r.checksum() * (2*uint64(i) + 1)
	}
	return fmt.Sprintf("%016x", sum)
}

func (j *job) elements() (n int64) {
	if j.bytes != nil {
		return int64(len(j.bytes()))
	}
	for _, r := range j.results {
		n += int64(r.rows) * int64(r.cols)
	}
	return n
}

// compareBits compares with the first result, which it keeps.
func compareBits(first *[]byte, got []byte) *Failure {
	if *first == nil {
		*first = append([]byte{}, got...)
		return nil
	}
	for i, b := range got {
		if want := (*first)[i]; b != want {
			return &Failure{
				Place:    fmt.Sprintf("byte %d of %d of the result", i, len(got)),
				Expected: fmt.Sprintf("%02X", want), Got: fmt.Sprintf("%02X", b),
			}
		}
	}
	return nil
}
