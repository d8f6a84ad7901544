package plan_test

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/plan"
)

// Models of the same cost under both laws: N·P = 220M·32 bits, 26B tokens. They
// do not agree on where bits run out.
func Example() {
	const size, tokens, block = 220e6 * 32, 26e9, 128
	kumar, err := plan.Kumar2024().Sweep(size, tokens, 32, 16, 12, 10, 8, 7, 6, 5, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	sun, err := plan.Sun2025().Sweep(size, tokens, block, 16, 8, 6, 5, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("Kumar  bits  N        L       penalty")
	for _, p := range kumar {
		fmt.Printf("%11g  %4.0fM  %8.4f  %.4f\n", p.Bits, p.N/1e6, p.Loss.Total, p.Loss.Precision)
	}
	fmt.Println("Sun    format  N        L       penalty")
	for _, p := range sun {
		fmt.Printf("%9s%gM%g  %4.0fM  %8.4f  %.4f\n", "E", p.Format.Exponent, p.Format.Mantissa, p.N/1e6, p.Loss.Total, p.Loss.Precision)
	}
	// Output:
	// Kumar  bits  N        L       penalty
	//          32   220M    3.1966  0.0000
	//          16   440M    3.1070  0.0007
	//          12   587M    3.0803  0.0032
	//          10   704M    3.0675  0.0069
	//           8   880M    3.0577  0.0153
	//           7  1006M    3.0558  0.0235
	//           6  1173M    3.0590  0.0374
	//           5  1408M    3.0748  0.0648
	//           4  1760M    3.1378  0.1408
	// Sun    format  N        L       penalty
	//         E8M7   440M    2.8178  0.0000
	//         E4M3   880M    2.7239  0.0002
	//         E3M2  1173M    2.6902  0.0013
	//         E2M2  1408M    2.6717  0.0036
	//         E2M1  1760M    2.6592  0.0154
}

// What a budget buys: the best precision with everything free, with a model size
// that is given, and with a format that is given.
func ExampleSun_Optimum() {
	const cost, block = 1e23, 128
	s := plan.Sun2025()
	show := func(what string, p plan.Training, err error) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%-9s %.2f bits, %.1fB parameters, %.2fT tokens, loss %.3f, %d warnings\n",
			what, p.Bits, p.N/1e9, p.D/1e12, p.Loss.Total, len(p.Loss.Warnings))
	}
	p, err := s.Optimum(cost, block)
	show("free", p, err)
	p, err = s.OptimumAtN(cost, 7e9, block)
	show("7B", p, err)
	p, err = s.OptimumAtFormat(cost, plan.Format{Exponent: 4, Mantissa: 3, Block: block})
	show("E4M3", p, err)
	p, err = s.OptimumAtFormat(cost, plan.Format{Exponent: 8, Mantissa: 7, Block: block})
	show("BF16", p, err)
	// Output:
	// free      4.72 bits, 171.8B parameters, 0.33T tokens, loss 2.142, 2 warnings
	// 7B        8.31 bits, 7.0B parameters, 4.59T tokens, loss 2.251, 2 warnings
	// E4M3      8.00 bits, 102.7B parameters, 0.32T tokens, loss 2.156, 2 warnings
	// BF16      16.00 bits, 63.4B parameters, 0.26T tokens, loss 2.186, 3 warnings
}

// The best precision does not depend on the budget, unless the size of the model
// is given.
func ExampleKumar_Optimum() {
	k := plan.Kumar2024()
	for _, cost := range []float64{1e19, 1e20, 1e21} {
		free, err := k.Optimum(cost)
		if err != nil {
			fmt.Println(err)
			return
		}
		fixed, err := k.OptimumAtN(cost, 220e6)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%.0e FLOPs: %.2f bits, of 220M parameters %.2f bits\n", cost, free.Bits, fixed.Bits)
	}
	// Output:
	// 1e+19 FLOPs: 7.00 bits, of 220M parameters 8.84 bits
	// 1e+20 FLOPs: 7.00 bits, of 220M parameters 11.61 bits
	// 1e+21 FLOPs: 7.00 bits, of 220M parameters 14.54 bits
}

