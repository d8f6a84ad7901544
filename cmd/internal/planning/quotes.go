package planning

import (
	"bufio"
	"fmt"
	"io"

	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
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

// WriteQuotes prints the days that practice quotes and the efficiencies that they imply.
func WriteQuotes(stdout io.Writer, asJSON bool) error {
	if asJSON {
		return jsonout.Print(stdout, map[string]any{"quotes": quotes(), "peak": plan.H100, "gpt4FLOPs": plan.GPT4FLOPs})
	}
	w := bufio.NewWriter(stdout)
	fmt.Fprintf(w, "%-12s %9s %8s %6s %7s\n", "model", "FLOPs", "cards", "days", "MFU")
	for _, q := range quotes() {
		fmt.Fprintf(w, "%-12s %9.3g %8s %6g %6.2f%%", q.Model, q.FLOPs, grouped(int64(q.Cards)), q.Days, 100*q.MFU)
		if q.Likelier > 0 {
			fmt.Fprintf(w, "   %.2f%% with %.2g", 100*q.Likelier, plan.GPT4FLOPs)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	for _, line := range []string{
		"An account of practice quotes FLOPs and days, and no efficiency. The MFU follows, of H100 cards of 989 TFLOP/s in BF16.",
		"What does not fit: with 1e25 FLOPs GPT-4 would reach half the MFU of the others on the same cards; with 2.1e25 all nine are, rounded to days, those of 39.87, 35.9 and 30.7%. No one MFU fits a model: card-days rise by 26 to 31% from 1,024 to 10,000 cards.",
		"DeepSeek-V3's 3.4e24 are 8% below what its 14.8e12 tokens take in sequences of 4096 with a causal mask, and its own report has 12% more card-days than 97 on 1,024.",
	} {
		fmt.Fprintln(w, textout.Wrap(line, 80, ""))
	}
	return w.Flush()
}
