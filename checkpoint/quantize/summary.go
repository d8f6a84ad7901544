package quantize

import (
	"fmt"
	"time"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/internal/loss"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
)

// Summary says what became of a file.
type Summary struct {
	Input           string           `json:"input"`
	Output          string           `json:"output"`
	Profile         scaling.Profile  `json:"profile"`
	Format          string           `json:"format"`
	Block           string           `json:"block"`
	Quantized       TensorCount      `json:"quantized"`
	Requantized     int              `json:"requantized"` // of the quantized tensors, that were codes
	Copied          TensorCount      `json:"copied"`
	Kept            []KeptTensor     `json:"kept"`      // matrices of Copied, values or codes, that are a part of a model which stays
	Elements        int64            `json:"elements"`  // quantized
	Saturated       int64            `json:"saturated"` // of Elements, as the two below
	Flushed         int64            `json:"flushed"`
	BecameNonFinite int64            `json:"becameNonFinite"` // though finite
	NonFinite       []NonFinite      `json:"nonFinite"`
	Tensors         []TensorLoss     `json:"tensors"`   // quantized, in the order of the output
	BytesRead       int64            `json:"bytesRead"` // tensor data, each byte counted once
	Seconds         jsonfloat.Number `json:"seconds"`
	Rate            jsonfloat.Number `json:"gigabytesPerSecond"` // BytesRead / Seconds / 1e9
}

// TensorCount counts tensors and the bytes of their data.
type TensorCount struct {
	Tensors     int   `json:"tensors"`
	BytesBefore int64 `json:"bytesBefore"`
	BytesAfter  int64 `json:"bytesAfter"`
}

// KeptTensor is a matrix that was copied, and why; see [checkpoint.Part].
type KeptTensor struct {
	Name string `json:"name"`
	Part string `json:"part"`
	Why  string `json:"why"`
}

func (k KeptTensor) String() string { return fmt.Sprintf("tensor %q (%s: %s)", k.Name, k.Part, k.Why) }

// TensorLoss says what a tensor lost.
type TensorLoss struct {
	Name            string            `json:"name"`
	From            safetensors.DType `json:"from"` // what it was
	Shape           []int             `json:"shape"`
	Elements        int64             `json:"elements"`
	Block           string            `json:"block"`
	SQNR            jsonfloat.Number  `json:"sqnrDecibels"` // over finite values; NaN if all are 0 or one became NaN
	Saturated       int64             `json:"saturated"`
	Flushed         int64             `json:"flushed"`
	BecameNonFinite int64             `json:"becameNonFinite"`
	NonFinite       int64             `json:"nonFinite"` // NaN or infinite before
}

// NonFinite names the first value of a tensor that is NaN or infinite.
type NonFinite struct {
	Tensor string           `json:"tensor"`
	Shape  []int            `json:"shape"`
	Index  int              `json:"index"` // row-major
	Value  jsonfloat.Number `json:"value"`
	Count  int64            `json:"count"` // of values that are not finite
}

func (n NonFinite) String() string {
	return fmt.Sprintf("tensor %q: element %d of shape %v is %v; %d of its values are not finite",
		n.Tensor, n.Index, n.Shape, float64(n.Value), n.Count)
}

// addTensor adds a tensor that was quantized.
func (s *Summary) addTensor(p outputTensor, r *result) {
	st := &r.stats
	s.Elements += st.Elements
	s.Saturated += st.Saturated()
	s.Flushed += st.Flushed
	s.BecameNonFinite += st.BecameNonFinite
	if n := st.NonFinite(); n > 0 {
		s.NonFinite = append(s.NonFinite, NonFinite{p.Name, p.Shape, r.first.index, jsonfloat.Number(r.first.value), n})
	}
	s.Tensors = append(s.Tensors, TensorLoss{
		Name: p.Name, From: p.source.DType, Shape: p.Shape, Elements: st.Elements, Block: s.Block,
		SQNR:      jsonfloat.Number(loss.SQNR(r.sums.Signal, r.sums.Noise)),
		Saturated: st.Saturated(), Flushed: st.Flushed, BecameNonFinite: st.BecameNonFinite, NonFinite: st.NonFinite(),
	})
}

// Add adds the summary of another shard, of the same recipe.
func (s *Summary) Add(o *Summary) {
	s.Profile, s.Format, s.Block = o.Profile, o.Format, o.Block
	s.Quantized.sum(o.Quantized)
	s.Copied.sum(o.Copied)
	s.Requantized += o.Requantized
	s.Elements += o.Elements
	s.Saturated += o.Saturated
	s.Flushed += o.Flushed
	s.BecameNonFinite += o.BecameNonFinite
	s.NonFinite = append(s.NonFinite, o.NonFinite...)
	s.Tensors = append(s.Tensors, o.Tensors...)
	s.Kept = append(s.Kept, o.Kept...)
	s.BytesRead += o.BytesRead
}

func (c *TensorCount) sum(o TensorCount) {
	c.Tensors += o.Tensors
	c.BytesBefore += o.BytesBefore
	c.BytesAfter += o.BytesAfter
}

// Took sets Seconds, and Rate by it.
func (s *Summary) Took(d time.Duration) {
	s.Seconds = jsonfloat.Number(d.Seconds())
	s.Rate = jsonfloat.Number(float64(s.BytesRead) / d.Seconds() / 1e9)
}
