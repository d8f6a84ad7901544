package plan

// Quote is a duration that practice quotes for a training on H100 cards.
type Quote struct {
	Model string  `json:"model"`
	FLOPs float64 `json:"flops"` // as the source has it
	Cards int     `json:"cards"`
	Days  float64 `json:"days"`
}

// MFU returns the share of the cards' peak that the quote implies, in BF16.
func (q Quote) MFU() float64 {
	return q.FLOPs / (float64(q.Cards) * H100 * q.Days * day)
}

// GPT4FLOPs is what GPT-4 must have taken for its days to imply the MFU of the other two
// models. No source states it.
const GPT4FLOPs = 2.1e25

// Quotes returns the days that an account of trainings on 10,000 cards quotes for three models
// on three sizes of clusters. It states FLOPs and days, and no MFU. What they imply:
//
//	cards                      1,024     5,000    10,000
//	DeepSeek-V3, 3.4e24      97 days   22 days   13 days    MFU 40.1, 36.2 and 30.6%
//	Kimi K2, 2.98e24         85 days   19 days   11 days    MFU 40.1, 36.7 and 31.7%
//	GPT-4, 1e25             602 days  137 days   80 days    MFU 19.0, 17.1 and 14.6%
//
// Not all of that fits. With 1e25 FLOPs GPT-4 would run at half the MFU of the others on the
// same cards; with [GPT4FLOPs] all nine are, after rounding, those of 39.87, 35.9 and 30.7%: 1e25
// is an order of magnitude. No single MFU gives a row: card-days rise from 99,328 to 130,000.
// The FLOPs of Kimi K2 are 6·32e9·15.5e12; those of DeepSeek-V3 are 3.5% above 6·37e9·14.8e12 and
// 8% below what [Model.TrainingFLOPs] gives for 14.8e12 tokens in sequences of 4096 with a
// causal mask. DeepSeek itself reports 2.664 million card-hours of H800 (arXiv 2412.19437,
// Table 1), which are 12% more card-days than 97 days on 1,024.
func Quotes() []Quote {
	var all []Quote
	for _, q := range []struct {
		model string
		flops float64
		days  [3]float64
	}{
		{"DeepSeek-V3", 3.4e24, [3]float64{97, 22, 13}},
		{"Kimi K2", 2.98e24, [3]float64{85, 19, 11}},
		{"GPT-4", 1e25, [3]float64{602, 137, 80}},
	} {
		for i, cards := range []int{1024, 5000, 10000} {
			all = append(all, Quote{q.model, q.flops, cards, q.days[i]})
		}
	}
	return all
}
