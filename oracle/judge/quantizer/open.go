package quantizer

import (
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
)

func isFourOverSix(p scaling.Profile) bool { return strings.HasPrefix(string(p), "nvfp4-fouroversix") }

// choiceOpen reports whether a block's stored scale is the other one of the two between which
// fouroversix chooses, and as good within what the order of sums may change.
func (j *job) choiceOpen(b int) bool {
	p := j.recipe.Profile
	if !isFourOverSix(p) || !chooses(p) || p == scaling.NVFP4FourOverSixAbsMax {
		return false
	}
	// Errors of both, in float64, by what is stored: the larger is half as large again.
	errorOf := func(stored float32) (sum float64) {
		by := j.under(stored, b, nil)
		i0, i1, j0, j1 := j.part.bounds(b)
		for i := i0; i < i1; i++ {
			for _, x := range j.x[i*j.cols+j0 : i*j.cols+j1] {
				c := fp8.EncodeOne(scaled(x, by), fp8.E2M1, j.recipe.EncodePolicy())
				d := math.Abs(float64(fp8.E2M1.Float32(c))*float64(stored)*float64(j.outerAmax[j.levelOf(b)])/(6*256) - float64(x))
				if p == scaling.NVFP4FourOverSixMSE {
					d *= d
				}
				sum += d
			}
		}
		return sum
	}
	got, want := j.scales[b], j.want.Scales[b]
	if ratio := got / want; !(ratio > 1.3 && ratio < 1.7 || ratio > 0.6 && ratio < 0.77) {
		return false
	}
	e, of := errorOf(got), errorOf(want)
	return math.Abs(e-of) <= 64*0x1p-24*max(e, of)
}
