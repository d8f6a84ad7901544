package telemetry

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
)

// Sink receives events. A [Recorder] calls its sinks from one goroutine at a
// time; a sink shared by several Recorders must be safe for concurrent use, as
// all of this package are.
type Sink interface {
	// Event receives what one operation did to one tensor in one step.
	Event(e Event) error
}

// Event sums up what one operation did to one tensor in one step. It shares no
// memory with the Recorder it comes from.
type Event struct {
	Step int64
	Summary

	// First is the first non-finite value in time; if there was none it is
	// zero, and so is First.Value.
	First NonFinite
}

// Total sums up what one operation did to one tensor in all steps.
type Total struct {
	Events int64 // how many events are in it
	Summary
}

// Summary is what [Event] and [Total] have in common. Stats never has a Detail.
type Summary struct {
	Tensor, Op string

	Blocks             int64
	ScaleMin, ScaleMax float32 // NaN if any scale was; 0 if there are no blocks
	Stats              fp8.Stats
	Worst              Block
}

// SaturatedShare returns the fraction of elements that saturated, in [0, 1].
func (s Summary) SaturatedShare() float64 { return share(s.Stats.Saturated(), s.Stats.Elements) }

// FlushedShare returns the fraction of elements that were not zero and became
// zero, in [0, 1].
func (s Summary) FlushedShare() float64 { return share(s.Stats.Flushed, s.Stats.Elements) }

// LostShare returns the fraction of elements that saturated, were flushed to
// zero, or were or became not finite, in [0, 1].
func (s Summary) LostShare() float64 { return lostShare(&s.Stats) }

// Block is what happened once to the block at (Row, Col) of a tensor's grid of
// scales.
//
// The Worst of several blocks is the one with the largest [Block.LostShare]; of
// equals, the first by step, row and column; if they too are equal, as between
// workers that have a shard each, the one with more elements. The remaining
// fields make the order total, so that it never matters which was seen first.
type Block struct {
	Step     int64
	Row, Col int
	Scale    float32 // dequantization scale
	Stats    fp8.Stats
}

// LostShare is [Summary.LostShare] for one block.
func (b Block) LostShare() float64 { return lostShare(&b.Stats) }

// NonFinite is a NaN or infinite value: element Index of Tensor, row-major.
type NonFinite struct {
	Step       int64
	Tensor, Op string
	Index      int
	Value      float64
}

// exists reports whether n is more than the zero NonFinite.
func (n *NonFinite) exists() bool { return isNonFinite(n.Value) }

func isNonFinite(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }

func lostShare(s *fp8.Stats) float64 {
	return share(s.Lost(), s.Elements)
}

func share(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
