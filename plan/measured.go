package plan

// Measurement is the memory of a training that was published beside what a calculator said
// of it, in GiB: the most that a rank has allocated, and the most that its allocator reserved.
type Measurement struct {
	Rows     string   `json:"rows"` // of the published table that have the same memory
	Model    string   `json:"model"`
	Job      TrainJob `json:"job"`
	Measured float64  `json:"measured"`
	Reserved float64  `json:"reserved"`
	SimuMax  float64  `json:"simumax"`
}

// Measurements returns what was measured on 8 B200 with Megatron-LM 23e00ed and
// TransformerEngine 2.11, in BF16 with ZeRO-1, and what SimuMax 1.2 says (SimuMax,
// docs/b200/b200_release_v1.2_summary.md). Models are cut to few layers; the benchmark's 405B
// has 16 heads of keys and values where the real one has 8, and its DeepSeek-V3 one dense
// layer where that has three.
func Measurements() []Measurement {
	cut := func(name string, layers int) Model {
		m, err := Named(name)
		if err != nil {
			panic(err) // it is one of models
		}
		m.Layers = layers
		return m
	}
	llama70, v2 := cut("llama-3-70b", 12), cut("deepseek-v2", 4)
	llama405, v3 := cut("llama-3.1-405b", 4), cut("deepseek-v3", 4)
	llama405.KVHeads, v3.MoE.Dense = 16, 1
	var all []Measurement
	for _, c := range []struct {
		rows, name string
		model      Model
		sequence   int
		layout     Layout
		measured   float64
		reserved   float64
		simumax    float64
	}{
		{"1 9 17", "Llama 70B", llama70, 4096, Layout{Pipeline: 2}, 66.55, 70.88, 66.44},
		{"3 11 19", "Llama 70B", llama70, 4096, Layout{Tensor: 4}, 39.07, 40.18, 38.94},
		{"5 13 21", "DeepSeek-V2", v2, 4096, Layout{Expert: 8}, 45.63, 48.79, 45.40},
		{"7 15 23", "DeepSeek-V3", v3, 4096, Layout{Expert: 8}, 104.30, 110.18, 103.52},
		{"25 29 33", "Llama 405B", llama405, 4096, Layout{Pipeline: 2}, 87.08, 92.26, 86.88},
		{"27 31 35", "Llama 405B", llama405, 4096, Layout{Tensor: 4}, 52.89, 54.65, 52.68},
		{"37", "Llama 70B", llama70, 32768, Layout{Tensor: 2, Context: 4}, 68.43, 70.33, 68.16},
		{"39", "Llama 405B", llama405, 32768, Layout{Tensor: 2, Context: 4}, 87.03, 91.15, 86.55},
		{"41", "Llama 70B", llama70, 131072, Layout{Tensor: 2, Context: 4}, 112.67, 121.40, 111.80},
		{"43", "Llama 405B", llama405, 131072, Layout{Tensor: 2, Context: 4}, 118.13, 127.50, 116.50},
	} {
		c.layout.Ranks, c.layout.Zero = 8, 1
		job := TrainJob{
			Model: c.model, Layout: c.layout, Sequence: c.sequence, Library: TransformerEngine,
		}
		all = append(all, Measurement{c.rows, c.name, job, c.measured, c.reserved, c.simumax})
	}
	return all
}