// Below some bits a law has no answer, and outside the data it was fitted on it
// says so.
func ExampleKumar_Loss() {
	k := plan.Kumar2024()
	_, err := k.Loss(220e6, 26e9, plan.UniformBits(3))
	fmt.Println(err)
	e, err := k.Loss(70e9, 15e12, plan.UniformBits(8))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.3f\n", e.Total)
	for _, w := range e.Warnings {
		fmt.Println(w)
	}
	// Output:
	// plan: 3 bits for activations leave no effective parameters: N_eff reaches 0 at 3.11 bits, use more
	// 2.789
	// N is 7e+10, and the law is known from 3e+07 to 1.7e+09
	// D is 1.5e+13, and the law is known from 1.5e+09 to 2.6e+10
}

// Too much data makes a model worse that is trained in few bits.
func ExampleSun_CriticalData() {
	s := plan.Sun2025()
	for _, bits := range []int{4, 6, 8, 16} {
		f, err := s.BestWholeFormat(bits, 128)
		if err != nil {
			fmt.Println(err)
			return
		}
		p, err := s.CriticalData(1e9, f)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("E%gM%g: %.4gT tokens\n", f.Exponent, f.Mantissa, p.D/1e12)
	}
	// Output:
	// E2M1: 0.3928T tokens
	// E3M2: 4.797T tokens
	// E4M3: 27.33T tokens
	// E8M7: 1730T tokens
}

// DeepSeek-V3 on 2048 cards, with its recipe and without what it computes again.
func ExampleTrainJob_Memory() {
	m, err := plan.Named("deepseek-v3")
	if err != nil {
		fmt.Println(err)
		return
	}
	job := plan.TrainJob{
		Model:    m,
		Layout:   plan.Layout{Ranks: 2048, Pipeline: 16, Expert: 64, Last: 1, Zero: 1},
		Sequence: 4096, Batches: 120,
	}
	for _, name := range []string{"bf16", "deepseek-v3"} {
		if job.Precision, err = plan.NamedPrecision(name); err != nil {
			fmt.Println(err)
			return
		}
		for _, again := range []bool{false, true} {
			job.Recompute = plan.Recompute{Norms: again, Latent: again}
			memory, err := job.Memory()
			if err != nil {
				fmt.Println(err)
				return
			}
			s := memory.Peak()
			fmt.Printf("%-11s stage %d of %d: %5.1f GiB, %5.1f of them activations\n",
				name, s.Stage, len(memory.Stages), gigabytes(s.Total()), gigabytes(s.Activations))
		}
	}
	// Output:
	// bf16        stage 1 of 16: 118.4 GiB, 104.6 of them activations
	// bf16        stage 1 of 16:  80.9 GiB,  66.6 of them activations
	// deepseek-v3 stage 1 of 16:  84.1 GiB,  73.3 of them activations
	// deepseek-v3 stage 1 of 16:  47.5 GiB,  36.1 of them activations
}

// What octavo's nn would keep of Llama 3 8B on 8 cards of 80 GiB: what does not fit is computed
// again.
func ExampleTrainJob_SearchPolicies() {
	m, err := plan.Named("llama-3-8b")
	if err != nil {
		fmt.Println(err)
		return
	}
	job := plan.TrainJob{
		Model: m, Layout: plan.Layout{Ranks: 8, Zero: 1}, Library: plan.Library{Octavo: true},
		Sequence: 4096,
	}
	for _, search := range []bool{false, true} {
		if search {
			if job.Policies, err = job.SearchPolicies(context.Background(), 80<<30, plan.Headroom); err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println("layer 31:", job.Policies[31])
		}
		memory, err := job.Memory()
		if err != nil {
			fmt.Println(err)
			return
		}
		s := memory.Peak()
		fmt.Printf("%.1f GiB, %.1f of them activations, %.2f%% of a step's operations done again\n",
			gigabytes(s.Total()), gigabytes(s.Activations), 100*float64(s.Again)/float64(s.Operations))
	}
	// Output:
	// 107.1 GiB, 50.0 of them activations, 0.00% of a step's operations done again
	// layer 31: recompute norms, probabilities, product
	// 72.7 GiB, 15.4 of them activations, 1.12% of a step's operations done again
}

func gigabytes(n int64) float64 { return float64(n) / (1 << 30) }
