//go:build !js

package planning

import (
	"fmt"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/plan"
)

// quote is a quoted training and what follows from it.
type quote struct {
	plan.Quote
	MFU float64 `json:"mfu"`

	// Likelier is the MFU with FLOPs that fit those of the other models; 0 where the quoted
	// ones do.
	Likelier float64 `json:"likelier,omitempty"`
}

func quotes() (all []quote) {
	for _, q := range plan.Quotes() {
		of := quote{Quote: q, MFU: q.MFU()}
		if q.Model == "GPT-4" {
			q.FLOPs = plan.GPT4FLOPs
			of.Likelier = q.MFU()
		}
		all = append(all, of)
	}
	return all
}

// QuotesFacts returns the days that practice quotes and the efficiencies that they imply.
func QuotesFacts() Facts {
	f := Facts{
		Title:   "Days that practice quotes",
		Columns: []string{"model", "FLOPs", "cards", "days", "MFU", "MFU with 2.1e+25"},
		Sentences: []string{
			"An account of practice quotes FLOPs and days, and no efficiency. The MFU follows, of H100 cards of 989 TFLOP/s in BF16.",
			"What does not fit: with 1e25 FLOPs GPT-4 would reach half the MFU of the others on the same cards; with 2.1e25 all nine are, rounded to days, those of 39.87, 35.9 and 30.7%. No one MFU fits a model: card-days rise by 26 to 31% from 1,024 to 10,000 cards.",
			"DeepSeek-V3's 3.4e24 are 8% below what its 14.8e12 tokens take in sequences of 4096 with a causal mask, and its own report has 12% more card-days than 97 on 1,024.",
		},
		JSON: map[string]any{"quotes": quotes(), "peak": plan.H100, "gpt4FLOPs": plan.GPT4FLOPs},
	}
	c := chart.Chart{
		Title: "Implied MFU", X: "cards", Y: "percent", Zero: true,
		Description: "The share of the cards' peak that the quoted days imply, by model and number of cards.",
	}
	for _, q := range quotes() {
		row := []string{q.Model, fmt.Sprintf("%.3g", q.FLOPs), grouped(int64(q.Cards)), fmt.Sprint(q.Days), fmt.Sprintf("%.2f%%", 100*q.MFU), ""}
		addBar(&c, q.Model, row[2], 100*q.MFU)
		if q.Likelier > 0 {
			row[5] = fmt.Sprintf("%.2f%%", 100*q.Likelier)
		}
		f.Rows = append(f.Rows, row)
	}
	for _, q := range quotes() {
		if q.Likelier > 0 {
			addBar(&c, fmt.Sprintf("%s with %.2g", q.Model, plan.GPT4FLOPs), grouped(int64(q.Cards)), 100*q.Likelier)
		}
	}
	f.Chart = c
	return f
}
