package comparison

import (
	"encoding/csv"
	"io"
	"strconv"
)

// WriteCurves writes a line for each step as CSV. Held-out losses are empty
// where the models were not judged.
func (r *Result) WriteCurves(w io.Writer) error {
	rows := [][]string{{"step", "learning_rate", "fp32_loss", "fp8_loss", "gap_percent",
		"fp32_gradient_norm", "fp8_gradient_norm", "fp32_held_out_loss", "fp8_held_out_loss"}}
	for _, p := range r.Points {
		rows = append(rows, []string{
			strconv.Itoa(p.Step), number(p.LearningRate),
			number(p.FP32.Loss), number(p.FP8.Loss), number(Gap(p.FP32.Loss, p.FP8.Loss)),
			number(p.FP32.GradientNorm), number(p.FP8.GradientNorm),
			judged(p.FP32.HeldOut), judged(p.FP8.HeldOut),
		})
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// WriteTelemetry writes a line for each kept event as CSV.
func (r *Result) WriteTelemetry(w io.Writer) error {
	rows := [][]string{{"step", "tensor", "op", "elements", "amax", "smallest", "saturated", "flushed", "subnormal",
		"zeros", "nan", "inf", "became_nonfinite", "blocks", "scale_min", "scale_max", "worst_row", "worst_col", "worst_lost_share"}}
	for _, e := range r.Events {
		s := e.Stats
		rows = append(rows, []string{
			integer(e.Step), e.Tensor, e.Op, integer(s.Elements), number(s.Amax), number(s.Smallest),
			integer(s.Saturated()), integer(s.Flushed), integer(s.Subnormal), integer(s.Zeros),
			integer(s.NaN), integer(s.PosInf + s.NegInf), integer(s.BecameNonFinite), integer(e.Blocks),
			number(float64(e.ScaleMin)), number(float64(e.ScaleMax)),
			strconv.Itoa(e.Worst.Row), strconv.Itoa(e.Worst.Col), number(e.Worst.LostShare()),
		})
	}
	return csv.NewWriter(w).WriteAll(rows)
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 8, 64) }

func integer(n int64) string { return strconv.FormatInt(n, 10) }

func judged(loss float64) string {
	if loss == 0 {
		return ""
	}
	return number(loss)
}
