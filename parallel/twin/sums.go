package twin

import (
	"fmt"
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/nn"
)

// Sums checks without a twin that a mean gradient is the mean of what ranks have had. Each
// rank adds up the elements of each of its gradients, with signs that are random and the
// same everywhere; the same sum of the mean must be the mean of these sums, but for
// rounding. So one number for each tensor and rank is exchanged and nothing is computed
// twice (Huang & Abraham, Algorithm-based fault tolerance, 1984). A change of an element
// that is lost in the rounding of all of them is not seen. The zero value is ready to use.
// Safe for concurrent use.
type Sums struct {
	// Unit is the largest relative error of what is sent. 0: that of float32, 2^-24.
	Unit float64

	mutex  sync.Mutex
	ranks  int
	totals map[string]total
}

// total is that of a tensor over ranks.
type total struct {
	sum    float64 // with signs
	length float64 // sum of the roots of squares
}

// Wrong is a mean that is not that of what ranks had.
type Wrong struct {
	// Tensor is the first for which it does not hold.
	Tensor string `json:"tensor"`

	Ranks int `json:"ranks"` // that took part

	// Divisor, unless 0, is what sums were divided by instead of Ranks: it explains all
	// tensors.
	Divisor float64 `json:"divisor,omitempty"`

	Error float64 `json:"error"` // of the sum of Tensor
	Limit float64 `json:"limit"` // of that error, by rounding alone
}

// String says what is wrong.
func (w *Wrong) String() string {
	if w.Divisor != 0 {
		return fmt.Sprintf("gradients are divided by %.4g, and %d ranks took part", w.Divisor, w.Ranks)
	}
	return fmt.Sprintf("%s: the mean is not that of what %d ranks had: off by %.2g, %.2g by rounding",
		w.Tensor, w.Ranks, w.Error, w.Limit)
}

// Took tells s of the gradients of a rank that takes part in a step, before they are sent.
func (s *Sums) Took(params []*nn.Param) {
	own := make([]total, len(params))
	for i, p := range params {
		own[i] = totalOf(uint64(i), p.Grad)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.totals == nil {
		s.totals = map[string]total{}
	}
	s.ranks++
	for i, p := range params {
		t := s.totals[p.Name]
		t.sum += own[i].sum
		t.length += own[i].length
		s.totals[p.Name] = t
	}
}

// totalOf adds values up with signs, 64 of which are a random number.
func totalOf(tensor uint64, values []float32) (t total) {
	var signs uint64
	for i, v := range values {
		if i%64 == 0 {
			signs = random.Hash(0x7717, tensor, uint64(i/64))
		}
		x := float64(v)
		t.length += float64(x * x)
		if signs&1 != 0 {
			x = -x
		}
		t.sum += x
		signs >>= 1
	}
	t.length = math.Sqrt(t.length)
	return t
}

// Check returns what is wrong with the mean gradients of a step, in the order of the
// parameters of Took, or nil; and forgets what it was told.
func (s *Sums) Check(means []*nn.Param) *Wrong {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	ranks, totals := s.ranks, s.totals
	s.ranks, s.totals = 0, nil
	n := float64(max(ranks, 1))
	var wrong *Wrong
	var product, square float64
	own := make([]float64, len(means))
	for i, p := range means {
		own[i] = totalOf(uint64(i), p.Grad).sum
		t := totals[p.Name]
		product += float64(t.sum * own[i])
		square += float64(own[i] * own[i])
		limit := s.limit(t, n)
		if err := math.Abs(own[i] - t.sum/n); wrong == nil && !(err <= limit) {
			wrong = &Wrong{Tensor: p.Name, Ranks: ranks, Error: err, Limit: limit}
		}
	}
	if wrong == nil {
		return nil
	}
	divisor := product / square
	for i, p := range means {
		t := totals[p.Name]
		if !(math.Abs(own[i]-t.sum/divisor) <= s.limit(t, math.Abs(divisor))) {
			return wrong
		}
	}
	wrong.Divisor = divisor
	return wrong
}

// limit is how far the sum of a mean may be off by rounding: of errors that are
// independent, of each operand, each partial sum and the division, eight times their
// standard deviation at most.
func (s *Sums) limit(t total, n float64) float64 {
	unit := s.Unit
	if unit == 0 {
		unit = 0x1p-24
	}
	return 8*unit*(n+2)*t.length/n + math.SmallestNonzeroFloat32*n
}
